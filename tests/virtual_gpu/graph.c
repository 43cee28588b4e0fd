/* Captures and graphs.
 *
 * A capture makes the work of its streams into nodes. Each of its streams knows which nodes its next one waits for: the
 * last of its own, and those of the events that it waited for. An event that such a stream records is that set; a
 * stream that waits for it belongs to the capture from then on. In the end, all that was captured must come before the
 * last nodes of the stream where it began. A violation makes the capture void: it must still be ended, and gives no
 * graph.
 *
 * A graph is divided into chains, of which the nodes follow one another; a replay executes each chain in a thread of
 * its own, the first in that of its stream. Nodes of other chains are waited for by moments. */
#include "more.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

struct node {
	struct operation *operation;
	struct context *c;
	struct set before;
	int chain, next;		/* the next of the chain; -1: none */
};

struct graph {
	void *handle;			/* NULL: destroyed; executable graphs may hold it */
	_Atomic int holders;
	struct node *node;
	int n;
	unsigned devices;		/* of the nodes, a bit each */
	int *chain;			/* their first nodes */
	int n_chains;
	bool complete;			/* its capture has ended */
	_Atomic bool dead;		/* a context of its nodes is gone */
};

struct exec {
	void *handle;
	struct graph *graph;
	struct moment *last;		/* of its last launch */
};

struct capture {
	struct capture *next;		/* of those that have not ended */
	int holders;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	struct stream *origin;
	bool ended, invalid;
	struct graph *graph;
};

static struct capture *captures;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- sets of nodes ---- */

static void
set_add(struct set *set, int node)
{
	for (int i = 0; i < set->n; i++)
		if (set->node[i] == node)
			return;
	set->node = grown(set->node, (set->n + 1) * sizeof *set->node);
	set->node[set->n++] = node;
}

static void
set_join(struct set *set, const struct set *other)
{
	for (int i = 0; i < other->n; i++)
		set_add(set, other->node[i]);
}

static void
set_clear(struct set *set)
{
	free(set->node);
	*set = (struct set){ 0 };
}

/* ---- graphs ---- */

static void
graph_drop(struct graph *g)
{
	if (!g || atomic_fetch_sub(&g->holders, 1) > 1)
		return;
	for (int i = 0; i < g->n; i++) {
		operation_free(g->node[i].operation);
		free(g->node[i].before.node);
	}
	free(g->node);
	free(g->chain);
	free(g);
}

static int
graph_add(struct graph *g, struct context *c, const struct operation *operation, const struct set *before)
{
	g->node = grown(g->node, (g->n + 1) * sizeof *g->node);
	struct node *node = &g->node[g->n];
	*node = (struct node){ .operation = operation_copy(operation), .c = c, .next = -1 };
	set_join(&node->before, before);
	g->devices |= 1u << c->device;
	return g->n++;
}

/* A node goes on the chain of one that it waits for, if that is still the chain's last. */
static void
make_chains(struct graph *g)
{
	for (int i = 0; i < g->n; i++) {
		struct node *node = &g->node[i], *last = NULL;
		for (int k = 0; k < node->before.n && !last; k++)
			if (g->node[node->before.node[k]].next < 0)
				last = &g->node[node->before.node[k]];
		if (last) {
			last->next = i;
			node->chain = last->chain;
			continue;
		}
		g->chain = grown(g->chain, (g->n_chains + 1) * sizeof *g->chain);
		g->chain[g->n_chains] = i;
		node->chain = g->n_chains++;
	}
}

struct replay {
	const struct graph *graph;
	const _Atomic bool *gone;
	struct moment *done;		/* of each node */
	struct link {
		struct replay *replay;
		int chain;
		struct moment ended;
	} link[];
};

static void
run_chain(void *arg)
{
	struct link *link = arg;
	struct replay *replay = link->replay;
	const struct graph *g = replay->graph;
	for (int i = g->chain[link->chain]; i >= 0; i = g->node[i].next) {
		const struct node *node = &g->node[i];
		for (int k = 0; k < node->before.n; k++)
			moment_wait(&replay->done[node->before.node[k]], replay->gone);
		operation_run(node->operation, node->c, replay->gone, NULL);
		moment_reach(&replay->done[i]);
	}
	moment_reach(&link->ended);
}

