/* Hubs of an allreduce over servers some of which lack rails (unequal.c). Hubs on these enter such servers over other
 * rails, which have less room for copies then, and a copy needs it at both of its ends, on one rail:
 *
 *     16 servers of 18 GPUs on rails, one of which    hubs on rail 0 enter 14 servers over it; one over the 17
 *     lost its NIC on rail 0                          others, where 16 servers enter each other, too
 *
 * So there is a hub for each uplink, as long as it may be where all uplinks of a server keep the same part of their
 * capacity for copies. Trees enter a server over the like uplink, or, divided equally, over all that they share. */
#include "plan/pack/cluster/unequal_pieces.h"

#include <math.h>
#include <string.h>

struct even {
	struct plan *p;
	double *kept, *load, *length;	/* of each uplink, in units of capacity */
	int n_shared, *own, *other;	/* uplinks of two servers that lead to each other */
};

/* What copies need of each uplink of a server, at both ends: it cannot pass on as much over its switch. */
static void
keep_room(struct even *x, const struct cluster_server *server)
{
	const Cluster *c = &x->p->c;
	double room = 0;
	for (int i = 0; i < server->n; i++) {
		int v = c->rank[server->first + i], up = c->up[v], down = c->down[v];
		if (up >= 0)
			room += fmin((double)x->p->topo->link[up].capacity, (double)x->p->topo->link[down].capacity);
	}
	double lack = 2 * (server->n - 1) * frac_double(x->p->rate) - room / (double)c->unit;
	double part = fmin(1, fmax(0, lack) / (double)server->capacity[0]);
	for (int i = server->first_uplink[0]; i < server->first_uplink[0] + server->n_uplinks[0]; i++)
		x->kept[i] = part * (double)c->uplink[0][i].capacity;
}

static void
find_shared(struct even *x, int home, int s)
{
	const struct cluster_server *server = &x->p->c.server[home];
	x->n_shared = 0;
	for (int i = server->first_uplink[0]; i < server->first_uplink[0] + server->n_uplinks[0]; i++) {
		int like = unequal_like_uplink(x->p, i, home, s);
		if (like < 0)
			continue;
		x->own[x->n_shared] = i;
		x->other[x->n_shared++] = like;
	}
}

/* Trees of hubs of server `home` enter server s. */
static void
load_server(struct even *x, int home, int s)
{
	const struct cluster_server *server = &x->p->c.server[home];
	double rest = 0;
	find_shared(x, home, s);
	for (int i = 0; i < server->n_uplinks[0]; i++)
		rest += x->length[server->first_uplink[0] + i];
	for (int k = 0; k < x->n_shared; k++)
		rest -= x->length[x->own[k]];
	for (int k = 0; k < x->n_shared; k++) {
		double load = x->length[x->own[k]] + rest / x->n_shared;
		x->load[x->own[k]] += load;
		x->load[x->other[k]] += load;
	}
}

/* About half of what loads an uplink are trees of its own hub: as in scaling (Sinkhorn 1967). */
static void
even_out(struct even *x)
{
	enum { ROUNDS = 100 };
	const Cluster *c = &x->p->c;
	int n = c->n_uplinks[0];
	for (int w = 0; w < n; w++)
		x->length[w] = ((double)c->uplink[0][w].capacity - x->kept[w]) / (2 * (c->n_servers - 1));
	for (int round = 0; round < ROUNDS; round++) {
		memset(x->load, 0, (size_t)n * sizeof *x->load);
		for (int home = 0; home < c->n_servers; home++)
			for (int s = 0; s < c->n_servers; s++)
				if (s != home)
					load_server(x, home, s);
		for (int w = 0; w < n; w++)
			if (x->load[w] > 0)
				x->length[w] *= sqrt(((double)c->uplink[0][w].capacity - x->kept[w]) / x->load[w]);
	}
}

static Status
new_even(struct plan *p, struct even *out)
{
	int n = p->c.n_uplinks[0];
	*out = (struct even){ .p = p };
	TRY(TEMP_EACH(p->ctx, n, out->kept, out->load, out->length));
	return TEMP_EACH(p->ctx, n, out->own, out->other);
}

Status
unequal_even_lengths(struct plan *p)
{
	const double digits = 1 << 20;
	const Cluster *c = &p->c;
	struct even x;
	double sum = 0;
	TRY(new_even(p, &x));
	TRY(TEMP(p->ctx, p->hub, c->n_uplinks[0]));
	for (int s = 0; s < c->n_servers; s++)
		keep_room(&x, &c->server[s]);
	even_out(&x);
	for (int w = 0; w < c->n_uplinks[0]; w++)
		sum += x.length[w];
	p->n_hubs = 0;
	for (int w = 0; w < c->n_uplinks[0]; w++) {
		int rank = c->uplink[0][w].rank;
		int64_t length = llround(x.length[w] / sum * digits);
		if (length > 0)
			p->hub[p->n_hubs++] = (struct hub){ rank, c->of[rank], w, length };
	}
	return OK;
}

/* Of hubs of one server, from `first` to `end`: those that have no like uplink there go over one shared uplink after
 * the other. *good: false: there are none. */
static Status
enter(struct even *x, int first, int end, int s, bool *good)
{
	struct plan *p = x->p;
	int home = p->hub[first].server, k = -1;
	int64_t rest = 0, left = 0;
	find_shared(x, home, s);
	for (int h = first; h < end; h++)
		rest += unequal_like_uplink(p, p->hub[h].uplink, home, s) < 0 ? p->hub[h].length : 0;
	*good = *good && (rest == 0 || x->n_shared > 0);
	for (int h = first; h < end && *good; h++) {
		const struct hub *hub = &p->hub[h];
		int like = unequal_like_uplink(p, hub->uplink, home, s);
		if (like >= 0)
			TRY(unequal_add_piece(p, h, s, like, hub->uplink, hub->length));
		for (int64_t more = like < 0 ? hub->length : 0, part; more > 0; more -= part, left -= part) {
			if (left == 0) {
				k++;
				left = rest / x->n_shared + (k < rest % x->n_shared);
			}
			part = more < left ? more : left;
			if (part > 0)
				TRY(unequal_add_piece(p, h, s, x->other[k], x->own[k], part));
		}
	}
	return OK;
}

Status
unequal_even_pieces(struct plan *p, bool *good)
{
	struct even x;
	size_t n = (size_t)p->n_hubs * (size_t)p->c.n_servers;
	TRY(new_even(p, &x));
	TRY(TEMP_EACH(p->ctx, n, p->first, p->last));
	memset(p->first, -1, n * sizeof *p->first);
	memset(p->last, -1, n * sizeof *p->last);
	*good = true;
	for (int first = 0, end; first < p->n_hubs; first = end) {
		for (end = first + 1; end < p->n_hubs && p->hub[end].server == p->hub[first].server;)
			end++;
		for (int s = 0; s < p->c.n_servers && *good; s++)
			if (s != p->hub[first].server)
				TRY(enter(&x, first, end, s, good));
	}
	return OK;
}
