# What files cost: CPU time and memory for each byte, over the files of the repository, mutants of them, and files that
# are made to cost more than their size.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

if nm -D "$blinkc" | grep -q '__[at]san_init'; then
	skip "cost: this build has a sanitizer"
	exit 0
fi
oracle cost corpus "$blinkc" "$build/tests/cost" "$work" --mutants $((${full:-0} ? 8 : 1)) --part \
	1/$([ "$full" ] && echo 1 || echo 9) || not_ok "corpus: exit $?"
oracle cost hostile "$blinkc" "$build/tests/cost" "$work" || not_ok "hostile: exit $?"
[ "$full" ] || exit 0
oracle cost hostile "$blinkc" "$build/tests/cost" "$work" --full || not_ok "hostile, large: exit $?"
