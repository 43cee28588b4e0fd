# Odd places to write to and to read from: devices, pipes, links, descriptors; what is no regular file below a
# directory.
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

mkdir "$work/places"
cd "$work/places" || exit 1
v=$top/topologies/dgx1v.xml
compile() { timeout 60 "$blinkc" -q -g 0,1,2 "$v" "$@"; }
compile -o want.json || not_ok "cannot compile"
same() { expect "$1" cmp want.json "$2"; }

# A regular file, wherever it is, is replaced as a whole.
if [ -w /dev/shm ]; then
	shm=$(mktemp -d /dev/shm/blinkc.XXXXXX)
	compile -o "$shm/x.json"
	same "a new file in /dev/shm" "$shm/x.json"
	head -c 100000 /dev/zero | tr '\0' x >"$shm/x.json"
	compile -o "$shm/x.json"
	same "a longer file in /dev/shm" "$shm/x.json"
	rm -r "$shm"
else
	skip "/dev/shm: it cannot be written"
fi
head -c 100000 /dev/zero >target
ln -s target link
compile -o link
same "what a link leads to" target
if [ -L link ]; then ok "a link stays"; else not_ok "a link stays"; fi
ln -s later dangling
compile -o dangling
same "what a link is to lead to" later

# Descriptors of the process are written on, where they are.
for path in /dev/stdout /dev/fd/1 /proc/self/fd/1 -; do
	echo first >out
	compile -o "$path" >>out
	{ echo first; cat want.json; } >both
	expect "$path is appended to" cmp both out
done
compile -o /dev/fd/5 5>fifth
same "/dev/fd/5" fifth
expect_exit "a descriptor that is not open" 8 "$blinkc" -q -g 0,1,2 "$v" -o /dev/fd/9
mkfifo pipe
cat pipe >piped &
compile -o pipe
wait $!
same "a pipe" piped
if [ -p pipe ]; then ok "a pipe stays"; else not_ok "a pipe stays"; fi
expect "/dev/null" compile -o /dev/null
if [ -c /dev/null ]; then ok "/dev/null stays"; else not_ok "/dev/null stays"; fi

# A path on the command line may be a pipe.
expect "check of a pipe" bash -c 'timeout 60 "$1" check -q <(cat want.json)' - "$blinkc"
for path in - /dev/stdin; do
	expect "blink-perf $path" bash -c 'cat want.json | timeout 60 "$1" '"$path"' -b 1K -e 1K -n 1 -w 0' - "$perf"
done
expect "blink-perf of a pipe" bash -c 'timeout 60 "$1" <(cat want.json) -b 1K -e 1K -n 1 -w 0' - "$perf"

# Below a directory, and in an index, it may not: nobody waits for it.
timeout 60 "$blinkc" batch -q "$v" --collectives broadcast --sizes 2 -o many || not_ok "batch: exit $?"
file=$(sed -n 's/.*"file": *"\([^"]*\)".*/\1/p' many/index.json | head -1)
rm "many/$file"
mkfifo "many/$file"
timeout 20 "$blinkc" check many >out 2>err
got=$?
if [ $got = 3 ] && grep -q "$file: no such file" err; then
	ok "check of an index that names a pipe"
else
	not_ok "check of an index that names a pipe: exit $got"
fi
for verb in "report many -o page.html" "show many -g 0,1 -c broadcast -r 0"; do
	# shellcheck disable=SC2086 # words
	timeout 20 "$blinkc" $verb >out 2>err
	got=$?
	if [ $got != 124 ]; then ok "$verb: ends"; else not_ok "$verb: waits for a pipe"; fi
done
timeout 20 "$perf" many -g 0,1 --collective broadcast --root 0 -b 1K -e 1K -n 1 -w 0 >out 2>err
got=$?
if [ $got != 124 ]; then
	ok "libblink does not wait for a pipe of an index"
else
	not_ok "libblink waits for a pipe of an index"
fi
timeout 20 "$blinkc" batch -q "$v" --collectives broadcast --sizes 2 -o many >out 2>err
got=$?
if [ $got != 124 ]; then
	ok "batch does not wait for a pipe in place of a schedule"
else
	not_ok "batch waits for a pipe"
fi
