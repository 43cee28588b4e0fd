# The directions between the folders of src/: every #include and every call goes the way that src/LAYERS says, and no
# files form a circle. Lines of code have at most 120 columns. Mutations apply.
# shellcheck shell=bash
. "$(dirname "$0")/../lib.sh"

oracle layers "$top" "$build"

# shellcheck disable=SC2046 # paths without blanks
wide=$(cd "$top" && awk -F '\t' '{
	width = 0
	for (i = 1; i < NF; i++) {
		width += length($i)
		width += 8 - width % 8
	}
	if (width + length($NF) > 120)
		print FILENAME ":" FNR
}' $(find src runtime tests -name '*.[ch]'))
if [ -z "$wide" ]; then ok "lines of at most 120 columns"; else not_ok "longer than 120 columns: ${wide:0:300}"; fi

# Each edit of tests/mutations still has its lines in the sources.
lost=$(cd "$top" && tests/mutate --apply 2>&1)
if [ -z "$lost" ]; then ok "mutations apply"; else not_ok "mutations: ${lost:0:300}"; fi

# The rounds of the full test: each suite is in one of them at most, and what stands behind in_round is among its parts.
oracle snippet - "$top" >"$work/out" 2>&1 <<'END'
import os, re, sys
sys.path.insert(0, f"{sys.argv[1]}/tests")
from rounds import FULL_ONLY, ROUNDS, environment, rounds_of
suites = {name[:-3]: open(f"{sys.argv[1]}/tests/suite/{name}").read() for name in os.listdir(f"{sys.argv[1]}/tests/suite")}
names = [name for part in ROUNDS for name in part.suites]
assert len(names) == len(set(names)), f"twice: {names}"
for name in [*names, *FULL_ONLY, *(name for part in ROUNDS for name in part.parts)]:
    assert name in suites, f"no suite {name}"
rows = {row[0]: row[1] for row in re.findall(r"^\| `(\w+)` \| (.*?) \|", open(f"{sys.argv[1]}/docs/design.md").read(), re.M)}
for part in ROUNDS:
    alone = {name for name in part.suites if name in FULL_ONLY}
    assert alone == set(re.findall(r"\w+", rows[part.name])), f"docs/design.md: {part.name} has {sorted(alone)}"
os.environ.pop("whole", None)
for name, text in suites.items():
    asked = {part.name for part in ROUNDS if re.search(rf"in_round {part.name}\b", text)}
    assert asked == {part.name for part in ROUNDS if name in part.parts}, f"{name}: in_round of {sorted(asked)}"
    assert not asked or name not in names, f"{name}: of a round, and of parts of rounds"
    for first in range(4):
        full = [environment(name, True, commits, rounds_of(commits))["full"] for commits in range(first, first + 3)]
        assert "1" in full, f"{name}: no full test after commit {first}"
END
if [ ! -s "$work/out" ]; then ok "the rounds of the full test"; else not_ok "the rounds of the full test: $(tail -1 "$work/out")"; fi
