/* Advice for Slurm. Users ask for a number of GPUs, --gres=gpu:4, and cannot name them; the node's gres.conf says how
 * well they are linked, by a number of links to each other GPU, and Slurm then prefers those with more:
 *
 *	NodeName=NODE Name=gpu File=/dev/nvidia0 Links=-1,2,1,0		-1: itself
 *
 * A job that has the whole node chooses by CUDA_VISIBLE_DEVICES. */
#include "verb/advise/advise.h"

/* GPUs of one server that are left, in the numbers of what is left of the machine, and their devices. */
struct server {
	const Topology *machine;
	int n, *gpu, *device;
	const int *index;	/* of each GPU of the whole machine: its device here; -1: none */
};

/* Physical links of a class between two GPUs, in the direction that has fewer; behind switches, those of the GPU that
 * has fewer of them to switches that both have. */
static int
links_of_pair(const Topology *topo, int a, int b, LinkClass class)
{
	int there = 0, back = 0, shared = 0;
	for (int i = topo->first_out[a]; i < topo->first_out[a + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		if (link->class != class)
			continue;
		there += link->to == b ? link->count : 0;
		for (int k = topo->first_in[b]; link->to >= topo->n_ranks && k < topo->first_in[b + 1]; k++) {
			const Link *last = &topo->link[topo->in[k]];
			if (last->class == class && last->from == link->to)
				shared += link->count < last->count ? link->count : last->count;
		}
	}
	for (int i = topo->first_in[a]; i < topo->first_in[a + 1]; i++)
		if (topo->link[topo->in[i]].class == class && topo->link[topo->in[i]].from == b)
			back += topo->link[topo->in[i]].count;
	return (there < back ? there : back) + shared;
}

/* The fastest class that joins GPUs of a server: NVLink, xGMI or C2C; else PCIe. */
static LinkClass
class_of(const struct server *s)
{
	static const LinkClass order[] = { LINK_NVLINK, LINK_XGMI, LINK_C2C };
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		for (int a = 0; a < s->n; a++)
			for (int b = 0; b < s->n; b++)
				if (a != b && links_of_pair(s->machine, s->gpu[a], s->gpu[b], order[i]) > 0)
					return order[i];
	return LINK_PCIE;
}

/* A line for each GPU of gres.conf. */
static void
put_gres(const struct server *s, const char *node, Text *out)
{
	LinkClass class = class_of(s);
	const char *device = class == LINK_XGMI ? "/dev/dri/renderD" : "/dev/nvidia";
	int first = class == LINK_XGMI ? 128 : 0;
	text_printf(out, "# gres.conf: Links= is the number of %s links to each GPU of the node, -1 the GPU itself\n",
	    link_class_name(class));
	for (int a = 0; a < s->n; a++) {
		text_printf(out, "NodeName=%s Name=gpu File=%s%d Links=", node, device, first + s->device[a]);
		for (int b = 0; b < s->n; b++)
			text_printf(out, "%s%d", b ? "," : "",
			    a == b ? -1 : links_of_pair(s->machine, s->gpu[a], s->gpu[b], class));
		text_put(out, "\n");
	}
}

static bool
is_inside(const struct server *s, const GpuSet *set)
{
	for (int i = 0; i < set->n; i++)
		if (s->index[set->gpu[i]] < 0)
			return false;
	return true;
}

static void
put_devices(const struct server *s, const GpuSet *set, Text *out)
{
	for (int i = 0; i < set->n; i++)
		text_printf(out, "%s%d", i ? "," : "", s->index[set->gpu[i]]);
}

/* The first set: a script takes its devices. */
static void
put_script(const struct server *s, const GpuSet *set, Frac rate, Text *out)
{
	text_printf(out, "\n# %d GPUs of the node: a job asks for all of it, and takes these: %.6g GB/s\n", set->n,
	    frac_double(rate) / 1e9);
	text_printf(out, "#SBATCH --exclusive --gres=gpu:%d\n"
	    "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=", s->n);
	put_devices(s, set, out);
	text_put(out, "\n");
}

static void
put_other(const struct server *s, const GpuSet *set, bool as_fast, Frac rate, Text *out)
{
	text_put(out, as_fast ? "# as fast:  " : "# slower:   ");
	put_devices(s, set, out);
	text_printf(out, "  %.6g GB/s\n", frac_double(rate) / 1e9);
}

/* The sets of one size inside the server, the fastest first; of each class some. Classes first .. end - 1 are of it. */
static void
put_size(const Advice *a, const struct server *s, int first, int end, Text *out)
{
	enum { MOST = 8 };
	const AdvisedClass *best = NULL;
	for (int c = first; c < end; c++) {
		const AdvisedClass *class = &a->class[c];
		int shown = 0;
		for (int i = 0; i < class->n_sets && class->planned && shown < MOST; i++) {
			const GpuSet *set = &a->b->set[class->set[i]];
			if (!is_inside(s, set))
				continue;
			if (best)
				put_other(s, set, frac_cmp(class->rate, best->rate) == 0, class->rate, out);
			else
				put_script(s, set, class->rate, out);
			best = best ? best : class;
			shown++;
		}
	}
}

static Status
put_server(Ctx *ctx, const Advice *a, int node, Text *out)
{
	const Topology *machine = a->b->machine;
	const int *left = a->b->base.gpu;
	struct server s = { .machine = a->b->base.topo };
	int *index, device = 0;
	TRY(NEW_EACH(ctx, machine->n_ranks, s.gpu, s.device, index));
	for (int g = 0; g < machine->n_ranks; g++) {
		bool here = machine->vertex[g].node == node, is_left = !left || left[g] >= 0;
		index[g] = here && is_left ? device : -1;
		if (here && is_left) {
			s.device[s.n] = device;
			s.gpu[s.n++] = left ? left[g] : g;
		}
		device += here;
	}
	s.index = index;
	if (s.n == 0)
		return OK;
	put_gres(&s, node >= 0 && machine->n_nodes > 1 ? machine->node[node] : "NODE", out);
	for (int first = 0, end; first < a->n_classes; first = end) {
		for (end = first + 1; end < a->n_classes && a->class[end].n == a->class[first].n; end++)
			;
		put_size(a, &s, first, end, out);
	}
	return OK;
}

Status
advise_slurm(Ctx *ctx, const Advice *a, Text *out)
{
	const Topology *machine = a->b->machine;
	bool loose = false;
	text_put(out, "# ");
	text_printable(out, a->b->base.topo->name);
	text_printf(out, ", %s\n", collective_name(a->coll));
	for (int g = 0; g < machine->n_ranks; g++)
		loose = loose || machine->vertex[g].node < 0;
	for (int node = loose ? -1 : 0; node < machine->n_nodes; node++)
		TRY(put_server(ctx, a, node, out));
	return OK;
}
