# Two of tests/mutations, one under a sanitizer: the suite that each names fails. `make mutations` tries all, which
# takes an hour; the suite layers sees that they apply.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "mutations: this build has a sanitizer"
	exit 0
fi
JOBS=1 tests/mutate any-map-is-an-isomorphism digits-without-room
