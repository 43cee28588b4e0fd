/* Advice as JSON (schemas/advise.schema.json): a line for each class. */
#include "base/json_write.h"
#include "verb/advise/advise.h"

static void
put_class(JsonWriter *w, const Advice *a, const AdvisedClass *class)
{
	json_object(w, NULL, JSON_LINE);
	json_int(w, "gpus", class->n);
	if (class->planned) {
		json_gb(w, "rate", class->rate);
		json_gb(w, "bound", class->bound);
		json_number(w, "share", class->share);
		if (class->assumed.classes)
			json_names(w, "assumed_links", link_class_names, class->assumed.classes);
	} else {
		json_null(w, "rate");
		json_null(w, "bound");
		json_null(w, "share");
	}
	json_names(w, "links", link_class_names, class->links);
	json_rank(w, "root", class->root < 0 ? -1 : a->b->set[class->set[0]].gpu[class->root]);
	json_array(w, "sets", JSON_TIGHT);
	for (int i = 0; i < class->n_sets; i++)
		json_ints(w, NULL, a->b->set[class->set[i]].gpu, class->n);
	json_end(w);
	json_end(w);
}

void
advise_json(const Advice *a, Text *out)
{
	JsonWriter w = { .out = out };
	json_file(&w, JSON_BLOCK, "blink-advice");
	batch_put_machine(a->b, a->b->base.topo, &w);
	json_string(&w, "collective", collective_name(a->coll));
	json_int(&w, "disconnected", a->n_disconnected);
	json_array(&w, "classes", JSON_ROWS);
	for (int c = 0; c < a->n_classes; c++)
		put_class(&w, a, &a->class[c]);
	json_end(&w);
	json_file_end(&w);
}
