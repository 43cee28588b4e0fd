/* Lowering, the host backend and the two ways into it (schedule file, generated program), against a plain oracle.
 * Prints TAP. Arguments: seed, schedules to try of each collective. Run at the root of the repository; CC compiles the
 * programs. */
#include "../../runtime/runtime.h"
#include "base/file.h"
#include "blink_device.h"
#include "compile.h"
#include "format/format.h"
#include "schedule/schedule.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RANKS = 7, GUARD = 64 };

static int n_tests, n_failed;

static void
ok(bool good, const char *what)
{
	n_tests++;
	n_failed += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", n_tests, what);
}

static uint64_t state;

static uint64_t
random64(void)
{
	uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int
below(int n)
{
	return (int)(random64() % (uint64_t)n);
}

static void *
need(void *p)
{
	if (!p) {
		printf("Bail out! out of memory\n");
		exit(1);
	}
	return p;
}

#define MAKE(ctx, p, n) need((p) = arena_array(&(ctx)->run, (size_t)(n), sizeof *(p)))

/* ---- Random schedules, right by construction ---- */

/* Every rank linked with every other: link (i, j) has number i * n + j, less the diagonal. */
static int
link_of(int n, int i, int j)
{
	return i * (n - 1) + j - (j > i);
}

static Topology *
complete(Ctx *ctx, int n)
{
	Topology *topo;
	MAKE(ctx, topo, 1);
	topo->name = "complete \"graph\" */ ?\?/";
	topo->digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	topo->n_nodes = 1;
	MAKE(ctx, topo->node, 1);
	topo->node[0] = "node0";
	topo->n_ranks = topo->n_vertices = n;
	MAKE(ctx, topo->vertex, n);
	for (int r = 0; r < n; r++) {
		char id[16];
		snprintf(id, sizeof id, "gpu%d", r);
		topo->vertex[r].id = need(arena_text(&ctx->run, id, strlen(id)));
		topo->vertex[r].kind = VERTEX_GPU;
	}
	topo->n_links = n * (n - 1);
	MAKE(ctx, topo->link, topo->n_links);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (i != j)
				topo->link[link_of(n, i, j)] = (Link){ .from = i,
					.to = j,
					.class = LINK_NVLINK,
					.count = 1,
					.capacity = INT64_C(25000000000),
					.latency = 1000 };
	topo_index(ctx, topo);
	return topo;
}

static Edge
edge(Ctx *ctx, int n, int src, int dst)
{
	int *link;
	MAKE(ctx, link, 1);
	*link = link_of(n, src, dst);
	return (Edge){ .src = src, .dst = dst, .n_links = 1, .link = link };
}

static void
shuffle(int *a, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int j = below(i + 1), t = a[i];
		a[i] = a[j];
		a[j] = t;
	}
}

/* order[0] = root; each later one hangs below an earlier one. */
static void
grow(int n, int root, int *order, int *parent)
{
	int shape = below(3);
	for (int i = 0; i < n; i++)
		order[i] = i;
	order[root] = 0;
	order[0] = root;
	shuffle(order + 1, n - 1);
	for (int i = 1; i < n; i++)
		parent[order[i]] = order[shape == 0 ? i - 1 : shape == 1 ? 0 : below(i)];
	parent[root] = -1;
}

static void
add_down(Ctx *ctx, int n, Tree *tree, const int *order, const int *parent, const bool *wanted)
{
	bool keep[MAX_RANKS] = { false };
	bool prune = below(3) != 0;
	for (int i = n - 1; i > 0; i--) {
		int r = order[i];
		keep[r] = keep[r] || wanted[r] || !prune;
		if (keep[r])
			keep[parent[r]] = true;
	}
	MAKE(ctx, tree->down, n);
	for (int i = 1; i < n; i++)
		if (keep[order[i]])
			tree->down[tree->n_down++] = edge(ctx, n, parent[order[i]], order[i]);
}

static void
add_up(Ctx *ctx, int n, Tree *tree, const int *order, const int *parent)
{
	MAKE(ctx, tree->up, n);
	for (int i = n - 1; i > 0; i--)
		tree->up[tree->n_up++] = edge(ctx, n, order[i], parent[order[i]]);
}

