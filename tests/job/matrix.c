/* Collectives in a job: every collective, type and operation, with counts, places, roots and values by chance.  What
 * each rank receives is compared with what it should be (call.c); where a schedule was given, its bits with those that
 * one process which drives all ranks gets by the same schedule; and what all ranks receive alike, between them.
 *
 *	matrix [-n RANKS] [-t] [-v] [-s SERVERS] [-c CALLS] [-m COUNT] [-b CHUNK] [-r] [-o] [-d DIRECTORY [-g GPUS]]
 *	    [-k KIND] [-S SEED] NAME
 *
 * With BLINK_BACKEND=cuda buffers are in memory of GPUs.
 * -t: ranks are threads; else processes. -v: each of which sees one GPU alone. -s: on so many servers, told apart by
 * BLINK_HOST_ID. -r: buffers are registered. -d: schedules: COLLECTIVE.json and COLLECTIVE.rROOT.json; with -g an
 * index, and the job's GPUs in it; without -d: BLINK_SCHEDULES. -o: a switch may add, in an order of its own: sums that
 * round have the same bits on all ranks, but need not have those of one process. -k: calls whose kind begins with that,
 * as "allreduce float32 sum". */
#include "call.h"
#include "device.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CALLS = 20000 };

struct matrix {
	const char *name, *directory, *kind;
	int n, servers, n_calls;
	bool threads, registered, sees_one, any_order;
	size_t most, chunk;
	uint64_t seed;
	int gpus[JOB_RANKS], n_gpus;	/* of the index; 0: no index */
	char schedules[4096];
	struct call *calls;
	uint64_t *digest;		/* [call][rank]: of what was received; 0: not yet */
	uint64_t *expected;		/* by one process with the same schedule; 0: there is none */
};

/* ---- one process drives all ranks ---- */

/* The schedule of a call; NULL: the job uses one that is built in. */
static blinkSchedule_t
find_schedule(const struct matrix *m, blinkIndex_t index, const struct call *c)
{
	blinkSchedule_t sched = NULL;
	blinkError_t error;
	char path[4096 + 64], root[16] = "";
	if (index) {
		blinkIndexFind(index, m->gpus, m->n, c->coll, c->root, &sched, &error);
		return sched;
	}
	if (call_has_root(c->coll))
		snprintf(root, sizeof root, ".r%d", c->root);
	snprintf(path, sizeof path, "%s/%s%s.json", m->directory, call_name(c->coll), root);
	if (access(path, R_OK) == 0 && blinkScheduleLoad(path, &sched, &error) != blinkSuccess)
		printf("# %s\n", error.text);
	return sched;
}

static void
run_all_ranks(const struct matrix *m, const struct call *c, blinkComm_t comm, uint64_t *expected, struct rank *me)
{
	struct buffers b[JOB_RANKS];
	const void *send[JOB_RANKS];
	void *recv[JOB_RANKS];
	char text[160];
	for (int r = 0; r < m->n; r++) {
		size_t bytes = call_need(c, m->n, r);
		call_place(c, m->n, r, aligned_alloc(64, bytes), &b[r]);
		send[r] = b[r].n_send ? b[r].send : NULL;
		recv[r] = b[r].n_recv ? b[r].recv : NULL;
	}
	blinkResult_t result = blinkRun(comm, send, recv, c->count, c->type, (blinkRedOp_t)c->op);
	call_text(c, text);
	job_need(me, result == blinkSuccess, "all ranks in one process: %s: %d: %s", text, (int)result,
	    blinkCommGetError(comm));
	for (int r = 0; r < m->n; r++) {
		char why[256];
		job_need(me, call_right(c, m->n, r, &b[r], why), "all ranks in one process: %s: %s", text, why);
		expected[r] = call_digest(c, &b[r]);
		free(b[r].memory);
	}
}

/* In a process of its own: what each rank should receive, to the bit. An operation with a scalar belongs to a rank. */
static void
all_ranks_body(struct rank *me)
{
	const struct matrix *m = me->arg;
	blinkIndex_t index = NULL;
	blinkError_t error;
	blinkSchedule_t sched[CALL_COLLECTIVES][JOB_RANKS] = { { NULL } };
	if (m->n_gpus && !job_need(me, blinkIndexLoad(m->directory, &index, &error) == blinkSuccess, "%s", error.text))
		return;
	for (int k = 0; k < m->n_calls; k++) {
		const struct call *c = &m->calls[k];
		int root = call_has_root(c->coll) ? c->root : 0;
		blinkSchedule_t *s = &sched[c->coll][root];
		blinkComm_t comm = NULL;
		if (call_reduces(c->coll) && c->op == CALL_PRE_MUL_SUM)
			continue;
		if (!*s)
			*s = find_schedule(m, index, c);
		if (!*s)
			continue;
		job_at(me, "call %d", k);
		if (job_need(me, blinkCommCreate(*s, NULL, &comm, &error) == blinkSuccess, "%s", error.text))
			run_all_ranks(m, c, comm, &m->expected[k * m->n], me);
		blinkCommDestroy(comm);
	}
	for (int c = 0; c < CALL_COLLECTIVES; c++)
		for (int r = 0; r < JOB_RANKS; r++)
			blinkScheduleDestroy(sched[c][r]);
	blinkIndexDestroy(index);
}

