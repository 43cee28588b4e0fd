/* A Program as C that a person can read: one function for each tree, which issues one chunk, and the loop over chunks.
 * It compiles as C11 for the host and as C++17 with nvcc for GPUs (runtime/include/blink_device.h). */
#include "base/digest.h"
#include "format/cu_writer.h"
#include "schedule/schedule.h"

#include <inttypes.h>

static void
put_run(struct cu_writer *w)
{
	text_put(w->out, "/* The trees take turns, so that they progress together. */\nstatic int\n"
	    "run(void *device, const struct blink_call *call, struct blink_error *err)\n{\n"
	    "\tstruct blink_run now;\n"
	    "\tif (blink_begin(&now, device, call, err) == blinkSuccess) {\n"
	    "\t\tfor (int64_t c = 0; c < now.n_chunks; c++) {\n");
	for (int s = 0; s < w->sched->n_segments; s++)
		text_printf(w->out, "\t\t\ttree_%d(&now, c);\n", s);
	text_put(w->out, "\t\t}\n\t}\n\treturn blink_end(&now);\n}\n\n");
}

static void
put_part_ends(struct cu_writer *w)
{
	const Program *prog = w->prog;
	int inner = prog->n_parts - 1;
	int64_t high, low;
	if (inner == 0)
		return;
	text_put(w->out, "static const struct blink_part_end part_ends[] = {\n"
	    "\t/* in messages of M bytes or more: p, q, r: a part ends at (p M + r) / q; r = r1 2^62 + r0 */\n");
	for (int i = 0; i < prog->n_parts * inner; i++) {
		const PartEnd *end = &prog->part_end[i];
		part_end_add(end, &high, &low);
		text_printf(w->out, "\t{ %" PRId64 ", %" PRId64 ", %" PRId64 ", ", end->from, end->num, end->den);
		text_printf(w->out, "%" PRId64 ", %" PRId64 " },\n", high, low);
	}
	text_put(w->out, "};\n\n");
}

/* One line for each tree; an empty array is not C++. */
static void
put_tables(struct cu_writer *w)
{
	const Program *prog = w->prog;
	Text *out = w->out;
	put_part_ends(w);
	text_put(out, "static const struct blink_tree trees[] = {\n"
	    "\t/* block of the send and of the receive buffer; part; of the part: from p, of q, to p, of q */\n");
	for (int s = 0; s < w->sched->n_segments; s++) {
		const Extent *x = &prog->extent[s];
		text_printf(out, "\t{ %" PRId64 ", %" PRId64 ", %d, ", x->send_block, x->recv_block, x->part);
		text_printf(out, "%" PRId64 ", %" PRId64 ", ", (int64_t)x->begin.num, x->begin.den);
		text_printf(out, "%" PRId64 ", %" PRId64 " },\n", (int64_t)x->end.num, x->end.den);
	}
	text_put(out, "};\n\n/* The rank whose GPU each stream belongs to, a line for each tree. */\n"
	    "static const int stream_rank[] = {");
	for (int i = 0; i < prog->n_streams; i++)
		text_printf(out, "%s%d,", i && prog->stream[i].segment == prog->stream[i - 1].segment ? " " : "\n\t",
		    prog->stream[i].rank);
	text_put(out, prog->n_streams ? "\n};\n\n" : " 0 };\n\n");
	text_put(out, "/* The rank in whose memory each ring lies, and its tree. */\n"
	    "static const struct blink_ring rings[] = {");
	for (int i = 0; i < prog->n_rings; i++)
		text_printf(out, "%s{ %d, %d },",
		    i && prog->ring[i].segment == prog->ring[i - 1].segment ? " " : "\n\t", prog->ring[i].rank,
		    prog->ring[i].segment);
	text_put(out, prog->n_rings ? "\n};\n\n" : " { 0, 0 } };\n\n");
}

static const char *
collective_constant(Collective coll)
{
	switch (coll) {
	case BROADCAST:
		return "blinkCollBroadcast";
	case REDUCE:
		return "blinkCollReduce";
	case ALLREDUCE:
		return "blinkCollAllReduce";
	case GATHER:
		return "blinkCollGather";
	case SCATTER:
		return "blinkCollScatter";
	case ALLGATHER:
		return "blinkCollAllGather";
	case REDUCESCATTER:
		return "blinkCollReduceScatter";
	default:
		return "blinkCollAlltoAll";
	}
}

