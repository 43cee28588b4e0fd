#include "bootstrap/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = (int)sizeof ((struct rank_status *)0)->text };

static const char *
text_of(const struct witness *w)
{
	return w->status.text;
}

/* ---- ranks that do not answer ---- */

static bool
blame_silent(const struct witness *w, int n, struct verdict *out)
{
	int first = -1, more = 0;
	for (int r = 0; r < n; r++) {
		if (!w[r].silent || w[r].left)
			continue;
		if (first >= 0)
			more++;
		else
			first = r;
	}
	if (first < 0)
		return false;
	out->code = blinkTimeout;
	out->culprit = first;
	if (more)
		snprintf(out->text, sizeof out->text, "rank %d and %d more do not answer: stopped, or cut off", first,
		    more);
	else
		snprintf(out->text, sizeof out->text, "rank %d does not answer: stopped, or cut off", first);
	return true;
}

/* ---- ranks that accept no connections ---- */

static bool
blame_short(const struct witness *w, int n, struct verdict *out)
{
	char room[64];
	int r = 0;
	while (r < n && (w[r].left || w[r].silent || !w[r].status.shortage || w[r].status.shortage == EUSERS))
		r++;
	if (r == n)
		return false;
	out->code = blinkRemoteError;
	out->culprit = r;
	snprintf(out->text, sizeof out->text, "rank %d cannot accept connections: %s", r,
	    strerror_r(w[r].status.shortage, room, sizeof room));
	return true;
}

/* ---- ranks whose call differs from others' call of the same number ---- */

/* What a rank called as that number; 0: not known. */
static uint64_t
signature_in(const struct witness *w, uint64_t call)
{
	if (w->left || w->silent || call == 0)
		return 0;
	return call == w->status.calls ? w->status.signature : call + 1 == w->status.calls ? w->status.before : 0;
}

static int
how_many_agree(const struct witness *w, int n, uint64_t signature, uint64_t call)
{
	int count = 0;
	for (int r = 0; r < n; r++)
		count += signature_in(&w[r], call) == signature;
	return count;
}

/* The first rank that called something else as that number; n: none. */
static int
first_other(const struct witness *w, int n, uint64_t signature, uint64_t call)
{
	int r = 0;
	while (r < n && (signature_in(&w[r], call) == 0 || signature_in(&w[r], call) == signature))
		r++;
	return r;
}

/* "allreduce of ...", if the rank is still in that call. */
static void
say_call(const struct witness *w, int rank, uint64_t call, char *out, size_t room)
{
	bool known = w[rank].status.calls == call;
	snprintf(out, room, "rank %d called %.*s as call %llu", rank, TEXT_MOST,
	    known ? text_of(&w[rank]) : "something else", (unsigned long long)call);
}

/* Of the ranks that do not all agree on call number `call`: the one of the smallest camp that has the lowest number is
 * to blame, unless all camps are of one size; then the lowest number. */
static void
blame_different(const struct witness *w, int n, uint64_t call, struct verdict *out)
{
	int culprit = -1, most = -1, most_agree = 0, least_agree = n + 1;
	char first[200], second[200];
	for (int r = 0; r < n; r++) {
		uint64_t signature = signature_in(&w[r], call);
		if (signature == 0)
			continue;
		int agree = how_many_agree(w, n, signature, call);
		if (agree > most_agree) {
			most_agree = agree;
			most = r;
		}
		if (agree < least_agree) {
			least_agree = agree;
			culprit = r;
		}
	}
	if (least_agree == most_agree)
		most = first_other(w, n, signature_in(&w[culprit], call), call);
	out->code = blinkMismatch;
	out->culprit = culprit;
	say_call(w, culprit, call, first, sizeof first);
	say_call(w, most, call, second, sizeof second);
	snprintf(out->text, sizeof out->text, "%s; %s", first, second);
}

/* The lowest number of a call on which ranks differ; 0: none. Ranks are few calls apart, mostly none, so that most
 * comparisons are with the rank before. */
static uint64_t
call_in_dispute(const struct witness *w, int n)
{
	uint64_t lowest = 0;
	for (int r = 0; r < n; r++) {
		for (uint64_t call = w[r].status.calls; call > 0 && call + 1 >= w[r].status.calls; call--) {
			uint64_t signature = signature_in(&w[r], call);
			bool same = r > 0 && signature_in(&w[r - 1], call) == signature;
			if (signature && !same && (!lowest || call < lowest) && first_other(w, n, signature, call) < n)
				lowest = call;
		}
	}
	return lowest;
}

/* ---- ranks that are in no call ---- */

/* "call 17 (allreduce of ...)", the text being that of a rank that is in it. */
static const char *
call_text(const struct witness *w, int n, uint64_t call, char *out, size_t room)
{
	int r = 0;
	while (r < n && (w[r].left || w[r].silent || w[r].status.calls != call || !w[r].status.text[0]))
		r++;
	if (r < n)
		snprintf(out, room, "call %llu (%.*s)", (unsigned long long)call, TEXT_MOST, text_of(&w[r]));
	else
		snprintf(out, room, "call %llu", (unsigned long long)call);
	return out;
}

