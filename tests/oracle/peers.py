"""Simulated times of algorithms of MSCCL, by a plain simulator of its own.

  times BLINKC FILE JOB OPTION...   blinkc simulate FILE OPTION... --format json, JOB a schedule whose links are the
  same:
                                    each time is within a millionth of the one computed here
  chain DIR JOB N                   DIR/chain.xml: N messages from GPU 0 along the links of JOB to GPU 1, 2 and so on
  relays SEED DIR                   DIR/relays.xml: an alltoall over 4 GPUs with steps of all lengths, in a random order

Rates are fractions and nothing is rounded, so that times differ by the program's rounding alone.
"""
import json
import random
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import deque
from fractions import Fraction

SENDS = {'s', 'rcs', 'rrs', 'rrcs'}
RECEIVES = {'r', 'rcs', 'rrc', 'rrs', 'rrcs'}
REDUCES = {'rrc', 'rrs', 'rrcs'}
SLICE = {'Simple': 2 << 20, 'LL': 32 << 10, 'LL128': 576000}
SLOTS = {'Simple': 2, 'LL': 8, 'LL128': 8}


def way(links, n, src, dst):
    """Fewest links, through no other GPU."""
    came, queue = {src: None}, deque([src])
    while queue:
        v = queue.popleft()
        if v == dst:
            break
        if v != src and isinstance(v, int):
            continue
        for i, link in enumerate(links):
            if link['from'] == v and link['to'] not in came:
                came[link['to']] = i
                queue.append(link['to'])
    path = []
    while dst != src:
        path.insert(0, came[dst])
        dst = links[came[dst]]['from']
    return path


class Block:
    def __init__(self, gpu, tb):
        self.gpu, self.send, self.recv, self.chan = gpu, int(tb.get('send')), int(tb.get('recv')), int(tb.get('chan'))
        self.id = int(tb.get('id'))
        self.steps = [dict(s.attrib, cnt=int(s.get('cnt'))) for s in tb.findall('step')]
        self.slice = self.at = self.part = 0
        self.phase, self.left = 'wait', None        # left: time, or bytes while it moves
        self.sent = self.taken = 0                  # of the messages that it sends
        self.arrivals = []                          # times at which they are there


