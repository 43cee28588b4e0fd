/* A Program as C that a person can read: one function for each tree, which issues one chunk, and the loop over chunks.
 * It compiles as C11 for the host and as C++17 with nvcc for GPUs (runtime/include/blink_device.h). */
#include "passes.h"

#include <inttypes.h>

enum { DRAWN_DEPTH = 16 };	/* deeper trees are listed: their drawing would be wider than a page */

struct emitter {
	const Program *prog;
	const Schedule *sched;
	Text *out;
	int *parent, *first_child, *next_child, *last_child;	/* the tree being drawn, by rank; -1: none */
	const Edge **down_edge, **up_edge;			/* between a rank and its parent, or NULL */
};

/* ---- Names ---- */

static void
stream_name(Text *out, const Stream *stream)
{
	if (stream->edge)
		text_printf(out, "T%d_%s_%d_TO_%d", stream->segment, stream->up ? "UP" : "DOWN", stream->edge->src,
		    stream->edge->dst);
	else
		text_printf(out, "T%d_REDUCE_AT_%d", stream->segment, stream->rank);
}

static void
event_name(Text *out, int segment, const Step *step)
{
	if (step->op == STEP_COPY)
		text_printf(out, "T%d_%s_%d_TO_%d_DONE", segment, step->up ? "UP" : "DOWN", step->edge->src, step->edge->dst);
	else
		text_printf(out, "T%d_REDUCE_%d_AT_%d_DONE", segment, step->edge->src, step->edge->dst);
}

static void
ring_name(Text *out, const Ring *ring)
{
	if (ring->use == RING_ARRIVAL)
		text_printf(out, "T%d_FROM_%d_AT_%d", ring->segment, ring->edge->src, ring->rank);
	else
		text_printf(out, "T%d_%s_AT_%d", ring->segment, ring->use == RING_SUM ? "SUM" : "RELAY", ring->rank);
}

static void
put_place(struct emitter *e, const Place *place)
{
	if (place->kind == PLACE_SCRATCH) {
		text_put(e->out, "blink_scratch(&k, ");
		ring_name(e->out, &e->prog->ring[place->ring]);
		text_put(e->out, ")");
	} else {
		text_printf(e->out, "blink_%s(&k, %d)", place->kind == PLACE_INPUT ? "input" : "output", place->rank);
	}
}

static void
put_frac(Text *out, Frac f)
{
	if (f.den == 1)
		text_printf(out, "%" PRId64, f.num);
	else
		text_printf(out, "%" PRId64 "/%" PRId64, f.num, f.den);
}

/* "link 4 nvlink", "links 4 9 pcie" */
static void
put_links(struct emitter *e, const Edge *edge)
{
	text_put(e->out, edge->n_links == 1 ? "link" : "links");
	for (int i = 0; i < edge->n_links; i++)
		text_printf(e->out, " %d", edge->link[i]);
	if (edge->n_links > 0)
		text_printf(e->out, " %s", link_class_name(e->sched->topo->link[edge->link[0]].class));
}

/* ---- Trees as comments ---- */

static void
add_child(struct emitter *e, int parent, int child)
{
	e->parent[child] = parent;
	if (e->first_child[parent] < 0)
		e->first_child[parent] = child;
	else
		e->next_child[e->last_child[parent]] = child;
	e->last_child[parent] = child;
}

static void
put_hop(struct emitter *e, const char *phase, const Edge *edge)
{
	if (!edge)
		return;
	text_printf(e->out, "   %s ", phase);
	put_links(e, edge);
}

/* Columns of rank r in a drawing. */
static int
vertex_width(int r, int depth)
{
	int width = 4 * depth + 1;
	for (; r > 9; r /= 10)
		width++;
	return width;
}

/* One line for rank r at the end of the path from the root to it; links begin behind `width` columns. */
static void
put_vertex(struct emitter *e, int r, int depth, int width)
{
	bool more[DRAWN_DEPTH + 1] = { false };	/* whether siblings follow, at each depth */
	for (int i = depth, v = r; i > 0; i--, v = e->parent[v])
		more[i] = e->next_child[v] >= 0;
	text_put(e->out, " *\t");
	for (int i = 1; i <= depth; i++)
		text_put(e->out, i < depth ? more[i] ? "|   " : "    " : more[i] ? "|-- " : "`-- ");
	text_printf(e->out, "%d", r);
	if (e->up_edge[r] || e->down_edge[r])
		text_printf(e->out, "%*s", width - vertex_width(r, depth), "");
	put_hop(e, "up", e->up_edge[r]);
	put_hop(e, "down", e->down_edge[r]);
	text_put(e->out, "\n");
}