static bool
blame_absent(const struct witness *w, int n, bool left, struct verdict *out)
{
	uint64_t most = 0;
	int culprit = -1;
	for (int r = 0; r < n; r++)
		if (!w[r].left && w[r].status.in_call && w[r].status.calls > most)
			most = w[r].status.calls;
	for (int r = 0; r < n; r++)
		if (w[r].left == left && !w[r].status.in_call && w[r].status.calls < most &&
		    (culprit < 0 || w[r].status.calls < w[culprit].status.calls))
			culprit = r;
	if (culprit < 0)
		return false;
	char call[160];
	unsigned long long made = w[culprit].status.calls;
	call_text(w, n, made + 1, call, sizeof call);
	out->code = left ? blinkRemoteError : blinkTimeout;
	out->culprit = culprit;
	if (left)
		snprintf(out->text, sizeof out->text, "rank %d has left after %llu calls, without %s", culprit, made,
		    call);
	else
		snprintf(out->text, sizeof out->text, "rank %d has not made %s yet; it has made %llu", culprit, call,
		    made);
	return true;
}

/* ---- ranks that wait for each other ---- */

static int
next_in_chain(const struct witness *w, int n, int r)
{
	int next = w[r].status.awaits;
	return !w[r].left && w[r].status.in_call && next >= 0 && next < n && next != r ? next : -1;
}

/* The last of the chain, and the one before it. In a ring of ranks that wait for each other: the lowest of the ring. */
static int
end_of_chain(const struct witness *w, int n, int from, int *before)
{
	int r = from, next;
	*before = -1;
	for (int step = 0; step <= n && (next = next_in_chain(w, n, r)) >= 0; step++) {
		*before = r;
		r = next;
	}
	if (next_in_chain(w, n, r) < 0)
		return r;
	int lowest = r;
	for (int i = next_in_chain(w, n, r), last = r; i != -1; last = i, i = next_in_chain(w, n, i)) {
		if (i <= lowest) {
			lowest = i;
			*before = last;
		}
		if (i == r)
			break;
	}
	return lowest;
}

/* One that is in no call although it has made as many, where nobody says whom he waits for. */
static int
first_outside(const struct witness *w, int n)
{
	int r = 0;
	while (r < n && (w[r].left || w[r].status.in_call))
		r++;
	return r < n ? r : -1;
}

/* The lowest rank that waits for `rank`; -1: none does. */
static int
first_waiting(const struct witness *w, int n, int rank)
{
	int r = 0;
	while (r < n && next_in_chain(w, n, r) != rank)
		r++;
	return r < n ? r : -1;
}

static void
blame_last(const struct witness *w, int n, int stuck, struct verdict *out)
{
	int before, last = end_of_chain(w, n, stuck, &before);
	if (last == stuck && before < 0 && first_outside(w, n) >= 0)
		last = first_outside(w, n);
	if (before < 0)
		before = first_waiting(w, n, last);
	const struct rank_status *s = &w[last].status;
	char call[160], waits[40] = "";
	if (before >= 0)
		snprintf(waits, sizeof waits, "; rank %d waits for it", before);
	out->code = w[last].left ? blinkRemoteError : blinkTimeout;
	out->culprit = last;
	if (w[last].left)
		snprintf(out->text, sizeof out->text, "rank %d has left after %llu calls%s", last,
		    (unsigned long long)s->calls, waits);
	else if (!s->in_call)
		snprintf(out->text, sizeof out->text, "rank %d is in no call; it has made %llu%s", last,
		    (unsigned long long)s->calls, waits);
	else if (next_in_chain(w, n, last) >= 0)
		snprintf(out->text, sizeof out->text, "rank %d waits in %s for rank %d%s", last,
		    call_text(w, n, s->calls, call, sizeof call), s->awaits, waits);
	else
		snprintf(out->text, sizeof out->text, "rank %d makes no progress in %s%s", last,
		    call_text(w, n, s->calls, call, sizeof call), waits);
}

/* Strangers may be why others are late. */
static void
add_crowd(const struct witness *w, int n, struct verdict *out)
{
	int r = 0;
	size_t used = strlen(out->text);
	while (r < n && (w[r].left || w[r].silent || w[r].status.shortage != EUSERS))
		r++;
	if (r < n)
		snprintf(out->text + used, sizeof out->text - used, "; strangers crowd the port of rank %d", r);
}

static void
blame(const struct witness *w, int n, int stuck, struct verdict *out)
{
	if (blame_silent(w, n, out) || blame_short(w, n, out))
		return;
	uint64_t disputed = call_in_dispute(w, n);
	if (disputed)
		blame_different(w, n, disputed, out);
	else if (!blame_absent(w, n, true, out) && !blame_absent(w, n, false, out))
		blame_last(w, n, stuck, out);
}

void
verdict_find(const struct witness *w, int n, int stuck, struct verdict *out)
{
	blame(w, n, stuck, out);
	add_crowd(w, n, out);
}
