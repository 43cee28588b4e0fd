/* A lookup file is not taken, or it finds what is within its limits, or says where it is damaged. */
#include "driver.h"
#include "format/format.h"

#include <sys/mman.h>
#include <sys/stat.h>

const char *const dictionary[] = { "blink-lookup\r\n\032\n", "blink-index", "\"schedules\": []",
	"\"gpus\": [\"a\", \"b\"]", "sha256:", "\377\377", "\377\377\377\377", "..", "../x", "/", NULL };

enum { JSON_SIZE_AT = 32, JSON_MOST = 1 << 20 };

/* A file in memory, of these bytes, or of zeros. */
static int
file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && (data ? write(fd, data, size) == (ssize_t)size : ftruncate(fd, (off_t)size) == 0), "memfd");
	return fd;
}

static void
check(const IndexEntry *e, const Index *head)
{
	REQUIRE(e->n >= 2 && e->n <= head->n_gpus && e->root >= -1 && e->root < e->n, "root %d", e->root);
	REQUIRE((e->root >= 0) == collective_rooted(e->coll), "root %d", e->root);
	REQUIRE(*e->file && *e->file != '/' && strcmp(e->file, "..") != 0 && strncmp(e->file, "../", 3) != 0
		&& !strstr(e->file, "/../"), "%s", e->file);
	REQUIRE(utf8_valid(e->file, strlen(e->file)) == strlen(e->file), "%s", e->file);
	REQUIRE(e->rate >= 0 && e->rate <= 1e15 && e->from >= 0 && e->from <= e->to, "%s", e->file);
	for (int i = 0; i < e->n; i++)
		REQUIRE(e->gpu[i] >= 0 && e->gpu[i] < head->n_gpus && e->rank[i] >= 0 && e->rank[i] < e->n, "%d", i);
}

/* The entries that are candidates, and each as a job of its own. */
static Status
look_up(Ctx *ctx, const Lookup *lookup, const Index *head)
{
	for (int coll = 0; coll < N_COLLECTIVES; coll++) {
		for (int n = 2; n <= 4; n++) {
			const IndexEntry **candidate, *found;
			int n_candidates, n_found;
			TRY(lookup_candidates(ctx, lookup, (Collective)coll, n, 0, &candidate, &n_candidates));
			for (int i = 0; i < n_candidates; i++) {
				check(candidate[i], head);
				TRY(lookup_job(ctx, lookup, candidate[i], &found, &n_found));
				for (int k = 0; k < n_found; k++)
					check(&found[k], head);
				outcome += (uint64_t)n_found << 8;
			}
			outcome += (uint64_t)n_candidates << 24;
		}
	}
	return OK;
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Lookup *lookup;
	Index *head;
	char path[64];
	uint64_t json_size = 0;
	for (size_t i = 0; i < 8 && JSON_SIZE_AT + 8 <= size; i++)
		json_size |= (uint64_t)data[JSON_SIZE_AT + i] << 8 * i;
	int fd = file_of(data, size), json = file_of(NULL, json_size < JSON_MOST ? (size_t)json_size : 0);
	struct timespec old[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1 } };
	futimens(json, old);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ctx_init(&ctx);
	Status status = lookup_open(&ctx, path, json, &lookup, &head);
	REQUIRE(status == OK, "%s", ctx.error.text);
	if (lookup) {
		status = look_up(&ctx, lookup, head);
		n_accepted += status == OK;
		if (status != OK)
			judge_refusal(&ctx, status, 1u << BAD_INPUT, path);
	}
	lookup_close(lookup);
	close(fd);
	close(json);
	ctx_free(&ctx);
}
