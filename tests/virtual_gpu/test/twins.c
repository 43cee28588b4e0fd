/* The twins that tests of the virtual GPUs launch. */
#include "twins.h"

static uint64_t
load(const uint64_t *at)
{
	uint64_t value;
	virtual_gpu_load(at, &value, sizeof value);
	return value;
}

static void
store(uint64_t *at, uint64_t value)
{
	virtual_gpu_store(at, &value, sizeof value);
}

static void
wait_for(const uint64_t *flag, uint64_t value)
{
	while (load(flag) < value)
		virtual_gpu_pause();
}

static void
run_fill(const void *parameter)
{
	const struct fill *p = parameter;
	const struct virtual_thread *t = virtual_gpu_thread();
	for (uint64_t i = t->block * t->threads + t->thread; i < p->n; i += t->blocks * t->threads)
		virtual_gpu_store(&p->to[i], &p->value, sizeof p->value);
}

static void
run_wait(const void *parameter)
{
	const struct wait *p = parameter;
	wait_for(p->flag, p->value);
	if (p->to)
		store(p->to, 1);
}

static void
run_token(const void *parameter)
{
	const struct token *p = parameter;
	for (uint64_t i = p->me; i <= p->turns; i += 2) {
		wait_for(p->mine, i);
		store(p->theirs, i + 1);
	}
}

static void
run_send(const void *parameter)
{
	const struct send *p = parameter;
	for (uint64_t i = 1; i <= p->rounds; i++) {
		for (int k = 0; k < MESSAGE_WORDS; k++)
			store(&p->to->data[k], i);
		if (p->fences)
			virtual_gpu_fence();
		store(&p->to->flag, i);
		wait_for(p->done, i);
	}
}

static void
run_receive(const void *parameter)
{
	const struct receive *p = parameter;
	uint64_t bad = 0;
	for (uint64_t i = 1; i <= p->rounds; i++) {
		bool whole = true;
		wait_for(&p->from->flag, i);
		if (p->fences)
			virtual_gpu_fence();
		for (int k = 0; k < MESSAGE_WORDS; k++)
			whole = load(&p->from->data[k]) == i && whole;
		bad += !whole;
		store(p->done, i);
	}
	store(p->bad, bad);
}

static void
run_own(const void *parameter)
{
	const struct own *p = parameter;
	uint64_t bad = 0;
	for (uint64_t i = 1; i <= 1000; i++) {
		store(&p->far[i % 7], i);
		uint16_t part;
		virtual_gpu_load((const char *)&p->far[i % 7] + 2, &part, sizeof part);
		bad += load(&p->far[i % 7]) != i || part != (uint16_t)(i >> 16);
	}
	store(p->bad, bad);
}

static void
run_barrier(const void *parameter)
{
	const struct barrier *p = parameter;
	const struct virtual_thread *t = virtual_gpu_thread();
	uint32_t *sum = t->shared, bad = 0;
	for (uint32_t turn = 1; turn <= p->turns; turn++) {
		sum[t->thread] = turn;
		virtual_gpu_barrier_of(0, virtual_gpu_thread()->threads);
		for (unsigned i = 0; i < t->threads; i++)
			bad += sum[i] != turn;
		virtual_gpu_barrier_of(0, virtual_gpu_thread()->threads);
	}
	virtual_gpu_add(p->bad, bad);
}

static void
run_crowd(const void *parameter)
{
	const struct crowd *p = parameter;
	uint64_t n = virtual_gpu_add(p->now, 1) + 1, most;
	virtual_gpu_load(p->most, &most, sizeof most);
	if (n > most)
		virtual_gpu_store(p->most, &n, sizeof n);
	for (uint64_t end = virtual_gpu_time() + p->ns; virtual_gpu_time() < end;)
		virtual_gpu_pause();
	virtual_gpu_add(p->now, UINT64_MAX);
}

static void
run_step(const void *parameter)
{
	const struct step *p = parameter;
	uint64_t value = load(p->at);
	virtual_gpu_pause();
	store(p->at, value + 1);
}

static void
run_touch(const void *parameter)
{
	const struct touch *p = parameter;
	_Alignas(16) char bytes[16] = { 0 };
	if (p->writes)
		virtual_gpu_store(p->at, bytes, p->bytes);
	else
		virtual_gpu_load(p->at, bytes, p->bytes);
}

static void
run_add(const void *parameter)
{
	virtual_gpu_add(((const struct touch *)parameter)->at, 1);
}

static void
run_nothing(const void *parameter)
{
	(void)parameter;
}

const struct virtual_kernel virtual_gpu_kernels[] = {
	{ "fill", sizeof(struct fill), 1024, run_fill },
	{ "wait", sizeof(struct wait), 1024, run_wait },
	{ "token", sizeof(struct token), 1024, run_token },
	{ "send", sizeof(struct send), 1024, run_send },
	{ "receive", sizeof(struct receive), 1024, run_receive },
	{ "own", sizeof(struct own), 1024, run_own },
	{ "barrier", sizeof(struct barrier), 512, run_barrier },
	{ "crowd", sizeof(struct crowd), 1024, run_crowd },
	{ "step", sizeof(struct step), 1024, run_step },
	{ "touch", sizeof(struct touch), 1024, run_touch },
	{ "add", sizeof(struct touch), 1024, run_add },
	{ "nothing", 0, 1024, run_nothing },
	{ "most", 4096, 1024, run_nothing },
	{ "more", 4097, 1024, run_nothing },
	{ NULL, 0, 0, NULL },
};