/* A tree that brings what the holder has (or the sum of all) to the wanted ranks. */
static void
make_tree(Ctx *ctx, const Schedule *sched, int holder, const bool *wanted, Tree *tree)
{
	int n = sched->topo->n_ranks, order[MAX_RANKS], parent[MAX_RANKS], any[MAX_RANKS], n_any = 0;
	for (int r = 0; r < n; r++)
		if (wanted[r])
			any[n_any++] = r;
	if (collective_reduces(sched->coll)) {
		tree->root = below(2) ? any[below(n_any)] : below(n);
		grow(n, tree->root, order, parent);
		add_up(ctx, n, tree, order, parent);
		if (below(2))
			grow(n, tree->root, order, parent);
	} else {
		tree->root = below(2) ? holder : below(n);
		if (tree->root != holder) {
			/* Up along a random path, which may pass ranks that are not served. */
			int path[MAX_RANKS], length = 0;
			grow(n, tree->root, order, parent);
			for (int r = holder; r != tree->root; r = parent[r])
				path[length++] = r;
			MAKE(ctx, tree->up, n);
			for (int i = 0; i < length; i++)
				tree->up[tree->n_up++] = edge(
				    ctx, n, path[i], i + 1 < length ? path[i + 1] : tree->root);
		}
		grow(n, tree->root, order, parent);
	}
	if (n_any > 1 || !wanted[tree->root])
		add_down(ctx, n, tree, order, parent, wanted);
}

/* Of each part, or else of the block, cut block b at random places; `to`: only for these ranks. */
static void
add_segments(Ctx *ctx, Schedule *sched, int64_t b, int p, const bool *wanted, bool limited)
{
	static const int parts[] = { 1, 1, 2, 3, 7 };
	int n = sched->topo->n_ranks, den = parts[below(5)];
	int64_t blocks = collective_blocks(sched->coll, n);
	int holder = collective_holder(sched->coll, n, sched->root, b);
	Frac begin = sched->n_parts ? sched->part[p].begin : FRAC_ZERO,
	     end = sched->n_parts ? sched->part[p].end : FRAC_ONE, share;
	frac_sub(end, begin, &share);
	for (int at = 0; at < den;) {
		int length = 1 + below(den - at);
		Segment *s = &sched->segment[sched->n_segments++];
		s->part = p;
		frac_make((Wide)share.num * at, (Wide)share.den * den, &s->offset);
		frac_add(s->offset, begin, &s->offset);
		frac_make(s->offset.num + (Wide)b * s->offset.den, (Wide)blocks * s->offset.den, &s->offset);
		frac_make((Wide)share.num * length, (Wide)blocks * share.den * den, &s->length);
		make_tree(ctx, sched, holder, wanted, &s->tree);
		MAKE(ctx, s->to, n);
		for (int r = 0; r < n && limited; r++)
			if (wanted[r])
				s->to[s->n_to++] = r;
		at += length;
	}
}

/* Up to three, some of which come in at sizes of up to a few KB. */
static void
add_parts(Ctx *ctx, Schedule *sched)
{
	int share[3], all = 0;
	sched->n_parts = 2 + below(2);
	MAKE(ctx, sched->part, sched->n_parts);
	for (int i = 0; i < sched->n_parts; i++)
		all += share[i] = 1 + below(9);
	sched->achieved = (Frac){ INT64_C(1000000000), 1 + below(9) };
	for (int i = 0, at = 0; i < sched->n_parts; i++) {
		sched->part[i] = (Part){ .classes = 1u << i, .setup = below(2) ? below(8000) : 0 };
		frac_make(at, all, &sched->part[i].begin);
		frac_make(at += share[i], all, &sched->part[i].end);
	}
}

static Schedule *
random_schedule(Ctx *ctx, Collective coll, int n, bool parts)
{
	Schedule *sched;
	int64_t blocks = collective_blocks(coll, n);
	MAKE(ctx, sched, 1);
	*sched = (Schedule){ .generator = "test", .version = "1", .topo = complete(ctx, n), .coll = coll, .root = -1,
		.algorithm = "random */ \"?\?/" };
	if (collective_rooted(coll))
		sched->root = below(n);
	MAKE(ctx, sched->segment, blocks * n * 7 * 3);
	if (parts)
		add_parts(ctx, sched);
	for (int64_t b = 0; b < blocks && n > 1; b++) {
		int needer = collective_needer(coll, n, sched->root, b);
		int holder = collective_holder(coll, n, sched->root, b);
		/* Groups of ranks that have their own trees; a rank's own block may be left out. */
		int groups = needer == EVERY_RANK ? 1 + below(2) * below(n) : 1;
		int group[MAX_RANKS];
		for (int r = 0; r < n; r++)
			group[r] = below(groups);
		if (needer != EVERY_RANK && needer == holder && below(2))
			continue;
		for (int g = 0; g < groups; g++) {
			bool wanted[MAX_RANKS], some = false;
			for (int r = 0; r < n; r++) {
				wanted[r] = needer == EVERY_RANK ? group[r] == g : r == needer;
				some = some || wanted[r];
			}
			for (int p = 0; some && p < (parts ? sched->n_parts : 1); p++)
				add_segments(ctx, sched, b, p, wanted, groups > 1);
		}
	}
	return sched;
}

