/* What the engine does when its net has no memory, and when a peer goes away twice. */
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
	struct peer peer[2] = { 0 };
	struct engine e = { .rank = 0, .n_ranks = 2, .peer = peer, .bell = &bell, .net = &net,
	    .events = { .failed = is_told } };
	const struct net_message m = { 0 };
	struct blink_error err = { 0 };
	ok(engine_open(&e, false, &err) == blinkSuccess, "opened");
	answer = blinkSuccess;
	remote_send(&e, 1, &m, NULL);
	answer = blinkRemoteError;
	remote_send(&e, 1, &m, NULL);
	engine_error(&e, &err);
	ok(err.code == blinkSuccess && told_code == 0,
		"a message is sent; a connection that has ended is told elsewhere");
	answer = blinkOutOfMemory;
	remote_send(&e, 1, &m, NULL);
	engine_error(&e, &err);
	ok(err.code == blinkOutOfMemory && strstr(err.text, "rank 1"), "no memory for a message: the engine fails");
	ok(told_code == blinkOutOfMemory && told_culprit == -1, "and the other ranks are told");
	engine_peer_gone(&e, 1, "first");
	int64_t at = peer[1].gone_at;
	engine_peer_gone(&e, 1, "second");
	ok(at != 0 && peer[1].gone_at == at && strcmp(peer[1].gone, "first") == 0, "the first reason stays");
	engine_close(&e, false);
	return end_tests();
}
