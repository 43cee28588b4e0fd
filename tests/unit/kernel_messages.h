/* Messages between GPUs of fibers: for test_kernels.c. */
#ifndef KERNEL_MESSAGES_H
#define KERNEL_MESSAGES_H

#include "kernel_gpus.h"

enum { MAILS = 2 * MAX_RANKS * MAX_RANKS };

struct mail {
	struct gpu_exchange exchange[MAX_RANKS];
	struct gpu_messages *messages[MAX_RANKS];
	struct grid grid[MAX_RANKS];
	int n, n_messages[MAX_RANKS];
	int from[MAILS], to[MAILS];
	size_t bytes[MAILS];
	char *memory[2 * MAILS], *sent[MAILS], *received[MAILS];
};

static char *
mail_memory(char **memory, int rank, size_t bytes)
{
	char *m = *memory = need(malloc(bytes + 32));
	memset(m, 0xa5, bytes + 32);
	m += below(2) ? (uintptr_t)below(16) : -(uintptr_t)m % 16;
	add_region(m, bytes, rank, false);
	return m;
}

/* Of a message of that length: any strips and chunks, of whole vectors, the same on both ranks. */
static void
cut(uint64_t bytes, struct gpu_message *m)
{
	int channels = 1 + (int)(bytes % CHANNELS), chunks = 1 + (int)(bytes / 3 % 5);
	m->strip = (bytes / (uint64_t)channels + 16) / 16 * 16;
	m->chunk = (m->strip / (uint64_t)chunks + 16) / 16 * 16;
	m->chunk = m->chunk < SLOT_BYTES ? m->chunk : SLOT_BYTES;
}

static void
add_message(struct gpus *g, struct mail *m, int i, bool sends, size_t wrong)
{
	int rank = sends ? m->from[i] : m->to[i], peer = sends ? m->to[i] : m->from[i];
	struct gpu_exchange *x = &m->exchange[rank];
	struct gpu_messages *all = m->messages[rank];
	struct pair_memory *in = &g->of[m->to[i]][m->from[i]], *back = &g->of[m->from[i]][m->to[i]];
	struct gpu_message out = { sends ? m->sent[i] : m->received[i], m->bytes[i] + (sends ? 0 : wrong), 0, 0, 0,
	    { in->channel, &back->channel->done, in->slots[0] }, peer, sends };
	int at = m->n_messages[rank]++;
	out.signature = 8 * out.bytes + (uint64_t)(i % 3);
	cut(out.bytes, &out);
	all->message[at] = out;
	if (at > 0 && all->message[at - 1].peer == peer && all->message[at - 1].sends == sends) {
		for (int c = 1; c <= CHANNELS; c++)
			all->queue[x->n_queues - c].end++;
		return;
	}
	for (int c = 0; c < CHANNELS; c++)
		all->queue[x->n_queues++] = (struct gpu_queue){ (uint16_t)at, (uint16_t)(at + 1), (uint16_t)c, 0 };
}

/* Between all pairs, also of a rank with itself. wrong: bytes by which they are longer for who gets them. */
static struct mail *
new_mail(struct gpus *g, size_t wrong)
{
	static const size_t sizes[] = { 0, 1, 3, 16, 1000, 16384, 16387, 35001 };
	struct mail *m = zeroed(sizeof *m);
	for (int r = 0; r < g->n; r++)
		m->messages[r] = zeroed(sizeof *m->messages[r]);
	for (int p = 0; p < g->n; p++)
		for (int q = 0; q < g->n; q++)
			for (int k = below(3); k > 0; k--) {
				int i = m->n++;
				m->from[i] = p;
				m->to[i] = q;
				m->bytes[i] = sizes[below(8)];
				m->sent[i] = mail_memory(&m->memory[2 * i], p, m->bytes[i]);
				m->received[i] = mail_memory(&m->memory[2 * i + 1], q, m->bytes[i] + wrong);
				for (size_t b = 0; b < m->bytes[i]; b++)
					m->sent[i][b] = (char)random64();
			}
	for (int i = 0; i < m->n; i++)
		add_message(g, m, i, true, wrong);
	for (int i = 0; i < m->n; i++)
		add_message(g, m, i, false, wrong);
	for (int r = 0; r < g->n; r++) {
		m->exchange[r].state = g->state[r];
		m->exchange[r].status = &g->status[r];
		m->exchange[r].messages = m->messages[r];
		m->exchange[r].slot_bytes = SLOT_BYTES;
		add_region(m->messages[r], sizeof *m->messages[r], r, false);
	}
	return m;
}

/* false: not all is there. Ends also where a rank has stopped. */
static bool
run_mail(struct gpus *g, struct mail *m)
{
	const struct virtual_kernel *kernel = virtual_gpu_kernels;
	bool good = true;
	while (strcmp(kernel->name, "blink_messages") != 0)
		kernel++;
	for (int r = 0; r < g->n; r++) {
		int queues = m->exchange[r].n_queues, least = (queues - 1) / GPU_QUEUES_OF_BLOCK + 1;
		int blocks = below(2) ? queues : least + below(4);
		if (queues > 0)
			launch(kernel, r, (unsigned)blocks, 1 + (unsigned)below(4), &m->exchange[r], &m->grid[r]);
	}
	while (n_running > 0) {
		run_round();
		stop_together(g);
	}
	for (int i = 0; i < m->n; i++)
		good = good && memcmp(m->sent[i], m->received[i], m->bytes[i]) == 0;
	return good;
}

static void
free_mail(struct mail *m)
{
	for (int i = 0; i < 2 * m->n; i++)
		free(m->memory[i]);
	for (int r = 0; r < MAX_RANKS; r++)
		free(m->messages[r]);
	free(m);
}

static bool
messages(void)
{
	struct gpus *g = gpus_new(1 + below(4));
	bool good = true;
	n_violations = 0;
	for (int base = n_regions, i = 0; i < 3; i++) {
		struct mail *m = new_mail(g, 0);
		good = run_mail(g, m) && good;
		n_regions = base;
		free_mail(m);
	}
	for (int r = 0; r < g->n; r++)
		good = good && g->status[r].differs == 0 && g->state[r]->calls == 0;
	gpus_free(g);
	return good && n_violations == 0;
}

static bool
messages_differ(void)
{
	struct gpus *g = gpus_new(3);
	struct mail *m;
	while ((m = new_mail(g, 4))->n == 0)
		free_mail(m);
	run_mail(g, m);
	int differs = 0;
	for (int r = 0; r < g->n; r++)
		differs += g->status[r].differs != 0;
	free_mail(m);
	gpus_free(g);
	return differs > 0;
}

#endif
