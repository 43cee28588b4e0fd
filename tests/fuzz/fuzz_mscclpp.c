/* Plans of MSCCL++: refused, with one line that names the file; or read, and then what is written of it reads as the
 * same, with the same root. */
#define COST_FLOOR_MS 1000
#include "json_mutator.h"
#include "format/mscclpp/mscclpp.h"
#include "mscclpp/mscclpp.h"

const Mutator mutators[] = { json_mutate, NULL };

const char *const dictionary[] = { "{", "}", "[", "]", "\"name\":", "\"collective\":", "\"protocol\":", "\"Simple\"",
	"\"LL\"", "\"inplace\":", "true", "false", "\"reuse_resources\":", "\"use_double_scratch_buffer\":",
	"\"gpus\":", "\"id\":", "\"input_chunks\":", "\"output_chunks\":", "\"scratch_chunks\":", "\"threadblocks\":",
	"\"ops\":", "\"channels\":", "\"channel_type\":", "\"memory\"", "\"port\"", "\"switch\"", "\"channel_ids\":",
	"\"connected_to\":", "\"remote_buffers\":", "\"remote_buffer_refs\":", "\"remote_buffer_ids\":",
	"\"access_channel_type\":", "\"access_channel_types\":", "\"rank\":", "\"type\":", "\"i\"", "\"o\"", "\"s\"",
	"\"src_buff\":", "\"dst_buff\":", "\"buffer_id\":", "\"switch_channel_id\":", "\"index\":", "\"size\":",
	"\"semaphores\":", "\"init_value\":", "\"semaphore_ids\":", "\"barrier_id\":", "\"num_threadblocks\":",
	"\"tbg_info\":", "\"tb_id\":", "\"tbg_size\":", "\"iter_context\":", "\"unit_size\":", "\"num_chunks\":",
	"\"buffer_type\":", "\"rank_groups\":", "\"ranks\":", "\"pipeline\"", "\"nop\"", "\"barrier\"", "\"put\"",
	"\"pws\"", "\"pwsf\"", "\"get\"", "\"copy\"", "\"signal\"", "\"wait\"", "\"flush\"", "\"re\"", "\"res\"",
	"\"rre\"", "\"rres\"", "\"ppkt\"", "\"rppkt\"", "\"respkt\"", "\"cpkt\"", "\"upkt\"", "\"repkt\"",
	"\"recpkt\"", "\"recspkt\"", "\"glres\"", "\"gstore\"", "\"gstorepkt\"", "\"rlxsignal\"", "\"rlxwait\"",
	"\"sem_acquire\"", "\"sem_release\"", "0", "1", "2", "16", "64", "32767", "-1", "131072", "4294967296",
	"18446744073709551615", "1e9", "\xff", NULL };

static const char label[] = "input";

/* A plan that runs is written with all that is in it, so it reads as the same. */
static void
survives(Ctx *ctx, const Mscclpp *plan, const MscclppFindings *found)
{
	Text text = { 0 }, again = { 0 };
	Mscclpp *copy;
	MscclppFindings other;
	mscclpp_write(plan, &text);
	REQUIRE(!text.failed, "no memory");
	REQUIRE(mscclpp_read(ctx, label, text.data, text.size, &copy) == OK, "%s\nfor what we wrote:\n%s",
	    ctx->error.text, text.data);
	mscclpp_write(copy, &again);
	REQUIRE(again.size == text.size && memcmp(again.data, text.data, text.size) == 0, "%s\nbecame\n%s", text.data,
	    again.data);
	REQUIRE(mscclpp_check(ctx, label, copy, &other) == OK, "%s\nfor what we wrote:\n%s", ctx->error.text,
	    text.data);
	REQUIRE(other.root == found->root, "root %d became %d", found->root, other.root);
	text_free(&text);
	text_free(&again);
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Mscclpp *plan;
	MscclppFindings found;
	ctx_init(&ctx);
	Status status = mscclpp_read(&ctx, label, (const char *)data, size, &plan);
	if (status == OK)
		status = mscclpp_check(&ctx, label, plan, &found);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT | 1u << UNVERIFIED, label);
	} else {
		n_accepted++;
		outcome = (uint64_t)plan->n_gpus << 16 | (uint64_t)plan->gpu->n_blocks << 8 | (uint64_t)found.n;
		survives(&ctx, plan, &found);
	}
	ctx_free(&ctx);
}
