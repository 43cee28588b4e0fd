# The JSON Schemas and the XML schema hold for all that we write and ship.
. tests/lib.sh

for t in topologies/*.json; do
	expect "schema of $t" oracle validate schemas/topology.schema.json "$t"
done
for t in topologies/*.xml; do
	expect "xsd of $t" xmllint --noout --nonet --schema schemas/topology.xsd "$t"
done
n=0
for t in dgx1v dgx1p; do
	for gpus in 0,1,2 0,1,4,5 0,7 0,1,2,3,4,5,6,7; do
		for c in broadcast reduce allreduce; do
			n=$((n + 1))
			"$blinkc" -q topologies/$t.xml --gpus $gpus -c $c -o "$work/$n.json" || not_ok "$t $gpus $c: exit $?"
		done
	done
done
for seed in $(seq 1 20); do
	oracle random_topology "$seed" >"$work/topology.json"
	"$blinkc" -q "$work/topology.json" -l all -o "$work/random-$seed.json" || not_ok "random $seed: exit $?"
	"$blinkc" convert "$work/topology.json" -o "$work/topology.xml" || not_ok "random $seed: convert: exit $?"
	expect "xsd of random $seed" xmllint --noout --nonet --schema schemas/topology.xsd "$work/topology.xml"
	rm "$work/topology.json" "$work/topology.xml"
done
expect "schema of $(find "$work" -name '*.json' | wc -l) schedules" oracle validate schemas/schedule.schema.json "$work"/*.json
sed 's/"1\/1"/"2\/2"/;s/"0\/1"/"0\/2"/' "$work/1.json" | sed 's/"collective": "broadcast"/"collective": "broadcst"/' >"$work/bad"
if oracle validate schemas/schedule.schema.json "$work/bad" >/dev/null 2>&1; then not_ok "a wrong schedule passes"; else
	ok "a wrong schedule is refused"; fi