/* What the file must say: a rate, and a bound with a certificate (the cut around one rank). */
static bool
add_rates(Ctx *ctx, Schedule *sched)
{
	int n = sched->topo->n_ranks, side = sched->root >= 0 ? sched->root : 0;
	MAKE(ctx, sched->bound.part, n);
	sched->bound.kind = CERTIFICATE_CUT;
	sched->bound.part[side] = 1;
	return sched_achieved(ctx, "test", sched, &sched->achieved) == OK &&
	    bound_from_certificate(ctx, "test", sched->topo, sched->coll, sched->root, &sched->bound,
	    &sched->bound.rate) == OK;
}

/* ---- The oracle ---- */

struct buffers {
	const struct blink_program *program;
	size_t count, size;
	int type, op;
	char *memory[2 * MAX_RANKS];	/* guard, send or receive buffer, guard */
	char *sent[MAX_RANKS];		/* what each rank sends */
	const void *send[MAX_RANKS];
	void *recv[MAX_RANKS];
	bool in_place[MAX_RANKS];
};

static size_t
bytes_of(const struct buffers *b, int r, bool recv)
{
	struct blink_layout l = blink_layout_of(b->program, r);
	return (size_t)(recv ? l.recv : l.send) * b->count * b->size;
}

/* Bits for reductions that are exact in any order: whole numbers, and for products of floats powers of two. */
static void
put_element(const struct buffers *b, char *to, uint64_t bits)
{
	bool prod = b->op == blinkProd;
	double f = prod ? (bits & 1 ? -1 : 1) * (bits & 2 ? 2 : bits & 4 ? 0.5 : 1) : (double)((int)(bits % 31) - 15);
	float f32 = (float)f;
	if (b->type == blinkFloat64)
		memcpy(to, &f, 8);
	else if (b->type == blinkFloat32)
		memcpy(to, &f32, 4);
	else
		memcpy(to, &bits, b->size);	/* little-endian, as everywhere that CUDA runs */
}

/* a = a op b, one element, written apart from the library's own reductions. */
static void
fold(const struct buffers *b, char *a, const char *with)
{
#define ONE(code, name, T, U, nan, unused)                                     \
	if (b->type == code) {                                                 \
		T x, y;                                                        \
		memcpy(&x, a, sizeof x);                                       \
		memcpy(&y, with, sizeof y);                                    \
		if (b->op == blinkSum)                                         \
			x = (T)((U)x + (U)y);                                  \
		else if (b->op == blinkProd)                                   \
			x = (T)((U)x * (U)y);                                  \
		else if (b->op == blinkMax ? y > x : y < x)                    \
			x = y;                                                 \
		memcpy(a, &x, sizeof x);                                       \
	}
	BLINK_TYPE_LIST(ONE, 0)
#undef ONE
}

static void
expect(const struct buffers *b, int r, size_t at, char *out)
{
	const struct blink_program *p = b->program;
	size_t block = at / b->count, i = at % b->count, own = (size_t)r * b->count + i;
	int from = p->root;
	switch (p->collective) {
	case blinkBroadcast:
		break;
	case blinkScatter:
		at = own;
		break;
	case blinkGather:
	case blinkAllGather:
		from = (int)block;
		at = i;
		break;
	case blinkAlltoAll:
		from = (int)block;
		at = own;
		break;
	default:
		from = 0;
		at = p->collective == blinkReduceScatter ? own : at;
		break;
	}
	memcpy(out, b->sent[from] + at * b->size, b->size);
	for (int q = 1; q < p->n_ranks && blink_reduces(p->collective); q++)
		fold(b, out, b->sent[q] + at * b->size);
}

static void
make_buffers(struct buffers *b, bool raw)
{
	for (int r = 0; r < b->program->n_ranks; r++) {
		struct blink_layout l = blink_layout_of(b->program, r);
		size_t sent = bytes_of(b, r, false), received = bytes_of(b, r, true), block = b->count * b->size;
		for (int side = 0; side < 2; side++) {
			size_t n = side ? received : sent;
			char *m = need(malloc(n + 2 * GUARD));
			memset(m, 0xa5, n + 2 * GUARD);
			b->memory[2 * r + side] = m;
		}
		b->sent[r] = need(malloc(sent + 1));
		for (size_t i = 0; i < sent; i += b->size) {
			uint64_t bits = random64();
			float f = (float)((double)(int64_t)bits / 1e12);
			if (raw && b->type == blinkFloat32)
				memcpy(b->sent[r] + i, &f, 4);
			else
				put_element(b, b->sent[r] + i, bits);
		}
		char *send = b->memory[2 * r] + GUARD, *recv = b->memory[2 * r + 1] + GUARD;
		if (b->in_place[r] && sent && received) {
			if (sent > received)
				recv = send + (size_t)l.own_send * block;
			else
				send = recv + (size_t)l.own_recv * block * (sent < received);
		}
		memcpy(send, b->sent[r], sent);
		b->send[r] = sent ? send : NULL;
		b->recv[r] = received ? recv : NULL;
	}
}