/* ---- the job ---- */

/* Memory for the largest call; registered if the job asks for it. */
static char *
rank_memory(const struct matrix *m, struct rank *me, blinkComm_t comm, size_t *bytes, void **handle)
{
	void *memory = NULL;
	*bytes = 64;
	for (int k = 0; k < m->n_calls; k++) {
		size_t need = call_need(&m->calls[k], m->n, me->rank);
		*bytes = need > *bytes ? need : *bytes;
	}
	if (!m->registered) {
		job_need(me, (memory = aligned_alloc(64, *bytes)) != NULL, "no memory");
		return memory;
	}
	blinkResult_t result = blinkMemAlloc(comm, me->rank, *bytes, &memory);
	job_need(me, result == blinkSuccess, "blinkMemAlloc: %d: %s", (int)result, blinkCommGetError(comm));
	result = blinkCommRegister(comm, memory, *bytes, handle);
	job_need(me, result == blinkSuccess, "blinkCommRegister: %d: %s", (int)result, blinkCommGetError(comm));
	return memory;
}

static bool
one_call(const struct matrix *m, struct rank *me, int k, char *memory, char *device, void *stream, blinkComm_t comm)
{
	const struct call *c = &m->calls[k];
	struct buffers b;
	char text[160], why[256];
	job_at(me, "call %d: %s", k, call_text(c, text));
	call_place(c, m->n, me->rank, memory, &b);
	b.device = device;
	b.stream = stream;
	blinkResult_t result = call_start(c, me->rank, &b, comm);
	if (!job_need(me, result == blinkSuccess, "%s: %d: %s", text, (int)result, blinkCommGetError(comm)))
		return false;
	result = blinkCommWait(comm, 0);
	if (!job_need(me, result == blinkSuccess, "wait for %s: %d: %s", text, (int)result, blinkCommGetError(comm)))
		return false;
	result = call_fetch(me->rank, &b, comm);
	job_need(me, result == blinkSuccess, "copy out: %d: %s", (int)result, blinkCommGetError(comm));
	job_need(me, call_right(c, m->n, me->rank, &b, why), "call %d: %s: %s", k, text, why);
	m->digest[k * m->n + me->rank] = call_digest(c, &b);
	return true;
}

static void
body(struct rank *me)
{
	const struct matrix *m = me->arg;
	char host[32], gpu[16];
	blinkConfig_t config = { .chunkBytes = m->chunk, .threads = 1, .timeoutMs = (int64_t)(20000 * job_slack()),
		.schedules = *m->schedules ? m->schedules : NULL };
	void *handle = NULL;
	size_t bytes;
	if (m->servers > 1) {
		snprintf(host, sizeof host, "server%d", me->rank * m->servers / m->n);
		setenv("BLINK_HOST_ID", host, 1);
	}
	snprintf(gpu, sizeof gpu, "%d", me->rank);
	if (m->sees_one)
		setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
	snprintf(gpu, sizeof gpu, "%d", m->gpus[me->rank]);
	if (m->n_gpus)
		config.gpu = gpu;
	device_take(me);
	blinkComm_t comm = job_join(me, &config);
	if (!comm)
		return;
	char *memory = rank_memory(m, me, comm, &bytes, &handle), *device = device_memory(me, comm, bytes);
	void *stream = device_stream(me);
	for (int k = 0; memory && k < m->n_calls && one_call(m, me, k, memory, device, stream, comm); k++)
		;
	device_free(me, comm, device);
	device_stream_end(me, stream);
	if (m->registered) {
		job_need(me, blinkCommDeregister(comm, handle) == blinkSuccess, "blinkCommDeregister");
		job_need(me, blinkMemFree(comm, me->rank, memory) == blinkSuccess, "blinkMemFree");
	} else {
		free(memory);
	}
	job_leave(me, comm);
}

/* ---- afterwards ---- */

static bool
all_receive_alike(const struct call *c)
{
	return c->coll == blinkCollBroadcast || c->coll == blinkCollAllReduce || c->coll == blinkCollAllGather;
}

static bool
has_order(const struct call *c)
{
	return call_reduces(c->coll) && c->op == blinkSum && c->type >= blinkFloat16 && c->fill == FILL_ROUNDED;
}

