"""The rounds of the full test: what takes longest is done by every third commit, in turn.

A commit has one of the three rounds, the next commit the next one; after three commits that follow each other all has
been done. A suite of a round has all of its cases in that round. In the others it has those of the quick check, or, if it
is no suite of the quick check, none. A suite among the parts of rounds has the cases of the full test with each commit,
but for those that stand behind `in_round NAME` (tests/lib.sh). All other suites are the same with each commit; fuzzing,
for a short while, too, under AddressSanitizer and UBSan. What runs under ThreadSanitizer, and the packages, are builds of
the whole tree: that is why they stand apart.

`whole=1 make check-full` does all at once, and so does `tests/run --full SUITE` for a suite that is named.
To place a new suite: the rounds should take alike; tests/run says what each suite takes.
"""
import collections
import os
import subprocess

# builds: what make has to build besides the programs and their tests.
Round = collections.namedtuple("Round", "name builds suites parts")
ROUNDS = (
    Round("asan", ["tests-asan"], "asan collectives kernels budget runtime failures whatif".split(), "cuda gpu job json nccl tuner unit".split()),
    Round("tsan", ["tests-fuzz", "tests-tsan"], "stack valgrind docs batch netns".split(), "cost cuda gpu job nccl unit".split()),
    Round("packages", ["tests-fuzz"], "deb wheel scale servers exact report worth names cli threephase fewest".split(),
          "gpu job".split()),
)
# These are not in the quick check.
FULL_ONLY = {"asan", "deb", "fuzz", "mutations", "stack", "torch", "torchnccl", "valgrind", "wheel"}


def count_commits():
    """How many there are; 0 where there is no history, as in a release."""
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    return int(counted.stdout) if counted.returncode == 0 else 0


def rounds_of(commits, named=False):
    """Those that the full test of this commit has, or that of suites that were named."""
    return ROUNDS if named or os.environ.get("whole") else (ROUNDS[commits % len(ROUNDS)],)


def is_left_out(name, rounds):
    """Whether the suite has no more than in the quick check, as it is of another round."""
    return any(name in part.suites for part in ROUNDS) and not any(name in part.suites for part in rounds)


def environment(name, full, commits, rounds):
    """What a suite reads (tests/lib.sh). Its cases that alternate in other ways do so each time that it runs them."""
    alternates = full and any(name in part.suites + part.parts for part in ROUNDS)
    return {"full": "1" if full and not is_left_out(name, rounds) else "",
            "rounds": " ".join(part.name for part in rounds),
            "commits": str(commits // len(ROUNDS) if alternates else commits)}


def put_off(commits):
    """For people: what other commits have, a line for each round."""
    for ahead in range(1, len(ROUNDS)):
        later = ROUNDS[(commits + ahead) % len(ROUNDS)]
        whole = ", ".join(name for name in later.suites if name in FULL_ONLY)
        more = ", ".join(name for name in later.suites if name not in FULL_ONLY)
        yield (f"skip round {later.name}: with the {'next commit' if ahead == 1 else 'commit after the next'}: {whole}; "
               f"more cases of {more}; parts of {', '.join(later.parts)}")