static bool
guards_hold(const struct buffers *b)
{
	for (int r = 0; r < b->program->n_ranks; r++) {
		for (int side = 0; side < 2; side++) {
			const unsigned char *m = (const unsigned char *)b->memory[2 * r + side];
			size_t n = bytes_of(b, r, side);
			for (int i = 0; i < GUARD; i++)
				if (m[i] != 0xa5 || m[GUARD + n + (size_t)i] != 0xa5)
					return false;
		}
		if (!b->in_place[r] && b->send[r] && memcmp(b->send[r], b->sent[r], bytes_of(b, r, false)) != 0)
			return false;
	}
	return true;
}

static bool
results_hold(const struct buffers *b)
{
	char want[8];
	for (int r = 0; r < b->program->n_ranks; r++) {
		const char *got = b->recv[r];
		for (size_t at = 0; at < bytes_of(b, r, true) / b->size; at++) {
			expect(b, r, at, want);
			if (memcmp(want, got + at * b->size, b->size) != 0)
				return false;
		}
	}
	return true;
}

static void
free_buffers(struct buffers *b)
{
	for (int r = 0; r < b->program->n_ranks; r++) {
		free(b->memory[2 * r]);
		free(b->memory[2 * r + 1]);
		free(b->sent[r]);
	}
}

/* ---- Tests ---- */

/* A schedule in memory as libblink has one. */
static bool
open_schedule(struct blinkSchedule *s, Ctx *ctx, const Schedule *sched)
{
	Program *prog;
	*s = (struct blinkSchedule){ 0 };
	if (sched_lower(ctx, sched, &prog) != OK || exec_program(ctx, prog, "sha256:0", &s->built) != OK)
		return false;
	s->program = &s->built;
	return true;
}

/* count: below 0 any. */
static bool
try_call(blinkComm_t comm, const struct blink_program *program, int64_t count)
{
	static const size_t counts[] = { 0, 1, 2, 3, 5, 7, 13, 64, 97, 331, 1000 };
	static const int codes[] = { blinkInt8, blinkUint8, blinkInt32, blinkUint32, blinkInt64, blinkUint64,
		blinkFloat32, blinkFloat64 };
	struct buffers b = { .program = program, .count = counts[below(11)], .type = codes[below(8)], .op = below(4) };
	int place = below(3);
	b.size = blink_type_size(b.type);
	if (count >= 0)
		b.count = (size_t)count / b.size;
	for (int r = 0; r < program->n_ranks; r++)
		b.in_place[r] = place == 0 || (place == 1 && below(2));
	make_buffers(&b, false);
	blinkResult_t result = blinkRun(comm, b.send, b.recv, b.count, (blinkDataType_t)b.type, (blinkRedOp_t)b.op);
	bool good = result == blinkSuccess && results_hold(&b) && guards_hold(&b);
	if (!good)
		printf("# %s n %d count %zu type %d op %d place %d result %d %s\n",
		    collective_name((Collective)program->collective), program->n_ranks, b.count, b.type, b.op, place,
		    (int)result, blinkCommGetError(comm));
	free_buffers(&b);
	return good;
}

static bool
try_schedule(Collective coll, int n, bool parts)
{
	static const size_t chunks[] = { 0, 1, 8, 24, 100, 1000 };
	Ctx ctx;
	struct blinkSchedule s;
	blinkComm_t comm;
	blinkConfig_t config = { chunks[below(6)], below(6) };
	ctx_init(&ctx);
	const Schedule *sched = random_schedule(&ctx, coll, n, parts);
	bool good = open_schedule(&s, &ctx, sched) && blinkCommCreate(&s, &config, &comm, NULL) == blinkSuccess;
	if (good) {
		for (int i = 0; i < 4 && good; i++)
			good = try_call(comm, s.program, -1);
		blinkCommDestroy(comm);
	}
	ctx_free(&ctx);
	return good;
}

static void
test_collectives(int n_schedules)
{
	for (int c = 0; c < N_COLLECTIVES; c++) {
		uint64_t seed = state;
		bool good = true;
		char what[80];
		for (int i = 0; i < n_schedules && good; i++) {
			seed = state;
			good = try_schedule((Collective)c, i == 0 ? 1 : 2 + below(MAX_RANKS - 1), i % 3 == 2);
		}
		if (!good)
			printf("# generator state %llu\n", (unsigned long long)seed);
		snprintf(what, sizeof what, "%s: %d random schedules", collective_name((Collective)c), n_schedules);
		ok(good, what);
	}
}

