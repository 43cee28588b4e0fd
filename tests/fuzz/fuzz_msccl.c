/* Algorithms of MSCCL: refused, with one line that names the file; or read, and then what is written of it reads as the
 * same, with the same findings. */
#define COST_FLOOR_MS 1000
#include "xml_mutator.h"
#include "format/msccl/msccl.h"
#include "msccl/msccl.h"

const Mutator mutators[] = { xml_mutate, NULL };

const char *const dictionary[] = { "<algo", "</algo>", "<gpu", "</gpu>", "<tb", "</tb>", "<step", "/>", "name=\"",
	"proto=\"", "Simple", "LL128", "nchannels=\"", "nchunksperloop=\"", "ngpus=\"", "coll=\"", "inplace=\"",
	"outofplace=\"", "minBytes=\"", "maxBytes=\"", "id=\"", "i_chunks=\"", "o_chunks=\"", "s_chunks=\"", "send=\"",
	"recv=\"", "chan=\"", "s=\"", "type=\"", "srcbuf=\"", "srcoff=\"", "dstbuf=\"", "dstoff=\"", "cnt=\"",
	"depid=\"", "deps=\"", "hasdep=\"", "\"rcs\"", "\"rrc\"", "\"rrs\"", "\"rrcs\"", "\"cpy\"", "\"re\"", "\"nop\"",
	"allreduce", "allgather", "reduce_scatter", "gather", "scatter", "alltoall", "broadcast", "reduce", "1", "2",
	"-1", "72", "128", "32767", "99999999999", "<!--", "-->", "<?xml?>", "<!DOCTYPE", "\xff", NULL };

static const char label[] = "input";

/* A file that runs is written with all its attributes, so it reads as the same. */
static void
survives(Ctx *ctx, const Msccl *algo, const MscclFindings *found)
{
	Text text = { 0 }, again = { 0 };
	Msccl *copy;
	MscclFindings other;
	msccl_write(algo, &text);
	REQUIRE(!text.failed, "no memory");
	REQUIRE(msccl_read(ctx, label, text.data, text.size, &copy) == OK, "%s\nfor what we wrote:\n%s",
	    ctx->error.text, text.data);
	msccl_write(copy, &again);
	REQUIRE(again.size == text.size && memcmp(again.data, text.data, text.size) == 0, "%s\nbecame\n%s", text.data,
	    again.data);
	REQUIRE(msccl_check(ctx, label, copy, &other) == OK, "%s\nfor what we wrote:\n%s", ctx->error.text, text.data);
	REQUIRE(other.root == found->root, "root %d became %d", found->root, other.root);
	text_free(&text);
	text_free(&again);
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Msccl *algo;
	MscclFindings found;
	ctx_init(&ctx);
	Status status = msccl_read(&ctx, label, (const char *)data, size, &algo);
	if (status == OK)
		status = msccl_check(&ctx, label, algo, &found);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT | 1u << UNVERIFIED, label);
	} else {
		n_accepted++;
		outcome = (uint64_t)algo->n_gpus << 16 | (uint64_t)algo->n_channels << 8 | (uint64_t)found.n;
		survives(&ctx, algo, &found);
	}
	ctx_free(&ctx);
}
