#include "base/file.h"
#include "base/pool.h"
#include "verb/report/report.h"
#include "verb/shipped.h"
#include "verb/verb.h"

#include <stdio.h>
#include <string.h>

static void
print_summary(const Page *page, size_t bytes)
{
	int n_jobs = 0;
	for (int f = 0; f < page->n_files; f++)
		n_jobs += page->file[f].n_jobs;
	fprintf(stderr, "machine     ");
	print_name(stderr, page->name);
	fprintf(stderr, ", %d GPUs\n", page->n_gpus);
	fprintf(stderr, "schedules   %d for %d jobs, all valid\n", page->n_files, n_jobs);
	fprintf(stderr, "page        %.3g MB\n", (double)bytes / 1e6);
}

static Status
write_page(Ctx *ctx, const Options *opt, Text *drawing, Text *html)
{
	Page *page;
	int n_workers;
	TRY(request_jobs(ctx, opt, &n_workers));
	TRY(page_read(ctx, opt->file, opt->n_files, n_workers, &page, drawing));
	Status status = page_times(ctx, opt, n_workers, page);
	if (status == OK)
		status = emit_html(ctx, page, drawing, html);
	shared_free(page->times);
	TRY(status);
	TRY(file_write(ctx, output_path(opt), html));
	if (!opt->value[OPT_QUIET])
		print_summary(page, html->size);
	return OK;
}

Status
verb_report(Ctx *ctx, const Options *opt)
{
	Text drawing = { 0 }, html = { 0 };
	if (opt->n_files < 1)
		return fail(ctx, USAGE, "no directory: want at least one that blinkc batch wrote");
	for (int i = 0; i < opt->n_files; i++)
		for (int k = 0; k < i; k++)
			if (strcmp(opt->file[i], opt->file[k]) == 0)
				return fail(ctx, USAGE, "%s: given twice: want each directory once", opt->file[i]);
	for (int i = 0; i < opt->n_files; i++)
		if (!file_is_there(opt->file[i]) && names_shipped(ctx, opt->file[i]))
			return fail(ctx, BAD_INPUT, "%s: a machine that comes along: want a directory; blinkc batch %s "
			    "-o DIR writes one", opt->file[i], opt->file[i]);
	Status status = write_page(ctx, opt, &drawing, &html);
	text_free(&drawing);
	text_free(&html);
	return status;
}
