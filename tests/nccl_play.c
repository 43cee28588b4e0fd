/* Plays NCCL's part with a tuner plugin: all versions of the interface, all collectives, 8 bytes to 1 GiB.
 *
 *	nccl_play PLUGIN RANKS SERVERS RING HOP FROM TEXT
 *
 * RING: GB/s that all rings together carry over each hop; 0: the plugin must know nothing. HOP: us. FROM: messages of
 * an allreduce below this many bytes are not known. TEXT: what the one line for people has. It exits with 0 if the
 * plugin sets the cost of ring and Simple to what rings of that rate take, and leaves all else as it was. */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, ALLREDUCE, COLLECTIVES, CALLS = 15 };
enum { RING = 1, SIMPLE = 2, PROTOS = 3, DEADLINE = 60 };

typedef void logger(int level, unsigned long flags, const char *file, int line, const char *format, ...);

/* As NCCL's headers have them. */
struct v2 {
	const char *name;
	int (*init)(size_t ranks, size_t nodes, logger *log, void **context);
	int (*get)(void *context, int func, size_t bytes, int collnet, int nvls, int ops, int *algo,
	    int *proto, int *channels);
	int (*destroy)(void *context);
};
struct v3 {
	const char *name;
	int (*init)(size_t ranks, size_t nodes, logger *log, void **context);
	int (*get)(void *context, int func, size_t bytes, int ops, float **table, int algos, int protos, int *channels);
	int (*destroy)(void *context);
};
struct v4 {
	const char *name;
	int (*init)(size_t ranks, size_t nodes, logger *log, void **context);
	int (*get)(void *context, int func, size_t bytes, int ops, float **table, int algos, int protos,
	    int registered, int *channels);
	int (*destroy)(void *context);
};
struct v6 {
	const char *name;
	int (*init)(void **context, uint64_t id, size_t ranks, size_t nodes, logger *log, void *domains,
	    void *constants);
	int (*get)(void *context, int func, size_t bytes, int ops, float **table, int algos, int protos,
	    int registered, int *channels);
	int (*finalize)(void *context);
	int (*chunk)(void *context, int func, size_t bytes, int algo, int proto, int channels, size_t *chunk);
};

static int ranks, servers, lines;
static double ring, hop, least, from;
static const char *text;
static char said[1024];

static void
check(int good, const char *what, int version, int func, size_t bytes)
{
	if (good)
		return;
	fprintf(stderr, "nccl_play: version %d, collective %d, %zu bytes: %s; said: %s\n", version, func, bytes, what,
	    said);
	exit(1);
}

static void __attribute__((format(printf, 5, 6)))
log_line(int level, unsigned long flags, const char *file, int line, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(said, sizeof said, format, list);
	va_end(list);
	lines++;
	check((level == 2 || level == 3) && flags && file && line > 0, "a level or place of the log", 0, 0, 0);
}

static int
known(int func, size_t bytes)
{
	return ring > 0 && func < COLLECTIVES && (func != ALLREDUCE || (double)bytes >= from);
}

/* µs: a ring passes an allreduce over 2 (n - 1) hops, and sends 2 (n - 1) / n of the bytes over each. */
static double
want(int func, double bytes, int ops)
{
	double n = ranks, hops = func == ALLREDUCE ? 2 * (n - 1) : n - 1;
	double sent = func == BROADCAST || func == REDUCE ? 1 : hops / n;
	return (least + hops * hop) * ops + sent * bytes / (ring * 1e3);
}

/* ---- a call ---- */

struct call {
	int version, algos, ops, func;
	size_t bytes;
	double scale;	/* of the cost that NCCL has; below 0: it may not be used */
	void *plugin, *context;
};

static void
get(const struct call *c, float **table, int *channels)
{
	const struct v3 *v3 = c->plugin;
	const struct v4 *v4 = c->plugin;
	const struct v6 *v6 = c->plugin;
	int result;
	if (c->version == 3)
		result = v3->get(c->context, c->func, c->bytes, c->ops, table, c->algos, PROTOS, channels);
	else if (c->version == 4)
		result = v4->get(c->context, c->func, c->bytes, c->ops, table, c->algos, PROTOS, 1, channels);
	else
		result = v6->get(c->context, c->func, c->bytes, c->ops, table, c->algos, PROTOS, 0, channels);
	check(result == 0, "no success", c->version, c->func, c->bytes);
}

