# blinkc what-if, --without and --relay: rates on what is left of a machine, and with GPUs that forward, are those of
# its topology file edited by hand (tests/oracle/losses.py).
# shellcheck shell=bash source=tests/lib.sh
. tests/lib.sh

v=topologies/dgx1v.xml

# ---- every single loss ----

if [ "$full" ]; then
	expect "DGX-1V: each loss, every job" oracle losses "$blinkc" what-if $v
	expect "DGX-1P: each loss, every job" oracle losses "$blinkc" what-if topologies/dgx1p.xml
	expect "DGX-1V: each loss, jobs of 2 to 5 GPUs, broadcast" oracle losses "$blinkc" what-if $v \
		--sizes 2-5 -c broadcast
else
	expect "DGX-1V: jobs of 2 to 4 GPUs" oracle losses "$blinkc" what-if $v --sizes 2-4 --every 8 --first 2
	expect "DGX-1V: jobs of 3 GPUs, broadcast" oracle losses "$blinkc" what-if $v --sizes 3 \
		-c broadcast --every 9 --first 4
	expect "DGX-1P: jobs of 2 to 4 GPUs" oracle losses "$blinkc" what-if topologies/dgx1p.xml --sizes \
		2-4 --every 7 --first 1
fi
expect "a ranking" "$blinkc" what-if $v -n 4
has "its losses" '^losses      57: 49 change jobs$'
has "GPUs first" '^ +50\.0 % +0 +0 +35 +100\.0 %  gpu0 +0-3$'
expect "all of it" "$blinkc" what-if $v -n 4 -v
if [ "$(wc -l <"$work/out")" = 61 ]; then ok "57 lines"; else not_ok "$(wc -l <"$work/out") lines, want 61"; fi

# ---- some ----

expect "a link" "$blinkc" what-if $v --without gpu7-gpu3
has "what is lost" '^machine     dgx1v, 8 GPUs, without gpu3-gpu7$'
has "how many jobs" '^jobs        247 sets of GPUs, allreduce: 60 slower, 0 not connected any more, 187 as before$'
has "the worst" '^ +25 +6 +76\.0 %  3,7$'
expect "links that were the only ones" "$blinkc" what-if $v -l nvlink --without gpu0-gpu3,gpu0-gpu4 -n 2
has "jobs without any link" '^ +50 +none +100\.0 %  0,3$'
expect "a GPU and a link" "$blinkc" what-if $v --without gpu4 --without gpu0-gpu3:1 -n 2
has "jobs of a GPU that is lost" '^ +50 +lost +100\.0 %  0,4$'
has "jobs of the link" '^ +50 +25 +50\.0 %  0,3$'
expect "a list of jobs" "$blinkc" what-if $v --without gpu:4 -g <(echo 0-3; echo 0,4)
has "of the list alone" '^jobs        2 sets of GPUs, allreduce: 0 slower, 0 not connected any more, '\
'1 with a GPU that is lost, 1 as before$'
"$blinkc" what-if $v -n 2-3 -j 1 --format json >"$work/1.json" && "$blinkc" what-if $v -n 2-3 -j 7 -o "$work/7.json"
expect "the same bytes with any number of processes" cmp "$work/1.json" "$work/7.json"
expect "its schema" oracle validate schemas/what-if.schema.json "$work/1.json"

# ---- names of parts ----

# GPUs of a server by their places, as those of a tray; one of several links to a switch.
left() { "$blinkc" -q --synthetic "server:3 gpu:6 switch:18@50 net:50" --without "$1" -o "$work/$2.json"; }
left s1:2-4,s2:0 places && left s1/gpu2,s1/gpu3,s1/gpu4,s2/gpu0 ids &&
	expect "GPUs by their places" cmp "$work/places.json" "$work/ids.json"
left s1/gpu3-s1/switch:2 ports && expect "links to a switch" grep -q '"capacity": 800' "$work/ports.json"
expect_exit "a server has not so many" 3 left s1:4-6 none

# lost WANT NAME...: --without NAME is called so
lost() {
	local want=$1
	shift
	"$blinkc" -q "$machine" "${@/#/--without=}" -g 0,1 -o "$work/s.json" 2>"$work/err" ||
		not_ok "$*: $(cat "$work/err")"
	if grep -q "\"name\": \"odd without $want\"" "$work/s.json"; then ok "$* is $want"; else
		not_ok "$*: $(grep '"name"' "$work/s.json" | head -1), want $want"; fi
}
machine=$work/odd.json
oracle snippet - >"$machine" <<-'END'
	import json
	def link(a, b, **more):
	    return {"from": a, "to": b, "class": "nvlink", "capacity": 24, **more}
	gpus = ["a", "b", "a-b", "b-a", "a:1", "a-b:1", "3"]
	links = [link("a", "b", count=4), link("a", "a-b"), link("b", "b-a", count=2), link("a-b", "b"),
	         link("a:1", "a"), link("a-b:1", "b"), link("3", "a"), link("a", "n0", **{"class": "pcie"}),
	         link("3", "a", **{"class": "pcie"}), link("b", "n0", **{"class": "pcie"})]
	print(json.dumps({"format": "blink-topology", "version": 1, "name": "odd", "links": links,
	    "nodes": [{"id": "n", "gpus": [{"id": g} for g in gpus], "nics": [{"id": "n0"}]}]}))
	END
