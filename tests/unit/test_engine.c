/* What a rank does when its net has no memory, and when a peer goes away twice. */
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
is_told(void *context, const struct blink_error *err, int culprit)
{
	(void)context;
	told_code = err->code;
	told_culprit = culprit;
}

int
main(void)
{
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
	rank_hears(&self, NULL, NULL);
	engine_close(&e);
	rank_close(&self);
	return end_tests();
}
