/* Where the ranks of a job are: their servers, GPUs and machines, as they tell each other first. */
#ifndef BLINK_COMM_PLACES_H
#define BLINK_COMM_PLACES_H

#include "comm/comm.h"

enum { HOST_BYTES = 32, NET_NAME = 16 };

/* What ranks tell each other first. Ranks are on one server if `host` is the same: one kernel, one network
 * namespace. They share memory if they want to, which all of a server have to agree on. */
struct hello {
	unsigned char host[HOST_BYTES];
	int32_t shm;
	int32_t backend;		/* its row */
	int32_t tunes;			/* 1: it searches chunk sizes */
	char gpu[GPU_BYTES];
	char net[NET_NAME];		/* the network between servers */
	char machine[MACHINE_BYTES];
	struct gpu_card card;
};

/* BLINK_HOST_ID; else the kernel's boot id and the network namespace. */
void identify_host(const struct rank_comm *r, unsigned char host[HOST_BYTES]);

/* Servers in the order of their lowest ranks, and the GPUs of all ranks. Fails: blinkMismatch where ranks have other
 * settings. */
int place_ranks(struct rank_comm *r, const struct hello *all, struct blink_error *err);

/* The machines that ranks state, each once, in the order of the ranks. */
int collect_machines(struct rank_comm *r, const struct hello *all, struct blink_error *err);
int collect_cards(struct rank_comm *r, const struct hello *all, struct blink_error *err);

/* Of use only where all ranks know theirs. */
void use_cards(struct rank_comm *r);

#endif
