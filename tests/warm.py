"""One Python process for all oracles of a suite.

To start Python and to import modules takes longer than most verdicts. So this process listens at the socket
$ORACLE_SOCKET, imports the modules of a script when the script is requested for the first time, and forks for each
request. The client is tests/oracle.c.
"""
import array
import ast
import atexit
import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
import traceback
import types

HEAD = struct.Struct("@NN")
N_FDS = 4       # standard input, output, error; the working directory
SCRIPTS = {}


def load(path):
    """The script as code. Its imports are done here, so that no child has to."""
    if path not in SCRIPTS:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read(), path)
        names = [node.module if isinstance(node, ast.ImportFrom) else alias.name for node in ast.walk(tree)
                 if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
        sys.path[0] = os.path.dirname(path)
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:       # the script itself will say so
                pass
        SCRIPTS[path] = compile(tree, path, "exec")
        gc.collect()
        gc.freeze()
    return SCRIPTS[path]


def receive(connection):
    """Arguments, environment and descriptors of a request."""
    size = array.array("i").itemsize
    head, control, _, _ = connection.recvmsg(HEAD.size, socket.CMSG_SPACE(N_FDS * size))
    fds = array.array("i", control[0][2] if control else b"")
    try:
        sizes = HEAD.unpack(head)
        data = bytearray()
        while len(data) < sum(sizes):
            more = connection.recv(sum(sizes) - len(data))
            if not more:
                raise EOFError
            data += more
        words = [os.fsdecode(word) for word in bytes(data).split(b"\0")[:-1]]
        n_arguments = data[:sizes[0]].count(0)
        return words[:n_arguments], dict(word.split("=", 1) for word in words[n_arguments:] if "=" in word), fds
    except (EOFError, struct.error):
        for fd in fds:
            os.close(fd)
        raise EOFError from None


def exit_status(script, path):
    """As if the interpreter had been started with it."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = path
    status = 0
    try:
        exec(script, main.__dict__)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
            status = 1
        else:
            status = (end.code or 0) & 255
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"{path}: standard output: {error}", file=sys.stderr)
        return 120
    return status


def child(connection, script, arguments, environment, fds):
    for fd in range(3):
        os.dup2(fds[fd], fd)
    os.fchdir(fds[3])
    for fd in fds:
        if fd > 2:
            os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = arguments
    sys.path[0] = os.path.dirname(arguments[0])
    connection.send(bytes([exit_status(script, arguments[0])]))


def answer(listener):
    connection, _ = listener.accept()
    with connection:
        try:
            arguments, environment, fds = receive(connection)
        except EOFError:
            return
        error = None
        try:
            script = load(arguments[0])
        except (OSError, SyntaxError) as caught:
            error = f"raise SystemExit({str(caught)!r})"
            script = compile(error, arguments[0], "exec")
        if os.fork() == 0:
            try:
                listener.close()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                child(connection, script, arguments, environment, fds)
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)


def ended(command):
    """Reap the children that have ended; the exit status of the command if it is one of them."""
    status = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == command:
            status = os.waitstatus_to_exitcode(code)


def serve(command, path):
    """Run the command, and answer at the socket `path` what it asks, until it ends."""
    wake, poke = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(poke)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(64)
        pid = os.posix_spawnp(command[0], command, {**os.environ, "ORACLE_SOCKET": path}, setsigdef=[signal.SIGPIPE])
        while True:
            ready, _, _ = select.select([listener, wake], [], [])
            if wake in ready:
                os.read(wake, 4096)
                status = ended(pid)
                if status is not None:
                    return status if status >= 0 else 128 - status
            if listener in ready:
                answer(listener)