static void
draw(struct emitter *e, int root, int width)
{
	for (int r = root, depth = 0;;) {
		put_vertex(e, r, depth, width);
		if (e->first_child[r] >= 0) {
			r = e->first_child[r];
			depth++;
			continue;
		}
		while (r != root && e->next_child[r] < 0) {
			r = e->parent[r];
			depth--;
		}
		if (r == root)
			return;
		r = e->next_child[r];
	}
}

static void
list(struct emitter *e, const char *phase, const Edge *edge, int n)
{
	for (int i = 0; i < n; i++) {
		text_printf(e->out, " *\t%d -> %d", edge[i].src, edge[i].dst);
		put_hop(e, phase, &edge[i]);
		text_put(e->out, "\n");
	}
}

/* The phase or phases that are given: both only where one is the mirror of the other. */
static void
put_phase(struct emitter *e, const Tree *tree, bool up, bool down)
{
	int n = e->sched->topo->n_ranks, deepest = 0, width = 0;
	for (int r = 0; r < n; r++) {
		e->parent[r] = e->first_child[r] = e->next_child[r] = e->last_child[r] = -1;
		e->up_edge[r] = e->down_edge[r] = NULL;
	}
	for (int i = 0; down && i < tree->n_down; i++) {
		add_child(e, tree->down[i].src, tree->down[i].dst);
		e->down_edge[tree->down[i].dst] = &tree->down[i];
	}
	for (int i = 0; up && i < tree->n_up; i++) {
		if (!down)
			add_child(e, tree->up[i].dst, tree->up[i].src);
		e->up_edge[tree->up[i].src] = &tree->up[i];
	}
	for (int r = 0; r < n && deepest <= DRAWN_DEPTH; r++) {
		int depth = 0;
		for (int v = r; e->parent[v] >= 0 && depth <= DRAWN_DEPTH; v = e->parent[v])
			depth++;
		deepest = depth > deepest ? depth : deepest;
		if ((r == tree->root || depth > 0) && vertex_width(r, depth) > width)
			width = vertex_width(r, depth);
	}
	if (deepest <= DRAWN_DEPTH) {
		draw(e, tree->root, width);
		return;
	}
	if (up)
		list(e, "up", tree->up, tree->n_up);
	if (down)
		list(e, "down", tree->down, tree->n_down);
}

static bool
mirrored(struct emitter *e, const Tree *tree)
{
	if (tree->n_up != tree->n_down)
		return false;
	for (int i = 0; i < tree->n_down; i++)
		e->parent[tree->down[i].dst] = tree->down[i].src;
	for (int i = 0; i < tree->n_up; i++)
		if (e->parent[tree->up[i].src] != tree->up[i].dst)
			return false;
	return true;
}

static void
put_tree_comment(struct emitter *e, int s)
{
	const Segment *seg = &e->sched->segment[s];
	Frac end = FRAC_ONE;
	frac_add(seg->offset, seg->length, &end);
	text_printf(e->out, "/* Tree %d: root %d, from ", s, seg->tree.root);
	put_frac(e->out, seg->offset);
	text_put(e->out, " to ");
	put_frac(e->out, end);
	text_put(e->out, " of the buffer");
	for (int i = 0; i < seg->n_to; i++)
		text_printf(e->out, "%s %d", i ? "," : ", for rank", seg->to[i]);
	text_put(e->out, "\n *\n");
	for (int r = 0; r < e->sched->topo->n_ranks; r++)
		e->parent[r] = -1;
	if (seg->tree.n_up && seg->tree.n_down && !mirrored(e, &seg->tree)) {
		put_phase(e, &seg->tree, true, false);
		text_put(e->out, " *\n");
		put_phase(e, &seg->tree, false, true);
	} else {
		put_phase(e, &seg->tree, seg->tree.n_up > 0, seg->tree.n_down > 0);
	}
	text_put(e->out, " */\n");
}

/* ---- Code ---- */

/* Enumerators of one tree: numbers go up from tree to tree, so that only the first of each kind needs one. */
struct names {
	Text *out;
	bool any, of_kind;
};

static void
name_begins(struct names *names, const char *kind)
{
	text_put(names->out, !names->any ? "enum {" : names->of_kind ? "," : ",\n");
	if (!names->of_kind)
		text_printf(names->out, "\n\t/* %s */", kind);
	text_put(names->out, "\n\t");
}