class Simulator:
    def __init__(self, algo, links, p, m, chunk):
        self.p, self.proto = p, algo.get('proto')
        self.links, self.n = links, int(algo.get('ngpus'))
        coll = algo.get('coll').replace('_', '')
        gpus = sorted(algo.findall('gpu'), key=lambda g: int(g.get('id')))
        chunks = int(algo.get('nchunksperloop'))
        if coll in ('gather', 'scatter') and max(int(g.get(a)) for g in gpus
                                                 for a in ('i_chunks', 'o_chunks')) > chunks:
            chunks *= self.n
        self.chunk = -(-m // chunks)
        self.most = chunk or SLICE[self.proto]
        self.slice = min(self.chunk, self.most)
        self.slices = -(-self.chunk // self.slice)
        self.together = self.most // self.slice
        self.blocks = [Block(int(g.get('id')), t) for g in gpus
                       for t in sorted(g.findall('tb'), key=lambda t: int(t.get('id')))]
        self.by_id = {(b.gpu, b.id): b for b in self.blocks}
        for b in self.blocks:
            b.source = next((o for o in self.blocks if o.send == b.gpu and o.gpu == b.recv and o.chan == b.chan), None)
            b.target = next((o for o in self.blocks if o.recv == b.gpu and o.gpu == b.send and o.chan == b.chan), None)
            if b.target:
                b.path = way(links, self.n, b.gpu, b.send)
                there = [s['type'] in REDUCES for s in b.target.steps if s['type'] in RECEIVES]
                mine = [s for s in b.steps if s['type'] in SENDS]
                for s, reduces in zip(mine, there):
                    s['adds'] = reduces
        self.packets = self.proto != 'Simple'

    def us(self, name):
        return Fraction(str(self.p[name])) * 10**6

    def bytes(self, b):
        size = min(self.slice, self.chunk - b.slice * self.slice)
        return size * min(self.together, b.steps[b.at]['cnt'] - b.part * self.together)

    def adding(self, n, path=()):
        """Of what came over these links."""
        rates = [Fraction(str(self.p['reduce'])) * 10**9 / 10**12]
        rates += [self.rate(i) * self.p['reduce_by_link'] / 10**6 for i in path]
        rates = [rate for rate in rates if rate]
        return n / min(rates) if rates else 0

    def rate(self, i):
        link = self.links[i]
        return Fraction(str(link['capacity'])) * 10**9 * Fraction(str(self.p['efficiency'][link['class']])) / 10**12

    def latency(self, b):
        total = Fraction(0)
        for i in b.path:
            link = self.links[i]
            total += Fraction(str(link.get('latency') or self.p['latency'][link['class']])) * 10**6
        return total * Fraction(self.p['packet_hop'], 10**6) if self.packets else total

    def done(self, b):
        return b.slice == self.slices or not b.steps

    def ready(self, b, now):
        s = b.steps[b.at]
        if int(s['depid']) >= 0 and b.part == 0:
            on = self.by_id[b.gpu, int(s['depid'])]
            if (on.slice, on.at) <= (b.slice, int(s['deps'])):
                return False
        if s['type'] in RECEIVES and not any(t <= now for t in b.source.arrivals[b.source.taken:b.source.taken + 1]):
            return False
        return s['type'] not in SENDS or b.sent - b.taken < SLOTS[self.proto]

    def advance(self, b, now):
        """The next phase of a message, after the current one: of no length, or (phase, length)."""
        s, n = b.steps[b.at], self.bytes(b)
        kind = s['type']
        order = ['wait', 'add', 'start', 'move', 'add there', 'end']
        while True:
            b.phase = order[order.index(b.phase) + 1]
            length = 0
            if b.phase == 'add' and (kind == 're' or (kind in REDUCES and not self.p['fused'])):
                length = self.us('reduce_step') + self.adding(n)
            elif b.phase == 'start' and kind in SENDS:
                b.sent += 1
                length = self.us('packet_step' if self.packets else 'step')
            elif b.phase == 'move' and kind in SENDS:
                length = Fraction(n * {'Simple': 1, 'LL': 2}.get(self.proto, 1)
                                  + (-(-n // 15) if self.proto == 'LL128' else 0))
            elif b.phase == 'add there' and kind in SENDS and s['adds'] and self.p['fused']:
                length = self.adding(n, b.path)
            elif b.phase == 'end':
                if kind in SENDS:
                    b.arrivals.append(now + self.latency(b))
                if kind in RECEIVES:
                    b.source.taken += 1
                b.phase = 'wait'
                b.part += 1
                if kind == 'nop' or b.part == -(-s['cnt'] // self.together):
                    b.part, b.at = 0, b.at + 1
                    if b.at == len(b.steps):
                        b.at, b.slice = 0, b.slice + 1
                return
            if length:
                b.left = length
                return

    def speeds(self, moving):
        """All rise together, until a link is full and stops those on it."""
        speed, paths = {}, {id(b): set(b.path) for b in moving}
        left = {i: self.rate(i) for path in paths.values() for i in path}
        while len(speed) < len(moving):
            on = {i: [b for b in moving if id(b) not in speed and i in paths[id(b)]] for i in left}
            lowest = min(left[i] / len(on[i]) for i in left if on[i])
            full = [i for i in left if on[i] and left[i] / len(on[i]) == lowest]
            for b in {id(b): b for i in full for b in on[i]}.values():
                speed[id(b)] = lowest
                for i in paths[id(b)]:
                    left[i] -= lowest
        return speed

    def time(self):
        now = self.us('call')
        while True:
            moved = True
            while moved:
                moved = False
                for b in self.blocks:
                    while b.phase == 'wait' and not self.done(b) and self.ready(b, now):
                        self.advance(b, now)
                        moved = True
            busy = [b for b in self.blocks if b.phase != 'wait']
            speed = {id(b): 1 for b in busy} | self.speeds([b for b in busy if b.phase == 'move'])
            ends = [now + b.left / speed[id(b)] for b in busy]
            ends += [t for b in self.blocks for t in b.arrivals[b.taken:] if t > now]
            if not ends:
                assert all(self.done(b) for b in self.blocks)
                return max([now] + [b.arrivals[-1] for b in self.blocks if b.arrivals])
            then = min(ends)
            for b, end in zip(busy, ends):
                b.left -= (then - now) * speed[id(b)]
            now = then
            for b in busy:
                if b.left == 0:
                    self.advance(b, now)


def times(blinkc, path, job, options):
    out = json.loads(subprocess.run([blinkc, 'simulate', path, *options, '--format', 'json'], check=True,
                                    stdout=subprocess.PIPE).stdout)
    chunk = options[options.index('--chunk') + 1] if '--chunk' in options else None
    links = json.load(open(job))['topology']['links']
    for row in out['sizes']:
        size = int(chunk[:-1]) << 10 if chunk else None
        want = Simulator(ET.parse(path).getroot(), links, out['parameters'], row['bytes'], size).time()
        if abs(row['time_ps'] - want) > want / 10**6:
            print(f"{path}: {row['bytes']} bytes: {row['time_ps']} ps, want {float(want):.0f}")
            return 1
    return 0


def step(number, kind, buffer, offset, cnt=1, dep=(-1, -1), has=0):
    return ET.Element('step', s=str(number), type=kind, srcbuf=buffer, srcoff=str(offset), dstbuf=buffer,
                      dstoff=str(offset),
                      cnt=str(cnt), depid=str(dep[0]), deps=str(dep[1]), hasdep=str(has))


def head(name, proto, chunks, n, coll):
    return ET.Element('algo', name=name, proto=proto, nchannels='1', nchunksperloop=str(chunks),
                      ngpus=str(n), coll=coll,
                      inplace='0', outofplace='1', minBytes='0', maxBytes='0')


def chain(where, job, n):
    """A broadcast of n chunks, each of which a GPU forwards with one step."""
    ranks = len(json.load(open(job))['topology']['ranks'])
    for proto in SLICE:
        algo = head('chain', proto, n, ranks, 'broadcast')
        for g in range(ranks):
            gpu = ET.SubElement(algo, 'gpu', id=str(g), i_chunks=str(n), o_chunks=str(n), s_chunks='0')
            tb = ET.SubElement(gpu, 'tb', id='0', send=str(g + 1 if g + 1 < ranks else -1), recv=str(g - 1), chan='0')
            kind = 's' if g == 0 else 'rcs' if g + 1 < ranks else 'r'
            tb.extend(step(c, kind, 'o' if g else 'i', c) for c in range(n))
            if g == 0:
                own = ET.SubElement(gpu, 'tb', id='1', send='-1', recv='-1', chan='0')
                copy = step(0, 'cpy', 'i', 0, n)
                copy.set('dstbuf', 'o')
                own.append(copy)
        ET.ElementTree(algo).write(f'{where}/chain.{proto}.xml')


def relays(seed, where):
    """Blocks of 3 chunks, in one or two steps, through rank 0 where both others are not it."""
    rng = random.Random(seed)
    n, k = 4, 3
    algo = head('relays', 'Simple', n * k, n, 'alltoall')
    blocks = {}

    def put(g, peer, kind, *args, **more):
        key = (g, peer, kind == 's')
        own = blocks.setdefault(key, [])
        own.append(step(len(own), kind, *args, **more))
        return key, len(own) - 1
    hops, waits, scratch = [], [], 0
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    rng.shuffle(pairs)
    for a, b in pairs:
        cut = rng.choice([(0, 3), (0, 1, 3), (0, 2, 3)])
        for lo, hi in zip(cut, cut[1:]):
            hops.append((a, b, lo, hi - lo))
    for a, b, lo, cnt in hops:
        if a and b:
            put(a, 0, 's', 'i', b * k + lo, cnt)
            got = put(0, a, 'r', 's', scratch, cnt, has=1)
            waits.append((put(0, b, 's', 's', scratch, cnt), got))
            put(b, 0, 'r', 'o', a * k + lo, cnt)
            scratch += cnt
        else:
            put(a, b, 's', 'i', b * k + lo, cnt)
            put(b, a, 'r', 'o', a * k + lo, cnt)
    for g in range(n):
        gpu = ET.SubElement(algo, 'gpu', id=str(g), i_chunks=str(n * k), o_chunks=str(n * k),
                            s_chunks=str(0 if g else scratch))
        own = sorted(key for key in blocks if key[0] == g)
        for (key, i), (on, j) in (w for w in waits if w[0][0][0] == g):
            blocks[key][i].set('depid', str(own.index(on)))
            blocks[key][i].set('deps', str(j))
        for t, key in enumerate(own):
            tb = ET.SubElement(gpu, 'tb', id=str(t), send=str(key[1] if key[2] else -1),
                               recv=str(-1 if key[2] else key[1]),
                               chan='0')
            tb.extend(blocks[key])
        tb = ET.SubElement(gpu, 'tb', id=str(len(own)), send='-1', recv='-1', chan='0')
        copy = step(0, 'cpy', 'i', g * k, k)
        copy.set('dstbuf', 'o')
        tb.append(copy)
    ET.ElementTree(algo).write(f'{where}/relays.xml')


if __name__ == '__main__':
    if sys.argv[1] == 'times':
        sys.exit(times(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]))
    elif sys.argv[1] == 'chain':
        chain(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        relays(int(sys.argv[2]), sys.argv[3])
