"""Plans and simulations by blinkc, each made once. Files go to a directory of their own, below build/."""
import concurrent.futures
import functools
import hashlib
import json
import os
import subprocess
import threading

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def once(method):
    """Answers of the same question are kept; who asks meanwhile waits."""
    @functools.wraps(method)
    def asked(self, *question):
        key = (method.__name__, question)
        with self.lock:
            answer = self.answers.get(key)
            mine = answer is None
            if mine:
                answer = self.answers[key] = concurrent.futures.Future()
        if mine:
            try:
                answer.set_result(method(self, *question))
            except BaseException as error:      # also whoever waits has to know
                answer.set_exception(error)
        return answer.result()
    return asked


class Lab:
    """blinkc: the program; folder: where schedules and topologies go; jobs: how many processes at once."""

    def __init__(self, blinkc, folder, jobs):
        self.blinkc, self.folder, self.jobs = os.path.abspath(blinkc), folder, jobs
        self.lock, self.answers = threading.Lock(), {}
        os.makedirs(folder, exist_ok=True)

    def map(self, function, items):
        """A list, in order. Not within itself: the processes are counted in one place."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))

    def run(self, *arguments):
        done = subprocess.run([self.blinkc, *map(str, arguments)], cwd=TOP, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError(f"blinkc {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr.strip()}")
        return done

    def file(self, content, suffix):
        """The path of a file with this text, named by it."""
        path = os.path.join(self.folder, hashlib.sha256(content.encode()).hexdigest()[:16] + suffix)
        if not os.path.exists(path):
            part = f"{path}.{threading.get_ident()}"
            with open(part, "w", encoding="utf-8") as file:
                file.write(content)
            os.replace(part, path)
        return path

    @once
    def plan(self, machine, *options):
        """The path of the schedule of `blinkc MACHINE OPTIONS`."""
        return self.file(self.run("-q", *options, machine).stdout, ".json")

    @once
    def topology(self, *options):
        """The path of what `blinkc topology OPTIONS` writes."""
        return self.file(self.run("topology", *options).stdout, ".json")

    @once
    def summary(self, machine, *options):
        """What `blinkc --summary json` says of a plan: rate, bound, baselines."""
        return json.loads(self.run("--summary", "json", *options, machine, "-o", os.devnull).stderr.splitlines()[-1])

    def chosen(self, machine, size, *options):
        """What `blinkc --size` says of the algorithm that takes least time for a message of `size` bytes: way, time_us,
        least_us."""
        return self.summary(machine, "--size", str(int(size)), *options)["chosen"]

    @once
    def simulate(self, schedule, size, *options):
        """What `blinkc simulate` says of a message of `size` bytes: time_ps, algbw, chunk and so on."""
        done = self.run("simulate", "-q", "--format", "json", "--size", int(size), *options, schedule)
        return json.loads(done.stdout)["sizes"][0]

    def us(self, schedule, size, *options):
        return self.simulate(schedule, size, *options)["time_ps"] / 1e6

    def gb_per_s(self, schedule, size, *options):
        return self.simulate(schedule, size, *options)["algbw"]

    def parameters(self, **executors):
        """The path of a file for --parameters."""
        return self.file(json.dumps(executors, sort_keys=True), ".parameters.json")