static void
replay_graph(const struct graph *g, const _Atomic bool *gone)
{
	if (g->n_chains == 0)
		return;
	struct replay *replay = new_bytes(sizeof *replay + g->n_chains * sizeof *replay->link);
	replay->graph = g;
	replay->gone = gone;
	replay->done = new_bytes(g->n * sizeof *replay->done);
	for (int i = 0; i < g->n_chains; i++) {
		replay->link[i].replay = replay;
		replay->link[i].chain = i;
		if (i > 0)
			pool_start(run_chain, &replay->link[i]);
	}
	run_chain(&replay->link[0]);
	for (int i = 1; i < g->n_chains; i++)
		moment_wait(&replay->link[i].ended, NULL);
	free(replay->done);
	free(replay);
}

/* ---- captures ---- */

static void
capture_drop(struct capture *capture)
{
	if (--capture->holders > 0)
		return;
	graph_drop(capture->graph);
	free(capture);
}

void
capture_invalidate(struct capture *capture)
{
	if (!capture->ended)
		capture->invalid = true;
}

static CUresult
invalidated(struct capture *capture, CUresult r)
{
	capture_invalidate(capture);
	return r;
}

/* Does the capture forbid calls that are not safe to the calling thread? */
static bool
forbids(const struct capture *capture)
{
	if (pthread_equal(capture->thread, pthread_self()))
		return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult
capture_forbids(void)
{
	CUresult r = CUDA_SUCCESS;
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return r;
	state_lock();
	for (struct capture *capture = captures; capture; capture = capture->next)
		if (forbids(capture))
			r = invalidated(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return state_unlock(r);
}

/* A blocking stream of the context that captures. */
static struct stream *
blocking_capture(const struct context *c)
{
	struct stream *s = all_streams;
	while (s && !(s->c == c && s->blocking && s->capture))
		s = s->next;
	return s;
}

CUresult
capture_forbids_legacy(struct context *c)
{
	const struct stream *s = blocking_capture(c);
	return s ? invalidated(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

CUresult
capture_forbids_wait(struct stream *s)
{
	return s->capture ? invalidated(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult
capture_add(struct stream *s, const struct operation *operation)
{
	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	int node = graph_add(s->capture->graph, s->c, operation, &s->before);
	set_clear(&s->before);
	set_add(&s->before, node);
	return CUDA_SUCCESS;
}

CUresult
capture_record(struct stream *s, struct captured *out)
{
	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	out->capture = s->capture;
	out->capture->holders++;
	set_join(&out->before, &s->before);
	return CUDA_SUCCESS;
}

void
captured_drop(struct captured *event)
{
	set_clear(&event->before);
	if (event->capture)
		capture_drop(event->capture);
	event->capture = NULL;
}

CUresult
capture_wait(struct stream *s, const struct captured *event)
{
	struct capture *theirs = event->capture;
	if ((s->capture && s->capture->invalid) || (theirs && theirs->invalid && !theirs->ended))
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!theirs || theirs->ended) {
		if (s->capture)
			capture_invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (s->legacy)
		return invalidated(theirs, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	if (s->capture && s->capture != theirs) {
		capture_invalidate(s->capture);
		return invalidated(theirs, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	s->capture = theirs;
	set_join(&s->before, &event->before);
	return CUDA_SUCCESS;
}

/* ---- calls of captures ---- */

static struct capture *
capture_new(struct stream *s, CUstreamCaptureMode mode)
{
	static uint64_t ids;
	struct capture *capture = new_bytes(sizeof *capture);
	capture->holders = 1;
	capture->id = ++ids;
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->origin = s;
	capture->graph = new_bytes(sizeof *capture->graph);
	atomic_init(&capture->graph->holders, 1);
	capture->graph->handle = handle_new(GRAPH, capture->graph);
	capture->next = captures;
	captures = capture;
	return capture;
}

EXPORT CUresult
cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	ENTER_CONTEXT(cuStreamBeginCapture_v2, c);
	struct stream *s;
	if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r == CUDA_SUCCESS && s->legacy)
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (r == CUDA_SUCCESS && s->capture)
		r = invalidated(s->capture, CUDA_ERROR_ILLEGAL_STATE);
	if (r == CUDA_SUCCESS)
		s->capture = capture_new(s, mode);
	return state_unlock(r);
}

/* Is all that the streams of the capture wait for among what comes before the nodes of its first stream? */
static bool
joined(const struct capture *capture)
{
	const struct graph *g = capture->graph;
	bool *before = new_bytes(g->n);
	bool all = true;
	for (int i = 0; i < capture->origin->before.n; i++)
		before[capture->origin->before.node[i]] = true;
	for (int i = g->n - 1; i >= 0; i--)
		for (int k = 0; before[i] && k < g->node[i].before.n; k++)
			before[g->node[i].before.node[k]] = true;
	for (const struct stream *s = all_streams; s; s = s->next)
		for (int i = 0; s->capture == capture && i < s->before.n; i++)
			all = all && before[s->before.node[i]];
	free(before);
	return all;
}

/* Its streams are as others again. Returns its graph, or NULL. */
static struct graph *
end_capture(struct capture *capture, bool keep)
{
	struct graph *g = capture->graph;
	for (struct stream *s = all_streams; s; s = s->next)
		if (s->capture == capture) {
			s->capture = NULL;
			set_clear(&s->before);
		}
	struct capture **at = &captures;
	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
	capture->ended = true;
	capture->graph = NULL;
	capture_drop(capture);
	if (keep)
		return g;
	handle_end(g->handle);
	graph_drop(g);
	return NULL;
}

static CUresult
end_of(struct stream *s, struct graph **out)
{
	struct capture *capture = s->capture;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != s)
		return invalidated(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	CUresult r = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED :
	    joined(capture) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	*out = end_capture(capture, r == CUDA_SUCCESS);
	return r;
}

EXPORT CUresult
cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	ENTER_CONTEXT(cuStreamEndCapture, c);
	struct stream *s;
	struct graph *g = NULL;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = NULL;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r == CUDA_SUCCESS)
		r = end_of(s, &g);
	if (g) {
		make_chains(g);
		g->complete = true;
		*graph = g->handle;
	}
	return state_unlock(r);
}

static CUstreamCaptureStatus
status_of(const struct stream *s)
{
	return !s->capture ? CU_STREAM_CAPTURE_STATUS_NONE : s->capture->invalid ?
	    CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

EXPORT CUresult
cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	ENTER_CONTEXT(cuStreamIsCapturing, c);
	struct stream *s;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r == CUDA_SUCCESS)
		*status = status_of(s);
	return state_unlock(r);
}

EXPORT CUresult
cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **nodes, size_t *n_nodes)
{
	ENTER_CONTEXT(cuStreamGetCaptureInfo_v2, c);
	struct stream *s;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodes)
		return CUDA_ERROR_NOT_SUPPORTED;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r != CUDA_SUCCESS)
		return state_unlock(r);
	*status = status_of(s);
	if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		if (id)
			*id = s->capture->id;
		if (graph)
			*graph = s->capture->graph->handle;
		if (n_nodes)
			*n_nodes = (size_t)s->before.n;
	}
	return state_unlock(r);
}

