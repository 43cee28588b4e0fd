/* Who is to blame when a rank waits too long: from what all ranks say that they are doing. */
#ifndef BLINK_VERDICT_H
#define BLINK_VERDICT_H

#include "bootstrap/bootstrap.h"

struct witness {
	struct rank_status status;	/* of one that has left: `calls` alone */
	bool silent;			/* has not answered */
	bool left;			/* has said farewell */
};

struct verdict {
	int code, culprit;
	char text[504];
};

/* In this order, of several ranks the one with the lowest number:
 *
 *	silent				blinkTimeout	"rank 3 does not answer: stopped, or cut off"
 *	accepts no connections		blinkRemoteError "rank 3 cannot accept connections: Too many open files"
 *	differs from the majority in	blinkMismatch	"rank 3 called ... as call 17; rank 0 called ..."
 *	the call of the same number
 *	has left before a call		blinkRemoteError "rank 3 has left after 16 calls, without call 17 (...)"
 *	is in no call, and has made	blinkTimeout	"rank 3 has not made call 17 (...) yet; it has made 16"
 *	fewer
 *	the end of the chain of those	blinkTimeout	"rank 3 makes no progress in call 17 (...); rank 2 waits for it"
 *	who wait for each other, from
 *	`stuck` on */
void verdict_find(const struct witness *w, int n, int stuck, struct verdict *out);

#endif
