/* The two ways into the runtime, a schedule file and a generated program: what is loaded, what is refused, and that
 * both compute the same bits. Prints TAP. Argument: seed. Run at the root of the repository; CC compiles the programs.
 */
#include "base/file.h"
#include "buffers.h"
#include "compile.h"
#include "format/format.h"
#include "quick.h"

#include <sys/stat.h>
#include <unistd.h>

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
compile_object(const char *folder, const char *name, int optimise)
{
	char command[1024];
	snprintf(command, sizeof command,
	    "%s -x c -std=gnu11 -O%d -Wall -Wextra -Werror -shared -fPIC -Iruntime/include "
	    "%s/%s.cu -o %s/%s.so -pthread",
	    compiler(), optimise, folder, name, folder, name);
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
same_bits(blinkSchedule_t a, blinkSchedule_t b, size_t count, int type, int op)
{
	static const blinkConfig_t configs[] = { { .threads = 0 }, { .chunkBytes = 4, .threads = 1 },
		{ .chunkBytes = 100, .threads = 3 }, { .chunkBytes = 4096, .threads = 2 } };
	struct buffers first = {
		.program = a->program, .count = count, .type = type, .op = op, .size = blink_type_size(type)
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
			good = blinkRun(comm, again.send, again.recv, again.count, (blinkDataType_t)type,
			    (blinkRedOp_t)op) == blinkSuccess;
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
test_formats(const char *folder, bool all)
{
	static const Collective colls[] = { ALLREDUCE, REDUCE, REDUCESCATTER, ALLGATHER, BROADCAST };
	bool have_cc = have_compiler();
	for (int i = 0; i < 5; i++) {
		/* The compiler takes longer than all else: in the quick check for every other collective. */
		bool compiles = have_cc && (i % 2 == 0 || !quick_check());
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
		if (good && compiles) {
			digest_of(json.data, json.size, digest);
			good = sched_lower(&ctx, sched, &prog) == OK
			    && program_write_cu(&ctx, prog, digest, &code) == OK;
			char cu[32], so[32];
			snprintf(cu, sizeof cu, "%s.cu", name);
			snprintf(so, sizeof so, "%s.so", name);
			good = good && write_file(folder, cu, code.data, code.size) &&
			    compile_object(folder, name, !quick_check());
			good = good && load_object(folder, so, &object, &error) == blinkSuccess;
			good = good && strcmp(object->info.digest, file->info.digest) == 0 &&
			    strcmp(object->info.topology, sched->topo->name) == 0 && object->info.nRanks == 5 &&
			    object->info.root == sched->root && object->info.nTrees == sched->n_segments;
			/* All operations of the first; of the others, if not all, one that ends with a scale and one
			 * that does not. */
			for (int type = blinkInt8; type <= blinkFloat8e5m2; type++)
				for (int op = blinkSum; op <= blinkAvg; op++)
					if (all || i == 0 || op == blinkSum || op == blinkAvg)
						good = good && same_bits(file, object, 203, type, op);
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
			    && again[0] == moved[0] && again[1] == moved[1] &&
			    same_bits(file, object, count / 4, blinkFloat32, blinkSum);
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
	int every = quick_check() ? 3 : 1;
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
		if (good && have_cc && c % every == 0)
			good = sched_lower(&ctx, sched, &prog) == OK
			    && program_write_cu(&ctx, prog, "sha256:0", &code) == OK
			    && write_file(folder, "h.cu", code.data, code.size) && compile_object(folder, "h", 0)
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
	ok(compile_object(folder, "other", 0) && refused(folder, "other.so", blinkBadInput, "no symbol blink_program"),
	    "an object without blink_program");
	ok(compile_object(folder, "old", 0) && refused(folder, "old.so", blinkBadInput, "program ABI 999: want"),
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
	test_refusals(folder);
	test_unverified();
	test_formats(folder, argc < 3 || atoi(argv[2]) >= 100);
	test_hybrid(folder);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command) != 0)
		printf("# %s is left behind\n", folder);
	return end_tests();
}