EXPORT CUresult
cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	ENTER(cuThreadExchangeStreamCaptureMode);
	if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

/* ---- calls of graphs ---- */

EXPORT CUresult
cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	ENTER_CONTEXT(cuGraphInstantiateWithFlags, c);
	(void)c;
	if (!exec || flags)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	struct graph *g = handle_find(GRAPH, graph);
	if (!g)
		return state_unlock(CUDA_ERROR_INVALID_HANDLE);
	if (!g->complete)
		return state_unlock(CUDA_ERROR_INVALID_VALUE);
	struct exec *e = new_bytes(sizeof *e);
	atomic_fetch_add(&g->holders, 1);
	e->graph = g;
	*exec = e->handle = handle_new(EXEC, e);
	return state_unlock(CUDA_SUCCESS);
}

struct graph_launch {
	struct operation operation;
	struct graph *graph;
};

static void
launch_run(struct operation *self, struct context *c)
{
	(void)c;
	replay_graph(((struct graph_launch *)self)->graph, work_now.gone);
}

static void
launch_drop(struct operation *self)
{
	graph_drop(((struct graph_launch *)self)->graph);
}

/* In a capture the graph becomes a node; else it follows its own launch before. */
static CUresult
launch(struct exec *e, struct stream *s)
{
	struct graph_launch launch = { { launch_run, NULL, launch_drop, sizeof launch }, e->graph };
	if (atomic_load(&e->graph->dead))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	atomic_fetch_add(&e->graph->holders, 1);
	if (s->capture) {
		CUresult r = capture_add(s, &launch.operation);
		if (r == CUDA_SUCCESS)
			s->capture->graph->devices |= e->graph->devices;
		else
			graph_drop(e->graph);
		return r;
	}
	struct moment *done = moment_hold(stream_queue(s, &launch.operation, &e->last, 1));
	moment_drop(e->last);
	e->last = done;
	stream_mark(e->graph->devices & ~(1u << s->c->device), done);
	return CUDA_SUCCESS;
}

