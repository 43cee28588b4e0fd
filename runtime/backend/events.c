/* What a rank hears, and who hears of it. */
#include "backend/backend.h"
#include "support/clock.h"
#include "support/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
rank_open(struct rank_state *r, struct blink_error *err)
{
	atomic_init(&r->awaits, -1);
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->hear_lock, NULL);
	r->peer = calloc((size_t)r->n_ranks, sizeof *r->peer);
	return r->peer ? blinkSuccess : set_error_memory(err);
}

void
rank_close(struct rank_state *r)
{
	for (int i = 0; i < r->n_ranks && r->peer; i++)
		free(r->peer[i].gone);
	free(r->peer);
}

void
rank_hears(struct rank_state *r, const struct backend *backend, void *of_backend)
{
	pthread_mutex_lock(&r->hear_lock);
	r->backend = backend;
	r->of_backend = of_backend;
	if (backend)
		backend->wake(of_backend);
	pthread_mutex_unlock(&r->hear_lock);
}

static void
wake(struct rank_state *r)
{
	pthread_mutex_lock(&r->hear_lock);
	if (r->backend)
		r->backend->wake(r->of_backend);
	pthread_mutex_unlock(&r->hear_lock);
}

void
rank_fail(struct rank_state *r, int code, const char *text)
{
	pthread_mutex_lock(&r->lock);
	set_error(&r->error, code, "%s", text);
	atomic_store(&r->stop, 1);
	pthread_mutex_unlock(&r->lock);
	wake(r);
}

/* Once the caller sees it, it may leave, and the others would take that for the reason. */
void
rank_fail_here(struct rank_state *r, const struct blink_error *err, int culprit)
{
	r->events.failed(r->events.context, err, culprit);
	rank_fail(r, err->code, err->text);
}

void
rank_error(struct rank_state *r, struct blink_error *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->error;
	pthread_mutex_unlock(&r->lock);
}

void
rank_peer_gone(struct rank_state *r, int peer, const char *reason)
{
	struct rank_peer *p = &r->peer[peer];
	pthread_mutex_lock(&r->lock);
	if (!p->gone && (p->gone = strdup(reason)))
		atomic_store(&p->gone_at, now_ns());
	pthread_mutex_unlock(&r->lock);
	wake(r);
}

void
rank_status_of(struct rank_state *r, struct rank_status *out)
{
	*out = (struct rank_status){ .awaits = -1 };
	snprintf(out->text, sizeof out->text, "no call yet");
	pthread_mutex_lock(&r->hear_lock);
	if (r->backend)
		r->backend->status(r->of_backend, out);
	pthread_mutex_unlock(&r->hear_lock);
	out->shortage = atomic_load(&r->shortage);
}

/* Of a connection that has ended the net's event tells. Without any other message the peer would wait for it in
 * vain. */
void
rank_send(struct rank_state *r, int to, const struct net_message *m, const void *payload)
{
	struct blink_error err = { 0 };
	int code = r->net->send(r->net_handle, to, m, payload);
	if (code == blinkSuccess || code == blinkRemoteError)
		return;
	set_error(&err, code, "a message to rank %d: %s", to, blinkGetErrorString((blinkResult_t)code));
	rank_fail_here(r, &err, -1);
}