static int
compare(const struct matrix *m, int *n_compared)
{
	int wrong = 0;
	char text[160];
	for (int k = 0; k < m->n_calls; k++) {
		const uint64_t *digest = &m->digest[k * m->n], *expected = &m->expected[k * m->n];
		for (int r = 0; r < m->n; r++) {
			bool alike = !all_receive_alike(&m->calls[k]) || digest[r] == digest[0];
			bool same = !expected[r] || expected[r] == digest[r]
			    || (m->any_order && has_order(&m->calls[k]));
			*n_compared += r == 0 && expected[r];
			if ((!alike || !same) && wrong++ < 5)
				printf("# call %d: %s: rank %d: %s\n", k, call_text(&m->calls[k], text), r,
				    same ? "not as rank 0" : "not as one process does it");
		}
	}
	return wrong;
}

static bool
is_of_kind(const struct call *c, const char *kind)
{
	char text[80];
	call_kind(c, text);
	return !kind || strncmp(text, kind, strlen(kind)) == 0;
}

/* Every combination in turn, from a place by chance; the rest of a call by chance. */
static void
choose_calls(struct matrix *m)
{
	int all = call_combinations(), stride = 101;	/* a prime that does not divide `all` */
	uint64_t state = m->seed;
	int first = (int)(next_random(&state) % (uint64_t)all);
	m->calls = shared_memory((size_t)m->n_calls * sizeof *m->calls);
	int64_t at = first;
	for (int k = 0; k < m->n_calls; k++) {
		int64_t end = at + (int64_t)all * stride;
		do {
			call_combination((int)(at % all), &m->calls[k]);
			at += stride;
		} while (!is_of_kind(&m->calls[k], m->kind) && at < end);
		call_random(&m->calls[k], m->n, m->most, &state);
	}
}

static void
name_schedules(struct matrix *m)
{
	size_t at = 0;
	if (m->n_gpus)
		at += (size_t)snprintf(m->schedules, sizeof m->schedules, "%s", m->directory);
	for (int c = 0; m->directory && !m->n_gpus && c < CALL_COLLECTIVES; c++) {
		for (int r = -1; r < m->n; r++) {
			char root[16] = "", path[1024];
			if (r >= 0)
				snprintf(root, sizeof root, ".r%d", r);
			snprintf(path, sizeof path, "%s/%s%s.json", m->directory, call_name((blinkCollective_t)c),
			    root);
			size_t room = sizeof m->schedules - at;
			if (access(path, R_OK) == 0 && strlen(path) + 2 < room)
				at += (size_t)snprintf(m->schedules + at, room, "%s%s", at ? ":" : "", path);
		}
	}
}

static bool
read_options(struct matrix *m, int argc, char **argv)
{
	for (int o; (o = getopt(argc, argv, "n:tvs:c:m:b:rod:g:k:S:")) != -1;) {
		switch (o) {
		case 'n': m->n = atoi(optarg); break;
		case 't': m->threads = true; break;
		case 'v': m->sees_one = true; break;
		case 's': m->servers = atoi(optarg); break;
		case 'c': m->n_calls = atoi(optarg); break;
		case 'm': m->most = (size_t)atol(optarg); break;
		case 'b': m->chunk = (size_t)atol(optarg); break;
		case 'r': m->registered = true; break;
		case 'o': m->any_order = true; break;
		case 'd': m->directory = optarg; break;
		case 'k': m->kind = optarg; break;
		case 'S': m->seed = (uint64_t)atol(optarg); break;
		case 'g':
			for (char *g = strtok(optarg, ","); g && m->n_gpus < JOB_RANKS; g = strtok(NULL, ","))
				m->gpus[m->n_gpus++] = atoi(g);
			break;
		default: return false;
		}
	}
	m->n = m->n_gpus ? m->n_gpus : m->n;
	m->name = argv[optind];
	return m->name && m->n >= 1 && m->n <= JOB_RANKS && m->n_calls >= 1 && m->n_calls <= MOST_CALLS
	    && !(m->threads && m->servers > 1);
}

int
main(int argc, char **argv)
{
	static struct matrix m = { .n = 4, .servers = 1, .n_calls = 276, .most = 1025, .seed = 1 };
	int n_compared = 0, wrong = 0, seconds = 40;
	if (!read_options(&m, argc, argv)) {
		fprintf(stderr, "usage: see the head of tests/job/matrix.c\n");
		return 2;
	}
	choose_calls(&m);
	name_schedules(&m);
	size_t cells = (size_t)m.n_calls * (size_t)m.n;
	m.digest = shared_memory(cells * sizeof *m.digest);
	m.expected = shared_memory(cells * sizeof *m.expected);
	if (m.directory) {
		setenv("BLINK_SMALL", "0", 1);	/* small messages by the schedule, too */
		wrong += job_run("all ranks", 1, false, seconds, all_ranks_body, &m);
	}
	wrong += job_run(m.name, m.n, m.threads, seconds, body, &m);
	wrong += wrong ? 0 : compare(&m, &n_compared);
	if (m.directory && !n_compared && !wrong++)
		printf("# no call had a schedule of %s\n", m.directory);
	return job_report(m.name, wrong);
}
