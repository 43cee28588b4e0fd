#!/usr/bin/env python3
"""Files that would cost more than their size, as a table of generators that grow with a number.

usage: hostile.py --list
       hostile.py KIND N FOLDER

Writes the files of that kind into FOLDER and prints the arguments of blinkc that read them, in a line.
"""
import json
import os
import sys

FORMAT = {"format": "blink-schedule", "version": 1, "generator": {"name": "hand", "version": "1", "options": {}}}


def link(a, b, capacity=1):
    return {"from": a, "to": b, "class": "nvlink", "capacity": capacity, "latency": 0}


def star(n):
    """Links 0 to n - 1 lead to the switch, n to 2n - 1 from it."""
    return [link(r, "sw") for r in range(n)] + [link("sw", r) for r in range(n)]


def ring(n):
    """Links 2r and 2r + 1 lead from rank r to the next one and to the one before."""
    return [link(r, (r + step) % n) for r in range(n) for step in (1, -1)]


def schedule(n, links, coll, root, certificate, trees, achieved=1, bound=1, **more):
    return {**FORMAT, "topology": {"name": "m", "digest": "sha256:0",
                                   "ranks": [{"gpu": f"g{r}", "node": "s"} for r in range(n)], "links": links},
            "collective": coll, "root": root, "algorithm": "hand",
            "rate": {"achieved": achieved, "bound": bound, "certificate": certificate}, "trees": trees, **more}


def ones(kind, n):
    return {"kind": kind, "length" if kind == "lengths" else "price": [1] * n}


def around_root(links):
    """Prices of links at rank 0 alone, which no tree does without: the cheapest hops into ranks cost nothing, so that
    these do not prove it."""
    return {"kind": "prices", "price": [int(0 in (l["from"], l["to"])) for l in links]}


def tree(offset, length, root, **phases):
    return {"segment": [offset, length], "root": root, **phases}


def star_trees(n):
    """Of an allgather over a star: one-hop trees."""
    return [tree(fraction(r, n), f"1/{n}", r, down=[[r, v, [r, n + v]] for v in range(n) if v != r]) for r in range(n)]


def fraction(a, b):
    from math import gcd
    return f"{a // gcd(a, b)}/{b // gcd(a, b)}"


# ---- schedules ----

def lengths_untiled(n):
    """One tree of one edge: not a schedule, whatever its certificate."""
    return schedule(n, star(n), "allgather", None, ones("lengths", 2 * n),
                    [tree("0/1", f"1/{n}", 0, down=[[0, 1, [0, n + 1]]])])


def lengths_ring_untiled(n):
    return schedule(n, ring(n), "alltoall", None, ones("lengths", 2 * n),
                    [tree(f"1/{n * n}", f"1/{n * n}", 0, down=[[0, 1, [0]]])])


def lengths_star(n):
    """A schedule; its rate is n - 1 blocks of 1/n over each link."""
    return schedule(n, star(n), "allgather", None, ones("lengths", 2 * n), star_trees(n),
                    achieved=float(f"{n / (n - 1):.15g}"), bound=2 * n)


def lengths_gather(n):
    trees = [tree(fraction(r, n), f"1/{n}", 0, up=[[r, 0, [r, n]]]) for r in range(1, n)]
    return schedule(n, star(n), "gather", 0, ones("lengths", 2 * n), trees,
                    achieved=float(f"{n / (n - 1):.15g}"), bound=2 * n)


def prices_star(n):
    """Broadcast: a tree from the root to every rank."""
    return schedule(n, star(n), "broadcast", 0, around_root(star(n)),
                    [tree("0/1", "1/1", 0, down=[[0, v, [0, n + v]] for v in range(1, n)])],
                    achieved=float(f"{1 / (n - 1):.15g}"), bound=2)


def prices_pairs(n):
    return schedule(n, star(n), "allreduce", None, around_root(star(n)),
                    [tree("0/1", "1/1", 0, down=[[0, v, [0, n + v]] for v in range(1, n)],
                          up=[[v, 0, [v, n]] for v in range(1, n)])],
                    achieved=float(f"{1 / (n - 1):.15g}"), bound=2)


def prices_pairs_of_many(n):
    """More steps than LIMIT_VERIFY_STEPS."""
    return prices_pairs(n)