static void
name_ends(struct names *names, int number)
{
	if (!names->of_kind)
		text_printf(names->out, " = %d", number);
	names->any = names->of_kind = true;
}

struct cursor {
	int stream, ring, event;	/* the next ones to be named */
};

static void
put_names(struct emitter *e, int s, struct cursor *at)
{
	const Program *prog = e->prog;
	struct names names = { .out = e->out };
	for (; at->stream < prog->n_streams && prog->stream[at->stream].segment == s; at->stream++) {
		name_begins(&names, "streams");
		stream_name(e->out, &prog->stream[at->stream]);
		name_ends(&names, at->stream);
	}
	names.of_kind = false;
	for (; at->ring < prog->n_rings && prog->ring[at->ring].segment == s; at->ring++) {
		name_begins(&names, "rings of scratch chunks");
		ring_name(e->out, &prog->ring[at->ring]);
		name_ends(&names, at->ring);
	}
	names.of_kind = false;
	for (int i = prog->first_step[s]; i < prog->first_step[s + 1]; i++) {
		if (prog->step[i].event < 0)
			continue;
		name_begins(&names, "events");
		event_name(e->out, s, &prog->step[i]);
		name_ends(&names, at->event++);
	}
	if (names.any)
		text_put(e->out, "\n};\n\n");
}

/* "\tblink_wait(&k, STREAM, EVENT);\n", and likewise for the other calls that take both */
static void
put_event_call(struct emitter *e, int s, const char *call, const Step *step, const Step *other)
{
	text_printf(e->out, "\tblink_%s(&k, ", call);
	stream_name(e->out, &e->prog->stream[step->stream]);
	text_put(e->out, ", ");
	event_name(e->out, s, other);
	text_put(e->out, ");\n");
}

static void
put_step_comment(struct emitter *e, const Step *step)
{
	if (step->op == STEP_REDUCE) {
		text_printf(e->out, "\n\t/* %d reduces what came from %d */\n", step->edge->dst, step->edge->src);
		return;
	}
	text_printf(e->out, "\n\t/* %s: %d -> %d, ", step->up ? "up" : "down", step->edge->src, step->edge->dst);
	put_links(e, step->edge);
	text_put(e->out, " */\n");
}

static void
put_step(struct emitter *e, int s, const Step *step)
{
	const Program *prog = e->prog;
	put_step_comment(e, step);
	for (int i = 0; i < step->n_before; i++)
		put_event_call(e, s, "wait_slot", step, &prog->step[step->before[i]]);
	if (step->after >= 0)
		put_event_call(e, s, "wait", step, &prog->step[step->after]);
	text_printf(e->out, "\tblink_%s(&k, ", step->op == STEP_COPY ? "copy" : "reduce");
	stream_name(e->out, &prog->stream[step->stream]);
	text_put(e->out, ", ");
	put_place(e, &step->to);
	text_put(e->out, ", ");
	put_place(e, &step->from);
	if (step->op == STEP_REDUCE) {
		text_put(e->out, ", ");
		put_place(e, &step->with);
	}
	text_put(e->out, ");\n");
	if (step->event >= 0)
		put_event_call(e, s, "record", step, step);
}

static void
put_tree(struct emitter *e, int s, struct cursor *at)
{
	put_tree_comment(e, s);
	put_names(e, s, at);
	text_printf(e->out, "static void\ntree_%d(const struct blink_run *run, int64_t c)\n{\n", s);
	text_printf(e->out, "\tstruct blink_chunk k;\n\tif (!blink_chunk(run, %d, c, &k))\n\t\treturn;\n", s);
	for (int i = e->prog->first_step[s]; i < e->prog->first_step[s + 1]; i++)
		put_step(e, s, &e->prog->step[i]);
	text_put(e->out, "}\n\n");
}

static void
put_run(struct emitter *e)
{
	text_put(e->out, "/* The trees take turns, so that they progress together. */\nstatic int\n"
	    "run(void *device, const struct blink_call *call, struct blink_error *err)\n{\n"
	    "\tstruct blink_run now;\n"
	    "\tif (blink_begin(&now, device, call, err) == blinkSuccess) {\n"
	    "\t\tfor (int64_t c = 0; c < now.n_chunks; c++) {\n");
	for (int s = 0; s < e->sched->n_segments; s++)
		text_printf(e->out, "\t\t\ttree_%d(&now, c);\n", s);
	text_put(e->out, "\t\t}\n\t}\n\treturn blink_end(&now);\n}\n\n");
}

