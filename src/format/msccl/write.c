/* Msccl to MSCCL XML, with all attributes of all dialects. */
#include "format/msccl/msccl.h"
#include "base/xml_write.h"

static void
write_bytes(XmlWriter *w, const char *name, int64_t bytes)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)bytes);
	xml_attribute(w, name, text);
}

static void
write_step(XmlWriter *w, const MscclStep *s)
{
	xml_begin(w, "step");
	xml_attribute_int(w, "s", s->number);
	xml_attribute(w, "type", msccl_ops[s->op].name);
	xml_attribute(w, "srcbuf", msccl_buffers[s->src]);
	xml_attribute_int(w, "srcoff", s->src_offset);
	xml_attribute(w, "dstbuf", msccl_buffers[s->dst]);
	xml_attribute_int(w, "dstoff", s->dst_offset);
	xml_attribute_int(w, "cnt", s->count);
	xml_attribute_int(w, "depid", s->dep_block);
	xml_attribute_int(w, "deps", s->dep_step);
	xml_attribute_int(w, "hasdep", s->has_dep);
	xml_end(w);
}

static void
write_block(XmlWriter *w, const MscclBlock *b)
{
	xml_begin(w, "tb");
	xml_attribute_int(w, "id", b->id);
	xml_attribute_int(w, "send", b->send);
	xml_attribute_int(w, "recv", b->recv);
	xml_attribute_int(w, "chan", b->channel);
	xml_elements(w);
	for (int i = 0; i < b->n_steps; i++)
		write_step(w, &b->step[i]);
	xml_end(w);
}

static void
write_gpu(XmlWriter *w, const MscclGpu *gpu)
{
	xml_begin(w, "gpu");
	xml_attribute_int(w, "id", gpu->id);
	xml_attribute_int(w, "i_chunks", gpu->chunks[MSCCL_INPUT]);
	xml_attribute_int(w, "o_chunks", gpu->chunks[MSCCL_OUTPUT]);
	xml_attribute_int(w, "s_chunks", gpu->chunks[MSCCL_SCRATCH]);
	xml_elements(w);
	for (int t = 0; t < gpu->n_blocks; t++)
		write_block(w, &gpu->block[t]);
	xml_end(w);
}

void
msccl_write(const Msccl *algo, Text *out)
{
	XmlWriter w = { .out = out };
	xml_begin(&w, "algo");
	xml_attribute(&w, "name", algo->name);
	xml_attribute(&w, "proto", algo->protocol);
	xml_attribute_int(&w, "nchannels", algo->n_channels);
	xml_attribute_int(&w, "nchunksperloop", algo->chunks);
	xml_attribute_int(&w, "ngpus", algo->n_gpus);
	xml_attribute(&w, "coll", algo->coll_name);
	xml_attribute_int(&w, "inplace", algo->in_place);
	xml_attribute_int(&w, "outofplace", algo->out_of_place);
	write_bytes(&w, "minBytes", algo->min_bytes);
	write_bytes(&w, "maxBytes", algo->max_bytes);
	xml_elements(&w);
	for (int g = 0; g < algo->n_listed; g++)
		write_gpu(&w, &algo->gpu[g]);
	xml_end(&w);
}
