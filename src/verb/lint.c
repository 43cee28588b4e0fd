/* blinkc lint: what is implausible in topologies, and which rules algorithms of MSCCL and plans of MSCCL++ break. */
#include "base/array.h"
#include "base/file.h"
#include "format/file_kind.h"
#include "format/format.h"
#include "format/msccl/msccl.h"
#include "format/mscclpp/mscclpp.h"
#include "format/xml_schema.h"
#include "msccl/msccl.h"
#include "mscclpp/mscclpp.h"
#include "topology/lint.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <string.h>

struct lint {
	const Options *opt;
	Finding *found;
	int n, room;
	int machines, algorithms, plans, wrong, findings;	/* wrong: files that are neither */
	Status status;			/* of the first of these */
};

static Status
keep(Ctx *ctx, struct lint *lint, const Finding *finding)
{
	TRY(GROW(ctx, lint->found, lint->n, lint->room));
	lint->found[lint->n++] = *finding;
	return OK;
}

static const char *
copy(Ctx *ctx, const char *text)
{
	return arena_text(&ctx->run, text, strlen(text));
}

/* "one-way: 1 link, none back: want links both ways" */
static Status
keep_finding(Ctx *ctx, struct lint *lint, const char *path, const LintFinding *one)
{
	Text text = { 0 };
	text_printf(&text, "%s: ", lint_rule_name(one->rule));
	text_put(&text, one->text);
	Finding finding = { .kind = FINDING_ERROR, .file = path, .type = lint_rule_name(one->rule),
		.part = *one->at ? copy(ctx, one->at) : NULL, .message = text_keep(&ctx->run, &text) };
	if (!finding.message || (*one->at && !finding.part))
		return fail_memory(ctx);
	lint->findings++;
	return keep(ctx, lint, &finding);
}

/* ":12: steps: gpu 0, tb 1: 70 steps: want at most 64 (azure, rccl)"; of MSCCL++ "exit: gpu 1 may end before ..." */
static Status
keep_of_rule(Ctx *ctx, struct lint *lint, const char *path, const Rule *rules, const RuleFinding *one)
{
	char dialects[64];
	Text text = { 0 };
	text_printf(&text, "%s: %s", rules[one->rule].name, one->text);
	if (one->dialects)
		text_printf(&text, " (%s)", msccl_dialects_text(one->dialects, dialects));
	Finding finding = { .kind = FINDING_ERROR, .file = path, .type = rules[one->rule].name, .line = one->line,
		.message = text_keep(&ctx->run, &text) };
	if (!finding.message)
		return fail_memory(ctx);
	lint->findings++;
	return keep(ctx, lint, &finding);
}

/* ":12: schema: Element 'link': The attribute 'to' is required but missing" */
static Status
keep_fault(Ctx *ctx, struct lint *lint, const char *path, const XmlFault *one)
{
	Text text = { 0 };
	text_printf(&text, "schema: %s", one->text);
	Finding finding = { .kind = FINDING_ERROR, .file = path, .type = "schema", .line = one->line,
		.message = text_keep(&ctx->run, &text) };
	return finding.message ? keep(ctx, lint, &finding) : fail_memory(ctx);
}

/* A message does not repeat the path. */
static Status
keep_error(Ctx *ctx, struct lint *lint, const char *path, Status status, const char *text)
{
	size_t n = strlen(path);
	Finding finding = { .kind = FINDING_ERROR, .file = path, .type = status_name(status), .message = text };
	if (strncmp(text, path, n) == 0 && text[n] == ':')
		finding_place(text + n, &finding);
	finding.message = copy(ctx, finding.message);
	if (!finding.message)
		return fail_memory(ctx);
	lint->status = lint->wrong++ ? lint->status : status;
	return keep(ctx, lint, &finding);
}

/* What a file is, and what was found in it. */
struct linted {
	bool is_msccl, is_mscclpp;
	LintFinding *found, *of_model;
	int n, n_of_model;
	RuleFindings of_msccl;
	RuleFindings of_mscclpp;
	XmlFault *fault;
	int n_faults;
};

static Status
validate(Ctx *own, const char *label, const Text *in, struct linted *out)
{
	char space[FILE_PATH_ROOM];
	const char *schema = topology_schema(space);
	if (file_kind(in->data, in->size) != FILE_TOPOLOGY || !topo_is_xml(in->data, in->size))
		return fail(own, BAD_INPUT, "%s: --schema: want a topology of blinkc in XML: its XML Schema is for no "
		    "other; JSON has schemas/topology.schema.json", label);
	if (!schema)
		return fail(own, IO, "topology.xsd: no such file in the schemas of blinkc");
	return xml_schema_faults(own, label, in->data, in->size, schema, &out->fault, &out->n_faults);
}

static Status
lint_msccl(Ctx *own, const char *label, const Text *in, struct linted *out)
{
	Msccl *algo;
	out->is_msccl = true;
	TRY(msccl_read(own, label, in->data, in->size, &algo));
	return msccl_lint(own, label, algo, &out->of_msccl);
}

static Status
lint_mscclpp(Ctx *own, const char *label, const Text *in, struct linted *out)
{
	Mscclpp *plan;
	out->is_mscclpp = true;
	TRY(mscclpp_read(own, label, in->data, in->size, &plan));
	return mscclpp_lint(own, label, plan, &out->of_mscclpp);
}