static void
put_program(struct cu_writer *w, const char *digest)
{
	const Program *prog = w->prog;
	const Schedule *sched = w->sched;
	Text *out = w->out;
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
	text_printf(out, "\t%d, %d, %d, %d, %d,	/* parts, trees, streams, rings, events */\n", prog->n_parts,
	    sched->n_segments, prog->n_streams, prog->n_rings, prog->n_events);
	text_printf(out, "\t%s, ", prog->n_parts > 1 ? "part_ends" : "NULL");
	text_put(out, "trees, stream_rank, rings, NULL,\n"
	    "\tblink_open, blink_close, blink_memory_new, blink_memory_free, blink_memory_copy, run\n};\n");
}

static void
put_rate(Text *out, const Schedule *sched)
{
	char percent[48];
	Frac ratio;
	text_put(out, " * rate        ");
	text_gb(out, sched->achieved);
	text_printf(out, " GB/s; no algorithm%s exceeds ", bound_claim(&sched->bound, sched->coll));
	text_gb(out, sched->bound.rate);
	text_put(out, " GB/s");
	if (frac_div(sched->achieved, sched->bound.rate, &ratio)) {
		decimal_text((Wide)ratio.num * 100, ratio.den, 4, percent);
		text_printf(out, " (%s %%)", percent);
	}
	text_put(out, ".\n");
}

void
cu_put_about(Text *out, const Schedule *sched, const char *digest)
{
	const Topology *topo = sched->topo;
	text_printf(out, "%s over %d ranks", collective_name(sched->coll), topo->n_ranks);
	if (sched->root >= 0)
		text_printf(out, ", root %d", sched->root);
	text_printf(out, ", along %d tree%s.  Written by ", sched->n_segments, sched->n_segments == 1 ? "" : "s");
	text_c_comment(out, sched->generator);
	text_put(out, " ");
	text_c_comment(out, sched->version);
	text_put(out, ": change the schedule, not this file.\n *\n * schedule    ");
	text_c_comment(out, digest);
	/* No line ends with text from a file: that might end with the trigraph of a backslash. */
	text_put(out, ".\n * topology    \"");
	text_c_comment(out, topo->name);
	text_put(out, "\",\n *             ");
	text_c_comment(out, topo->digest);
	text_put(out, ".\n * algorithm   \"");
	text_c_comment(out, sched->algorithm);
	text_put(out, "\".\n");
	put_rate(out, sched);
	text_put(out, " * ranks      ");
	for (int r = 0; r < topo->n_ranks; r++) {
		text_printf(out, "%s%d = ", r == 0 ? " " : r % 6 ? ", " : ",\n *             ", r);
		text_c_comment(out, topo->vertex[r].id);
	}
	text_put(out, ".\n");
}

static void
put_header(struct cu_writer *w, const char *digest)
{
	Text *out = w->out;
	text_put(out, "/* ");
	cu_put_about(out, w->sched, digest);
	text_put(out, " *\n"
	    " * For GPUs, and for the host, which emulates them:\n *\n"
	    " *	nvcc -O2 -shared -Xcompiler -fPIC -I DIR FILE.cu -o FILE.so\n"
	    " *	cc -x c -std=gnu11 -O2 -shared -fPIC -I DIR FILE.cu -o FILE.so -pthread\n *\n"
	    " * where DIR holds blink_device.h. Then `blink-perf FILE.so`, or blinkScheduleLoad (see libblink(3)).\n"
	    " *\n"
	    " * A tree moves one segment of the buffer, chunk by chunk. Its function issues one chunk: each edge has a"
	    " stream\n"
	    " * for its copies, and each rank that reduces has one for that. A step waits for the event of the step"
	    " whose\n"
	    " * result it uses; and where it fills a slot of a ring of two chunks, for those that still read it"
	    " (wait_slot).\n"
	    " * Trees are drawn from the root, each rank with the links between it and its parent, as the schedule"
	    " numbers\n"
	    " * them. */\n");
	text_put(out, "#include <blink_device.h>\n\n");
}

Status
program_write_cu(Ctx *ctx, const Program *prog, const char *digest, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct cu_writer w = { .prog = prog, .sched = prog->sched, .out = out };
	Status status = cu_drawing_new(ctx, &w);
	if (status == OK) {
		put_header(&w, digest);
		for (int s = 0; s < w.sched->n_segments; s++)
			cu_put_tree(&w, s);
		put_run(&w);
		put_tables(&w);
		put_program(&w, digest);
		if (out->failed)
			status = fail_memory(ctx);
	}
	arena_release(&ctx->scratch, mark);
	return status;
}

Status
sched_write_cu(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	char digest[DIGEST_ROOM];
	Program *prog;
	digest_of(in->json->data, in->json->size, digest);
	TRY(sched_lower(ctx, sched, &prog));
	return program_write_cu(ctx, prog, digest, out);
}
