/* Which calls ours does beside a real NCCL: BLINK_COLLECTIVES, else those for which BLINK_SCHEDULES has a schedule. */
#include "nccl/shim.h"
#include "support/debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of messages that ours does, by name: "allreduce:64K-1G,broadcast", "all", "none", "messages". */
struct asked {
	bool set;			/* BLINK_COLLECTIVES is */
	bool messages;
	bool named[SHIM_COLLECTIVES];
	size_t from[SHIM_COLLECTIVES], to[SHIM_COLLECTIVES];
};

static struct asked asked;
static char wrong[256];

static const char *const names[SHIM_COLLECTIVES] = {
	[blinkCollBroadcast] = "broadcast", [blinkCollReduce] = "reduce", [blinkCollAllReduce] = "allreduce",
	[blinkCollGather] = "gather", [blinkCollScatter] = "scatter", [blinkCollAllGather] = "allgather",
	[blinkCollReduceScatter] = "reducescatter", [blinkCollAlltoAll] = "alltoall",
};

/* "64K", "1M", "2G": moves *text behind it. */
static bool
read_bytes(const char **text, size_t *out)
{
	char *end;
	unsigned long long n = strtoull(*text, &end, 10);
	int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (end == *text || **text == '-' || n > SIZE_MAX >> shift)
		return false;
	*out = (size_t)n << shift;
	*text = end + (shift > 0);
	return true;
}

/* What follows a name: nothing, or ":FROM-TO", either of which may be missing. */
static bool
read_range(const char *text, size_t *from, size_t *to)
{
	*from = 0;
	*to = SIZE_MAX;
	if (*text == 0)
		return true;
	if (*text++ != ':' || (*text != '-' && !read_bytes(&text, from)) || *text++ != '-')
		return false;
	return (*text == 0 || read_bytes(&text, to)) && *text == 0 && *from <= *to;
}

static bool
read_item(const char *item)
{
	size_t length = strcspn(item, ":"), from, to;
	bool found = false;
	if (strcmp(item, "none") == 0)
		return true;
	if (strcmp(item, "messages") == 0)
		return asked.messages = true;
	if (!read_range(item + length, &from, &to))
		return false;
	for (int i = 0; i < SHIM_COLLECTIVES; i++) {
		bool all = length == 3 && strncmp(item, "all", length) == 0;
		if (!all && (strlen(names[i]) != length || strncmp(item, names[i], length) != 0))
			continue;
		asked.named[i] = found = true;
		asked.from[i] = from;
		asked.to[i] = to;
	}
	return found;
}

static void
read_asked(void)
{
	const char *text = getenv("BLINK_COLLECTIVES");
	char *copy = text && text[0] ? strdup(text) : NULL, *rest = copy, *item;
	asked.set = copy;
	while (copy && (item = strsep(&rest, ",")))
		if (!read_item(item) && !wrong[0])
			snprintf(wrong, sizeof wrong, "BLINK_COLLECTIVES: \"%.60s\": want collectives as allreduce, "
			    "all, none or messages, separated by commas, each with :FROM-TO bytes if it shall", item);
	free(copy);
}

static const struct asked *
what_is_asked(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, read_asked);
	return &asked;
}

const char *
serves_wrong(void)
{
	what_is_asked();
	return wrong[0] ? wrong : NULL;
}

/* Said once for each communicator, collective and root. */
static void
say(const struct shim_comm *c, blinkCollective_t coll, bool ours, const blinkChoice_t *choice)
{
	debug_say(DEBUG_INFO, c->rank, "nccl: %s of %zu to %zu bytes by %s", names[coll], choice->fromBytes,
	    choice->toBytes, ours ? choice->text : real_nccl()->path);
}

bool
comm_serves(struct shim_comm *c, blinkCollective_t coll, int root, size_t bytes)
{
	const struct asked *a = what_is_asked();
	blinkChoice_t choice;
	if (a->set)
		return a->named[coll] && a->from[coll] <= bytes && bytes <= a->to[coll];
	typeof(c->served[0]) *last = &c->served[coll];
	if (last->known && last->root == root && last->from <= bytes && bytes <= last->to)
		return last->ours;
	if (blinkCommGetChoice(c->blink, coll, root, bytes, &choice) != blinkSuccess)
		return false;
	last->known = true;
	last->ours = !choice.builtIn;
	last->root = root;
	last->from = choice.fromBytes;
	last->to = choice.toBytes;
	say(c, coll, last->ours, &choice);
	return last->ours;
}

bool
comm_serves_messages(const struct shim_comm *c)
{
	return c->blink && what_is_asked()->messages;
}
