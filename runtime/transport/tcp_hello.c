/* The handshake of a connection, after which both ends know that the other belongs to the job.
 *
 *	connects -> accepts	hello: who it is, whom it wants, a random number
 *	connects <- accepts	hello with a random number of its own; a signature of both
 *	connects -> accepts	its signature of both
 *	connects <- accepts	one byte: welcome
 *
 * The signatures say who made them, so none can be sent back to where it came from, and no connection before had the
 * same numbers. Until it has the welcome, the side that connects sends no message, and may try again. */
#include "transport/tcp_inside.h"

#include <string.h>
#include <sys/random.h>

static const char magic[8] = "blinkt1";
static const uint32_t byte_order = 0x01020304;

const char tcp_connects[] = "connects", tcp_accepts[] = "accepts ";

bool
tcp_hello(struct tcp_hello *out, int from, int to, uint32_t way)
{
	*out = (struct tcp_hello){ .order = byte_order, .from = (uint32_t)from, .to = (uint32_t)to, .way = way };
	memcpy(out->magic, magic, sizeof magic);
	return getrandom(out->random, sizeof out->random, 0) == (ssize_t)sizeof out->random;
}

bool
tcp_hello_good(const struct tcp_hello *h)
{
	return memcmp(h->magic, magic, sizeof magic) == 0 && h->order == byte_order;
}

void
tcp_prove(const struct tcp *t, const char *who, const struct tcp_hello *connects, const struct tcp_hello *accepts,
    unsigned char out[TCP_PROOF])
{
	unsigned char text[8 + 2 * sizeof *connects];
	memcpy(text, who, 8);
	memcpy(text + 8, connects, sizeof *connects);
	memcpy(text + 8 + sizeof *connects, accepts, sizeof *accepts);
	t->keys.sign(t->keys.context, text, sizeof text, out);
}

/* Takes the same time wherever they differ. */
bool
tcp_proved(const struct tcp *t, const char *who, const struct tcp_hello *connects, const struct tcp_hello *accepts,
    const unsigned char proof[TCP_PROOF])
{
	unsigned char want[TCP_PROOF], differ = 0;
	tcp_prove(t, who, connects, accepts, want);
	for (int i = 0; i < TCP_PROOF; i++)
		differ |= (unsigned char)(want[i] ^ proof[i]);
	return differ == 0;
}
