/* What NVIDIA's driver says of the GPU of a rank. */
#include "format/nvml/gpus.h"
#include "probe/probe.h"
#include "support/thread.h"

#include <string.h>

enum { STACK = 1 << 20 };

/* A hexadecimal number of `most` digits at most, and the mark behind it. NULL: it is something else. */
static const char *
parse_hex(const char *text, size_t most, char mark, unsigned *out)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	size_t n = text ? strspn(text, digits) : 0;
	if (n == 0 || n > most || text[n] != mark)
		return NULL;
	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out = *out * 16 + (unsigned)(strchr(digits, text[i]) - digits) % 16;
	return text + n + 1;
}

static bool
parse(const char *text, PciAddress *out)
{
	unsigned function;
	text = parse_hex(text, 8, ':', &out->domain);
	text = parse_hex(text, 2, ':', &out->bus);
	text = parse_hex(text, 2, '.', &out->device);
	return parse_hex(text, 1, 0, &function) != NULL;
}

bool
probe_is_address(const char *text)
{
	PciAddress address;
	return parse(text, &address);
}

static struct card_peer
peer_at(PciAddress a)
{
	return (struct card_peer){ .domain = a.domain, .bus = (uint8_t)a.bus, .device = (uint8_t)a.device };
}

/* No GPU has NVLinks to more peers than there is room for. */
static void
add_link(struct gpu_card *card, PciAddress to)
{
	struct card_peer peer = peer_at(to);
	int i = 0;
	while (i < card->n_peers && !card_peer_same(&card->peer[i], &peer))
		i++;
	if (i == CARD_PEERS)
		return;
	if (i == card->n_peers)
		card->peer[card->n_peers++] = peer;
	card->peer[i].links++;
}

static void
write_card(const SeenGpus *gpus, int i, struct gpu_card *card)
{
	const SeenGpu *gpu = &gpus->gpu[i];
	memset(card, 0, sizeof *card);
	card->known = 1;
	card->number = (uint8_t)gpu->number;
	card->shown = (uint8_t)gpus->n;
	card->mbytes = (uint32_t)(gpu->link_rate / 1000000);
	card->self = peer_at(gpu->pci);
	for (int l = 0; l < gpu->n_links; l++) {
		const SeenLink *link = &gpu->link[l];
		card->to_switch += link->end == END_SWITCH;
		if (link->end == END_GPU || link->end == END_ABSENT)
			add_link(card, link->remote);
	}
}

static Status
ask_card(Ctx *ctx, const char *text, struct gpu_card *out)
{
	SeenGpus gpus;
	PciAddress address;
	int i = 0;
	if (!parse(text, &address))
		return fail(ctx, BAD_INPUT, "GPU %.40s: want a PCI address as 0000:3b:00.0", text);
	TRY(gpus_see(ctx, &gpus));
	while (i < gpus.n && !pci_same(gpus.gpu[i].pci, address))
		i++;
	if (i == gpus.n)
		return fail(ctx, BAD_INPUT, "GPU %.40s: NVIDIA's driver shows %d GPUs, and not this one", text, gpus.n);
	write_card(&gpus, i, out);
	return OK;
}

/* ---- in a thread ---- */

/* card: NULL: which peers are joined is asked. */
struct errand {
	Ctx *ctx;
	const char *address;
	struct gpu_card *card;
	const char *const *peer;
	int n;
	bool *joined;
	Status status;
};

static void
run(void *of)
{
	struct errand *e = of;
	e->status = e->card ? ask_card(e->ctx, e->address, e->card)
	    : gpus_joined_nvml(e->ctx, e->address, e->peer, e->n, e->joined);
}

static Status
run_errand(struct errand *e)
{
	if (!run_aside(STACK, run, e))
		return fail(e->ctx, IO, "GPU %.40s: cannot start a thread to ask for it", e->address);
	return e->status;
}

Status
probe_gpu(Ctx *ctx, const char *address, struct gpu_card *out)
{
	return run_errand(&(struct errand){ .ctx = ctx, .address = address, .card = out });
}

Status
probe_joined(Ctx *ctx, const char *address, const char *const *peer, int n, bool *joined)
{
	return run_errand(&(struct errand){ .ctx = ctx, .address = address, .peer = peer, .n = n, .joined = joined });
}
