/* Programs of others, read, checked, and written: PROGRAM is their type, and program_read, program_check, program_write
 * and program_kind are what a target has for them. */

static const char label[] = "input";

/* One that runs is written with all that is in it, so it reads as the same. */
static void
survives(Ctx *ctx, const PROGRAM *program, const RuleFindings *found)
{
	Text text = { 0 }, again = { 0 };
	PROGRAM *copy;
	RuleFindings other;
	program_write(program, &text);
	REQUIRE(!text.failed, "no memory");
	REQUIRE(program_read(ctx, label, text.data, text.size, &copy) == OK, "%s\nfor what we wrote:\n%s",
	    ctx->error.text, text.data);
	program_write(copy, &again);
	REQUIRE(again.size == text.size && memcmp(again.data, text.data, text.size) == 0, "%s\nbecame\n%s", text.data,
	    again.data);
	REQUIRE(program_check(ctx, label, copy, &other) == OK, "%s\nfor what we wrote:\n%s", ctx->error.text,
	    text.data);
	REQUIRE(other.root == found->root, "root %d became %d", found->root, other.root);
	text_free(&text);
	text_free(&again);
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	PROGRAM *program;
	RuleFindings found;
	ctx_init(&ctx);
	Status status = program_read(&ctx, label, (const char *)data, size, &program);
	if (status == OK)
		status = program_check(&ctx, label, program, &found);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT | 1u << UNVERIFIED, label);
	} else {
		n_accepted++;
		outcome = (uint64_t)program->n_gpus << 16 | (uint64_t)program_kind(program) << 8 | (uint64_t)found.n;
		survives(&ctx, program, &found);
	}
	ctx_free(&ctx);
}