static void
put_part_ends(struct emitter *e)
{
	const Program *prog = e->prog;
	int inner = prog->n_parts - 1;
	int64_t high, low;
	if (inner == 0)
		return;
	text_put(e->out, "static const struct blink_part_end part_ends[] = {\n"
	    "\t/* in messages of M bytes or more: p, q, r: a part ends at (p M + r) / q; r = r1 2^62 + r0 */\n");
	for (int i = 0; i < prog->n_parts * inner; i++) {
		const PartEnd *end = &prog->part_end[i];
		part_end_add(end, &high, &low);
		text_printf(e->out, "\t{ %" PRId64 ", %" PRId64 ", %" PRId64 ", ", end->from, end->num, end->den);
		text_printf(e->out, "%" PRId64 ", %" PRId64 " },\n", high, low);
	}
	text_put(e->out, "};\n\n");
}

/* One line for each tree; an array of none is not C++. */
static void
put_tables(struct emitter *e)
{
	const Program *prog = e->prog;
	Text *out = e->out;
	put_part_ends(e);
	text_put(out, "static const struct blink_tree trees[] = {\n"
	    "\t/* block of the send and of the receive buffer; part; of the part: from p, of q, to p, of q */\n");
	for (int s = 0; s < e->sched->n_segments; s++) {
		const Extent *x = &prog->extent[s];
		text_printf(out, "\t{ %" PRId64 ", %" PRId64 ", %d, ", x->send_block, x->recv_block, x->part);
		text_printf(out, "%" PRId64 ", %" PRId64 ", ", x->begin.num, x->begin.den);
		text_printf(out, "%" PRId64 ", %" PRId64 " },\n", x->end.num, x->end.den);
	}
	text_put(out, "};\n\n/* The rank whose GPU each stream belongs to, a line for each tree. */\n"
	    "static const int stream_rank[] = {");
	for (int i = 0; i < prog->n_streams; i++)
		text_printf(out, "%s%d,", i && prog->stream[i].segment == prog->stream[i - 1].segment ? " " : "\n\t",
		    prog->stream[i].rank);
	text_put(out, prog->n_streams ? "\n};\n\n" : " 0 };\n\n");
	text_put(out, "/* The rank in whose memory each ring lies, and its tree. */\nstatic const struct blink_ring rings[] = {");
	for (int i = 0; i < prog->n_rings; i++)
		text_printf(out, "%s{ %d, %d },", i && prog->ring[i].segment == prog->ring[i - 1].segment ? " " : "\n\t",
		    prog->ring[i].rank, prog->ring[i].segment);
	text_put(out, prog->n_rings ? "\n};\n\n" : " { 0, 0 } };\n\n");
}

static const char *
collective_constant(Collective coll)
{
	switch (coll) {
	case BROADCAST:
		return "blinkBroadcast";
	case REDUCE:
		return "blinkReduce";
	case ALLREDUCE:
		return "blinkAllReduce";
	case GATHER:
		return "blinkGather";
	case SCATTER:
		return "blinkScatter";
	case ALLGATHER:
		return "blinkAllGather";
	case REDUCESCATTER:
		return "blinkReduceScatter";
	default:
		return "blinkAlltoAll";
	}
}

static void
put_program(struct emitter *e, const char *digest)
{
	const Program *prog = e->prog;
	const Schedule *sched = e->sched;
	Text *out = e->out;
	text_put(out, "/* What libblink looks for. */\nconst struct blink_program blink_program = {\n"
	    "\tBLINK_PROGRAM_ABI, BLINK_BACKEND,\n\t");
	text_c_string(out, digest);
	text_put(out, ",	/* schedule */\n\t");
	text_c_string(out, sched->topo->name);
	text_put(out, ",	/* topology */\n\t");
	text_c_string(out, sched->algorithm);
	text_put(out, ",	/* algorithm */\n");
	text_printf(out, "\t%s, %d, %d,	/* root (-1: none), ranks */\n", collective_constant(sched->coll), sched->root,
	    sched->topo->n_ranks);
	text_printf(out, "\t%d,	/* 1: keep the input of a call in place */\n", prog->keep_input);
	text_printf(out, "\t%d, %d, %d, %d, %d,	/* parts, trees, streams, rings, events */\n", prog->n_parts, sched->n_segments,
	    prog->n_streams, prog->n_rings, prog->n_events);
	text_printf(out, "\t%s, ", prog->n_parts > 1 ? "part_ends" : "NULL");
	text_put(out, "trees, stream_rank, rings, NULL,\n"
	    "\tblink_open, blink_close, blink_memory_new, blink_memory_free, blink_memory_copy, run\n};\n");
}

