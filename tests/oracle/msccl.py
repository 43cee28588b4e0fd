"""Algorithms of MSCCL, executed on integers by interpreters that choose at random what goes on next.

  run SEED FILE...            what each does: "FILE: right", "FILE: hang" or "FILE: wrong"; "differs" if runs do not
  agree
  mutants SEED N FILE DIR     N files, each FILE with one change
  broken FILE DIR             for each rule a file RULE.N.xml that breaks it; FILE: an allreduce over 4 GPUs or more
  judge SEED DIR OUT          OUT: what blinkc check printed about the files in DIR; what it says must be so

It shares no code with the program, and knows the format by its description alone.
"""
import copy
import os
import random
import re
import sys
import xml.etree.ElementTree as ET

SENDS = {'s', 'rcs', 'rrs', 'rrcs'}
RECEIVES = {'r', 'rcs', 'rrc', 'rrs', 'rrcs'}


class Gpu:
    def __init__(self, el):
        self.el = el
        self.tbs = sorted(el.findall('tb'), key=lambda t: int(t.get('id')))


class Interpreter:
    """One execution of all GPUs with connections of `slots` chunks."""

    def __init__(self, algo, rng, slots, in_place):
        self.algo, self.rng, self.slots, self.in_place = algo, rng, slots, in_place
        self.n = int(algo.get('ngpus'))
        self.coll = algo.get('coll').replace('_', '')
        self.chunks = int(algo.get('nchunksperloop'))
        self.gpus = [Gpu(g) for g in sorted(algo.findall('gpu'), key=lambda g: int(g.get('id')))]
        most = max(int(g.el.get(a)) for g in self.gpus for a in ('i_chunks', 'o_chunks'))
        whole = self.coll in ('allreduce', 'reduce', 'broadcast')
        one_block = self.coll in ('gather', 'scatter') and most > self.chunks
        self.block = self.chunks if whole or one_block else self.chunks // self.n
        self.memory = [self.make_memory(r) for r in range(self.n)]
        self.initial = [[self.get(r, 'i', c) for c in range(self.size('i'))] for r in range(self.n)]
        self.state = {}
        self.queue = {}
        for r, gpu in enumerate(self.gpus):
            for t, tb in enumerate(gpu.tbs):
                steps = [dict(s.attrib) for s in tb.findall('step')]
                self.state[r, t] = {'steps': steps, 'at': 0, 'unit': 0, 'send': int(tb.get('send')),
                                    'recv': int(tb.get('recv')), 'chan': int(tb.get('chan'))}

    def size(self, buffer):
        many = self.coll == 'alltoall' or (self.coll in ('allgather', 'gather') and buffer == 'o') \
            or (self.coll in ('reducescatter', 'scatter') and buffer == 'i')
        return self.block * (self.n if many else 1)

    def place(self, r, buffer, c):
        """In place one of the two buffers lies inside the other."""
        el = self.gpus[r].el
        if buffer == 's' or not self.in_place:
            return buffer, c
        if self.coll in ('allgather', 'gather'):
            if self.coll == 'gather' and int(el.get('o_chunks')) == 0:
                return buffer, c
            return 'm', c + (r * self.block if buffer == 'i' else 0)
        if self.coll in ('reducescatter', 'scatter'):
            if self.coll == 'scatter' and int(el.get('i_chunks')) == 0:
                return buffer, c
            return 'm', c + (r * self.block if buffer == 'o' else 0)
        return 'm', c

    def make_memory(self, r):
        self.memory = [{}] * self.n
        cells = {}
        for c in range(self.size('i')):
            cells[self.place(r, 'i', c)] = self.rng.getrandbits(40)
        return cells

    def get(self, r, buffer, c):
        return self.memory[r].get(self.place(r, buffer, c))

    def ready(self, key):
        st = self.state[key]
        if st['at'] == len(st['steps']):
            return False
        s = st['steps'][st['at']]
        r, t = key
        if int(s['depid']) >= 0 and self.state[r, int(s['depid'])]['at'] <= int(s['deps']):
            return False
        if s['type'] in RECEIVES and not self.queue.get((st['recv'], r, st['chan'])):
            return False
        return not (s['type'] in SENDS and len(self.queue.get((r, st['send'], st['chan']), [])) >= self.slots)

    def act(self, key):
        st = self.state[key]
        s, u, r = st['steps'][st['at']], st['unit'], key[0]
        kind = s['type']
        src = (s['srcbuf'], int(s['srcoff']) + u)
        dst = (s['dstbuf'], int(s['dstoff']) + u)
        value = self.queue[st['recv'], r, st['chan']].pop(0) if kind in RECEIVES else None
        if kind in ('s', 'cpy', 're'):
            value = self.get(r, *src)
        elif kind in ('rrc', 'rrs', 'rrcs'):
            other = self.get(r, *src)
            value = None if value is None or other is None else value + other
        if kind == 're':
            other = self.get(r, *dst)
            value = None if value is None or other is None else value + other
        if kind in ('r', 'rcs', 'rrc', 'rrcs', 'cpy', 're'):
            self.memory[r][self.place(r, *dst)] = value
        if kind in SENDS:
            self.queue.setdefault((r, st['send'], st['chan']), []).append(value)
        st['unit'] += 1
        if kind == 'nop' or st['unit'] == int(s['cnt']):
            st['at'] += 1
            st['unit'] = 0

    def run(self):
        """True: all steps have ended."""
        while True:
            able = [k for k in self.state if self.ready(k)]
            if not able:
                return all(st['at'] == len(st['steps']) for st in self.state.values())
            key = self.rng.choice(able)
            # Several chunks of one threadblock at once, now and then: fast ones run ahead.
            for _ in range(self.rng.choice((1, 1, 4, 100))):
                if not self.ready(key):
                    break
                self.act(key)

    def want(self, r, c, root):
        b = self.block
        if self.coll == 'allreduce' or (self.coll == 'reduce' and r == root):
            return sum(i[c] for i in self.initial)
        if self.coll == 'broadcast':
            return self.initial[root][c]
        if self.coll == 'allgather' or (self.coll == 'gather' and r == root):
            return self.initial[c // b][c % b]
        if self.coll == 'reducescatter':
            return sum(i[r * b + c] for i in self.initial)
        if self.coll == 'scatter':
            return self.initial[root][r * b + c]
        if self.coll == 'alltoall':
            return self.initial[c // b][r * b + c % b]
        return None

    def right(self):
        for root in range(self.n):
            wants = [(r, c, self.want(r, c, root)) for r in range(self.n) for c in range(self.size('o'))]
            if all(w is None or self.get(r, 'o', c) == w for r, c, w in wants):
                return True
        return False


def places(algo):
    inside = algo.get('inplace') == '1'
    outside = algo.get('outofplace') == '1' if algo.get('outofplace') else not inside
    return [p for p, there in ((False, outside), (True, inside)) if there]


def behaviour(algo, rng, slots, runs):
    seen = set()
    for p in places(algo):
        for _ in range(runs):
            it = Interpreter(algo, rng, rng.choice(slots), p)
            seen.add(('right' if it.right() else 'wrong') if it.run() else 'hang')
    return seen


def mutate(algo, rng):
    """One change that keeps the rules: what comes of it only a run can tell."""
    steps = [(g, t, s) for g in algo.findall('gpu') for t in g.findall('tb') for s in t.findall('step')]
    for _ in range(100):
        g, t, s = rng.choice(steps)
        kind = rng.randrange(6)
        own = list(t.findall('step'))
        if kind == 0 and s.get('depid') != '-1':
            s.set('depid', '-1')
            s.set('deps', '-1')
        elif kind == 1 and s.get('type') == 'rrc':
            s.set('type', 'r')
        elif kind == 2 and len(own) > 1:
            a, b = rng.sample(own, 2)
            for k in ('srcoff', 'dstoff', 'srcbuf', 'dstbuf'):
                x, y = a.get(k), b.get(k)
                a.set(k, y)
                b.set(k, x)
        elif kind == 3 and s.get('dstbuf') != 's':
            k = rng.choice(('srcoff', 'dstoff'))
            buffer = s.get('srcbuf' if k == 'srcoff' else 'dstbuf')
            room = int(g.get(buffer + '_chunks')) - int(s.get('cnt'))
            if room < 1:
                continue
            s.set(k, str(rng.randint(0, room)))
        elif kind == 4:
            other = rng.choice(g.findall('tb'))
            target = rng.choice(other.findall('step'))
            if other is t:
                continue
            s.set('depid', other.get('id'))
            s.set('deps', target.get('s'))
            target.set('hasdep', '1')
        elif kind == 5 and s.get('type') == 's' and s.get('srcbuf') == 'o' and g.get('i_chunks') == g.get('o_chunks'):
            s.set('srcbuf', 'i')
        else:
            continue
        return


def write(algo, path):
    ET.indent(algo)
    ET.ElementTree(algo).write(path)


def read(path):
    return ET.parse(path).getroot()


# ---- a file for each rule ----

def step(number, kind, src='i 0', dst='o 0', cnt=1, dep=(-1, -1), has=0):
    return ET.Element('step', s=str(number), type=kind, srcbuf=src[0], srcoff=src[2:], dstbuf=dst[0], dstoff=dst[2:],
                      cnt=str(cnt), depid=str(dep[0]), deps=str(dep[1]), hasdep=str(has))


def two_gpus(blocks, chunks=1, coll='allreduce', place=('0', '1'), scratch=0):
    """blocks[gpu]: (send, recv, steps) of each threadblock."""
    algo = ET.Element('algo', name='two', proto='Simple', nchannels='2', nchunksperloop=str(chunks),
                      ngpus='2', coll=coll,
                      inplace=place[0], outofplace=place[1], minBytes='0', maxBytes='0')
    for g, tbs in enumerate(blocks):
        gpu = ET.SubElement(algo, 'gpu', id=str(g), i_chunks=str(chunks), o_chunks=str(chunks), s_chunks=str(scratch))
        for t, (send, recv, steps) in enumerate(tbs):
            tb = ET.SubElement(gpu, 'tb', id=str(t), send=str(send), recv=str(recv), chan='0')
            tb.extend(steps)
    return algo


def exchange(first):
    """Both send before they receive, or receive first: in one threadblock of each."""
    def tb(peer):
        both = [('s', 'i 0'), ('rrc', 'i 0')]
        if first == 'r':
            both.reverse()
        return [(peer, peer, [step(i, k, s) for i, (k, s) in enumerate(both)])]
    return two_gpus([tb(1), tb(0)])


def own_twice():
    """Both add their own chunk once more to the sum."""
    def tb(peer):
        return [(peer, peer, [step(0, 's', 'i 0'), step(1, 'rrc', 'i 0'), step(2, 're', 'i 0', 'o 0')])]
    return two_gpus([tb(1), tb(0)])


def sends_ahead(n):
    """n messages each way before the first is received."""
    def tb(peer):
        return [(peer, peer, [step(c, 's', 'i %d' % c) for c in range(n)] +
                 [step(n + c, 'rrc', 'i %d' % c, 'o %d' % c) for c in range(n)])]
    return two_gpus([tb(1), tb(0)], n)


def relay(ordered):
    """GPU 0 has a copy that another threadblock waits for, or not."""
    dep = (1, 0) if ordered else (-1, -1)

    def tbs(peer):
        return [(peer, peer, [step(0, 's', 's 0', 's 0', dep=dep), step(1, 'rrc', 'i 0')]),
                (-1, -1, [step(0, 'cpy', 'i 0', 's 0', has=1)])]
    return two_gpus([tbs(1), tbs(0)], scratch=1)


def chain_of_nops():
    """A step that waits for two others, by a nop."""
    def tbs(peer):
        return [(-1, -1, [step(0, 'cpy', 'i 0', 's 0', has=1)]), (-1, -1, [step(0, 'cpy', 'i 1', 's 1', has=1)]),
                (peer, peer, [step(0, 'nop', dep=(0, 0)), step(1, 's', 's 0', 's 0', 2, dep=(1, 0)),
                              step(2, 'rrc', 'i 0', 'o 0', 2)])]
    return two_gpus([tbs(1), tbs(0)], 2, scratch=2)


def break_rules(base):
    """Pairs of a rule and a file that breaks it, and no other."""
    def change(find, **values):
        algo = copy.deepcopy(base)
        el = find(algo)
        for k, v in values.items():
            if v is None:
                del el.attrib[k]
            else:
                el.set(k, v)
        return algo

    def top(a):
        return a

    def gpu(a):
        return a.findall('gpu')[1]

    def tb(a):
        return gpu(a).findall('tb')[1]

    def any_step(kind, dep=False):
        return lambda a: [s for s in a.iter('step') if s.get('type') == kind and (not dep or s.get('depid') != '-1')][0]

    n = int(base.get('ngpus'))
    for name in ('proto', 'nchannels', 'nchunksperloop', 'ngpus', 'coll', 'inplace'):
        yield 'attributes', change(top, **{name: None})
    for name in ('id', 'i_chunks', 'o_chunks', 's_chunks'):
        yield 'attributes', change(gpu, **{name: None})
    for name in ('id', 'send', 'recv', 'chan'):
        yield 'attributes', change(tb, **{name: None})
    for name in base.find('.//step').keys():
        yield 'attributes', change(any_step('s'), **{name: None})
    yield 'gpu-ids', change(gpu, id='0')
    yield 'gpu-ids', change(gpu, id=str(n))
    yield 'gpu-ids', change(top, ngpus=str(n + 1), nchunksperloop=base.get('nchunksperloop'))
    yield 'tb-ids', change(tb, id='0')
    yield 'tb-ids', change(tb, id='100')
    yield 'tb-ids', change(tb, id='-1')
    yield 'channel', change(top, nchannels='0')
    yield 'channel', change(top, nchannels='33')
    yield 'channel', change(tb, chan='32')
    yield 'channel', change(tb, chan='-1')
    yield 'peer', change(lambda a: [t for t in gpu(a) if t.get('send') != '-1'][0], send='1')
    yield 'peer', change(lambda a: [t for t in gpu(a) if t.get('send') != '-1'][0], send=str(n))
    yield 'peer', change(lambda a: [t for t in gpu(a) if t.get('recv') != '-1'][0], recv='-1')
    twin = copy.deepcopy(base)
    blocks = gpu(twin).findall('tb')
    first = [t for t in blocks if t.get('send') != '-1'][0]
    ET.SubElement(gpu(twin), 'tb', id=str(len(blocks)), send=first.get('send'), recv='-1', chan=first.get('chan'))
    yield 'connection', twin
    fewer = copy.deepcopy(base)
    sender = [t for t in gpu(fewer) if t.get('send') != '-1'][0]
    sender.remove(sender.findall('step')[-1])
    yield 'messages', fewer
    yield 'messages', change(any_step('r'), cnt='1' if any_step('r')(base).get('cnt') != '1' else '2', dstoff='0')
    yield 'step-number', change(any_step('r'), s='7')
    yield 'count', change(any_step('s'), cnt='0')
    yield 'count', change(any_step('s'), cnt='72')
    yield 'chunks', change(gpu, i_chunks=str(int(gpu(base).get('i_chunks')) + 1))
    yield 'chunks', change(top, nchunksperloop='0')
    yield 'offset', change(any_step('s'), srcoff=gpu(base).get('i_chunks'))
    yield 'offset', change(any_step('s'), srcoff='-1')
    yield 'dependency', change(any_step('s', True), depid='128')
    yield 'dependency', change(any_step('s', True), depid='-2')
    yield 'dependency', change(any_step('s', True), deps='60')
    yield 'dependency', change(any_step('s', True), deps='-1')
    waiter = any_step('s', True)(base)
    owner = [g for g in base.findall('gpu') if waiter in list(g.iter('step'))][0].get('id')
    yield 'hasdep', change(lambda a: [g for g in a.findall('gpu') if g.get('id') == owner][0].findall('tb')[
        int(waiter.get('depid'))].findall('step')[int(waiter.get('deps'))], hasdep='0')
    nops = chain_of_nops()
    nops.find('.//step[@type="nop"]').set('depid', '-1')
    yield 'nop', nops
    nops = chain_of_nops()
    nops.find('.//step[@type="s"]').set('depid', '-1')
    yield 'nop', nops
    nops = chain_of_nops()
    for t in nops.findall('.//tb'):
        if t.find('step[@type="nop"]') is not None:
            t.append(step(3, 'nop', dep=(0, 0)))
    yield 'nop', nops
    yield 'place', change(top, inplace='0', outofplace='0')
    yield 'deadlock', exchange('r')
    yield 'deadlock', sends_ahead(3)
    yield 'race', relay(False)
    yield 'result', own_twice()
    yield 'result', change(any_step('rrc'), type='r')
    yield 'result', change(any_step('rrc'), srcbuf='s', srcoff='0') if int(gpu(base).get('s_chunks')) else change(
        any_step('s'), srcbuf='o')
    for name in ('outofplace', 'minBytes', 'maxBytes'):
        yield 'lint-sizes', change(top, **{name: None})
    scatter = two_gpus([[(1, 1, [step(0, 's', 'i 1', cnt=1), step(1, 'rrc', 'i 0', 'o 0')])],
                        [(0, 0, [step(0, 's', 'i 0', cnt=1), step(1, 'rrc', 'i 1', 'o 0')])]], 2, 'reduce_scatter')
    for g in scatter:
        g.set('o_chunks', '1')
    yield 'lint-collective', scatter
    yield 'lint-protocol', change(top, proto='simple')
    yield 'lint-one-slot', sends_ahead(2)
    many = exchange('s')
    block = ET.SubElement(many[0], 'tb', id='1', send='-1', recv='-1', chan='1')
    block.extend(step(i, 'cpy', 'i 0', 's 0') for i in range(65))
    many[0].set('s_chunks', '1')
    yield 'lint-steps', many
    crowd = exchange('s')
    for t in range(1, 65):
        ET.SubElement(crowd[0], 'tb', id=str(t), send='-1', recv='-1', chan='1')
    yield 'lint-threadblocks', crowd
    crowd = exchange('s')
    for t in range(1, 64):
        block = ET.SubElement(crowd[0], 'tb', id=str(t), send='-1', recv='-1', chan='1')
        block.extend(step(i, 'cpy', 'i 0', 's %d' % t) for i in range(64))
    crowd[0].set('s_chunks', '64')
    yield 'lint-nodes', crowd
    into = exchange('s')
    for s in into.iter('step'):
        if s.get('type') == 'rrc':
            s.set('dstbuf', 'i')
    for g in into:
        g[0].append(step(2, 'cpy', 'i 0', 'o 0'))
    yield 'lint-input', into
    bc = two_gpus([[(1, -1, [step(0, 's', 'i 0')]), (-1, -1, [step(0, 'cpy', 'i 0', 'o 0')])],
                   [(-1, 0, [step(0, 'r')])]], coll='broadcast')
    yield 'lint-root', bc


def right_files():
    yield 'exchange', exchange('s')
    yield 'ahead', sends_ahead(2)
    yield 'relay', relay(True)
    yield 'nops', chain_of_nops()


def main():
    command = sys.argv[1]
    if command == 'run':
        rng = random.Random(int(sys.argv[2]))
        for path in sys.argv[3:]:
            seen = behaviour(read(path), rng, (1, 2, 8), 2)
            print('%s: %s' % (path, seen.pop() if len(seen) == 1 else 'differs'))
    elif command == 'mutants':
        rng, n, base, into = random.Random(int(sys.argv[2])), int(sys.argv[3]), read(sys.argv[4]), sys.argv[5]
        for i in range(n):
            algo = copy.deepcopy(base)
            mutate(algo, rng)
            write(algo, os.path.join(into, '%03d.xml' % i))
    elif command == 'broken':
        count = {}
        for rule, algo in break_rules(read(sys.argv[2])):
            count[rule] = count.get(rule, 0) + 1
            write(algo, os.path.join(sys.argv[3], '%s.%d.xml' % (rule, count[rule])))
        for name, algo in right_files():
            write(algo, os.path.join(sys.argv[3], 'right.%s.xml' % name))
    elif command == 'judge':
        rng, into, counts = random.Random(int(sys.argv[2])), sys.argv[3], {}
        text = open(sys.argv[4]).read()
        for name in sorted(os.listdir(into)):
            line = re.search(r'%s:(.*)' % re.escape(os.path.join(into, name)), text)
            said = re.search(r': (valid|deadlock|race|result|[a-z-]+):?',
                             ':' + line.group(1)).group(1) if line else 'nothing'
            counts[said] = counts.get(said, 0) + 1
            want = {'valid': {'right'}, 'deadlock': {'hang'}, 'result': {'wrong'}}.get(said)
            if said not in ('valid', 'deadlock', 'race', 'result'):
                print('%s: %s' % (name, line.group(0) if line else 'nothing was said'))
            elif want and behaviour(read(os.path.join(into, name)), rng, (2,), 3) - want:
                # Of two places only one may be wrong.
                if said == 'valid' or not behaviour(read(os.path.join(into, name)), rng, (2,), 3) & want:
                    print('%s: said to be %s' % (name, said))
        print('judged', ' '.join('%s=%d' % c for c in sorted(counts.items())), file=sys.stderr)


main()
