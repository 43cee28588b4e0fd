#!/usr/bin/env python3
"""Run a command whose standard error is a terminal; standard output goes nowhere.

usage: terminal.py FILE COMMAND...     FILE is what the terminal gets; the exit status is the command's
"""
import os
import pty
import sys


def main(path, command):
    with open(path, "wb") as seen:
        pid, terminal = pty.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(command[0], command)
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:     # Linux, once the other end is closed
                break
            if not data:
                break
            seen.write(data)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
