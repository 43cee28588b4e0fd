"""Open MPI and gloo over the networks of links.py: a rank in each namespace, over TCP by the same routes. Between GPUs
without a link packets are forwarded by others.

Each function returns the seconds of a call, the median of some; None: it is not installed, or has no such call.
"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 2
SECONDS = 300
# mpirun starts its daemon on "host" gK by this, in place of ssh: in the namespace, under that name.
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "$NAMESPACES-${host#g}" unshare --uts sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
"""


def seconds(name, done):
    if done.returncode:
        raise RuntimeError(f"{name}: {(done.stderr or done.stdout).strip()[-600:]}")
    return float(done.stdout.split()[-1]) / 1e6


def program_of_mpi(build):
    """Compiled by Open MPI's compiler; None: there is none."""
    program = f"{build}/tests/bench/peers_openmpi"
    for compiler in ("mpicc.openmpi", "mpicc"):
        shown = shutil.which(compiler) and subprocess.run([compiler, "-show"], capture_output=True, text=True).stdout
        if shown and "openmpi" in shown:
            os.makedirs(os.path.dirname(program), exist_ok=True)
            subprocess.run([compiler, "-O2", "-o", program, f"{HERE}/peers_mpi.c"], check=True)
            return os.path.abspath(program)
    return None


def openmpi(lab, build, gpus, collective, size, rules=None, calls=None):
    """rules: a file of Open MPI's. calls: at most so many in a round; ranks then give their processor away while they
    wait, as a call is short beside a time slice."""
    program = program_of_mpi(build)
    if not program:
        return None
    with tempfile.TemporaryDirectory() as folder:
        agent = f"{folder}/agent"
        with open(agent, "w") as file:
            file.write(AGENT)
        os.chmod(agent, os.stat(agent).st_mode | stat.S_IXUSR)
        hosts = ",".join(f"g{gpu}:1" for gpu in gpus)
        settings = {"plm": "rsh", "plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": "1", "oob_tcp_if_include": "meet",
                    "pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": "rank"}
        if rules:
            settings.update({"coll_tuned_use_dynamic_rules": "1", "coll_tuned_dynamic_rules_filename": rules})
        if calls:
            settings["mpi_yield_when_idle"] = "1"
        words = [agent, f"g{gpus[0]}", "mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", str(len(gpus)),
                 "--host", hosts, *(word for setting in settings.items() for word in ("--mca", *setting)), "-x",
                 "NAMESPACES", program, str(size), str(size), collective, str(ROUNDS), *([str(calls)] if calls else [])]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS,
                              env=dict(os.environ, NAMESPACES=lab.prefix))
    return seconds("Open MPI", done)


def python_of_torch():
    for python in (os.environ.get("TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


def gloo(lab, build, gpus, collective, size):
    python = python_of_torch()
    if not python or collective not in ("allreduce", "allgather", "broadcast"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(["ip", "netns", "exec", lab.name(lab.gpus[gpu]), python, f"{HERE}/peers_gloo.py",
                                   str(len(gpus)), str(size), str(size), collective, str(ROUNDS), str(rank),
                                   f"{folder}/store"], env=dict(os.environ, GLOO_SOCKET_IFNAME="rank"),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for rank, gpu in enumerate(gpus)]
        said = [rank.communicate() for rank in ranks]
    for rank, (out, err) in zip(ranks, said):
        if rank.returncode:
            raise RuntimeError(f"gloo: {err.strip()[-600:]}")
    return float(said[0][0].split()[-1]) / 1e6
