/* What the files of test_virtual_memory.c share: results, other processes, and what the host does with memory of
 * devices. test_virtual_memory.c has the order of the tests, and the list of roles. */
#ifndef VIRTUAL_MEMORY_H
#define VIRTUAL_MEMORY_H

#include "virtual_gpu/virtual_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { MEMORY = 256 << 20, MIB = 1 << 20, UNIT = 2 << 20, SOCKET = 3 };

#define ILLEGAL CUDA_ERROR_ILLEGAL_ADDRESS
#define INVALID CUDA_ERROR_INVALID_VALUE

/* ---- test_virtual_memory.c ---- */

extern int n_tests;

void ok(bool good, const char *name);

/* Of several cases of one test: says which is wrong. */
bool is(CUresult got, CUresult want, const char *what);
#define IS(call, want) is(call, want, #call)
#define GOOD(call) IS(call, CUDA_SUCCESS)
#define WANT(condition) ((condition) ? true : (printf("# not so: %s\n", #condition), false))

/* This program again, in a role, with one variable of the environment; socket: becomes its SOCKET, or -1. */
pid_t start(const char *role, const char *variable, const char *value, int socket);

/* Its status as waitpid has it, once it has ended; whether it exits with `want`. */
int ended(pid_t child);
bool exits(const char *role, const char *variable, const char *value, int want);

/* ---- memory of devices, by the host: memory.c ---- */

static inline CUdeviceptr
address(const void *at)
{
	return (CUdeviceptr)(uintptr_t)at;
}

static inline void *
pointer(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

/* The host reads and writes memory of devices by copies: 8 bytes. UINT64_MAX: a read that failed. */
CUresult put(CUdeviceptr to, uint64_t value);
uint64_t get(CUdeviceptr from);

CUcontext context(CUdevice device);

/* May a kernel of a device access these bytes? */
CUresult access_by(int device, CUdeviceptr at, size_t bytes, bool writes);

/* ---- functions.c: all functions of the driver ---- */

/* All but those that need no cuInit, without arguments. */
bool all_return(CUresult want);

void test_without_context(void);
void test_requests(void);
void test_environment(void);
void test_fork(void);
bool role_fails_each(void);
bool role_fails_second(void);
bool role_lost(void);
bool role_refused(void);
bool role_works(void);
bool role_touches(void);
bool role_refused_late(void);

/* ---- devices.c: devices and contexts ---- */

void test_devices(void);
void test_names(void);
void test_addresses(void);
void test_contexts(void);
void test_peers(void);
void test_sticky(void);

/* ---- memory.c: memory of devices and of the host ---- */

void test_memory(void);
void test_addresses_of_freed(void);
void test_host(void);
void test_registered(void);
void test_attributes(void);
void test_capture(void);
void test_threads(void);
void test_speed(void);

/* ---- mappings.c: memory that the program maps ---- */

extern const CUmemAllocationProp on_device_1;
CUmemAccessDesc access_of(int device, int flags);

void test_reserve(void);
void test_create(void);
void test_map(void);
void test_random(uint64_t seed);

/* ---- multicast.c: memory of several devices at one address ---- */

void test_multicast(void);
bool role_multicast(void);

/* ---- processes.c: memory of other processes ---- */

void test_processes(void);
void test_visible(void);
bool role_visible(void);
bool role_no_device(void);
bool role_owner(void);

#endif
