/* The calls of tests/bench/peers.c by oneCCL: prints the collective, bytes, and us of a call until all have it.
 *
 *	peers_ccl RANKS SMALLEST LARGEST [COLLECTIVE] */
#include "peers.h"

#include <oneapi/ccl.hpp>

#include <chrono>
#include <cstdio>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
	pthread_barrier_t barrier;
	ccl::kvs::address_type address;
	double began[64], ended[64];
};

struct side {
	int rank, n;
	char *send, *recv;
	ccl::communicator *comm;
	shared *s;
};

static double
now()
{
	return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void
call(side &me, int coll, size_t bytes)
{
	size_t part = bytes / (size_t)me.n;
	const auto type = ccl::datatype::float32, byte = ccl::datatype::int8;
	const auto sum = ccl::reduction::sum;
	std::vector<size_t> parts((size_t)me.n, part);
	switch (coll) {
	case ALLREDUCE:
		ccl::allreduce(me.send, me.recv, bytes / 4, type, sum, *me.comm).wait();
		break;
	case ALLGATHER:
		ccl::allgatherv(me.send, part, me.recv, parts, byte, *me.comm).wait();
		break;
	case BROADCAST:
		ccl::broadcast(me.recv, bytes, byte, 0, *me.comm).wait();
		break;
	case REDUCE:
		ccl::reduce(me.send, me.recv, bytes / 4, type, sum, 0, *me.comm).wait();
		break;
	case REDUCESCATTER:
		ccl::reduce_scatter(me.send, me.recv, part / 4, type, sum, *me.comm).wait();
		break;
	default:
		ccl::alltoall(me.send, me.recv, part, byte, *me.comm).wait();
	}
}

static double
measure(side &me, int coll, size_t bytes)
{
	double rounds[ROUNDS + 1];
	int k = repeats(bytes);
	for (int round = 0; round <= ROUNDS; round++) {
		pthread_barrier_wait(&me.s->barrier);
		me.s->began[me.rank] = now();
		for (int i = 0; i < k; i++)
			call(me, coll, bytes);
		me.s->ended[me.rank] = now();
		pthread_barrier_wait(&me.s->barrier);
		double first = me.s->began[0], last = me.s->ended[0];
		for (int r = 1; r < me.n; r++) {
			first = std::min(first, me.s->began[r]);
			last = std::max(last, me.s->ended[r]);
		}
		rounds[round] = (last - first) / k;
	}
	return median(rounds + 1, ROUNDS);
}

int
main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2, rank = 0, only = argc > 4 ? coll_of(argv[4]) : -1;
	size_t smallest = argc > 2 ? (size_t)atol(argv[2]) : 0, largest = argc > 3 ? (size_t)atol(argv[3]) : 1 << 20;
	void *memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || n > 64)
		return 1;
	shared *s = new (memory) shared;
	pthread_barrierattr_t attr;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&s->barrier, &attr, (unsigned)n);
	while (rank + 1 < n && fork() == 0)
		rank++;
	ccl::init();
	std::shared_ptr<ccl::kvs> kvs;
	if (rank == 0) {
		kvs = ccl::create_main_kvs();
		s->address = kvs->get_address();
	}
	pthread_barrier_wait(&s->barrier);
	if (rank != 0)
		kvs = ccl::create_kvs(s->address);
	ccl::communicator comm = ccl::create_communicator(n, rank, kvs);
	side me = { rank, n, (char *)aligned_alloc(64, largest), (char *)aligned_alloc(64, largest), &comm, s };
	memset(me.send, 1, largest);
	memset(me.recv, 1, largest);
	for (int i = 0; i < N_SIZES; i++) {
		for (int c = 0; c <= ALLTOALL; c++) {
			if (sizes[i] < smallest || sizes[i] > largest || (only >= 0 && c != only)
			    || !has_blocks(c, sizes[i], n))
				continue;
			double us = measure(me, c, sizes[i]);
			if (rank == 0) {
				printf("%s %zu %.3f\n", coll_names[c], sizes[i], us);
				fflush(stdout);
			}
		}
	}
	while (wait(nullptr) > 0)
		;
	_exit(0);
}
