/* What the options say of executors. */
#include "base/file.h"
#include "format/format.h"
#include "verb/simulate/simulation.h"

Status
request_executor(Ctx *ctx, const char *text, Executor *out)
{
	int i = 0;
	if (text && !names_find(executor_names, text, &i))
		return fail(ctx, USAGE, "--executor: %.40s: want %s%s", text, names_wanted(executor_names).text,
		    names_hint(executor_names, text).text);
	*out = (Executor)i;
	return OK;
}

Status
request_parameters(Ctx *ctx, const char *path, Parameters *out)
{
	Text in = { 0 };
	*out = (Parameters){ .n = 0 };
	if (!path)
		return OK;
	TRY(file_read(ctx, path, &in));
	Status status = parameters_read(ctx, path, in.data ? in.data : "", in.size, out);
	text_free(&in);
	return status;
}