lost a-b:1 a-b:1
lost a-a:1 a:1-a
lost b-a b-a
lost b-b-a:1 b-b-a:1
lost b-b-a b-b-a:2
lost a-3 3-a
lost a:1 gpu:4
lost 3 gpu:3
lost n0 nic:n0
lost n0,3 n0,3
lost n0,3 n0 3
fails() {
	expect_exit "$1" 3 "$blinkc" "$machine" --without "$2" -g 0,1
	if grep -qF -- "--without: $3" "$work/err"; then ok "$1: told"; else not_ok "$1: $(cat "$work/err")"; fi
}
fails "no such part" x '"x": odd has no such part: want a link, as a-b, or the id of a GPU, NIC or switch'
fails "another kind" nic:a '"nic:a": odd has no such part'
fails "no link between the two" a-a-b:1 '"a-a-b:1": odd has no such part'
fails "too many" b-b-a:3 'b-b-a:3: odd has 2 there: want 1 to 2'
fails "some of several classes" a-3:1 'a-3:1: links of several classes, nvlink,pcie: want all lost'
fails "a name of several" b-a-b:2 '"b-a-b:2": odd has several links that are called so'
fails "an empty part" n0, '"": odd has no such part'
expect_exit "a GPU that is asked for" 3 "$blinkc" $v --without gpu1 -g 0,1
expect_exit "no GPU left" 3 "$blinkc" $v --without gpu0,gpu1,gpu2,gpu3,gpu4,gpu5,gpu6,gpu7
expect_exit "nothing connects them" 5 "$blinkc" $v -l nvlink --without gpu0-gpu3 -g 0,3
expect_exit "what-if: too few GPUs left" 3 "$blinkc" what-if $v --without gpu0,gpu1,gpu2,gpu3,gpu4,gpu5,gpu6

# ---- schedules of what is left ----

expect "compile without a link" "$blinkc" -q $v --without gpu3-gpu0:1 --without gpu5 -o "$work/left.json"
expect "it is replayed" oracle replay "$work/left.json"
expect "it is for this machine" "$blinkc" check --topology $v "$work/left.json"
sed 's/"gpu0-gpu3:1"/"gpu0-gpu3"/' "$work/left.json" >"$work/wrong.json"
expect "and for no other loss" test \
	"$("$blinkc" check -q --topology $v "$work/wrong.json" 2>&1 | sed 's/.*: //' | tr '\n' '|')" = \
	'removed, had 25 GB/s|removed, had 25 GB/s|1 has other links between its GPUs|'
expect_exit "a loss that it does not have" 3 "$blinkc" check -q --topology topologies/dgx2.xml "$work/left.json"

# ---- relays ----

expect "relays: one" oracle losses "$blinkc" relay $v gpu1,gpu4,gpu6 gpu5
expect "relays: two" oracle losses "$blinkc" relay $v gpu0,gpu7 gpu3,gpu4
expect "relays: a broadcast" oracle losses "$blinkc" relay $v gpu2,gpu5,gpu0 gpu1,gpu7 -c broadcast
expect "relays: blocks" oracle losses "$blinkc" relay $v gpu2,gpu5,gpu0 gpu1,gpu6 -c alltoall
expect "the rest" "$blinkc" $v -g 1,4,6 --relay rest -o "$work/relay.json"
has "its rate" '^rate        112\.5 GB/s'
has "the gain" '^relays      gpu0 gpu2 gpu3 gpu5 gpu7; 6 GB/s without relays: 18\.8 times that$'
expect "relays: replayed" oracle replay "$work/relay.json"
expect "relays: for this machine" "$blinkc" check --topology $v "$work/relay.json"
expect "relays: executed" "$perf" "$work/relay.json" -b 1K -e 64K -n 1
expect "relays: a picture" "$blinkc" show "$work/relay.json" -o "$work/relay.svg"
expect "relays that do not help" "$blinkc" $v -g 0,1,2,3 --relay gpu6 -o "$work/s.json"
has "none is used" '^relays      none; 75 GB/s without relays: 1 times that$'
expect "GPUs that nothing else connects" "$blinkc" $v -l nvlink -g 0,7 --relay 4 -o "$work/s.json"
has "not without" '^relays      gpu4; without relays no links connect the job$'
expect "relays of a batch" "$blinkc" batch -q $v -n 2-3 --relay rest -o "$work/rest"
expect "relays of a batch: for this machine" "$blinkc" check -q --topology $v "$work/rest"
expect "relays of a batch: executed" "$perf" "$work/rest" -g 5,0,2 -b 1K -e 16K -n 1
expect_exit "a rank is no relay" 3 "$blinkc" $v -g 0,1 --relay 1,2
expect_exit "no such relay" 3 "$blinkc" $v -g 0,1 --relay gpu9