EXPORT CUresult
cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	ENTER_CONTEXT(cuGraphLaunch, c);
	struct stream *s;
	state_lock();
	struct exec *e = handle_find(EXEC, exec);
	CUresult r = e ? stream_find(stream, c, &s) : CUDA_ERROR_INVALID_HANDLE;
	return state_unlock(r == CUDA_SUCCESS ? launch(e, s) : r);
}

/* What it prepares is there already. */
EXPORT CUresult
cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	ENTER_CONTEXT(cuGraphUpload, c);
	struct stream *s;
	state_lock();
	return state_unlock(handle_find(EXEC, exec) ? stream_find(stream, c, &s) : CUDA_ERROR_INVALID_HANDLE);
}

EXPORT CUresult
cuGraphExecDestroy(CUgraphExec exec)
{
	ENTER(cuGraphExecDestroy);
	state_lock();
	struct exec *e = handle_find(EXEC, exec);
	if (!e)
		return state_unlock(CUDA_ERROR_INVALID_HANDLE);
	handle_end(exec);
	graph_drop(e->graph);
	moment_drop(e->last);
	free(e);
	return state_unlock(CUDA_SUCCESS);
}

EXPORT CUresult
cuGraphDestroy(CUgraph graph)
{
	ENTER(cuGraphDestroy);
	state_lock();
	struct graph *g = handle_find(GRAPH, graph);
	if (!g || !g->complete)
		return state_unlock(CUDA_ERROR_INVALID_HANDLE);
	handle_end(graph);
	graph_drop(g);
	return state_unlock(CUDA_SUCCESS);
}

/* How many there are; nodes themselves have no handles here. */
EXPORT CUresult
cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	ENTER(cuGraphGetNodes);
	if (nodes)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	struct graph *g = handle_find(GRAPH, graph);
	if (!g || !g->complete)
		return state_unlock(CUDA_ERROR_INVALID_HANDLE);
	*n = (size_t)g->n;
	return state_unlock(CUDA_SUCCESS);
}

/* ---- contexts ---- */

static void
forget(void *exec, void *context)
{
	struct graph *g = ((struct exec *)exec)->graph;
	if (g->devices >> ((struct context *)context)->device & 1)
		atomic_store(&g->dead, true);
}

void
graphs_forget(struct context *c)
{
	handle_each(EXEC, forget, c);
	for (struct capture *capture = captures, *next; capture; capture = next) {
		next = capture->next;
		if (capture->origin->c == c)
			end_capture(capture, false);
	}
}