static const char *
compiler(void)
{
	const char *cc = getenv("CC");
	return cc ? cc : "cc";
}

static bool
have_compiler(void)
{
	char command[512];
	snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", compiler());
	return system(command) == 0;
}

static bool
compile_object(const char *folder, const char *name)
{
	char command[1024];
	snprintf(command, sizeof command,
	    "%s -x c -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -Iruntime/include "
	    "%s/%s.cu -o %s/%s.so -pthread",
	    compiler(), folder, name, folder, name);
	return system(command) == 0;
}

static bool
write_file(const char *folder, const char *name, const char *data, size_t size)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	bool good = f && fwrite(data, 1, size, f) == size;
	return f && fclose(f) == 0 && good;
}

static blinkResult_t
load_object(const char *folder, const char *name, blinkSchedule_t *sched, blinkError_t *error)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return blinkScheduleLoad(path, sched, error);
}

/* The same bits from a file and from a program, for any chunk size and any number of threads. */
static bool
same_bits(blinkSchedule_t a, blinkSchedule_t b, size_t count)
{
	static const blinkConfig_t configs[] = { { 0, 0 }, { 4, 1 }, { 100, 3 }, { 4096, 2 } };
	struct buffers first = {
		.program = a->program, .count = count, .type = blinkFloat32, .op = blinkSum, .size = 4
	};
	uint64_t seed = state;
	bool good = true;
	make_buffers(&first, true);
	for (int i = 0; i < 8 && good; i++) {
		blinkSchedule_t sched = i & 1 ? b : a;
		blinkComm_t comm;
		struct buffers again = first;
		state = seed;
		make_buffers(&again, true);
		good = blinkCommCreate(sched, &configs[i / 2], &comm, NULL) == blinkSuccess;
		if (good) {
			good = blinkRun(comm, again.send, again.recv, again.count, blinkFloat32, blinkSum)
			    == blinkSuccess;
			blinkCommDestroy(comm);
		}
		for (int r = 0; r < a->program->n_ranks; r++) {
			size_t n = bytes_of(&first, r, true);
			if (i == 0 && n)
				memcpy(first.recv[r], again.recv[r], n);
			good = good && (n == 0 || memcmp(first.recv[r], again.recv[r], n) == 0);
		}
		free_buffers(&again);
	}
	free_buffers(&first);
	return good;
}

static void
test_formats(const char *folder)
{
	static const Collective colls[] = { ALLREDUCE, REDUCE, REDUCESCATTER, ALLGATHER, BROADCAST };
	bool have_cc = have_compiler();
	for (int i = 0; i < 5; i++) {
		Ctx ctx;
		Text json = { 0 }, code = { 0 };
		Program *prog;
		char digest[DIGEST_ROOM], name[16], what[120];
		blinkSchedule_t file = NULL, object = NULL;
		blinkError_t error = { "" };
		ctx_init(&ctx);
		snprintf(name, sizeof name, "p%d", i);
		Schedule *sched = random_schedule(&ctx, colls[i], 5, false);
		bool good = add_rates(&ctx, sched);
		if (good)
			sched_write_json(sched, &json);
		good = good && !json.failed
		    && blinkScheduleParse("test", json.data, json.size, &file, &error) == blinkSuccess;
		snprintf(
		    what, sizeof what, "%s: schedule file is read, verified and loaded", collective_name(colls[i]));
		ok(good, what);
		if (!good)
			printf("# %s %s\n", ctx.error.text, error.text);
		snprintf(
		    what, sizeof what, "%s: file and compiled program give the same bits", collective_name(colls[i]));
		if (good && have_cc) {
			digest_of(json.data, json.size, digest);
			good = sched_lower(&ctx, sched, &prog) == OK
			    && program_write_cu(&ctx, prog, digest, &code) == OK;
			char cu[32], so[32];
			snprintf(cu, sizeof cu, "%s.cu", name);
			snprintf(so, sizeof so, "%s.so", name);
			good = good && write_file(folder, cu, code.data, code.size) && compile_object(folder, name);
			good = good && load_object(folder, so, &object, &error) == blinkSuccess;
			good = good && strcmp(object->info.digest, file->info.digest) == 0 &&
			    strcmp(object->info.topology, sched->topo->name) == 0 && object->info.nRanks == 5 &&
			    object->info.root == sched->root && object->info.nTrees == sched->n_segments;
			good = good && same_bits(file, object, 1003);
			if (!good)
				printf("# %s\n", error.text);
			ok(good, what);
		} else if (!have_cc) {
			ok(true, "compiled program # SKIP no C compiler");
		}
		blinkScheduleDestroy(object);
		blinkScheduleDestroy(file);
		text_free(&json);
		text_free(&code);
		ctx_free(&ctx);
	}
}

