#!/usr/bin/env python3
"""Everything of this project that needs GPUs, in one command and one report.

usage: make check-gpu [CHECK_GPU="--seconds N --steps NAME,..."]

On a machine with NVIDIA GPUs, one or many: collectives against the real driver, with every element checked; what the
parts of a call take; sweeps of sizes, chunks, blocks and executors; CUDA graphs; generated code; and beside them what
copies reach, and NCCL where nccl-tests are (NCCL_TESTS=DIRECTORY, or on PATH). Where there is one GPU it has several
ranks. Without a GPU the same on virtual GPUs, whose times mean nothing, and the report says so.

The report is BUILD/check_gpu/report.md, and report.json. A step takes 2 minutes at most and all take 9; what did not
fit is named. Exit status 1: a result was wrong, or a step failed.
"""
import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import time

STEP_SECONDS, ALL_SECONDS = 120, 540
MOVING = ("broadcast", "gather", "scatter", "allgather", "alltoall")
REDUCING = ("reduce", "allreduce", "reducescatter")
KIB, MIB = 1 << 10, 1 << 20


def gpus_of_driver():
    """How many GPUs the real driver shows; 0 without a driver."""
    try:
        cuda, n = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
        return 0 if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(n)) else n.value
    except OSError:
        return 0


class Machine:
    """The GPUs, the ranks on them, and the environment by which programs find both."""

    def __init__(self, build):
        self.build, self.folder = build, f"{build}/check_gpu"
        self.gpus = gpus_of_driver()
        self.virtual = self.gpus == 0
        self.environment = dict(os.environ, BLINK_BACKEND="cuda", LC_ALL="C")
        for name in "BLINK_SCHEDULES", "BLINK_GPU", "BLINK_MACHINE":
            self.environment.pop(name, None)
        if self.virtual:
            driver = f"{self.folder}/driver"
            os.makedirs(driver, exist_ok=True)
            if not os.path.exists(f"{driver}/libcuda.so.1"):
                os.symlink(os.path.abspath(f"{build}/tests/virtual_gpu/libcuda.so.1"), f"{driver}/libcuda.so.1")
            self.gpus = 4
            self.environment.update(
                LD_LIBRARY_PATH=driver, CUDA_VISIBLE_DEVICES="0,1,2,3", VIRTUAL_GPU_TOPOLOGY="topologies/dgx1v.xml",
                VIRTUAL_GPU_KERNELS=f"{build}/tests/virtual_gpu/libblink-twins.so:"
                                    f"{build}/tests/check_gpu/parts-twins.so")
        # One GPU has four ranks: what they exchange goes through its memory.
        self.ranks = min(self.gpus, 8) if self.gpus > 1 else 4
        if self.gpus == 1:
            # Streams that share a hardware queue would wait for each other's kernels.
            self.environment.update(BLINK_DEVICE_MAP=",".join("0" * self.ranks), CUDA_DEVICE_MAX_CONNECTIONS="32")
        self.largest = 256 * KIB if self.virtual else 256 * MIB if self.gpus > 1 else 64 * MIB
        self.topology = None

    def run(self, words, seconds, more=None):
        """The exit status (None: not in time), and what it printed."""
        process = subprocess.Popen(words, env={**self.environment, **(more or {})}, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            out, _ = process.communicate(timeout=seconds)
            return process.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None, process.communicate()[0]


class Report:
    """What the steps have found: their states, figures by table, and lines of failures."""

    def __init__(self, machine, seconds):
        self.machine, self.end = machine, time.monotonic() + seconds
        self.step_end = self.end
        self.steps, self.tables, self.problems, self.facts = [], {}, [], {}

    def left(self):
        """Seconds, for this step."""
        return min(self.step_end, self.end) - time.monotonic()

    def row(self, table, **columns):
        self.tables.setdefault(table, []).append(columns)

    def problem(self, text):
        self.problems.append(text)

    def step(self, name, function):
        began = time.monotonic()
        self.step_end = began + STEP_SECONDS
        if self.left() < 5:
            self.steps.append({"step": name, "state": "not run: no time left", "s": 0})
            return
        print(f"{name} ...", end="", flush=True)
        before = len(self.problems)
        said = function(self.machine, self)
        state = said or ("passed" if self.left() >= 1 else "cut short")
        if len(self.problems) > before:
            state = "FAILED"
        self.steps.append({"step": name, "state": state, "s": round(time.monotonic() - began, 1)})
        print(f" {state}, {self.steps[-1]['s']} s", flush=True)

    def program(self, words, more=None, name=None):
        """Run it within the step's time; its output, or None, and a problem."""
        if self.left() < 1:
            return None
        status, out = self.machine.run(words, max(self.left(), 1), more)
        name = name or " ".join(os.path.basename(word) for word in words)
        if status == 0:
            return out
        last = [line for line in out.splitlines() if line.startswith(("not ok", "# ", "error", "blink"))][:6]
        what = "did not end in time" if status is None else f"exit {status}"
        self.problem(f"{name}: {what}: {' | '.join(last) or out[-300:]}")
        return None


# ---- steps ----

def look(machine, report):
    """What there is: GPUs, driver, wiring."""
    out = machine.run(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"], 30)[1] \
        if shutil.which("nvidia-smi") and not machine.virtual else ""
    report.facts.update(gpus=machine.gpus, ranks=machine.ranks, virtual=machine.virtual,
                        models=sorted(set(out.splitlines())) or ["virtual GPUs, of topologies/dgx1v.xml"])
    machine.topology = "topologies/dgx1v.xml"   # of one GPU's ranks, too: it has the memory, not the links
    if not machine.virtual and machine.gpus > 1:
        machine.topology = f"{machine.folder}/machine.xml"
        if report.program([f"{machine.build}/blinkc", "probe", "-q", "-o", machine.topology], name="probe") is None:
            machine.topology = None
    return None if machine.topology else "no topology: built-in schedules alone"


def results(machine, report):
    """Collectives, orders and messages, every element checked."""
    job, n = f"{machine.build}/tests/job", str(machine.ranks)
    many = "40" if machine.virtual else "276"
    cases = [(["matrix", "-n", n, "-t", "-c", many, "threads"], {}),
             (["gpu", "-n", n, "-t", "graph", "graph_uneven", "streams", "messages", "one_thread"], {}),
             (["matrix", "-n", n, "-t", "-c", many, "-m", "20000", "lines"], {"BLINK_PROTOCOL": "lines"})]
    if machine.gpus == 1:   # one process has one default stream, and few queues; processes take turns of some ms
        cases += [(["matrix", "-n", "2", "-c", "40", "processes"], {}),
                  (["gpu", "-n", "2", "graph", "graph_forked", "streams", "messages", "default_stream"], {}),
                  (["order", "-n", "2", "-k", "20", "stream", "in_turn", "groups", "leaving"], {})]
    else:
        cases += [(["matrix", "-n", n, "-c", many, "processes"], {}),
                  (["gpu", "-n", n, "-t", "default_stream"], {}),
                  (["gpu", "-n", n, "graph", "graph_forked", "streams", "messages"], {}),
                  (["order", "-n", n, "-t", "-k", "50", "stream", "several", "in_turn", "groups", "leaving"], {})]
    if machine.gpus > 1:
        cases.append((["matrix", "-n", n, "-v", "-c", many, "processes that see one GPU"], {}))
        cases.append((["matrix", "-n", n, "-c", "20", "BLINK_P2P=0"], {"BLINK_P2P": "0"}))
        cases.append((["matrix", "-n", n, "-t", "-c", many, "copy engines"], {"BLINK_COPY_ENGINES": "1"}))
    for words, more in cases:
        out = report.program([f"{job}/{words[0]}"] + words[1:], more, name=" ".join(words))
        if out is not None:
            report.row("results", job=" ".join(words), passed=sum(line.startswith("ok") for line in out.splitlines()))


def parts(machine, report):
    """What a launch, a fence, a barrier, a flag and copies take."""
    module = f"{machine.build}/tests/check_gpu/parts.ptx"
    if not os.path.exists(module):
        return "skipped: no nvcc or clang that makes PTX"
    divisor = ["-d", "1000"] if machine.virtual else []
    out = report.program([f"{machine.build}/tests/check_gpu/parts", *divisor, module], name="parts")
    for line in (out or "").splitlines():
        figure = json.loads(line)
        if "error" in figure:
            report.problem(f"parts: {figure['error']}")
            continue
        unit = next((unit for unit in ("us", "ns", "gb_per_s") if unit in figure), "")
        report.row("parts", part=figure["part"], device=figure["device"], to=figure.get("to", ""),
                   blocks=figure.get("blocks", ""), value=figure.get(unit, ""), unit=unit.replace("gb_per_s", "GB/s"))
    derive(report)
    return None


def derive(report):
    """What a chunk costs between two GPUs, from the parts, and what follows for its length (runtime/cuda/sizes.c)."""
    def value(part, device, to="", blocks=""):
        return next((row["value"] for row in report.tables.get("parts", ()) if (row["part"], row["device"], row["to"],
                     row["blocks"]) == (part, device, to, blocks)), None)
    pairs = dict.fromkeys((row["device"], row["to"]) for row in report.tables.get("parts", ()) if row["part"] == "flag")
    for device, to in pairs:
        ns = [value("fence", device, to), value("round trip of a flag", device, to), value("barrier", device)]
        rate = value("copy by kernel", device, to, 1)
        if None not in ns + [rate]:
            chunk_us = (2 * ns[0] + ns[1] / 2 + 2 * ns[2]) / 1000
            report.row("derived", device=device, to=to, chunk_us=round(chunk_us, 3), block_gb_per_s=rate,
                       chunk_cost_bytes=round(chunk_us * rate * 1000))


def perf(machine, report, collective, words, more=None, table="rates", **columns):
    out = report.program([f"{machine.build}/blink-perf", "--ranks", str(machine.ranks), "--threads-as-ranks",
                          "--backend", "cuda", "--collective", collective, "--format", "json", *words], more,
                         name=f"blink-perf {collective} {' '.join(words)}")
    for row in json.loads(out)["rows"] if out else []:
        best = min(("out_of_place", "in_place"), key=lambda place: row[place]["time_us"])
        wrong = row["out_of_place"]["wrong"] or row["in_place"]["wrong"]
        if wrong:
            report.problem(f"blink-perf {collective} {' '.join(words)}: {row['size_B']} bytes: {wrong} wrong")
        report.row(table, collective=collective, **columns, bytes=row["size_B"], us=round(row[best]["time_us"], 2),
                   bus_gb_per_s=round(row[best]["busbw_GBps"], 3), schedule=row["schedule"])


def sweep_words(machine, least=KIB, factor=8):
    few = ["-n", "2", "-w", "1"] if machine.virtual else ["-n", "10", "-w", "3"]
    return ["-b", str(least), "-e", str(machine.largest), "-f", str(factor), *few]


def sizes(machine, report):
    """Every collective, by kernels and by copy engines."""
    for collective in REDUCING + MOVING:
        perf(machine, report, collective, sweep_words(machine), {"BLINK_COPY_ENGINES": "0"}, executor="kernel")
    for collective in MOVING if machine.gpus > 1 else ():
        perf(machine, report, collective, sweep_words(machine, 64 * KIB), {"BLINK_COPY_ENGINES": "1"}, executor="copy")


def protocols(machine, report):
    """Packets, lines and flags, where each can serve: what else a call has goes by flags."""
    most = ["-b", "8K", "-e", "4M", "-f", "2"] if not machine.virtual else ["-b", "8K", "-e", "64K", "-f", "8"]
    few = ["-n", "2", "-w", "1"] if machine.virtual else ["-n", "10", "-w", "3", "--graph", "16"]
    for collective in "allreduce", "broadcast", "allgather":
        for protocol in "packets", "lines", "flags":
            perf(machine, report, collective, most + few, {"BLINK_PROTOCOL": protocol}, table="protocols",
                 protocol=protocol)
    return None


def planned(machine, report):
    """Schedules of this machine's wiring, beside rings on the same links."""
    if not machine.topology:
        return "skipped: no topology"
    ranks = ",".join(map(str, range(machine.ranks)))
    large = sweep_words(machine, machine.largest // 64)
    for collective in "allreduce", "allgather", "broadcast", "reducescatter":
        for algorithm in "auto", "ring":
            file = f"{machine.folder}/{collective}.{algorithm}.json"
            words = [f"{machine.build}/blinkc", "-q", machine.topology, "-g", ranks, "-c", collective, "-o", file]
            status, out = machine.run(words + (["-a", "ring"] if algorithm == "ring" else []), 60)
            if status == 0:
                perf(machine, report, collective, large, {"BLINK_SCHEDULES": file}, table="planned", plan=algorithm)
            elif algorithm == "auto":
                report.problem(f"blinkc {collective}: {out[-200:]}")
    return None


def chunks(machine, report):
    """Chunks, blocks and graphs, of a large allreduce."""
    size = machine.largest if machine.gpus > 1 else machine.largest // 4
    one = ["-b", str(size), "-e", str(size), "-n", "2" if machine.virtual else "10", "-w", "1"]
    for chunk in (16 * KIB, 64 * KIB) if machine.virtual else (16 * KIB, 64 * KIB, 256 * KIB, MIB):
        perf(machine, report, "allreduce", one + ["-C", str(chunk)], table="chunks", chunk=chunk)
    for blocks in (2, 8) if machine.virtual else (1, 2, 4, 8, 16, 32):
        perf(machine, report, "allreduce", one, {"BLINK_BLOCKS": str(blocks)}, table="blocks", blocks=blocks)
    for size in KIB, size // 16:
        perf(machine, report, "allreduce",
             ["-b", str(size), "-e", str(size), "-n", "2", "-w", "1", "--graph", "8"], table="graphs")


def generated(machine, report):
    """A kernel of one schedule, compiled by nvcc, beside the interpreter."""
    if not machine.topology:
        return "skipped: no topology"
    ranks, at = ",".join(map(str, range(machine.ranks))), f"{machine.folder}/generated"
    blinkc = f"{machine.build}/blinkc"
    if report.program([blinkc, "-q", machine.topology, "-g", ranks, "-o", f"{at}.json"], name="blinkc") is None \
            or report.program([blinkc, "convert", "-q", f"{at}.json", "--format", "cuda-kernel",
                               "-o", f"{at}.cu"]) is None:
        return None
    if machine.virtual:
        return "skipped: on virtual GPUs kernels of generated code have no twins by that name"
    if not shutil.which("nvcc"):
        return "skipped: no nvcc"
    if report.program(["nvcc", "-ptx", "-fmad=false", "-Iruntime/include", f"{at}.cu", "-o", f"{at}.ptx"]) is None:
        return None
    for kernels in "", f"{at}.ptx":
        perf(machine, report, "allreduce", sweep_words(machine), {"BLINK_SCHEDULES": f"{at}.json",
             "BLINK_KERNELS": kernels}, table="generated", kernel="generated" if kernels else "interpreted")
    return None


NCCL_TESTS = {"allreduce": "all_reduce_perf", "allgather": "all_gather_perf", "broadcast": "broadcast_perf",
              "reducescatter": "reduce_scatter_perf", "alltoall": "alltoall_perf", "sendrecv": "sendrecv_perf"}


def nccl(machine, report):
    """nccl-tests with NCCL, and with libblink-nccl.so in its place."""
    folder, found = os.environ.get("NCCL_TESTS", ""), 0
    if machine.virtual or machine.gpus < 2:
        return "skipped: NCCL wants two GPUs"
    for collective, name in NCCL_TESTS.items():
        program = shutil.which(name) or next((path for path in (f"{folder}/build/{name}", f"{folder}/{name}")
                                              if folder and os.path.exists(path)), None)
        for library in ("NCCL", "blink") if program else ():
            found += 1
            shim = {"LD_PRELOAD": os.path.abspath(f"{machine.build}/libblink-nccl.so")} if library == "blink" else {}
            out = report.program([program, "-g", str(machine.ranks), "-b", "1K", "-e", str(machine.largest), "-f", "8",
                                  "-n", "10", "-w", "3"], shim, name=f"{name} with {library}")
            for words in map(str.split, (out or "").splitlines()):
                if len(words) >= 12 and words[0].isdigit():
                    report.row("nccl", collective=collective, library=library, bytes=int(words[0]),
                               us=float(words[-8]), bus_gb_per_s=float(words[-6]), wrong=words[-5])
    return None if found else "skipped: no nccl-tests: name them by NCCL_TESTS"


STEPS = {"look": look, "results": results, "parts": parts, "sizes": sizes, "protocols": protocols, "planned": planned,
         "chunks": chunks, "generated": generated, "nccl": nccl}


# ---- the report ----

def markdown(report):
    lines = ["# GPUs", "", ("**No GPU was there**: these are virtual GPUs, whose times mean nothing."
                            if report.machine.virtual else "Measured on " + ", ".join(report.facts.get("models", []))
                            + f": {report.machine.gpus} GPUs, {report.machine.ranks} ranks."), "",
             "| step | state | s |", "| --- | --- | --- |"]
    lines += [f"| {step['step']} | {step['state']} | {step['s']} |" for step in report.steps]
    for problem in report.problems:
        lines += ["", f"- FAILED: {problem}"]
    for table, rows in report.tables.items():
        names = list(dict.fromkeys(name for row in rows for name in row))
        lines += ["", f"## {table}", "", "| " + " | ".join(names) + " |", "| --- " * len(names) + "|"]
        lines += ["| " + " | ".join(str(row.get(name, "")) for name in names) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=ALL_SECONDS, metavar="N", help=f"at most; {ALL_SECONDS}")
    parser.add_argument("--steps", default=",".join(STEPS), help="of " + ", ".join(STEPS))
    args = parser.parse_args()
    steps = args.steps.split(",")
    if not set(steps) <= set(STEPS):
        parser.error(f"--steps: want some of {', '.join(STEPS)}")
    machine = Machine(os.environ.get("BUILD", "build"))
    os.makedirs(machine.folder, exist_ok=True)
    report = Report(machine, args.seconds)
    print("no GPU: on virtual GPUs" if machine.virtual else f"{machine.gpus} GPUs, {machine.ranks} ranks")
    for name in dict.fromkeys(["look"] + steps):
        report.step(name, STEPS[name])
        write(f"{machine.folder}/report.json", json.dumps({"facts": report.facts, "steps": report.steps,
              "problems": report.problems, "tables": report.tables}, indent=1))
        write(f"{machine.folder}/report.md", markdown(report))
    for problem in report.problems:
        print(f"FAILED: {problem}")
    print(f"report: {machine.folder}/report.md, {machine.folder}/report.json")
    return bool(report.problems)


if __name__ == "__main__":
    sys.exit(main())
