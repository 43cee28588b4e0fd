# Names with control characters and the like, through every verb and format: none of them comes out as it is.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

mkdir "$work/names"
oracle names "$blinkc" "$perf" "$work/names" ${full:+--full} || not_ok "names.py: exit $?"