def prices_pairs_ring(n):
    return schedule(n, ring(n), "allreduce", None, around_root(ring(n)),
                    [tree("0/1", "1/1", 0, down=[[v, v + 1, [2 * v]] for v in range(n - 1)],
                          up=[[v, v - 1, [2 * v + 1]] for v in range(n - 1, 0, -1)])],
                    achieved=1, bound=4)


def prices_nested(n):
    """Prices that make Edmonds contract a chain of cycles, one inside the other; only at the root do they prove
    anything."""
    made = schedule(n, ring(n), "broadcast", 0, ones("prices", 2 * n),
                    [tree("0/1", "1/1", 0, down=[[v, v + 1, [2 * v]] for v in range(n - 1)])], achieved=1, bound=0)
    small = 10 ** 8
    price = [small if l < 2 else min(1000, 1 + (l // 2) % 997) for l in range(2 * n)]
    made["rate"]["certificate"]["price"] = [fraction(p, small) for p in price]
    made["rate"]["bound"] = float(f"{sum(price) / small:.15g}")
    return made


def switches(n):
    """n switches between two ranks."""
    links = [one for s in range(n) for one in (link(0, f"s{s}"), link(f"s{s}", 1), link(1, f"s{s}"), link(f"s{s}", 0))]
    return schedule(2, links, "broadcast", 0, ones("prices", 4 * n), [tree("0/1", "1/1", 0, down=[[0, 1, [0, 1]]])],
                    achieved=1, bound=4 * n)


def switch_chain(n):
    """A chain of switches beside the link of two ranks."""
    names = [0, *(f"s{s}" for s in range(n)), 1]
    links = [link(0, 1)] + [link(a, b) for a, b in zip(names, names[1:])]
    return schedule(2, links, "broadcast", 0, ones("prices", n + 2), [tree("0/1", "1/1", 0, down=[[0, 1, [0]]])],
                    achieved=1, bound=n + 2)


def many_parts(n):
    made = prices_pairs_ring(n)
    made["rate"]["certificate"] = {"kind": "partition", "parts": [[r] for r in range(n)]}
    made["rate"]["bound"] = float(f"{2 * n / (2 * (n - 1)):.15g}")
    return made


def node_names(n):
    made = many_parts(n)
    for r, rank in enumerate(made["topology"]["ranks"]):
        rank["node"] = "a" * 60 + str(r)
    return made


def long_node_names(n):
    made = many_parts(n)
    for r, rank in enumerate(made["topology"]["ranks"]):
        rank["node"] = "a" * 4090 + str(r)
    return made


def gpu_names(n):
    made = many_parts(n)
    for r, rank in enumerate(made["topology"]["ranks"]):
        rank["gpu"] = "a" * 58 + str(r)
    return made


def scalars(n):
    return {**FORMAT, "x": [1] * n}


def many_strings(n):
    return {**FORMAT, "x": [""] * n}


def empties(n):
    return {**FORMAT, "x": [[]] * n}


def nested(n):
    return {**FORMAT, "x": [[[[1]]]] * n}


def keys(n):
    return {**FORMAT, **{f"k{i}": 1 for i in range(n)}}


def escapes(n):
    return {**FORMAT, "x": ["\n\t\"\\é" * 8] * n}


def options(n):
    made = prices_pairs_ring(4)
    made["generator"] = {"name": "hand", "version": "1", "options": {f"o{i}": 1 for i in range(n)}}
    return made


def options_of_two(n):
    """For `diff`."""
    return options(n)


def vertex_ids(n):
    """Ends of links that agree in all but the last characters."""
    links = [link("v" * 60 + str(i), "v" * 60 + str(i + 1)) for i in range(n)]
    return schedule(2, links, "broadcast", 0, ones("prices", n), [])


def empty_trees(n):
    made = prices_pairs_ring(4)
    made["trees"] = [tree("0/1", f"1/{n}", 0)] * n
    return made


def same_tree(n):
    made = prices_pairs_ring(4)
    made["trees"] *= n
    return made


def served_twice(n):
    """The one-shot allreduce without its edges."""
    made = prices_pairs_ring(n)
    made["trees"] = [tree("0/1", "1/1", r, to=[r]) for r in range(n)]
    return made


def unserved(n):
    """An alltoall of n * n blocks in which no block moves."""
    made = lengths_ring_untiled(n)
    made["trees"] = [tree("0/1", f"1/{n * n}", 0)]
    return made


def unequal_trees(n):
    """A broadcast by n trees over one link, each of another length."""
    length = [i * 7919 % n + 1 for i in range(n)]       # n is no multiple of the prime: all of 1 to n
    begin = [0]
    for one in length:
        begin.append(begin[-1] + one)
    trees = [tree(fraction(begin[i], begin[n]), fraction(length[i], begin[n]), 0, down=[[0, 1, [0]]]) for i in range(n)]
    return schedule(2, [link(0, 1)], "broadcast", 0, {"kind": "cut", "side": [0]}, trees)


# ---- topologies ----

def machine(n, links, **more):
    return {"format": "blink-topology", "version": 1, "name": "m",
            "nodes": [{"id": "s", "gpus": [{"id": f"g{i}"} for i in range(n)], **more}], "links": links}


def machine_gpus(n):
    return machine(n, [])


def machine_links(n):
    return machine(2, [link("g0", "g1")] * n)


def machine_unknown(n):
    return machine(2, [link("g0", f"h{i}") for i in range(n)])


def machine_nodes(n):
    return {"format": "blink-topology", "version": 1, "name": "m", "links": [],
            "nodes": [{"id": f"s{i}", "gpus": [{"id": f"g{i}"}]} for i in range(n)]}


def xml(body):
    return f'<?xml version="1.0"?>\n<topology format="blink-topology" version="1" name="m">\n{body}\n</topology>\n'


def hwloc(objects, rest=""):
    gpu = '<object type="PCIDev" pci_type="0302 [10de:1db1]"/>'
    return f'<topology version="2.0"><object type="Machine">{gpu * 2}{objects}</object>{rest}</topology>\n'


def hwloc_objects(n):
    return hwloc("<object type='PU'/>" * n)


def hwloc_gpus(n):
    return hwloc('<object type="PCIDev" pci_type="0302 [10de:1db1]"/>' * n)


def hwloc_numas(n):
    bridge = '<object type="Bridge"><object type="PCIDev" pci_type="0302 [10de:1db1]"/></object>'
    return hwloc("".join(f'<object type="NUMANode" os_index="{i}">{bridge}</object>' for i in range(n)))


def hwloc_infos(n):
    return hwloc('<object type="OSDev" name="nvml0"/>' * n + '<info name="a" value=""/>' * n)


def hwloc_matrix(n):
    gpus = "".join(f'<object type="PCIDev" gp_index="{i}" pci_type="0302 [10de:1db1]"/>' for i in range(n))
    values = " ".join(str((i * 7 + 1) % 1000) for i in range(n * n))
    return hwloc(gpus, f'<distances2 nbobjs="{n}" name="NVLinkBandwidth" indexing="gp"><indexes>'
                 f'{" ".join(map(str, range(n)))}</indexes><u64values>{values}</u64values></distances2>')


def hwloc_matrix_of_none(n):
    return hwloc("", f'<distances2 nbobjs="128" name="NVLinkBandwidth" '
                     f'indexing="gp"><indexes>{"1 " * n}</indexes></distances2>')


def xml_quote_in_comment(n):
    return xml("<!-- don't --><node " + " ".join(f'a{i}=""' for i in range(n)) + "/>")


def xml_tag_in_comment(n):
    return xml("<!-- <a ' -->" + "<node " + " ".join(f'a{i}=""' for i in range(n)) + "/>")


def xml_quote_in_instruction(n):
    return xml("<?a ' ?><node " + " ".join(f'a{i}=""' for i in range(n)) + "/>")


def xml_quote_in_cdata(n):
    return xml("<![CDATA[ <a ' ]]><node " + " ".join(f'a{i}=""' for i in range(n)) + "/>")


def xml_after_error(n):
    return xml("<a b='<c d=\"'/><node " + " ".join(f'a{i}=""' for i in range(n)) + "/>")


def xml_in_declaration(n):
    return "<?xml version='1.0' bad><a " + " ".join(f'a{i}=""' for i in range(n)) + "/>?>"


def xml_namespaces(n):
    return xml("<node " + " ".join(f'xmlns:a{i}="u{i}"' for i in range(n)) + "/>")


def xml_elements(n):
    return xml("<a/>" * n)


def xml_gpus(n):
    return xml("<node>" + "<gpu/>" * n + "</node>")


def xml_mixed(n):
    return xml("<node>" + "<gpu/><cpu/>" * n + "</node>")


def xml_element_names(n):
    return xml("".join(f"<{'a' * 50}{i}/>" for i in range(n)))


def xml_comments(n):
    return xml("<!-- -->" * n)


def xml_text(n):
    return xml(" " * n)


def xml_references(n):
    return xml('<node id="' + "&amp;" * n + '"/>')


# ---- indexes, requests ----

def index_of(entries, n_gpus):
    return {"format": "blink-index", "version": 1,
            "topology": {"name": "m", "digest": "sha256:0", "gpus": [f"g{i}" for i in range(n_gpus)]},
            "schedules": entries}


def same_file(n):
    """Every entry names one file, of n trees."""
    made = prices_pairs_ring(2)
    made["trees"] = [tree(fraction(i, n), f"1/{n}", 0, down=[[0, 1, [0]]], up=[[1, 0, [2]]]) for i in range(n)]
    made["rate"] = {"achieved": 1, "bound": 1, "certificate": {"kind": "partition", "parts": [[0], [1]]}}
    made["topology"]["links"] = [link(0, 1), link(0, 1), link(1, 0), link(1, 0)]
    made["rate"]["bound"] = 2
    pairs = [(a, b) for a in range(200) for b in range(a)]
    entries = [{"gpus": [a, b], "ranks": [0, 1], "collective": "allreduce", "root": None, "file": "one.json", "rate": 1,
                "bound": 2, "trees": n, "depth": 2} for a, b in pairs[:n]]
    return {"one.json": made, "index.json": index_of(entries, 200)}


def index_gpus(n):
    return {"index.json": index_of([], n)}


def index_ids(n):
    """A file with all the GPUs of the index."""
    made = prices_pairs_ring(n)
    made["rate"] = {"achieved": 1, "bound": float(f"{2 * n / (2 * (n - 1)):.15g}"),
                    "certificate": {"kind": "partition", "parts": [[r] for r in range(n)]}}
    entry = {"gpus": list(range(n)), "ranks": list(range(n)), "collective": "allreduce", "root": None,
             "file": "one.json", "rate": 1, "bound": made["rate"]["bound"], "trees": 1, "depth": 2 * (n - 1)}
    return {"one.json": made, "index.json": index_of([entry], n)}


SCHEDULES = [lengths_untiled, lengths_ring_untiled, lengths_star, lengths_gather, prices_star, prices_pairs,
             prices_pairs_of_many,
             prices_pairs_ring, prices_nested, switches, switch_chain, many_parts, node_names,
             long_node_names, gpu_names,
             scalars, many_strings, empties, nested, keys, escapes, options, options_of_two, vertex_ids,
             empty_trees, same_tree,
             served_twice, unserved, unequal_trees]
TOPOLOGIES = [machine_gpus, machine_links, machine_unknown, machine_nodes, xml_quote_in_comment, xml_tag_in_comment,
              xml_quote_in_instruction, xml_quote_in_cdata, xml_after_error, xml_in_declaration, xml_namespaces,
              xml_elements, xml_gpus, xml_mixed, xml_element_names, xml_comments, xml_text, xml_references,
              hwloc_objects, hwloc_gpus, hwloc_numas, hwloc_infos, hwloc_matrix, hwloc_matrix_of_none]
INDEXES = [same_file, index_gpus, index_ids]
KINDS = {kind.__name__: kind for kind in SCHEDULES + TOPOLOGIES + INDEXES}


def write(name, n, folder):
    """Arguments of blinkc that read the files, and the bytes of these."""
    os.makedirs(folder, exist_ok=True)
    kind = KINDS[name]
    made = kind(n)
    if kind not in INDEXES:
        made = {"x.xml" if isinstance(made, str) else "x.json": made}
    size = 0
    for file, content in made.items():
        text = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
        size += len(text)
        with open(f"{folder}/{file}", "w", encoding="utf-8") as out:
            out.write(text)
    if kind in INDEXES:
        return ["check", "-q", folder], size
    path = f"{folder}/{next(iter(made))}"
    if kind is options_of_two:
        with open(path, encoding="utf-8") as file, open(f"{folder}/y.json", "w", encoding="utf-8") as out:
            out.write(file.read() + "\n")
        return ["diff", "-q", path, f"{folder}/y.json"], 2 * size
    return (["convert", path, "-o", "/dev/null"] if kind in TOPOLOGIES else ["check", "-q", path]), size


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(*KINDS)
    else:
        print(*write(sys.argv[1], int(sys.argv[2]), sys.argv[3])[0])