/* A message divided between NVLink and PCIe of a DGX-1, where switching takes so little that PCIe comes in at some
 * 1000 bytes. */
static Schedule *
hybrid_schedule(Ctx *ctx, Topology *machine, Collective coll)
{
	static const int gpu[] = { 0, 1, 2, 3, 6 };
	const Ask ask = { .coll = coll, .root = collective_rooted(coll) ? 3 : -1,
	    .hybrid = HYBRID_PEER, .packing = PACKING_EXACT,
		.epsilon = { 1, 20 }, .tolerance = FRAC_ZERO, .minimise = true };
	Compiled made = { 0 };
	machine->n_peer_accesses = 1;
	machine->peer_access[0].time = 21;
	Status status = compile(ctx, machine, gpu, 5, &ask, &made);
	text_free(&made.json);
	return status == OK ? made.sched : NULL;
}

/* Sizes around the one where the second part comes in: who moves what, what arrives, and whether file and program
 * agree. */
static bool
around_threshold(blinkSchedule_t file, blinkSchedule_t object)
{
	int unit = blink_message_blocks(file->program);
	int64_t from = file->program->part_end[1].from,
		at[] = { 0, from / 2, from - 8 * unit, from, from + 8 * unit, 2 * from, 9 * from };
	blinkComm_t comm;
	bool good = from > 100 && from < 100000 && file->info.nParts == 2 && (!object || object->info.nParts == 2);
	if (!good || blinkCommCreate(file, NULL, &comm, NULL) != blinkSuccess)
		return false;
	for (int i = 0; i < 7 && good; i++) {
		size_t moved[2], again[2], count = (size_t)(at[i] / unit);
		good = blinkScheduleSplit(file, count, blinkInt8, moved) == blinkSuccess && moved[0] + moved[1] == count
		    && (i > 2 || moved[1] == 0) && (i < 5 || moved[1] > 0);
		for (int k = 0; k < 4 && good; k++)
			good = try_call(comm, file->program, at[i] / unit);
		if (object)
			good = good && blinkScheduleSplit(object, count, blinkInt8, again) == blinkSuccess
			    && again[0] == moved[0] && again[1] == moved[1] && same_bits(file, object, count / 4);
		if (!good)
			printf("# %zu bytes of a block: %zu + %zu\n", count, moved[0], moved[1]);
	}
	blinkCommDestroy(comm);
	return good;
}

static void
test_hybrid(const char *folder)
{
	bool have_cc = have_compiler();
	for (int c = 0; c < N_COLLECTIVES; c++) {
		Ctx ctx;
		Text xml = { 0 }, json = { 0 }, code = { 0 };
		Topology *machine;
		Schedule *sched = NULL;
		Program *prog;
		blinkSchedule_t file = NULL, object = NULL;
		blinkError_t error = { "" };
		char what[120];
		ctx_init(&ctx);
		bool good = file_read(&ctx, "topologies/dgx1v.xml", &xml) == OK
		    && topo_read(&ctx, "dgx1v", NULL, xml.data, xml.size, &machine) == OK;
		if (good)
			sched = hybrid_schedule(&ctx, machine, (Collective)c);
		if (sched)
			sched_write_json(sched, &json);
		good = sched && blinkScheduleParse("test", json.data, json.size, &file, &error) == blinkSuccess;
		if (good && have_cc)
			good = sched_lower(&ctx, sched, &prog) == OK
			    && program_write_cu(&ctx, prog, "sha256:0", &code) == OK
			    && write_file(folder, "h.cu", code.data, code.size) && compile_object(folder, "h")
			    && load_object(folder, "h.so", &object, &error) == blinkSuccess;
		good = good && around_threshold(file, object);
		if (!good)
			printf("# %s %s\n", ctx.error.text, error.text);
		snprintf(what, sizeof what, "%s: divided between NVLink and PCIe at every size",
		    collective_name((Collective)c));
		ok(good, what);
		blinkScheduleDestroy(object);
		blinkScheduleDestroy(file);
		text_free(&xml);
		text_free(&json);
		text_free(&code);
		ctx_free(&ctx);
	}
}

static bool
refused(const char *folder, const char *name, blinkResult_t want, const char *part)
{
	blinkSchedule_t sched = NULL;
	blinkError_t error = { "" };
	blinkResult_t result = load_object(folder, name, &sched, &error);
	bool good = result == want && !sched && strstr(error.text, part);
	if (!good)
		printf("# %s: result %d, %s\n", name, (int)result, error.text);
	blinkScheduleDestroy(sched);
	return good;
}

