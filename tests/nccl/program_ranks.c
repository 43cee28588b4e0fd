/* Ranks: results, devices, buffers, threads and processes. */
#include "blink_program.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

const struct driver *driver;
int n_ranks;
int n_servers = 1;
static int number;

void
ok(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++number, what);
	fflush(stdout);
}

bool
fine(ncclResult_t result, const char *what)
{
	if (result == ncclSuccess)
		return true;
	printf("# %s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
	return false;
}

int
n_cases(void)
{
	return number;
}

/* ---- devices ---- */

bool
use_device(int device)
{
	CUdevice handle;
	CUcontext context;
	return !driver || (driver->device_get(&handle, device) == CUDA_SUCCESS &&
	    driver->primary_retain(&context, handle) == CUDA_SUCCESS && driver->context_set(context) == CUDA_SUCCESS);
}

static CUstream
new_stream(void)
{
	CUstream stream = NULL;
	if (driver && driver->stream_create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
		abort();
	return stream;
}

bool
finish(CUstream stream)
{
	return !driver || driver->stream_synchronize(stream) == CUDA_SUCCESS;
}

void
copy(void *to, const void *from, size_t bytes)
{
	if (!driver)
		memcpy(to, from, bytes);
	else if (driver->copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes) != CUDA_SUCCESS)
		abort();
}

/* ---- buffers ---- */

float
value(int rank, size_t i)
{
	return (float)((rank + 1) * 3 + (int)(i % 7));
}

bool
open_buffers(struct rank *r)
{
	float *host = malloc(sizeof *host * COUNT * (size_t)n_ranks);
	r->stream = new_stream();
	if (!TRY_NCCL(ncclMemAlloc((void **)&r->send, sizeof *r->send * COUNT * (size_t)n_ranks)) ||
	    !TRY_NCCL(ncclMemAlloc((void **)&r->recv, sizeof *r->recv * COUNT * (size_t)n_ranks)))
		return false;
	for (size_t i = 0; i < COUNT * (size_t)n_ranks; i++)
		host[i] = value(r->number, i);
	copy(r->send, host, sizeof *host * COUNT * (size_t)n_ranks);
	free(host);
	return true;
}

void
close_buffers(struct rank *r)
{
	r->good &= TRY_NCCL(ncclMemFree(r->send)) && TRY_NCCL(ncclMemFree(r->recv));
	if (driver)
		r->good &= driver->stream_destroy(r->stream) == CUDA_SUCCESS;
}

bool
receives(const struct rank *r, size_t count, float (*want)(int rank, size_t i), const char *what)
{
	float *host = malloc(sizeof *host * count);
	bool good = finish(r->stream);
	copy(host, r->recv, sizeof *host * count);
	for (size_t i = 0; i < count && good; i++) {
		good = host[i] == want(r->number, i);
		if (!good)
			printf("# %s: rank %d, element %zu: %g: want %g\n", what, r->number, i, (double)host[i],
			    (double)want(r->number, i));
	}
	free(host);
	return good;
}

float
sum(int rank, size_t i)
{
	float s = 0;
	(void)rank;
	for (int r = 0; r < n_ranks; r++)
		s += value(r, i);
	return s;
}

/* ---- threads and processes ---- */

void
on_threads(struct rank *r, void *(*run)(void *), const char *what)
{
	ncclUniqueId id;
	bool good = TRY_NCCL(ncclGetUniqueId(&id));
	for (int i = 0; i < n_ranks; i++) {
		r[i] = (struct rank){ .number = i, .device = i, .id = id };
		good &= pthread_create(&r[i].thread, NULL, run, &r[i]) == 0;
	}
	for (int i = 0; i < n_ranks; i++) {
		pthread_join(r[i].thread, NULL);
		good &= r[i].good;
	}
	ok(good, what);
}

void
on_processes(struct rank *r, bool (*run)(struct rank *r), int dies, const char *what)
{
	ncclUniqueId *id = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile int *there = (int *)(id + 1);
	bool good = true;
	pid_t child[MOST];
	for (int i = 0; i < n_ranks; i++) {
		child[i] = fork();
		if (child[i] != 0)
			continue;
		if (!getenv("BLINK_BACKEND") || strcmp(getenv("BLINK_BACKEND"), "host") != 0) {
			struct blink_error err = { 0 };
			if (driver_open(&driver, &err) != blinkSuccess)
				_exit(3);
		}
		r[i] = (struct rank){ .number = i, .device = i };
		if (n_servers > 1) {
			char server[32];
			snprintf(server, sizeof server, "server%d", i * n_servers / n_ranks);
			setenv("BLINK_HOST_ID", server, 1);
		}
		if (i == 0) {
			ncclUniqueId made;
			if (!TRY_NCCL(ncclGetUniqueId(&made)))
				_exit(1);
			memcpy(id, &made, sizeof made);
			__atomic_store_n(there, 1, __ATOMIC_RELEASE);
		}
		while (!__atomic_load_n(there, __ATOMIC_ACQUIRE))
			usleep(1000);
		r[i].id = *id;
		exit(run(&r[i]) ? 0 : 1);
	}
	for (int i = 0; i < n_ranks; i++) {
		int status;
		good &= waitpid(child[i], &status, 0) == child[i] && (i == dies ? WIFSIGNALED(status)
		    : WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	munmap(id, 4096);
	ok(good, what);
}
