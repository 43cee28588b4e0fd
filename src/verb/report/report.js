//<![CDATA[
/* The table of jobs, and their trees. Data is put on the page as text; nothing is parsed as markup. */
"use strict";
(() => {
	const ROWS = 50;		// of a page of the table
	const MOST_TREES = 24, MOST_DRAWN = 96, MOST_LINKS = 200, MOST_NAMED = 16;	// of a job, until a button is pressed
	const data = JSON.parse(document.getElementById("data").textContent);
	const byId = (id) => document.getElementById(id);

	// ---- elements ----

	function fill(node, attributes, children) {
		for (const [name, value] of Object.entries(attributes || {})) {
			if (typeof value === "function")
				node.addEventListener(name, value);
			else if (value !== null && value !== undefined)
				node.setAttribute(name, value);
		}
		node.append(...children.filter((child) => child !== null));
		return node;
	}
	const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
	const svg = (name, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
	const name = (text) => el("bdi", null, text);

	// ---- words ----

	const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
	const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
	const gb = (x) => String(Number(x.toPrecision(6)));
	const ratio = (x, bound) => (x >= bound ? 1 : Math.min(x / bound, .999)).toFixed(3);
	const fraction = (text) => text.split("/").reduce((p, q) => Number(p) / Number(q));
	const share = (text) => text.endsWith("/1") ? text.slice(0, -2) : text;

	const collects = new Set(["reduce", "gather"]);	// into their root

	// ---- jobs ----

	// Differences to sums.
	function sums(differences) {
		let last = 0;
		return Int32Array.from(differences, (d) => last += d);
	}
	const parsed = (text) => {
		const texts = text.split(";"), lists = new Array(texts.length);
		return { n: texts.length, text: (i) => texts[i], list: (i) => lists[i] ||= texts[i].split(",").map(Number) };
	};
	const sets = parsed(data.set), orders = parsed(data.order);
	const jobSet = sums(data.jobSet), jobOrder = sums(data.jobOrder), jobFile = sums(data.jobFile), nJobs = jobFile.length;
	const files = data.schedule;
	files.forEach((file, f) => {
		[file.series, file.depth, file.path] = data.file[f];
		file.jobs = 0;
	});
	for (const f of jobFile)
		files[f].jobs++;

	const fileOf = (job) => files[jobFile[job]];
	// GPU of the machine for each rank of the file.
	function gpusByRank(job) {
		const gpu = [], set = sets.list(jobSet[job]);
		orders.list(jobOrder[job]).forEach((rank, i) => gpu[rank] = set[i]);
		return gpu;
	}
	function rootOf(job) {
		const root = fileOf(job).root;
		return root === -1 ? -1 : sets.list(jobSet[job])[orders.list(jobOrder[job]).indexOf(root)];
	}
	function placeOf(job, series = fileOf(job).series) {
		const file = fileOf(job), root = rootOf(job);
		let place = `${data.collective[file.c]}/${sets.text(jobSet[job])}`;
		if (root !== -1)
			place += `/${root}`;
		if (data.series.length > 1)
			place += `${root === -1 ? "/" : ""}/${encodeURIComponent(data.series[series])}`;
		return place;
	}
	function jobAt(place) {
		const [collective, gpus, root, label] = place.split("/");
		const c = data.collective.indexOf(collective);
		let series = "";
		try {
			series = decodeURIComponent(label || "");
		} catch {
			return -1;
		}
		const s = label ? data.series.indexOf(series) : 0;
		for (let job = 0; job < nJobs; job++) {
			const file = fileOf(job);
			if (file.c === c && file.series === s && sets.text(jobSet[job]) === gpus && (file.root === -1 || String(rootOf(job)) === root))
				return job;
		}
		return -1;
	}

	// ---- columns ----

	// Position of each path in their order.
	const pathOrder = new Float64Array(files.length);
	files.map((file, f) => f).sort((a, b) => files[a].path === files[b].path ? 0 : files[a].path > files[b].path ? 1 : -1)
		.forEach((f, i, all) => pathOrder[f] = i > 0 && files[all[i - 1]].path === files[f].path ? pathOrder[all[i - 1]] : i);
	const ofFile = (get) => (job) => get(fileOf(job));
	const columns = [
		{ id: "gpus", title: "GPUs", key: (job) => jobSet[job] },
		{ id: "collective", title: "collective", key: ofFile((f) => f.c), text: ofFile((f) => data.collective[f.c]) },
		{ id: "root", title: "root GPU", number: true, key: rootOf, text: (job) => rootOf(job) === -1 ? "" : String(rootOf(job)) },
		{ id: "series", title: "algorithm", key: ofFile((f) => f.series), text: ofFile((f) => data.series[f.series]) },
		{ id: "rate", title: "rate, GB/s", number: true, key: ofFile((f) => f.x), text: ofFile((f) => gb(f.x) + (f.guess ? "*" : "")) },
		{ id: "bound", title: "bound, GB/s", number: true, key: ofFile((f) => f.b), text: ofFile((f) => gb(f.b)) },
		{ id: "ratio", title: "ratio", number: true, key: ofFile((f) => f.b ? f.x / f.b : 1), text: ofFile((f) => ratio(f.x, f.b)) },
		{ id: "trees", title: "trees", number: true, key: ofFile((f) => f.tree.length), text: ofFile((f) => String(f.tree.length)) },
		{ id: "depth", title: "depth, hops", number: true, key: ofFile((f) => f.depth), text: ofFile((f) => String(f.depth)) },
		{ id: "jobs", title: "jobs of the schedule", number: true, key: ofFile((f) => f.jobs), text: ofFile((f) => count(f.jobs)) },
		{ id: "file", title: "file", wide: true, key: (job) => pathOrder[jobFile[job]], text: ofFile((f) => f.path) },
		{ id: "ranks", title: "ranks in the file", wide: true, key: (job) => jobOrder[job], text: (job) => orders.text(jobOrder[job]) },
	].filter((column) => column.id !== "series" || data.series.length > 1);

	// ---- the view: all jobs in order, those that pass the filter, one page of them ----

	const state = { column: columns[0], down: false, page: 0, open: new Set() };
	let inOrder = Int32Array.from({ length: nJobs }, (_, i) => i), view = inOrder;

	function sortJobs() {
		const key = Float64Array.from({ length: nJobs }, (_, job) => state.column.key(job)), sign = state.down ? -1 : 1;
		inOrder = Int32Array.from({ length: nJobs }, (_, i) => i).sort((a, b) => sign * (key[a] - key[b]) || a - b);
	}

	// The GPUs of a word such as 0,1,4 or 4-7 or gpu3; null: not GPUs.
	function gpusOf(word) {
		const gpus = [];
		for (const item of word.split(",").filter((text) => text)) {
			const range = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(item), id = data.gpu.indexOf(item);
			if (id !== -1)
				gpus.push(id);
			else if (range)
				for (let g = Number(range[1]), last = Number(range[2] || g); g <= last; g++)
					gpus.push(g);
			else
				return null;
		}
		return gpus.length ? gpus : null;
	}

	function filterJobs() {
		const fits = new Uint8Array(files.length).fill(1), has = new Uint8Array(sets.n).fill(1);
		const collective = byId("by-collective").value, size = byId("by-size").value, series = byId("by-series").value;
		const keepFiles = (test) => files.forEach((file, f) => fits[f] &= test(file));
		const keepSets = (test) => has.forEach((was, s) => has[s] = was && test(sets.list(s)));
		if (collective)
			keepFiles((file) => file.c === Number(collective));
		if (series)
			keepFiles((file) => file.series === Number(series));
		if (size)
			keepFiles((file) => file.n === Number(size));
		for (const word of byId("filter").value.trim().split(/\s+/).filter((text) => text)) {
			const alone = word.startsWith("="), gpus = gpusOf(alone ? word.slice(1) : word), small = word.toLowerCase();
			if (gpus)
				keepSets((set) => (!alone || set.length === new Set(gpus).size) && gpus.every((g) => set.includes(g)));
			else
				keepFiles((file) => [data.collective[file.c], data.series[file.series], file.path].some((text) => text.toLowerCase().includes(small)));
		}
		view = inOrder.filter((job) => fits[jobFile[job]] && has[jobSet[job]]);
	}

	// ---- a job: its machine, trees and links ----

	const NODE = 14, BEND = 46;
	const round = (x) => String(Math.round(10 * x) / 10);

	function nodeAt(x, y, label, title, kind) {
		const wide = 12 + 7 * label.length, shape = kind.includes("switch") ? svg("rect", { x: x - wide / 2, y: y - 10, width: wide, height: 20, rx: 3 })
			: svg("circle", { cx: x, cy: y, r: NODE });
		return svg("g", { class: `node ${kind}` }, svg("title", null, title), shape, svg("text", { x, y: y + 4 }, label));
	}

	// An arrow between two nodes of a tree, with a second head for both directions.
	function arrow(a, b, both, attributes, title) {
		const dx = b.x - a.x, dy = b.y - a.y, d = Math.hypot(dx, dy) || 1, ux = dx / d, uy = dy / d, off = NODE + 2;
		const head = (x, y, sign) => svg("path", { class: "head", d: `M${round(x)} ${round(y)}l${round(-sign * 7 * ux - 3.5 * uy)} ${
			round(-sign * 7 * uy + 3.5 * ux)}l${round(7 * uy)} ${round(-7 * ux)}z` });
		const x1 = a.x + ux * off, y1 = a.y + uy * off, x2 = b.x - ux * off, y2 = b.y - uy * off;
		return [svg("line", { ...attributes, x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2) }, svg("title", null, title)),
			head(x2, y2, 1), ...both ? [head(x1, y1, -1)] : []];
	}

	// A link of the machine, to the right of the middle, and around what lies between.
	function cable(a, b, others, attributes, title) {
		const dx = b.x - a.x, dy = b.y - a.y, d = Math.hypot(dx, dy), ux = dx / d, uy = dy / d;
		const between = others.some((c) => c !== a && c !== b && Math.abs((c.x - a.x) * uy - (c.y - a.y) * ux) < NODE &&
			(c.x - a.x) * ux + (c.y - a.y) * uy > 1 && (c.x - a.x) * ux + (c.y - a.y) * uy < d - 1);
		const point = (p, along, off) => `${round(p.x + ux * along - uy * off)} ${round(p.y + uy * along + ux * off)}`;
		const lean = a.x + a.y > b.x + b.y ? -1 : 1;	// the reverse direction bends to the same side
		return svg("path", { ...attributes, d: between
			? `M${point(a, 0, 3.2)}C${point(a, d / 4, lean * BEND + 3.2)} ${point(a, 3 * d / 4, lean * BEND + 3.2)} ${point(b, 0, 3.2)}`
			: `M${point(a, 0, 3.2)}L${point(b, 0, 3.2)}` }, svg("title", null, title));
	}

	// Pairs of ranks of a phase, from an array of src, dst, number of links, links.
	function edgesOf(numbers) {
		const edges = [];
		for (let i = 0; numbers && i < numbers.length; i += 3 + numbers[i + 2])
			edges.push({ src: numbers[i], dst: numbers[i + 1], links: numbers.slice(i + 3, i + 3 + numbers[i + 2]) });
		return edges;
	}

	function loadsOf(file) {
		const load = new Float64Array(file.link.length / 4);
		for (const tree of file.tree)
			for (const edge of [...edgesOf(tree.u), ...edgesOf(tree.d)])
				for (const l of edge.links)
					load[l] += fraction(tree.l);
		const use = load.map((value, l) => value / file.link[4 * l + 3]), most = use.reduce((a, b) => Math.max(a, b), 0) || 1;
		return use.map((value) => value / most > 1 - 1e-9 ? 1 : value / most);
	}

	const level = (use) => use >= 1 ? 5 : Math.ceil(use * 4);
	const levels = ["not used", "up to 25 %", "up to 50 %", "up to 75 %", "below 100 %", "100 %: bottleneck"];

	function machineMap(file, gpu, label, use) {
		const n = file.gpu.length, spots = new Map(), lines = [], nodes = [], taken = new Set();
		// What lies at the same place is the same spot.
		const at = file.gpu.map((_, v) => {
			const x = file.at[2 * v], y = file.at[2 * v + 1], key = `${x} ${y}`;
			return spots.get(key) || spots.set(key, { x, y }).get(key);
		});
		const left = Math.min(...at.map(({ x }) => x)) - BEND, right = Math.max(...at.map(({ x }) => x)) + BEND, width = right - left;
		const top = Math.min(...at.map(({ y }) => y)) - 24, height = Math.max(...at.map(({ y }) => y)) + 24 - top;
		const colours = !singletonParts(file);
		const widest = Math.max(...use.map((_, l) => file.link[4 * l + 3]));
		for (let l = 0; l < use.length; l++) {
			const [from, to, kind, capacity] = file.link.slice(4 * l, 4 * l + 4);
			if (at[from] !== at[to])
				lines.push(cable(at[from], at[to], at, { class: `cable u${level(use[l])}`, "stroke-width": round(1.5 + 3 * capacity / widest) },
					`${label(from)} \u2192 ${label(to)}, ${data.linkClass[kind]}: ${gb(use[l] * capacity)} of ${gb(capacity)} GB/s`));
		}
		for (let v = 0; v < n; v++) {
			const part = colours ? partOf(file, v) : 0, text = v < file.n ? String(gpu[v]) : file.gpu[v].replace(/^.*\/|:(out|in)$/g, "");
			if (taken.has(at[v]))
				continue;
			taken.add(at[v]);
			const kind = `${v < file.n ? "" : "switch "}${part >= 0 ? `p${part % 8}` : ""} ${v === file.root ? "root" : ""}`;
			nodes.push(nodeAt(at[v].x, at[v].y, text, label(v), kind));
		}
		return el("figure", null, svg("svg", { class: "map", role: "img", width, height, viewBox: `${left} ${top} ${width} ${height}`,
			"aria-label": "Links of the job and their utilisation, as in the table of links" }, ...lines, ...nodes),
		el("ul", { class: "key" }, ...levels.map((text, u) => el("li", null, svg("svg", { width: 18, height: 8, "aria-hidden": "true" },
			svg("line", { class: `u${u}`, x1: 0, x2: 18, y1: 4, y2: 4, "stroke-width": 4 })), text))));
	}

	const partOf = (file, v) => file.k === "cut" || file.k === "partition" ? file.proof[v] : 0;

	const singletonParts = (file) => file.k === "partition" && Math.max(...file.proof) + 1 === file.n && file.proof.slice(file.n).every((p) => p < 0);

	// The certificate of the bound.
	function proofOf(file, label) {
		const all = [], sides = file.k === "cut" ? [1, 0] : [...Array(Math.max(...file.proof) + 1).keys()];
		if (file.k === "cut" || file.k === "partition") {
			for (const p of singletonParts(file) ? [] : sides)
				all.push(all.length ? " | " : "", part(p), file.gpu.map((_, v) => v).filter((v) => file.proof[v] === p).map(label).join(" "));
			all.unshift(el("b", null, `Tight ${file.k}: `), singletonParts(file) ? "each GPU is a part" : "");
		} else
			all.push(el("b", null, "Bound: "), `${file.k} of links; see the table of links`);
		return el("p", { class: "proof" }, ...all, `. ${file.why[0].toUpperCase()}${file.why.slice(1)}; no ${data.collective[file.c]}${file.claim} is faster.`);
	}
	function part(p) {
		return svg("svg", { width: 14, height: 12, class: "part", "aria-hidden": "true" },
			svg("g", { class: `node p${p % 8}` }, svg("circle", { cx: 6, cy: 6, r: 5 })));
	}

	// Positions of the nodes of a tree: leaves side by side, each other node in the middle of what hangs from it, and many siblings
	// on an arc, so that no edge goes through one.
	function arrange(root, edges, up) {
		const below = new Map(), at = new Map(), todo = [[root, 18, false]];
		let leaves = 0, lowest = 0;
		for (const { src, dst } of edges) {
			const [parent, child] = up ? [dst, src] : [src, dst];
			below.set(parent, [...below.get(parent) || [], child]);
		}
		const sag = (i, n) => n > 5 ? 7 * (n - 5) * (1 - ((2 * i - n + 1) / (n - 1)) ** 2) : 0;
		while (todo.length) {
			const [v, y, back] = todo.pop(), children = below.get(v) || [];
			lowest = Math.max(lowest, y);
			if (!children.length)
				at.set(v, { x: 18 + 38 * leaves++, y });
			else if (back)
				at.set(v, { x: (at.get(children[0]).x + at.get(children[children.length - 1]).x) / 2, y });
			else
				todo.push([v, y, true], ...children.map((c, i) => [c, y + 52 + sag(i, children.length), false]).reverse());
		}
		if (leaves > 1)
			return { at, width: 38 * leaves, height: Math.ceil(lowest) + 18 };
		for (const [v, { x, y }] of at)		// a path lies down
			at.set(v, { x: y, y: x });
		return { at, width: lowest + 18, height: 38 };
	}

	function drawPhase(file, gpu, label, t, root, edges, up, both, caption) {
		const { at, width, height } = arrange(root, edges, up), parts = [];
		for (const { src, dst, links } of edges) {
			const title = `${label(src)} ${both ? "\u2194" : "\u2192"} ${label(dst)}, ${data.linkClass[file.link[4 * links[0] + 2]]}${
				links.length > 1 ? `, over ${links.slice(1).map((l) => label(file.link[4 * l])).join(" ")}` : ""}`;
			parts.push(...arrow(at.get(src), at.get(dst), both, { class: links.length > 1 ? "edge switched" : "edge", "data-tree": t,
				"data-from": gpu[src], "data-to": gpu[dst], "data-direction": both ? "both" : up ? "up" : "down" }, title));
		}
		for (const [v, { x, y }] of at)
			parts.push(nodeAt(x, y, String(gpu[v]), label(v), v === root ? "root" : ""));
		return el("div", null, el("p", null, caption), svg("svg", { role: "img", width, height, viewBox: `0 0 ${width} ${height}`, "aria-label":
			`Tree ${t}, ${caption}: ${edges.map(({ src, dst }) => `${label(src)} to ${label(dst)}`).join(", ")}` }, ...parts));
	}

	function drawTree(file, gpu, label, t) {
		const tree = file.tree[t], up = edgesOf(tree.u), down = edgesOf(tree.d), pair = (a, b) => `${a} ${b}`;
		const there = new Set(down.map(({ src, dst }) => pair(src, dst))), phases = [];
		const scale = data.collective[file.c] === "alltoall" ? file.n : 1;	// whose rate is of what one rank sends
		const mirror = up.length === down.length && up.every(({ src, dst }) => there.has(pair(dst, src)));
		if (mirror)
			phases.push(drawPhase(file, gpu, label, t, tree.r, down, false, true, "up, then down"));
		else {
			if (up.length)
				phases.push(drawPhase(file, gpu, label, t, tree.r, up, true, false, "up"));
			if (down.length)
				phases.push(drawPhase(file, gpu, label, t, tree.r, down, false, false, "down"));
		}
		return el("div", { class: "tree" }, el("p", null, el("b", null, `tree ${t}`),
			`: ${share(tree.l)} of the buffer, ${gb(fraction(tree.l) * file.x * scale)} GB/s`,
			tree.to ? `, for ${tree.to.map(label).join(" ")}` : ""), el("div", { class: "phases" }, ...phases));
	}

	function treesText(file, label) {
		const lines = [], edge = (direction) => ({ src, dst, links }) => lines.push(`    ${direction}  ${label(src)} \u2192 ${label(dst)}${
			links.length > 1 ? `  over ${links.slice(1).map((l) => label(file.link[4 * l])).join(" ")}` : ""}`);
		file.tree.forEach((tree, t) => {
			lines.push(`tree ${t}: ${share(tree.l)} of the buffer from ${share(tree.o)}, root ${label(tree.r)}`);
			edgesOf(tree.u).forEach(edge("up  "));
			edgesOf(tree.d).forEach(edge("down"));
		});
		return lines.join("\n");
	}

	function linksTable(file, label, use) {
		const priced = file.k === "prices" || file.k === "lengths";
		const rows = [...use.keys()].sort((a, b) => use[b] - use[a] || a - b), body = el("tbody");
		const add = (l) => {
			const [from, to, kind, capacity] = file.link.slice(4 * l, 4 * l + 4), bar = el("span", { class: use[l] >= 1 ? "full" : "" });
			bar.style.width = `${(100 * use[l]).toFixed(1)}%`;
			body.append(el("tr", null, el("th", { scope: "row" }, `${label(from)} \u2192 ${label(to)}`), el("td", null, data.linkClass[kind]),
				el("td", { class: "n" }, gb(use[l] * capacity)), el("td", { class: "n" }, gb(capacity)),
				el("td", null, el("span", { class: "load", "aria-hidden": "true" }, bar), ` ${(100 * use[l]).toFixed(use[l] === 1 ? 0 : 1)} %`),
				priced ? el("td", { class: "n" }, share(file.proof[l])) : null));
		};
		rows.slice(0, MOST_LINKS).forEach(add);
		const more = rows.length > MOST_LINKS ? el("button", { type: "button", click: () => (rows.slice(MOST_LINKS).forEach(add), more.remove()) },
			`${count(rows.length - MOST_LINKS)} more links`) : null;
		const titles = ["link", "class", "load, GB/s", "capacity, GB/s", "utilisation", ...priced ? [file.k === "prices" ? "price" : "length"] : []];
		return el("div", { class: "scroll" }, el("table", { class: "links" }, el("thead", null, el("tr", null, ...titles.map((title, i) =>
			el("th", { scope: "col", class: i === 2 || i === 3 || i === 5 ? "n" : "" }, title)))), body), more);
	}

	// What rings would give, from an array of names and rates.
	function ringsOf(file) {
		const texts = [];
		for (let i = 0; i < file.ring.length; i += 2)
			texts.push(file.ring[i + 1] ? `${file.ring[i]} ${gb(file.ring[i + 1])} GB/s (${(file.x / file.ring[i + 1]).toPrecision(3)}x)` : `${file.ring[i]} has no ring`);
		return texts.length ? el("p", { class: "rings" }, `Rings: ${texts.join(", ")}.`) : null;
	}

	// The same job by the other algorithms.
	function othersOf(job) {
		const links = [];
		data.series.forEach((label, s) => {
			const other = s === fileOf(job).series ? -1 : jobAt(placeOf(job, s));
			if (other !== -1)
				links.push(links.length ? ", " : "Other algorithms: ", el("a", { href: `#${placeOf(other)}` }, name(label)), ` ${gb(fileOf(other).x)} GB/s`);
		});
		return links.length ? el("p", { class: "others" }, ...links) : null;
	}

	function detailOf(job) {
		const file = fileOf(job), gpu = gpusByRank(job), own = gpu.every((g, r) => data.gpu[g] === file.gpu[r]);
		const label = (v) => v < file.n ? data.gpu[gpu[v]] : file.gpu[v], use = loadsOf(file), root = rootOf(job);
		const trees = el("div", { class: "trees" }), draw = file.n > MOST_DRAWN ? 0 : file.tree.length;
		const add = (from, to) => trees.append(...file.tree.slice(from, to).map((_, t) => drawTree(file, gpu, label, from + t)));
		add(0, Math.min(draw, MOST_TREES));
		const more = draw > MOST_TREES ? el("button", { type: "button", click: () => (add(MOST_TREES, draw), more.remove()) },
			`${count(draw - MOST_TREES)} more trees`) : null;
		const collective = data.collective[file.c], gpus = sets.list(jobSet[job]), short = gpus.length <= MOST_NAMED;
		const set = short ? gpus.map((g) => data.gpu[g]).join(" ") : plural(gpus.length, "GPU");
		return el("div", { class: "inside" },
			el("h3", null, `${collective}${root === -1 ? "" : ` ${collects.has(collective) ? "to" : "from"} ${data.gpu[root]}`} over `, name(set)),
			el("p", null, `${gb(file.x)} GB/s, ratio ${ratio(file.x, file.b)} to the bound of ${gb(file.b)} GB/s, by ${plural(file.tree.length, "tree")} of at most ${
				plural(file.depth, "hop")}. `, el("a", { class: "permalink", href: `#${placeOf(job)}` }, "Link to this job")),
			el("p", { class: "hint" }, "Schedule: ", name(file.path), `, for ${plural(file.jobs, "job")}; its ranks 0 to ${file.n - 1} are GPUs ${gpu.join(" ")}.`,
				own || file.gpu.length === file.n ? "" : " Switches have the names of the file."),
			ringsOf(file),
			othersOf(job),
			proofOf(file, label),
			el("div", { class: "row" },
				el("div", { class: "machine" }, el("h4", null, "Links in use"), file.at ? machineMap(file, gpu, label, use) : el("p", null, "Too many to draw.")),
				el("div", { class: "forest" }, el("h4", null, "Trees"), draw ? trees : el("p", null, "Too large to draw: see the text below."), more)),
			el("details", null, el("summary", null, `Load of ${plural(use.length, "link")}`), linksTable(file, label, use)),
			el("details", null, el("summary", null, "Trees as text"), el("pre", null, treesText(file, label))));
	}

	// ---- the page ----

	function cell(column, job) {
		const text = column.text(job);
		return el("td", { class: `${column.number ? "n" : ""} ${column.wide ? "whole" : ""}`, "data-label": column.title, role: "cell", "data-column": column.id },
			text ? name(text) : null);
	}

	function toggle(job) {
		const opens = !state.open.delete(job);
		if (opens)
			state.open.add(job);
		try {
			history.replaceState(null, "", opens ? `#${placeOf(job)}` : location.pathname + location.search);
		} catch { /* some browsers keep files from changing their address */ }
		render();
		const button = byId(`job-${job}`);
		if (button)
			button.focus({ preventScroll: true });
	}

	function rowsOf(job) {
		const open = state.open.has(job);
		const button = el("button", { type: "button", class: "toggle", id: `job-${job}`, "aria-expanded": String(open),
			"aria-controls": open ? `detail-${job}` : null }, sets.text(jobSet[job]));
		const row = el("tr", { class: open ? "job open" : "job", role: "row", "data-job": job, click: (event) => {
			if (event.target.closest("a") === null && String(getSelection()) === "")
				toggle(job);
		} }, el("th", { scope: "row", role: "rowheader", "data-column": "gpus" }, button), ...columns.slice(1).map((column) => cell(column, job)));
		if (!open)
			return [row];
		const detail = el("td", { colspan: columns.length, role: "cell" }, detailOf(job));
		return [row, el("tr", { class: "detail", id: `detail-${job}`, role: "row" }, detail)];
	}

	function render() {
		const pages = Math.max(1, Math.ceil(view.length / ROWS)), first = state.page * ROWS, jobs = [...view.slice(first, first + ROWS)];
		byId("table").tBodies[0].replaceChildren(...jobs.flatMap(rowsOf));
		byId("jobs").classList.toggle("has-open", jobs.some((job) => state.open.has(job)));
		byId("status").textContent = view.length ? `${count(first + 1)} to ${count(first + jobs.length)} of ${plural(view.length, "job")}${
			view.length === nJobs ? "" : `, of ${count(nJobs)} in all`}` : `none of ${plural(nJobs, "job")}`;
		const go = (text, page) => el("button", { type: "button", disabled: page === state.page || page !== Math.min(Math.max(page, 0), pages - 1) ? "" : null,
			click: () => {
				state.page = page;
				render();
			} }, text);
		byId("pager").replaceChildren(go("first", 0), go("previous", state.page - 1), el("span", null, `page ${count(state.page + 1)} of ${count(pages)}`),
			go("next", state.page + 1), go("last", pages - 1));
		byId("pager").hidden = pages === 1;
	}

	function sortBy(column) {
		state.down = column === state.column && !state.down;
		state.column = column;
		sortJobs();
		update();
		renderHead();
		byId(`sort-${column.id}`).focus();
	}

	function renderHead() {
		const heads = columns.map((column) => el("th", { scope: "col", role: "columnheader", "data-column": column.id, class: column.number ? "n" : "",
			"aria-sort": column === state.column ? state.down ? "descending" : "ascending" : null },
		el("button", { type: "button", id: `sort-${column.id}`, click: () => sortBy(column) }, column.title)));
		byId("table").tHead.replaceChildren(el("tr", { role: "row" }, ...heads));
	}

	function update() {
		filterJobs();
		state.page = 0;
		render();
	}

	function openPlace() {
		const job = jobAt(location.hash.slice(1));
		if (job === -1) {
			if (location.hash.includes("/"))
				byId("status").textContent = "This page has no such job.";
			return;
		}
		if (!view.includes(job)) {
			byId("filter").value = byId("by-collective").value = byId("by-size").value = byId("by-series").value = "";
			filterJobs();
		}
		state.open.add(job);
		state.page = Math.floor(view.indexOf(job) / ROWS);
		render();
		const button = byId(`job-${job}`);
		button.closest("tr").scrollIntoView();
		button.focus({ preventScroll: true });
	}

	function choices(id, values) {
		byId(id).append(...values.map(([value, text]) => el("option", { value }, text)));
		byId(id).addEventListener("change", update);
	}

	let later = 0;
	byId("filter").addEventListener("input", () => {
		clearTimeout(later);
		later = setTimeout(update, 80);
	});
	byId("controls").addEventListener("submit", (event) => event.preventDefault());
	choices("by-collective", [...new Set(files.map((file) => file.c))].sort((a, b) => a - b).map((c) => [c, data.collective[c]]));
	choices("by-size", [...new Set(files.map((file) => file.n))].sort((a, b) => a - b).map((n) => [n, String(n)]));
	choices("by-series", data.series.map((label, s) => [s, label]));
	byId("series-label").hidden = data.series.length === 1;
	byId("table").setAttribute("role", "table");
	document.documentElement.classList.add("js");
	renderHead();
	sortJobs();
	update();
	addEventListener("hashchange", openPlace);
	// A link to the current address raises no hashchange, but should open its job.
	addEventListener("click", (event) => {
		const link = event.target.closest("a");
		if (link && link.getAttribute("href") === location.hash)
			openPlace();
	});
	openPlace();
})();
//]]>
