# A few of tests/mutations, others with each commit: the suite that each names fails. `make mutations` tries all.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "mutations: this build has a sanitizer"
	exit 0
fi
JOBS=1 tests/mutate --some 2