static void
put_rate(struct emitter *e)
{
	const Schedule *sched = e->sched;
	char percent[48];
	Frac ratio;
	text_put(e->out, " * rate        ");
	text_gb(e->out, sched->achieved);
	text_put(e->out, " GB/s; no algorithm exceeds ");
	text_gb(e->out, sched->bound.rate);
	text_put(e->out, " GB/s");
	if (frac_div(sched->achieved, sched->bound.rate, &ratio)) {
		decimal_text((Wide)ratio.num * 100, ratio.den, 4, percent);
		text_printf(e->out, " (%s %%)", percent);
	}
	text_put(e->out, ".\n");
}

static void
put_header(struct emitter *e, const char *digest)
{
	const Schedule *sched = e->sched;
	const Topology *topo = sched->topo;
	Text *out = e->out;
	text_printf(out, "/* %s over %d ranks", collective_name(sched->coll), topo->n_ranks);
	if (sched->root >= 0)
		text_printf(out, ", root %d", sched->root);
	text_printf(out, ", along %d tree%s.  Written by ", sched->n_segments, sched->n_segments == 1 ? "" : "s");
	text_c_comment(out, sched->generator);
	text_put(out, " ");
	text_c_comment(out, sched->version);
	text_put(out, ": change the schedule, not this file.\n *\n * schedule    ");
	text_c_comment(out, digest);
	/* No line ends with what a file says: it might end with the trigraph of a backslash. */
	text_put(out, ".\n * topology    \"");
	text_c_comment(out, topo->name);
	text_put(out, "\",\n *             ");
	text_c_comment(out, topo->digest);
	text_put(out, ".\n * algorithm   \"");
	text_c_comment(out, sched->algorithm);
	text_put(out, "\".\n");
	put_rate(e);
	text_put(out, " * ranks      ");
	for (int r = 0; r < topo->n_ranks; r++) {
		text_printf(out, "%s%d = ", r == 0 ? " " : r % 6 ? ", " : ",\n *             ", r);
		text_c_comment(out, topo->vertex[r].id);
	}
	text_put(out, ".\n *\n"
	    " * For GPUs, and for the host, which emulates them:\n *\n"
	    " *	nvcc -O2 -shared -Xcompiler -fPIC -I DIR FILE.cu -o FILE.so\n"
	    " *	cc -x c -std=gnu11 -O2 -shared -fPIC -I DIR FILE.cu -o FILE.so -pthread\n *\n"
	    " * where DIR holds blink_device.h. Then `blink-perf FILE.so`, or blinkScheduleLoad (see libblink(3)).\n *\n"
	    " * A tree moves one segment of the buffer, chunk by chunk. Its function issues one chunk: each edge has a stream\n"
	    " * for its copies, and each rank that reduces has one for that. A step waits for the event of the step whose\n"
	    " * result it uses; and where it fills a slot of a ring of two chunks, for those that still read it (wait_slot).\n"
	    " * Trees are drawn from the root, each rank with the links between it and its parent, as the schedule numbers\n"
	    " * them. */\n");
	text_put(out, "#include <blink_device.h>\n\n");
}

static Status
allocate(Ctx *ctx, struct emitter *e)
{
	int n = e->sched->topo->n_ranks;
	TRY(TEMP(ctx, e->parent, n));
	TRY(TEMP(ctx, e->first_child, n));
	TRY(TEMP(ctx, e->next_child, n));
	TRY(TEMP(ctx, e->last_child, n));
	TRY(TEMP(ctx, e->up_edge, n));
	TRY(TEMP(ctx, e->down_edge, n));
	return OK;
}

Status
emit_cu(Ctx *ctx, const Program *prog, const char *digest, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct emitter e = { .prog = prog, .sched = prog->sched, .out = out };
	struct cursor at = { 0 };
	Status status = allocate(ctx, &e);
	if (status == OK) {
		put_header(&e, digest);
		for (int s = 0; s < e.sched->n_segments; s++)
			put_tree(&e, s, &at);
		put_run(&e);
		put_tables(&e);
		put_program(&e, digest);
		if (out->failed)
			status = fail_memory(ctx);
	}
	arena_release(&ctx->scratch, mark);
	return status;
}
