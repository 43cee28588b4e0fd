/* blinkc advise: a batch without files, whose classes are ranked. */
#include "verb/advise/advise.h"
#include "base/sort.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <string.h>

static int
by_rate(const void *x, const void *y)
{
	const AdvisedClass *a = x, *b = y;
	int order = a->planned && b->planned ? frac_cmp(b->rate, a->rate) : b->planned - a->planned;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return order ? order : (a->set[0] > b->set[0]) - (a->set[0] < b->set[0]);
}

/* The class of each set that links connect, by the representative of its variant without a root. */
static Status
collect_sets(Ctx *ctx, Advice *a)
{
	const Batch *b = a->b;
	const SetClasses *classes = b->classes;
	int *class_of;
	TRY(NEW(ctx, class_of, classes->n_variants));
	TRY(NEW(ctx, a->class, b->n_sets));
	for (int pass = 0; pass < 2; pass++) {
		for (int s = 0; s < b->n_sets; s++) {
			int v = classes->representative[classes->first[s]];
			if (batch_class(b, s).disconnected)
				continue;
			if (pass == 0 && v == (int)classes->first[s])
				class_of[v] = a->n_classes++;
			AdvisedClass *class = &a->class[class_of[v]];
			if (pass == 1)
				class->set[class->n_sets] = s;
			class->n_sets++;
		}
		for (int c = 0; c < a->n_classes && pass == 0; c++) {
			TRY(NEW(ctx, a->class[c].set, a->class[c].n_sets));
			a->class[c].n_sets = 0;
		}
	}
	return OK;
}

static void
rate_class(const Advice *a, AdvisedClass *class)
{
	const Batch *b = a->b;
	int s = class->set[0], p = batch_best(b, a->coll, s, &class->root);
	class->n = b->set[s].n;
	class->links = batch_class(b, s).links;
	class->planned = p >= 0;
	if (p < 0)
		return;
	class->rate = b->result[p].rate;
	class->bound = b->result[p].bound;
	class->assumed = b->result[p].assumed;
}

static Status
rank_classes(Ctx *ctx, const Batch *b, Advice *out)
{
	*out = (Advice){ .b = b, .coll = batch_collective(b) };
	TRY(collect_sets(ctx, out));
	for (int s = 0; s < b->n_sets; s++)
		out->n_disconnected += batch_class(b, s).disconnected;
	for (int c = 0; c < out->n_classes; c++)
		rate_class(out, &out->class[c]);
	sort_array(out->class, out->n_classes, sizeof *out->class, by_rate);
	for (int c = 0, best = 0; c < out->n_classes; c++) {
		AdvisedClass *class = &out->class[c];
		best = class->n == out->class[best].n ? best : c;
		if (class->planned)
			class->share = frac_double(class->rate) / frac_double(out->class[best].rate);
	}
	return OK;
}

static Status
write_advice(Ctx *ctx, const Options *opt, const Batch *b, const char *format)
{
	Advice advice;
	Text out = { 0 };
	Status status = OK;
	TRY(rank_classes(ctx, b, &advice));
	if (strcmp(format, "json") == 0)
		advise_json(&advice, &out);
	else if (strcmp(format, "slurm") == 0)
		status = advise_slurm(ctx, &advice, &out);
	else
		advise_text(&advice, opt->value[OPT_VERBOSE], &out);
	return output_text(ctx, opt, status, &out);
}

Status
verb_advise(Ctx *ctx, const Options *opt)
{
	Batch b;
	const char *format;
	TRY(request_format(ctx, opt, ADVISE, &format));
	if (opt->value[OPT_JOB])
		return advise_job(ctx, opt, format);
	TRY(batch_rates(ctx, opt, true, NULL, &b));
	Status status = write_advice(ctx, opt, &b, format);
	batch_free(&b);
	return status;
}