/* A table of its exact size, so that AddressSanitizer sees what is written beside it. */
static void
call_table(const struct call *c)
{
	int n = c->algos * PROTOS, channels = 0;
	float *table = malloc((size_t)n * sizeof *table), *before = malloc((size_t)n * sizeof *before);
	double wanted = known(c->func, c->bytes) ? want(c->func, (double)c->bytes, c->ops) : 50;
	for (int i = 0; i < n; i++)
		table[i] = i % 4 == 3 ? -1 : (float)(1.5 * wanted + i);
	table[RING * PROTOS + SIMPLE] = c->scale < 0 ? -1 : (float)(c->scale * wanted);
	memcpy(before, table, (size_t)n * sizeof *table);
	get(c, (float **)(void *)table, &channels);
	check(channels == 0, "other channels", c->version, c->func, c->bytes);
	for (int i = 0; i < n; i++) {
		int set = i == RING * PROTOS + SIMPLE && known(c->func, c->bytes) && c->scale > 0 && c->scale < 32;
		double right = set ? wanted : before[i];
		check(fabs(table[i] - right) <= 1e-4 * fabs(right),
		    set ? "another cost" : "a cost that was not to change", c->version, c->func, c->bytes);
	}
	free(table);
	free(before);
}

static void
call_v2(const struct call *c)
{
	const struct v2 *plugin = c->plugin;
	for (int support = 0; support < 3; support++) {
		int algo = -1, proto = -1, channels = 0;
		int large = known(c->func, c->bytes) && support == 0 &&
		    want(c->func, (double)c->bytes, c->ops) >= 10 * want(c->func, 0, c->ops);
		check(plugin->get(c->context, c->func, c->bytes, support == 1, support == 2, c->ops, &algo, &proto,
		    &channels) == 0, "no success", 2, c->func, c->bytes);
		check(algo == (large ? RING : -1) && proto == (large ? SIMPLE : -1) && channels == 0, "another choice",
		    2, c->func, c->bytes);
	}
	check(plugin->get(c->context, c->func, c->bytes, 0, 0, 1, NULL, NULL, NULL) == 0, "NULL", 2, c->func, c->bytes);
}

static void
call_all(struct call *c)
{
	static const double scales[] = { 1.5, 0.2, 1000, -1 };
	for (c->func = 0; c->func < CALLS; c->func++) {
		for (c->bytes = 8; c->bytes <= (size_t)1 << 30; c->bytes *= 2) {
			c->ops = 1 + (c->bytes == 1024) * 3;
			c->algos = c->version < 4 ? 6 : 7;
			c->scale = scales[(c->bytes / 8 % 7) % 4];
			if (c->version == 2)
				call_v2(c);
			else
				call_table(c);
		}
		c->bytes = 0;
		c->ops = 1;
		if (c->version > 2)
			get(c, NULL, NULL);
	}
}

/* ---- a communicator ---- */

static int
start(int version, void *plugin, logger *log, void **context)
{
	double constants[7 * PROTOS] = { [RING * PROTOS + SIMPLE] = 5.5 };
	size_t n = (size_t)ranks, m = (size_t)servers;
	least = version < 5 || !log ? 8.4 : 5.5;
	if (version < 5)
		return ((struct v2 *)plugin)->init(n, m, log, context);
	return ((struct v6 *)plugin)->init(context, 17, n, m, log, NULL, log ? constants : NULL);
}

static void
play(void *library, int version)
{
	char name[32];
	snprintf(name, sizeof name, "ncclTunerPlugin_v%d", version);
	struct call c = { .version = version, .plugin = dlsym(library, name) };
	check(c.plugin && strcmp(*(const char **)c.plugin, "blink") == 0, "no such symbol, or another name", version, 0,
	    0);
	int (*destroy)(void *) = ((struct v2 *)c.plugin)->destroy;
	if (version > 4)
		destroy = ((struct v6 *)c.plugin)->finalize;
	if (version == 6)
		check(((struct v6 *)c.plugin)->chunk == NULL, "sizes of chunks", version, 0, 0);
	for (int quiet = 0; quiet < 2; quiet++) {
		lines = 0;
		check(start(version, c.plugin, quiet ? NULL : log_line, &c.context) == 0 && c.context, "init", version,
		    0, 0);
		check(lines == !quiet, "not one line", version, 0, 0);
		check(strstr(said, text) != NULL, "another line", version, 0, 0);
		call_all(&c);
		check(destroy(c.context) == 0, "destroy", version, 0, 0);
	}
	check(start(version, c.plugin, NULL, NULL) != 0, "a context of NULL is taken", version, 0, 0);
	check(destroy(NULL) == 0, "destroy of NULL", version, 0, 0);
}

int
main(int argc, char *argv[])
{
	alarm(DEADLINE);
	if (argc != 8)
		return 2;
	ranks = atoi(argv[2]);
	servers = atoi(argv[3]);
	ring = atof(argv[4]);
	hop = atof(argv[5]);
	from = atof(argv[6]);
	text = argv[7];
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "nccl_play: %s\n", dlerror());
		return 1;
	}
	for (int version = 2; version <= 6; version++)
		play(library, version);
	return dlclose(library);
}
