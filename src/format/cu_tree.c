/* The code of a tree: names of its streams, rings and events, and a function that issues one chunk. */
#include "format/cu_writer.h"

/* ---- names ---- */

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
		text_printf(out, "T%d_%s_%d_TO_%d_DONE", segment, step->up ? "UP" : "DOWN", step->edge->src,
		    step->edge->dst);
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

static void
put_names(struct cu_writer *w, int s)
{
	const Program *prog = w->prog;
	struct names names = { .out = w->out };
	for (; w->next_stream < prog->n_streams && prog->stream[w->next_stream].segment == s; w->next_stream++) {
		name_begins(&names, "streams");
		stream_name(w->out, &prog->stream[w->next_stream]);
		name_ends(&names, w->next_stream);
	}
	names.of_kind = false;
	for (; w->next_ring < prog->n_rings && prog->ring[w->next_ring].segment == s; w->next_ring++) {
		name_begins(&names, "rings of scratch chunks");
		ring_name(w->out, &prog->ring[w->next_ring]);
		name_ends(&names, w->next_ring);
	}
	names.of_kind = false;
	for (int i = prog->first_step[s]; i < prog->first_step[s + 1]; i++) {
		if (prog->step[i].event < 0)
			continue;
		name_begins(&names, "events");
		event_name(w->out, s, &prog->step[i]);
		name_ends(&names, w->next_event++);
	}
	if (names.any)
		text_put(w->out, "\n};\n\n");
}

/* ---- steps ---- */

static void
put_place(struct cu_writer *w, const Place *place)
{
	if (place->kind == PLACE_SCRATCH) {
		text_put(w->out, "blink_scratch(&k, ");
		ring_name(w->out, &w->prog->ring[place->ring]);
		text_put(w->out, ")");
	} else {
		text_printf(w->out, "blink_%s(&k, %d)", place->kind == PLACE_INPUT ? "input" : "output", place->rank);
	}
}

/* "\tblink_wait(&k, STREAM, EVENT);\n", and likewise for the other calls that take both */
static void
put_event_call(struct cu_writer *w, int s, const char *call, const Step *step, const Step *other)
{
	text_printf(w->out, "\tblink_%s(&k, ", call);
	stream_name(w->out, &w->prog->stream[step->stream]);
	text_put(w->out, ", ");
	event_name(w->out, s, other);
	text_put(w->out, ");\n");
}

static void
put_step_comment(struct cu_writer *w, const Step *step)
{
	if (step->op == STEP_REDUCE) {
		text_printf(w->out, "\n\t/* %d reduces what came from %d */\n", step->edge->dst, step->edge->src);
		return;
	}
	text_printf(w->out, "\n\t/* %s: %d -> %d, ", step->up ? "up" : "down", step->edge->src, step->edge->dst);
	cu_put_links(w, step->edge);
	text_put(w->out, " */\n");
}

static void
put_step(struct cu_writer *w, int s, const Step *step)
{
	const Program *prog = w->prog;
	put_step_comment(w, step);
	for (int i = 0; i < step->n_before; i++)
		put_event_call(w, s, "wait_slot", step, &prog->step[step->before[i]]);
	if (step->after >= 0)
		put_event_call(w, s, "wait", step, &prog->step[step->after]);
	text_printf(w->out, "\tblink_%s(&k, ", step->op == STEP_COPY ? "copy" : "reduce");
	stream_name(w->out, &prog->stream[step->stream]);
	text_put(w->out, ", ");
	put_place(w, &step->to);
	text_put(w->out, ", ");
	put_place(w, &step->from);
	if (step->op == STEP_REDUCE) {
		text_put(w->out, ", ");
		put_place(w, &step->with);
	}
	text_put(w->out, ");\n");
	if (step->event >= 0)
		put_event_call(w, s, "record", step, step);
}

void
cu_put_tree(struct cu_writer *w, int s)
{
	cu_put_drawing(w, s);
	put_names(w, s);
	text_printf(w->out, "static void\ntree_%d(const struct blink_run *run, int64_t c)\n{\n", s);
	text_printf(w->out, "\tstruct blink_chunk k;\n\tif (!blink_chunk(run, %d, c, &k))\n\t\treturn;\n", s);
	for (int i = w->prog->first_step[s]; i < w->prog->first_step[s + 1]; i++)
		put_step(w, s, &w->prog->step[i]);
	text_put(w->out, "}\n\n");
}
