#include "comm/places.h"

#include "base/hash.h"
#include "support/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void
identify_host(const struct rank_comm *r, unsigned char host[HOST_BYTES])
{
	char text[128] = "", digest[DIGEST_ROOM];
	struct stat net;
	FILE *f = r->self.settings.host_id ? NULL : fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && !fgets(text, sizeof text, f))
		text[0] = 0;
	if (f)
		fclose(f);
	size_t n = strlen(text);
	if (r->self.settings.host_id)
		snprintf(text, sizeof text, "%s", r->self.settings.host_id);
	else if (stat("/proc/self/ns/net", &net) == 0)
		snprintf(text + n, sizeof text - n, " %llu", (unsigned long long)net.st_ino);
	digest_of(text, strlen(text), digest);
	memcpy(host, digest + sizeof "sha256:" - 1, HOST_BYTES);
}

/* In server[i], the first rank whose `host` is that of rank i: by a hash table. */
static int
find_hosts(const struct hello *all, int n, int *server, struct blink_error *err)
{
	size_t room = 2;
	while (room < 2 * (size_t)n)
		room *= 2;
	int *slot = malloc(room * sizeof *slot);
	if (!slot)
		return set_error_memory(err);
	memset(slot, -1, room * sizeof *slot);
	for (int i = 0; i < n; i++) {
		uint64_t key;
		memcpy(&key, all[i].host, sizeof key);
		size_t at = hash64(key) & (room - 1);
		while (slot[at] >= 0 && memcmp(all[slot[at]].host, all[i].host, HOST_BYTES) != 0)
			at = (at + 1) & (room - 1);
		if (slot[at] < 0)
			slot[at] = i;
		server[i] = slot[at];
	}
	free(slot);
	return blinkSuccess;
}

/* As another rank has it, which may be of another version. */
static const char *
backend_name(int32_t row)
{
	for (int32_t i = 0; backends[i]; i++)
		if (i == row)
			return backends[i]->name;
	return "another";
}

int
place_ranks(struct rank_comm *r, const struct hello *all, struct blink_error *err)
{
	int n = r->self.n_ranks;
	size_t ranks = (size_t)n;
	r->gpus = calloc(ranks, sizeof *r->gpus);
	r->gpu_of = calloc(ranks, sizeof *r->gpu_of);
	r->server = calloc(ranks, sizeof *r->server);
	if (!r->gpus || !r->gpu_of || !r->server)
		return set_error_memory(err);
	r->job = (struct job){ .n_ranks = n, .gpu = r->gpu_of, .server = r->server };
	r->self.server = r->server;
	if (find_hosts(all, n, r->server, err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < n; i++) {
		int first = r->server[i];
		memcpy(r->gpus[i], all[i].gpu, GPU_BYTES - 1);
		r->gpu_of[i] = r->gpus[i];
		r->server[i] = first < i ? r->server[first] : r->job.n_servers++;
		r->self.n_local += memcmp(all[i].host, all[r->self.rank].host, HOST_BYTES) == 0;
	}
	if (!r->self.settings.shm)
		r->self.n_local = 1;
	r->self.local_index = r->self.settings.shm ? local_index(&r->self, r->self.rank) : 0;
	for (int i = 1; i < n; i++)
		if (all[i].backend != all[0].backend)
			return set_error(err, blinkMismatch, "backend: rank %d has %s, rank 0 has %s: want the same on "
			    "all ranks", i, backend_name(all[i].backend), backend_name(all[0].backend));
	for (int i = 1; i < n; i++)
		if (all[i].tunes != all[0].tunes)
			return set_error(err, blinkMismatch, "BLINK_MIAD: rank %d %s chunk sizes, rank 0 %s: want the "
			    "same on all ranks", i, all[i].tunes ? "searches" : "does not search",
			    all[0].tunes ? "does" : "does not");
	for (int i = 0; i < n; i++)
		if (r->server[i] == r->server[r->self.rank] && all[i].shm != all[r->self.rank].shm)
			return set_error(err, blinkMismatch, "BLINK_SHM: rank %d has %d, rank %d on its server %d: "
			    "want the same", r->self.rank, (int)all[r->self.rank].shm, i, (int)all[i].shm);
	return blinkSuccess;
}

int
collect_machines(struct rank_comm *r, const struct hello *all, struct blink_error *err)
{
	int *n = &r->job.n_stated;
	for (int i = 0; i < r->self.n_ranks; i++) {
		int at = 0;
		while (at < *n && strncmp(r->stated[at].machine, all[i].machine, MACHINE_BYTES) != 0)
			at++;
		if (at < *n || !all[i].machine[0])
			continue;
		struct stated *grown = realloc(r->stated, (size_t)(*n + 1) * sizeof *grown);
		if (!grown)
			return set_error_memory(err);
		r->stated = grown;
		grown[*n] = (struct stated){ .rank = i };
		memcpy(grown[(*n)++].machine, all[i].machine, MACHINE_BYTES - 1);
	}
	r->job.stated = r->stated;
	return blinkSuccess;
}

void
use_cards(struct rank_comm *r)
{
	bool all = true;
	for (int i = 0; i < r->self.n_ranks; i++)
		all = all && r->cards[i].known;
	r->job.card = all ? r->cards : NULL;
}

int
collect_cards(struct rank_comm *r, const struct hello *all, struct blink_error *err)
{
	size_t n = (size_t)r->self.n_ranks;
	r->cards = calloc(n, sizeof *r->cards);
	if (!r->cards)
		return set_error_memory(err);
	for (size_t i = 0; i < n; i++)
		r->cards[i] = all[i].card;
	use_cards(r);
	return blinkSuccess;
}