static void
test_refusals(const char *folder)
{
	static const char other[] = "int x;\n";
	static const char old[] = "struct { unsigned abi; char rest[400]; } blink_program = { 999, \"\" };\n";
	ok(refused(folder, "absent.json", blinkSystemError, "No such file"), "a file that is not there");
	ok(refused(folder, ".", blinkSystemError, "directory"), "a directory");
	write_file(folder, "empty.json", "", 0);
	ok(refused(folder, "empty.json", blinkBadInput, "empty.json"), "an empty file");
	write_file(folder, "broken.so", "\177ELF", 4);
	ok(refused(folder, "broken.so", blinkBadInput, "broken.so"), "an object of four bytes");
	if (!have_compiler())
		return;
	write_file(folder, "other.cu", other, sizeof other - 1);
	write_file(folder, "old.cu", old, sizeof old - 1);
	ok(compile_object(folder, "other") && refused(folder, "other.so", blinkBadInput, "no symbol blink_program"),
	    "an object without blink_program");
	ok(compile_object(folder, "old") && refused(folder, "old.so", blinkBadInput, "program ABI 999: want"),
	    "an object of another ABI");
}

/* A schedule that forgets one rank's contribution. */
static void
test_unverified(void)
{
	Ctx ctx;
	Text json = { 0 };
	blinkSchedule_t loaded = NULL;
	blinkError_t error = { "" };
	ctx_init(&ctx);
	Schedule *sched = random_schedule(&ctx, REDUCE, 4, false);
	sched->segment[0].tree.up++;
	sched->segment[0].tree.n_up--;
	bool good = add_rates(&ctx, sched);
	sched_write_json(sched, &json);
	good = good && !json.failed &&
	    blinkScheduleParse("test", json.data, json.size, &loaded, &error) == blinkUnverified && !loaded;
	if (!good)
		printf("# %s\n", error.text);
	ok(good, "a schedule that is not right is not loaded");
	text_free(&json);
	ctx_free(&ctx);
}

static bool
says(blinkComm_t comm, blinkResult_t result, const char *part)
{
	bool good = result == blinkInvalidArgument && strstr(blinkCommGetError(comm), part);
	if (!good)
		printf("# result %d: %s\n", (int)result, blinkCommGetError(comm));
	return good;
}

static void
test_arguments(void)
{
	Ctx ctx;
	struct blinkSchedule s;
	blinkComm_t comm = NULL;
	blinkError_t error = { "" };
	blinkConfig_t many = { 0, 1000 };
	float data[64] = { 0 };
	const void *send[3] = { data, data + 16, data + 32 };
	void *recv[3] = { data, data + 16, data + 32 };
	ctx_init(&ctx);
	bool made = open_schedule(&s, &ctx, random_schedule(&ctx, ALLREDUCE, 3, false));
	ok(made && blinkCommCreate(&s, &many, &comm, &error) == blinkInvalidArgument && strstr(error.text, "threads"),
	    "too many threads");
	if (made && blinkCommCreate(&s, NULL, &comm, NULL) == blinkSuccess) {
		ok(blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum) == blinkSuccess, "a good call");
		recv[1] = data + 17;
		ok(says(comm, blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum),
		       "rank 1: send and receive buffer overlap"),
		    "buffers that overlap");
		recv[1] = NULL;
		ok(says(comm, blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum), "rank 1: receive buffer: NULL"),
		    "no buffer");
		ok(blinkRun(comm, send, recv, 0, blinkFloat32, blinkSum) == blinkSuccess, "no buffer for no elements");
		recv[1] = (char *)data + 65;
		ok(says(comm, blinkRun(comm, send, recv, 2, blinkFloat32, blinkSum), "not aligned"),
		    "a buffer that is not aligned");
		recv[1] = data + 16;
		ok(says(comm, blinkRun(comm, send, recv, 8, (blinkDataType_t)6, blinkSum), "type: 6"), "no such type");
		ok(says(comm, blinkRun(comm, send, recv, 8, blinkFloat32, (blinkRedOp_t)4), "op: 4"),
		    "no such operation");
		ok(says(comm, blinkRun(comm, send, recv, SIZE_MAX / 2, blinkFloat32, blinkSum), "count"),
		    "a count too large");
		ok(blinkRun(comm, send, recv, 8, blinkFloat32, blinkSum) == blinkSuccess && !*blinkCommGetError(comm),
		    "a good call after bad ones");
		blinkCommDestroy(comm);
	}
	ctx_free(&ctx);
}

struct user {
	struct blinkSchedule *sched;
	pthread_t thread;
	bool good;
};

