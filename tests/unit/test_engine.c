/* What a rank does when its net has no memory, and when a peer goes away twice; and with numbers that no peer in order
 * would send. */
#include "engine/engine.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

static int told_code, told_culprit, answer;

static int
answers(void *net, int to, const struct net_message *m, const void *payload)
{
	(void)net, (void)to, (void)m, (void)payload;
	return answer;
}

static void
resumed(void *net, int from)
{
	(void)net, (void)from;
}

static void
is_told(void *context, const struct blink_error *err, int culprit)
{
	(void)context;
	told_code = err->code;
	told_culprit = culprit;
}

/* ---- what a peer sends ---- */

enum { SLOTS = 4, SLOT_BYTES = 4096, LANE = 5, COLLECTIVE = 7 };

/* Peer 1 is reached by the net, and sends chunks of one lane; peer 2 is on this server. */
static void
test_places(struct engine *e, struct region_peer *mine)
{
	static struct channel in;
	static char rings[SLOTS * SLOT_BYTES];
	struct peer peer[3] = { { 0 }, { .mine = mine, .in = &in }, { .mine = mine, .theirs = mine, .in = &in } };
	struct mirror mirror = { 1, LANE };
	const struct lanes lanes = { .n_mirrors = 1, .mirror = &mirror };
	const struct net_message chunk = { LANE, 0, FLAG(COLLECTIVE, 2), 0, SLOT_BYTES };
	const struct net_message slot = { NET_CHANNEL, 0, 3, 0, sizeof in.slot[0] };
	struct net_message m = chunk;
	e->peer = peer;
	e->net_lanes = &lanes;
	e->net_collective = COLLECTIVE;
	e->net_slots = SLOTS;
	e->net_slot_bytes = SLOT_BYTES;
	e->mirror = rings;
	ok(remote_place(e, 1, &chunk) == rings + SLOT_BYTES, "the second chunk of a lane has the second slot");
	ok(remote_place(e, 1, &slot) == &in.slot[2], "the third message of a channel the third");
	m.place = 1;
	ok(remote_place(e, 1, &m) == NET_REFUSED, "a place that nobody gave");
	m = chunk, m.bytes++;
	ok(!remote_place(e, 1, &m), "no place for a chunk that is longer than a slot");
	m = slot, m.bytes++;
	ok(!remote_place(e, 1, &m), "nor for a message that is longer than a channel's");
	m = chunk, m.flag = FLAG(COLLECTIVE + 1, 2);
	ok(!remote_place(e, 1, &m), "nor of another call");
	m = chunk, m.lane++;
	ok(!remote_place(e, 1, &m), "nor of a lane that the call has not");
	m = slot, m.flag = 0;
	ok(!remote_place(e, 1, &m), "nor before the first");
	ok(!remote_place(e, 2, &slot), "nor from a peer on this server");
	ok(!remote_place(e, 0, &slot), "nor from one of which nothing is expected");
	e->net_lanes = NULL;
	ok(!remote_place(e, 1, &chunk), "nor without a call");
	e->peer = NULL;
	e->mirror = NULL;
}

static void
test_flags(struct engine *e, struct region_peer *mine, struct region_peer *before)
{
	struct peer peer[2] = { { 0 }, { .mine = mine } };
	struct net_message m = { LANE, 0, FLAG(COLLECTIVE, 1), 3, 0 };
	e->peer = peer;
	remote_arrived(e, 0, &m);
	m.lane = LANES_MAX;
	remote_arrived(e, 1, &m);
	m.lane = NET_DONE | LANES_MAX;
	remote_arrived(e, 1, &m);
	ok(memcmp(mine, before, sizeof *mine) == 0, "flags of lanes that no region has are nobody's");
	m.lane = NET_DONE | LANE;
	remote_arrived(e, 1, &m);
	ok(mine->done[LANE] == m.flag, "those of others are set");
	e->peer = NULL;
}

/* Rank 1 of 4 has blocks for all others, in the order of the schedule 0, 2, 3 and 2 again, and gets one. */
static void
test_order(struct engine *e)
{
	static const struct net_kind net = { .name = "none", .send = answers, .resume = resumed };
	RankLane to[] = { { 0, 0, 0 }, { 2, 0, 1 }, { 3, 0, 2 }, { 2, 1, 3 } }, from = { 0, 0, 0 };
	RankTask task[] = { { .ring = 0, .n_to = 1, .to = &to[0] }, { .ring = -1, .n_from = 1, .from = &from },
		{ .ring = 1, .n_to = 1, .to = &to[1] }, { .ring = 2, .n_to = 1, .to = &to[2] },
		{ .ring = 3, .n_to = 1, .to = &to[3] } };
	static const int want[] = { 2, 4, 3, 0, 1 };
	int peers[] = { 0, 2, 3 };
	RankProgram prog = { .coll = ALLTOALL, .n_ranks = 4, .rank = 1, .n_tasks = 5, .task = task, .n_peers = 3,
		.peer = peers, .lanes_max = 2 };
	struct rank_state self = { .rank = 1, .n_ranks = 4, .net = &net };
	struct peer peer[4] = { { 0 } };
	struct plan plan = { .prog = &prog };
	struct blink_error err = { 0 };
	struct rank_state *before = e->self;
	e->self = &self;
	e->peer = peer;
	ok(plan_connect(e, &plan, &err) == blinkSuccess, "a plan is connected");
	ok(memcmp(plan.lanes->order, want, sizeof want) == 0,
	    "what the next rank gets comes first, and so on around; of one rank in the order of the schedule");
	for (int i = 0; i < 3; i++)
		peer_close(&peer[peers[i]]);
	ctx_free(&plan.ctx);
	e->peer = NULL;
	e->self = before;
}

int
main(void)
{
	static struct region_peer mine, before;
	static const struct net_kind net = { .name = "none", .send = answers };
	struct bell bell = { 0 };
	struct rank_state self = { .rank = 0, .n_ranks = 2, .net = &net, .events = { .failed = is_told } };
	struct engine e = { .self = &self, .bell = &bell };
	const struct net_message m = { 0 };
	struct blink_error err = { 0 };
	ok(rank_open(&self, &err) == blinkSuccess && engine_open(&e, false, &err) == blinkSuccess, "opened");
	rank_hears(&self, &host_backend, &e);
	answer = blinkSuccess;
	rank_send(&self, 1, &m, NULL);
	answer = blinkRemoteError;
	rank_send(&self, 1, &m, NULL);
	rank_error(&self, &err);
	ok(err.code == blinkSuccess && told_code == 0,
		"a message is sent; a connection that has ended is told elsewhere");
	answer = blinkOutOfMemory;
	rank_send(&self, 1, &m, NULL);
	rank_error(&self, &err);
	ok(err.code == blinkOutOfMemory && strstr(err.text, "rank 1"), "no memory for a message: the rank fails");
	ok(told_code == blinkOutOfMemory && told_culprit == -1, "and the other ranks are told");
	rank_peer_gone(&self, 1, "first");
	int64_t at = self.peer[1].gone_at;
	rank_peer_gone(&self, 1, "second");
	ok(at != 0 && self.peer[1].gone_at == at && strcmp(self.peer[1].gone, "first") == 0, "the first reason stays");
	test_places(&e, &mine);
	test_flags(&e, &mine, &before);
	test_order(&e);
	rank_hears(&self, NULL, NULL);
	engine_close(&e);
	rank_close(&self);
	return end_tests();
}
