"""Simulated times of plans of MSCCL++, by a plain simulator of its own.

  times BLINKC FILE JOB OPTION...   blinkc simulate FILE OPTION... --format json, JOB a schedule whose links are the
                                    same: each time is within a millionth of the one computed here

Threadblocks, proxies and ports are coroutines, each of which says what it waits for. Rates are fractions and nothing is
rounded, so that times differ by the program's rounding alone.
"""
import json
import subprocess
import sys
from fractions import Fraction

import peers

PAIRS = {'put', 'pws', 'pwsf', 'get', 'ppkt'}
PACKETS_AFTER_FIRST = {'repkt', 'recpkt', 'respkt', 'recspkt'}
ADDING = {'re', 'res', 'rre', 'rres'} | PACKETS_AFTER_FIRST


class Flow:
    def __init__(self, path, left, packets=False):
        self.path, self.left, self.packets = path, Fraction(left), packets


class Simulator(peers.Simulator):
    def __init__(self, plan, links, p, m):
        self.plan, self.links, self.p = plan, links, p
        self.gpus, self.n = plan['gpus'], len(plan['gpus'])
        self.packets = plan['protocol'] == 'LL'
        first, coll = self.gpus[0], plan['collective']
        self.chunk = -(-m // (first['output_chunks'] if coll in ('allgather', 'gather') else first['input_chunks']))
        self.now, self.flows, self.arrivals = Fraction(0), [], {}
        self.events, self.written, self.free, self.round = [], {}, {}, {}
        self.last = Fraction(0)
        self.proxy = [[] for _ in self.gpus]
        self.port, self.unsent = {}, {}
        for r, g in enumerate(self.gpus):
            for k, s in enumerate(g.get('semaphores', [])):
                self.free[r, k] = s['init_value']
        self.tasks = [self.block(r, t) for r, g in enumerate(self.gpus) for t in g['threadblocks']]
        self.tasks += [self.serve_proxy(r) for r in range(self.n)]
        self.tasks += [self.serve_port(r, k) for r in range(self.n) for k in range(len(self.peers(r, 'port')))]

    # ---- the plan ----

    def peers(self, r, kind):
        return [p for c in self.gpus[r]['channels'] if c['channel_type'] == kind for p in c['connected_to']]

    def other_end(self, r, kind, k):
        mine = self.peers(r, kind)
        nth = mine[:k].count(mine[k])
        return mine[k], [i for i, p in enumerate(self.peers(mine[k], kind)) if p == r][nth]

    def channels(self, tb, op):
        ids = [i for c in tb['channels'] if c['channel_type'] == op['channel_type'] for i in c['channel_ids']]
        return [ids[k] for k in op['channel_ids']]

    def group(self, r, tb, buff):
        ids = [i for c in tb['channels'] if c['channel_type'] == 'switch' for i in c['channel_ids']]
        groups = [g['ranks'] for c in self.gpus[r]['channels'] if c['channel_type'] == 'switch'
                  for g in c['rank_groups']]
        return groups[ids[buff['switch_channel_id']]]

    def ranks(self, r, tb, op, buff):
        """The GPUs of a range."""
        if 'switch_channel_id' in buff:
            return self.group(r, tb, buff)
        if 'buffer_id' in buff:
            ids = [i for c in tb['remote_buffer_refs'] if c['access_channel_type'] == op['channel_type']
                   for i in c['remote_buffer_ids']]
            return [self.gpus[r]['remote_buffers'][ids[buff['buffer_id']]]['rank']]
        return [r]

    def is_packet(self, op, side, k):
        name = op['name']
        if name == 'ppkt':
            return side == 'dst' or op['channel_type'] == 'port'
        return name in ('rppkt', 'gstorepkt') or (name, side) in (('cpkt', 'dst'), ('upkt', 'src')) \
            or (name in PACKETS_AFTER_FIRST and k > 0)

    def span(self, op, buff):
        parts, own = (op['tbg_info']['tbg_size'], op['tbg_info']['tb_id']) if 'tbg_info' in op else (1, 0)
        first = buff['index'] + Fraction(buff['size'] * own, parts)
        return first, first + Fraction(buff['size'], parts)

    def transfers(self, r, tb, op):
        """(path, reads?, packets?, span, GPUs to which packets go) of each range that is not here."""
        out = []
        for side, ranges in (('src', op.get('src_buff', [])), ('dst', op.get('dst_buff', []))):
            for k, buff in enumerate(ranges):
                ranks, packet = self.ranks(r, tb, op, buff), self.is_packet(op, side, k)
                others = [x for x in ranks if x != r]
                ways = [peers.way(self.links, self.n, *((x, r) if side == 'src' else (r, x))) for x in others]
                if side == 'dst' and packet or others:
                    out.append((ways, side == 'src', packet, self.span(op, buff), ranks))
        return out

    # ---- quantities ----

    def latency(self, path, packets):
        total = sum(Fraction(str(self.links[i].get('latency') or self.p['latency'][self.links[i]['class']])) * 10**6
                    for i in path)
        return total * Fraction(self.p['packet_hop'], 10**6) if packets else total

    def adding_time(self, op, size, paths):
        n = len(op['src_buff']) - 1
        if op['name'] not in ADDING or n < 1:
            return Fraction(0)
        plain = Fraction(str(self.p['reduce'])) * 10**9 / 10**12
        rates = [self.rate(i) * self.p['reduce_by_link'] / 10**6 for path in paths for i in path]
        rates = [rate for rate in rates if rate]
        return self.us('reduce_step') + max(size * n / plain if plain else 0, size / min(rates) if rates else 0)

    # ---- what waits ----

    def after(self, time):
        end = self.now + time
        self.events.append(end)
        return lambda: self.now >= end

    def send(self, r, kind, k, time):
        peer, other = self.other_end(r, kind, k)
        self.arrivals.setdefault((kind, peer, other), []).append(self.now + time)
        self.events.append(self.now + time)

    def taken(self, key):
        here = [t for t in self.arrivals.get(key, []) if t <= self.now]
        return bool(here)

    def take(self, key):
        self.arrivals[key].remove(min(self.arrivals[key]))

    def packets_here(self, r, op):
        for k, buff in enumerate(op.get('src_buff', [])):
            if not self.is_packet(op, 'src', k):
                continue
            lo, hi = self.span(op, buff)
            have = sum(max(0, min(hi, b) - max(lo, a)) for a, b, t, _ in self.written.get(r, []) if t <= self.now)
            if have < hi - lo:
                return False
        return True

    def feeders(self, r, op):
        """Ways by which the packets that it reads came."""
        out = []
        for k, buff in enumerate(op.get('src_buff', [])):
            lo, hi = self.span(op, buff)
            if self.is_packet(op, 'src', k):
                out += [path for a, b, _, path in self.written.get(r, []) if a < hi and lo < b]
        return out

    # ---- coroutines ----

    def write_packets(self, transfer, time):
        ways, _, _, (lo, hi), ranks = transfer
        for rank in ranks:
            self.written.setdefault(rank, []).append((lo, hi, self.now + time, [i for w in ways for i in w]))
        self.events.append(self.now + time)

    def data(self, r, tb, op, size):
        reads = [t for t in self.transfers(r, tb, op) if t[1]]
        all_of = self.transfers(r, tb, op)
        linked = [t for t in all_of if t[0]]
        pulls = op['name'] in ('rre', 'rres')
        if not pulls:
            add = self.adding_time(op, size, self.feeders(r, op))
            if add:
                yield self.after(add)
        packets = any(t[2] for t in linked)
        start = self.us('packet_step' if packets else 'step') if linked else 0
        if start:
            yield self.after(start)
        flows = [(Flow(sorted({i for w in t[0] for i in w}), size * (2 if t[2] else 1)), t) for t in linked]
        self.flows += [f for f, _ in flows]
        waiting = list(flows)
        until = []
        while waiting:
            yield lambda: any(f.left == 0 for f, _ in waiting)
            for f, t in [x for x in waiting if x[0].left == 0]:
                waiting = [x for x in waiting if x[0] is not f]
                time = self.latency(t[0][0], t[2])
                self.last = max(self.last, self.now + time)
                if t[1]:
                    until.append(self.after(time))
                elif t[2]:
                    self.write_packets(t, time)
        if until:
            yield lambda: all(u() for u in until)
        if pulls:
            add = self.adding_time(op, size, [w for t in reads for w in t[0]])
            if add:
                yield self.after(add)
        for t in all_of:
            if not t[0]:
                self.write_packets(t, Fraction(0))

    def tell(self, r, k, request):
        self.proxy[r].append((k, request))
        self.unsent[r, k] = self.unsent.get((r, k), 0) + 1

    def serve_proxy(self, r):
        while True:
            yield lambda: self.proxy[r]
            yield self.after(self.us('step'))
            k, request = self.proxy[r].pop(0)
            self.port.setdefault((r, k), []).append(request)

    def serve_port(self, r, k):
        own = r, k
        way = peers.way(self.links, self.n, r, self.peers(r, 'port')[k])
        while True:
            yield lambda: self.port.get(own)
            transfer, size, signals = self.port[own].pop(0)
            if transfer:
                flow = Flow(transfer[0][0], size * (2 if transfer[2] else 1))
                self.flows.append(flow)
                yield lambda f=flow: f.left == 0
                self.last = max(self.last, self.now + self.latency(way, False))
                if transfer[2]:
                    self.write_packets(transfer, self.latency(way, False))
            self.unsent[own] -= 1
            if signals:
                self.send(r, 'port', k, self.latency(way, False))

    def op(self, r, tb, op, size):
        name = op['name']
        if name in ('signal', 'rlxsignal'):
            for k in self.channels(tb, op):
                if op['channel_type'] == 'port':
                    self.tell(r, k, (None, 0, True))
                else:
                    peer = self.peers(r, 'memory')[k]
                    self.send(r, 'memory', k, self.latency(peers.way(self.links, self.n, r, peer), name[0] == 'r'))
        elif name in ('wait', 'rlxwait'):
            keys = [(op['channel_type'], r, k) for k in self.channels(tb, op)]
            yield lambda: all(self.taken(key) for key in keys)
            for key in keys:
                self.take(key)
        elif name == 'sem_acquire':
            yield lambda: all(self.free[r, k] > 0 for k in op['semaphore_ids'])
            for k in op['semaphore_ids']:
                self.free[r, k] -= 1
        elif name == 'sem_release':
            for k in op['semaphore_ids']:
                self.free[r, k] += 1
        elif name == 'barrier':
            key = r, op['barrier_id']
            own = self.round[key] = self.round.get(key, 0) + 1
            goal = -(-own // op['num_threadblocks']) * op['num_threadblocks']
            yield lambda: self.round[key] >= goal
        elif name == 'flush':
            ports = self.channels(tb, op)[:len(op.get('dst_buff', []))]
            yield lambda: not any(self.unsent.get((r, k)) for k in ports)
        elif name != 'nop':
            yield lambda: self.packets_here(r, op)
            if op.get('channel_type') == 'port':
                for k, transfer in zip(self.channels(tb, op), [t for t in self.transfers(r, tb, op) if not t[1]]):
                    self.tell(r, k, (transfer, size, name in ('pws', 'pwsf')))
                if name == 'pwsf':
                    yield lambda: not any(self.unsent[r, k] for k in self.channels(tb, op))
            else:
                yield from self.data(r, tb, op, size)

    def block(self, r, tb):
        yield self.after(self.us('call'))
        for op in tb['ops']:
            if op['name'] == 'pipeline':
                unit, all_of = op['iter_context']['unit_size'], op['iter_context']['num_chunks'] * self.chunk
                for first in range(0, all_of, unit):
                    for inner in op['ops']:
                        yield from self.op(r, tb, inner, min(unit, all_of - first))
                continue
            size = op['src_buff'][0]['size'] * self.chunk if op.get('src_buff') else 0
            if 'tbg_info' in op:
                size = -(-size // op['tbg_info']['tbg_size'])
            yield from self.op(r, tb, op, size)

    def time(self):
        waits = [[task, None] for task in self.tasks]
        while True:
            moved = True
            while moved:
                moved = False
                for w in waits:
                    if w[0] is not None and (w[1] is None or w[1]()):
                        w[1] = next(w[0], False)
                        w[0] = None if w[1] is False else w[0]
                        moved = True
            self.flows = [f for f in self.flows if f.left > 0]
            speed = self.speeds(self.flows) if self.flows else {}
            self.events = [t for t in self.events if t > self.now]
            ends = self.events + [self.now + f.left / speed[id(f)] for f in self.flows]
            if not ends:
                assert all(w[0] is None for w in waits[:sum(len(g['threadblocks']) for g in self.gpus)])
                return max(self.now, self.last)
            then = min(ends)
            for f in self.flows:
                f.left -= (then - self.now) * speed[id(f)]
            self.now = then


def simulated(blinkc, path, options):
    return json.loads(subprocess.run([blinkc, 'simulate', path, *options, '--format', 'json'], check=True,
                                     stdout=subprocess.PIPE).stdout)


def times(blinkc, path, job, options):
    out = simulated(blinkc, path, options)
    with open(job, encoding='utf-8') as file:
        links = json.load(file)['topology']['links']
    with open(path, encoding='utf-8') as file:
        plan = json.load(file)
    for row in out['sizes']:
        want = Simulator(plan, links, out['parameters'], row['bytes']).time()
        if abs(row['time_ps'] - want) > want / 10**6:
            print(f"{path}: {row['bytes']} bytes: {row['time_ps']} ps, want {float(want):.0f}")
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(times(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]))