static void *
use(void *at)
{
	struct user *user = at;
	blinkComm_t comm;
	blinkConfig_t config = { 64, 2 };
	if (blinkCommCreate(user->sched, &config, &comm, NULL) != blinkSuccess)
		return NULL;
	user->good = true;
	for (int i = 0; i < 20; i++) {
		int32_t data[5][97], *buffer[5];
		for (int r = 0; r < 5; r++) {
			for (int k = 0; k < 97; k++)
				data[r][k] = r + k;
			buffer[r] = data[r];
		}
		user->good = user->good
		    && blinkRun(comm, (const void *const *)buffer, (void *const *)buffer, 97, blinkInt32, blinkSum)
			== blinkSuccess;
		for (int r = 0; r < 5; r++)
			for (int k = 0; k < 97; k++)
				user->good = user->good && data[r][k] == 10 + 5 * k;
	}
	blinkCommDestroy(comm);
	return NULL;
}

/* Several threads, each with a communicator, share a schedule. */
static void
test_threads(void)
{
	Ctx ctx;
	struct blinkSchedule s;
	struct user user[3] = { { NULL, 0, false } };
	ctx_init(&ctx);
	bool good = open_schedule(&s, &ctx, random_schedule(&ctx, ALLREDUCE, 5, false));
	for (int i = 0; i < 3 && good; i++) {
		user[i].sched = &s;
		good = pthread_create(&user[i].thread, NULL, use, &user[i]) == 0;
	}
	for (int i = 0; i < 3 && good; i++)
		pthread_join(user[i].thread, NULL);
	ok(good && user[0].good && user[1].good && user[2].good, "communicators of three threads at once");
	ctx_free(&ctx);
}

/* What blink.h promises of single elements. */
static void
test_elements(void)
{
	float nan = __builtin_nanf(""), one = 1, z = 0;
	int8_t a = 127, b = 127, c = 0;
	int64_t most = INT64_MAX, least = 0;
	bool good = true;
	for (int op = blinkMax; op <= blinkMin; op++) {
		blink_reduction_of(blinkFloat32, op)(&z, &nan, &one, 1);
		good = good && z != z;
		blink_reduction_of(blinkFloat32, op)(&z, &one, &nan, 1);
		good = good && z != z;
	}
	ok(good, "min and max of NaN are NaN");
	blink_reduction_of(blinkInt8, blinkProd)(&c, &a, &b, 1);
	blink_reduction_of(blinkInt64, blinkSum)(&least, &most, &most, 1);
	ok(c == 1 && least == -2, "integers wrap");
}

/* A program whose stream waits for an event that nobody records. */
static int
run_stuck(void *device, const struct blink_call *call, struct blink_error *err)
{
	struct blink_run now;
	if (blink_begin(&now, device, call, err) == blinkSuccess) {
		struct blink_chunk k;
		if (blink_chunk(&now, 0, 0, &k)) {
			blink_wait(&k, 0, 0);
			blink_copy(&k, 0, blink_output(&k, 1), blink_input(&k, 0));
			blink_record(&k, 0, 1);
			blink_wait(&k, 1, 1);
			blink_record(&k, 1, 0);
		}
	}
	return blink_end(&now);
}

static void
test_stuck(void)
{
	static const struct blink_tree tree = { 0, 0, 0, 0, 1, 1, 1 };
	static const int stream_rank[] = { 0, 1 };
	static const struct blink_program program = { BLINK_PROGRAM_ABI, "host", "", "", "", blinkBroadcast, 0, 2, 0, 1,
		1, 2, 0, 2, NULL, &tree, stream_rank, NULL, NULL, blink_open, blink_close, blink_memory_new,
		blink_memory_free, blink_memory_copy, run_stuck };
	struct blinkSchedule s = { .program = &program };
	char data[2] = { 1, 2 };
	const void *send[2] = { data, NULL };
	void *recv[2] = { data, data + 1 };
	for (int threads = 1; threads <= 3; threads++) {
		blinkConfig_t config = { 0, threads };
		blinkComm_t comm;
		bool good = blinkCommCreate(&s, &config, &comm, NULL) == blinkSuccess;
		for (int i = 0; i < 2 && good; i++)
			good = blinkRun(comm, send, recv, 1, blinkInt8, blinkSum) == blinkInternalError &&
			    strstr(blinkCommGetError(comm), "wait for each other");
		if (good)
			blinkCommDestroy(comm);
		ok(good, "steps that wait for each other are an error, not a hang");
	}
}

int
main(int argc, char **argv)
{
	char folder[] = "/tmp/blink-test-XXXXXX", command[64];
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(folder)) {
		printf("Bail out! no temporary folder\n");
		return 1;
	}
	test_elements();
	test_arguments();
	test_stuck();
	test_threads();
	test_refusals(folder);
	test_unverified();
	test_formats(folder);
	test_hybrid(folder);
	test_collectives(argc > 2 ? atoi(argv[2]) : 150);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		printf("# %s is left behind\n", folder);
	printf("1..%d\n", n_tests);
	return n_failed != 0;
}