/* Its reader would say the first fault again. */
static Status
lint_text(Ctx *own, const Options *opt, const char *label, const Text *in, struct linted *out)
{
	Topology *machine;
	if (opt->value[OPT_SCHEMA])
		TRY(validate(own, label, in, out));
	if (out->n_faults)
		return OK;
	if (msccl_is(in->data, in->size))
		return lint_msccl(own, label, in, out);
	if (file_kind(in->data, in->size) == FILE_MSCCLPP)
		return lint_mscclpp(own, label, in, out);
	TRY(read_topology(own, opt, label, in, &machine));
	TRY(topo_lint(own, machine, &out->found, &out->n));
	return topo_lint_model(own, machine, ~0u, &out->of_model, &out->n_of_model);
}

static Status
read_and_lint(Ctx *own, const Options *opt, const char *argument, struct linted *out)
{
	Options one = *opt;
	const char *label;
	Text in = { 0 };
	one.n_files = argument ? 1 : 0;
	one.file = (char *[]){ (char *)argument };
	Status status = input_topology(own, &one, &label, &in);
	if (status == OK)
		status = lint_text(own, opt, label, &in, out);
	text_free(&in);
	return status;
}

static Status
keep_all(Ctx *ctx, struct lint *lint, const char *path, const struct linted *one)
{
	for (int i = 0; i < one->n; i++)
		TRY(keep_finding(ctx, lint, path, &one->found[i]));
	for (int i = 0; i < one->n_of_model; i++)
		TRY(keep_finding(ctx, lint, path, &one->of_model[i]));
	for (int i = 0; i < one->n_faults; i++)
		TRY(keep_fault(ctx, lint, path, &one->fault[i]));
	if (one->n_faults)
		lint->status = lint->wrong++ ? lint->status : BAD_INPUT;
	for (int i = 0; i < one->of_msccl.n; i++)
		TRY(keep_of_rule(ctx, lint, path, msccl_rule_rows, &one->of_msccl.finding[i]));
	for (int i = 0; i < one->of_mscclpp.n; i++)
		TRY(keep_of_rule(ctx, lint, path, mscclpp_rule_rows, &one->of_mscclpp.finding[i]));
	return one->n + one->n_of_model + one->of_msccl.n + one->of_mscclpp.n + one->n_faults ? OK
	    : keep(ctx, lint, &(Finding){ .kind = FINDING_VALID, .file = path });
}

/* In a context of its own: machines may be large, and only findings stay. argument: NULL: that of --synthetic. */
static Status
lint_one(Ctx *ctx, struct lint *lint, const char *argument)
{
	const char *path = argument ? argument : "--synthetic";
	Ctx own;
	struct linted one = { .is_msccl = false };
	Status kept;
	ctx_init(&own);
	Status status = read_and_lint(&own, lint->opt, argument, &one);
	*(one.is_msccl ? &lint->algorithms : one.is_mscclpp ? &lint->plans : &lint->machines) += 1;
	if (status == OK)
		kept = keep_all(ctx, lint, path, &one);
	else
		kept = status == NO_MEMORY ? fail_memory(ctx) : keep_error(ctx, lint, path, status, own.error.text);
	ctx_free(&own);
	return kept;
}

static Status
print_findings(Ctx *ctx, const struct lint *lint)
{
	Text line = { 0 };
	for (int i = 0; i < lint->n; i++) {
		if (lint->found[i].kind == FINDING_VALID)
			continue;
		finding_line(&line, &lint->found[i]);
		text_put(&line, "\n");
	}
	bool failed = line.failed;
	if (!failed && line.size)
		fputs(line.data, stdout);
	text_free(&line);
	return failed ? fail_memory(ctx) : OK;
}

/* "2 machines: 3 findings"; "3 machines: no findings, 1 unreadable" */
static void
summarise(const struct lint *lint, char summary[120])
{
	int n = 0;
	if (lint->machines)
		n = snprintf(summary, 120, "%d machine%s%s", lint->machines, lint->machines == 1 ? "" : "s",
		    lint->algorithms || lint->plans ? ", " : ": ");
	if (lint->algorithms)
		n += snprintf(summary + n, (size_t)(120 - n), "%d algorithm%s of MSCCL%s", lint->algorithms,
		    lint->algorithms == 1 ? "" : "s", lint->plans ? ", " : ": ");
	if (lint->plans)
		n += snprintf(summary + n, (size_t)(120 - n), "%d plan%s of MSCCL++: ", lint->plans,
		    lint->plans == 1 ? "" : "s");
	n += lint->findings ? snprintf(summary + n, (size_t)(120 - n), "%d finding%s", lint->findings,
	    lint->findings == 1 ? "" : "s") : snprintf(summary + n, (size_t)(120 - n), "no findings");
	if (lint->wrong)
		snprintf(summary + n, (size_t)(120 - n), ", %d not valid", lint->wrong);
}

Status
verb_lint(Ctx *ctx, const Options *opt)
{
	struct lint lint = { .opt = opt };
	char summary[120];
	const char *from;
	TRY(request_from(ctx, opt, &from));
	if ((opt->n_files > 0) == (opt->value[OPT_SYNTHETIC] != NULL))
		return fail(ctx, USAGE, "%d topology files: want %s", opt->n_files,
		    opt->n_files ? "none with --synthetic" : "at least one");
	for (int i = 0; i < opt->n_files; i++)
		TRY(lint_one(ctx, &lint, opt->file[i]));
	if (opt->n_files == 0)
		TRY(lint_one(ctx, &lint, NULL));
	summarise(&lint, summary);
	if (!opt->value[OPT_GITHUB])
		TRY(print_findings(ctx, &lint));
	if (!opt->value[OPT_GITHUB] && !opt->value[OPT_QUIET])
		printf("%s\n", summary);
	TRY(output_findings(ctx, opt, "blinkc lint", lint.found, lint.n, summary));
	return lint.wrong ? lint.status : lint.findings ? IMPLAUSIBLE : OK;
}
