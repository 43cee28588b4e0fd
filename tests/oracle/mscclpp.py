"""Execution plans of MSCCL++, executed on integers by an interpreter that chooses at random what goes on next.

  run SEED FILE...            what each does: "FILE: right", "FILE: hang" or "FILE: wrong"
  mutants SEED N FILE DIR     N files, each FILE with one change
  broken FILE PORTS DIR       for each rule a file RULE.N.json that breaks it; FILE: an allreduce of a server, PORTS:
                              one of several
  registered DIR RANKS NODE   DIR/register.py, with stubs for MSCCL++'s modules: registers a plan for each range of
                              sizes, and selects that for a message, its mode, RANKS ranks and NODE of a server
  judge SEED DIR OUT          OUT: what blinkc check printed about the files in DIR; what it says must be so

It shares no code with the program. Every thread of a threadblock goes on by itself: element i of a range is of thread
i % THREADS, the k-th channel of a wait or signal of thread k, and only nop and barrier join them. Ports copy when it
pleases them. Each GPU calls the plan three times, with other inputs, and does not wait for other GPUs in between: it
reads its output, writes its input anew, and spoils its output as soon as its own threads have ended.
"""
import copy
import importlib.util
import json
import os
import random
import re
import sys
import types

THREADS, CALLS = 8, 3
PAIRS = {'put', 'pws', 'pwsf', 'get', 'ppkt'}
PUTS = {'put', 'pws', 'pwsf', 'ppkt', 'rppkt'}

class Thread:
    def __init__(self, gpu, tb, tid, ops):
        self.gpu, self.tb, self.tid, self.ops = gpu, tb, tid, ops
        self.at, self.joined = 0, False

class Wrong(Exception):
    pass

class Interpreter:
    def __init__(self, plan, rng):
        self.plan, self.rng = plan, rng
        self.gpus = plan['gpus']
        self.n = len(self.gpus)
        self.coll, self.in_place = plan['collective'], plan['inplace']
        self.packets = plan['protocol'] == 'LL'
        self.unit = 2
        self.reuse = plan.get('reuse_resources', False)
        self.chunk = rng.choice((2, 3, 4)) if not self.reuse else 2 * rng.choice((1, 40))
        self.ring = self.ring_size()
        first = self.gpus[0]
        self.block = first['input_chunks'] // (self.n if self.coll in ('reducescatter', 'scatter', 'alltoall') else 1)
        if first['input_chunks'] == 0:
            self.block = first['output_chunks'] // (self.n if self.coll in ('allgather', 'gather') else 1)
        self.peers = [self.list_peers(g) for g in self.gpus]
        self.groups = [[(c.get('buffer_type', c.get('buff')), group['ranks']) for c in g['channels']
                        if c['channel_type'] == 'switch' for group in c['rank_groups']] for g in self.gpus]
        self.signals = {}
        self.ids, self.resolved = {}, {}    # what channel() and ranges() have found, which no call changes
        self.memory, self.semaphores, self.barriers, self.port = {}, {}, {}, {}
        for r, g in enumerate(self.gpus):
            for k, s in enumerate(g.get('semaphores', [])):
                self.semaphores[r, k] = s['init_value']
        self.calls = [0] * self.n
        self.inputs = [[] for _ in range(self.n)]
        self.threads = {}
        for r in range(self.n):
            self.begin(r)

    def ring_size(self):
        """Elements of a chunk of scratch, where that is reused."""
        units = {o['iter_context']['unit_size'] for g in self.gpus for t in g['threadblocks'] for o in t['ops']
                 if o['name'] == 'pipeline'}
        most = max(g['scratch_chunks'] for g in self.gpus)
        return (1 << 26) // most // max(units) * self.unit if self.reuse and units and most else None

    def list_peers(self, gpu):
        out = {'memory': [], 'port': []}
        for c in gpu['channels']:
            if c['channel_type'] != 'switch':
                out[c['channel_type']] += c['connected_to']
        return out

    def size(self, buffer):
        many = self.coll == 'alltoall' or (self.coll in ('allgather', 'gather') and buffer == 'o') \
            or (self.coll in ('reducescatter', 'scatter') and buffer == 'i')
        return self.block * (self.n if many else 1)

    def place(self, r, buffer, e):
        if buffer == 's' or not self.in_place:
            return r, buffer, e
        inside = r * self.block * self.chunk
        if self.coll in ('allgather', 'gather') and buffer == 'i':
            e += inside
        if self.coll in ('reducescatter', 'scatter') and buffer == 'o':
            e += inside
        return r, 'm', e

    # ---- calls ----

    def begin(self, r):
        """The caller writes its input; what was in its output before is of no use."""
        for e in range(self.size('o') * self.chunk):
            self.memory[self.place(r, 'o', e)] = None
        fresh = [self.rng.getrandbits(40) for _ in range(self.size('i') * self.chunk)]
        for e, value in enumerate(fresh):
            self.memory[self.place(r, 'i', e)] = value
        self.inputs[r].append(fresh)
        self.threads[r] = [Thread(r, t, tid, self.unroll(tb['ops']))
                           for t, tb in enumerate(self.gpus[r]['threadblocks']) for tid in range(THREADS)]

    def unroll(self, ops):
        out = []
        for op in ops:
            if op['name'] != 'pipeline':
                out.append((op, 0, None))
                continue
            context = op['iter_context']
            for i in range(-(-context['num_chunks'] * self.chunk // self.unit)):
                out += [(inner, i * self.unit, self.unit) for inner in op['ops']]
        return out

    def wants(self, r, c, call, root):
        b, ins = self.block * self.chunk, [i[call] for i in self.inputs if len(i) > call]
        if self.coll == 'allreduce' or (self.coll == 'reduce' and r == root):
            return sum(i[c] for i in ins)
        if self.coll == 'broadcast':
            return ins[root][c]
        if self.coll == 'allgather' or (self.coll == 'gather' and r == root):
            return ins[c // b][c % b]
        if self.coll == 'reducescatter':
            return sum(i[r * b + c] for i in ins)
        if self.coll == 'scatter':
            return ins[root][r * b + c]
        if self.coll == 'alltoall':
            return ins[c // b][r * b + c % b]
        return None

    def end(self, r):
        call = self.calls[r]
        self.results.append((r, call, [self.memory.get(self.place(r, 'o', e))
                                       for e in range(self.size('o') * self.chunk)]))
        self.calls[r] += 1
        if self.calls[r] < CALLS:
            self.begin(r)

    # ---- operations ----

    def other_end(self, r, kind, k):
        peer = self.peers[r][kind][k]
        nth = self.peers[r][kind][:k].count(peer)
        return peer, [i for i, p in enumerate(self.peers[peer][kind]) if p == r][nth]

    def channel(self, th, op, k):
        key = th.gpu, th.tb, op['channel_type']
        if key not in self.ids:
            tb = self.gpus[th.gpu]['threadblocks'][th.tb]
            self.ids[key] = [i for c in tb['channels'] if c['channel_type'] == op['channel_type']
                             for i in c['channel_ids']]
        return self.ids[key][op['channel_ids'][k]]

    def targets(self, th, op, buff):
        """(GPU, buffer) of each that a range stands for."""
        tb, gpu = self.gpus[th.gpu]['threadblocks'][th.tb], self.gpus[th.gpu]
        if 'switch_channel_id' in buff:
            ids = [i for c in tb['channels'] if c['channel_type'] == 'switch' for i in c['channel_ids']]
            buffer, ranks = self.groups[th.gpu][ids[buff['switch_channel_id']]]
            return [(r, buffer) for r in ranks]
        if 'buffer_id' in buff:
            ids = [i for c in tb['remote_buffer_refs'] if c['access_channel_type'] == op['channel_type']
                   for i in c['remote_buffer_ids']]
            remote = gpu['remote_buffers'][ids[buff['buffer_id']]]
            return [(remote['rank'], remote['type'])]
        return [(th.gpu, buff['type'])]

    def elements(self, op, buff, offset, unit, buffer):
        """Where a range, or its part or unit, begins, and how long it is."""
        first, n = buff['index'] * self.chunk, buff['size'] * self.chunk
        if buffer == 's' and self.ring:
            first = buff['index'] * self.ring
        if 'tbg_info' in op:
            i, parts = op['tbg_info']['tb_id'], op['tbg_info']['tbg_size']
            edge = [k * (n // parts) + min(k, n % parts) for k in (i, i + 1)]
            first, n = first + edge[0], edge[1] - edge[0]
        if unit is not None:
            first += offset % self.ring if buffer == 's' and self.ring else offset
            n = min(n - offset, unit)
        return first, n

    def packet(self, name, side, k, port):
        if name == 'ppkt':
            return side == 'dst' or port
        return name in ('rppkt', 'gstorepkt') or (name, side) in (('cpkt', 'dst'), ('upkt', 'src')) \
            or (name in ('repkt', 'recpkt', 'respkt', 'recspkt') and k > 0)

    def ranges(self, th, op, side, port=False):
        key = th.gpu, th.tb, id(op), side, port
        if key not in self.resolved:
            self.resolved[key] = [(buff, self.targets(th, op, buff), self.packet(op['name'], side, k, port))
                                  for k, buff in enumerate(op.get(side + '_buff', []))]
        return self.resolved[key]

    def half(self, r):
        """The half of scratch in which the packets of this call lie."""
        return self.calls[r] % 2

    def read(self, th, where, e, packet):
        r, buffer = where
        if packet:
            flag, value = self.memory.get((r, 'p%d' % self.half(th.gpu), e), (0, None))
            return (flag == self.calls[th.gpu] + 1), value
        return True, self.memory.get(self.place(r, buffer, e))

    def write(self, th, where, e, packet, value):
        r, buffer = where
        if packet:
            self.memory[r, 'p%d' % self.half(th.gpu), e] = (self.calls[th.gpu] + 1, value)
        else:
            self.memory[self.place(r, buffer, e)] = value

    def move(self, th, op, offset, unit, sources, destinations, i):
        """One element; False: packets of it are not there."""
        value = None
        for buff, targets, packet in sources:
            for target in targets:
                first, _ = self.elements(op, buff, offset, unit, target[1])
                there, one = self.read(th, target, first + i, packet)
                if not there:
                    return False
                value = one if value is None else None if one is None else value + one
                if one is None:
                    value = float('nan')
        for buff, targets, packet in destinations:
            for target in targets:
                first, _ = self.elements(op, buff, offset, unit, target[1])
                self.write(th, target, first + i, packet, value)
        return True

    def pairs(self, th, op, port=False):
        src, dst = self.ranges(th, op, 'src', port), self.ranges(th, op, 'dst', port)
        return [([s], [d]) for s, d in zip(src, dst)] if op['name'] in PAIRS else [(src, dst)]

    def data(self, th, op, offset, unit):
        """Of this thread; False: it waits for packets."""
        for sources, destinations in self.pairs(th, op):
            buff, targets, _ = sources[0]
            _, n = self.elements(op, buff, offset, unit, targets[0][1])
            for i in range(th.tid, n, THREADS):
                if not self.move(th, op, offset, unit, sources, destinations, i):
                    return False
        return True

    def tell_port(self, th, op, offset, unit):
        if th.tid >= len(op['dst_buff']):
            return True
        pairs = self.pairs(th, op, True) if op['name'] in PAIRS else \
            [(self.ranges(th, op, 'src', True), [d]) for d in self.ranges(th, op, 'dst', True)]
        sources, destinations = pairs[th.tid]
        buff, targets, packet = sources[0]
        _, n = self.elements(op, buff, offset, unit, targets[0][1])
        if op['name'] == 'rppkt':
            for i in range(n):
                first, _ = self.elements(op, buff, offset, unit, targets[0][1])
                if not self.read(th, targets[0], first + i, True)[0]:
                    return False
        channel = self.channel(th, op, th.tid)
        queue = self.port.setdefault((th.gpu, channel), [])
        flush = op['name'] == 'pwsf'
        if flush and getattr(th, 'told', None) == th.at:
            return not queue
        queue.append(('put', th, op, offset, unit, sources, destinations, n))
        if op['name'] in ('pws', 'pwsf'):
            queue.append(('signal',))
        th.told = th.at
        return not flush

    def run_port(self, key):
        request = self.port[key].pop(0)
        if request[0] == 'signal':
            to = ('port',) + self.other_end(key[0], 'port', key[1])
            self.signals[to] = self.signals.get(to, 0) + 1
            return
        _, th, op, offset, unit, sources, destinations, n = request
        for i in range(n):
            self.move(th, op, offset, unit, sources, destinations, i)

    def join(self, th, key, count):
        """A barrier of threads; True: all have come."""
        state = self.barriers.setdefault(key, [0, 0])
        if not th.joined:
            th.joined, th.round = True, state[1]
            state[0] += 1
            if state[0] == count:
                state[0], state[1] = 0, state[1] + 1
        if state[1] == th.round:
            return False
        th.joined = False
        return True

    def step(self, th):
        """Does the thread go on?"""
        op, offset, unit = th.ops[th.at]
        name = op['name']
        tid = th.tid
        if name == 'nop':
            done = self.join(th, ('nop', th.gpu, th.tb), THREADS)
        elif name == 'barrier':
            done = self.join(th, ('barrier', th.gpu, op['barrier_id']), THREADS * op['num_threadblocks'])
        elif name in ('sem_acquire', 'sem_release'):
            done = True
            if tid < len(op['semaphore_ids']):
                key = th.gpu, op['semaphore_ids'][tid]
                done = name == 'sem_release' or self.semaphores[key] > 0
                self.semaphores[key] += 1 if name == 'sem_release' else -1 if done else 0
        elif name in ('signal', 'rlxsignal'):
            done = True
            if tid < len(op['channel_ids']):
                channel = self.channel(th, op, tid)
                if op['channel_type'] == 'port':
                    self.port.setdefault((th.gpu, channel), []).append(('signal',))
                else:
                    to = ('memory',) + self.other_end(th.gpu, 'memory', channel)
                    self.signals[to] = self.signals.get(to, 0) + 1
        elif name in ('wait', 'rlxwait'):
            done = True
            if tid < len(op['channel_ids']):
                key = op['channel_type'], th.gpu, self.channel(th, op, tid)
                done = self.signals.get(key, 0) > 0
                self.signals[key] = self.signals.get(key, 0) - done
        elif name == 'flush':
            done = tid >= len(op.get('dst_buff', [])) or not self.port.get((th.gpu, self.channel(th, op, tid)))
        elif name in PUTS and op.get('channel_type') == 'port':
            done = self.tell_port(th, op, offset, unit)
        else:
            done = self.data(th, op, offset, unit)
        th.at += bool(done)
        return bool(done)

    def run(self):
        """'right', 'wrong' or 'hang'"""
        self.results = []
        idle = 0
        while True:
            live = [th for r in range(self.n) if self.calls[r] < CALLS for th in self.threads[r] if th.at < len(th.ops)]
            for r in range(self.n):
                if self.calls[r] < CALLS and all(th.at == len(th.ops) for th in self.threads[r]):
                    self.end(r)
                    idle = 0
            ports = [k for k, q in self.port.items() if q]
            if not live and not ports and all(c == CALLS for c in self.calls):
                break
            if not live and not ports and idle:
                return 'hang'
            moved = False
            # A few threads of this moment, some of them far ahead; all of them where that leads nowhere.
            few = live if idle else self.rng.sample(live, min(len(live), self.rng.choice((4, 40, 400))))
            self.rng.shuffle(few)
            for th in few:
                for _ in range(self.rng.choice((1, 2, 100))):
                    if th.at == len(th.ops) or not self.step(th):
                        break
                    moved = True
            for key in ports:
                if idle or self.rng.random() < 0.3:
                    self.run_port(key)
                    moved = True
            if not moved and idle > 1:
                return 'hang'
            idle = 0 if moved else idle + 1
        return 'right' if self.right() else 'wrong'

    def right(self):
        for root in range(self.n):
            good = True
            for r, call, found in self.results:
                good = good and all(w is None or w == f for w, f in
                                    ((self.wants(r, c, call, root), f) for c, f in enumerate(found)))
            if good:
                return True
            if self.coll not in ('broadcast', 'reduce', 'gather', 'scatter'):
                return False
        return False

def outcome(plan, seed, times=1):
    for i in range(times):
        found = Interpreter(plan, random.Random(seed + i)).run()
        if found != 'right':
            return found
    return 'right'

def run(seed, paths):
    """Plans that differ in nothing but their names do the same with the same seed: each is executed once."""
    known = {}
    for path in paths:
        plan = load(path)
        key = json.dumps({**plan, 'name': ''})
        known[key] = known.get(key) or outcome(plan, seed)
        yield path, known[key]

def load(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)

def save(plan, path):
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(plan, file)

# ---- changes ----

def lists(plan):
    for gpu in plan['gpus']:
        for tb in gpu['threadblocks']:
            yield tb['ops']
            for op in tb['ops']:
                if op['name'] == 'pipeline':
                    yield op['ops']

def change(plan, rng):
    """One, of an operation, a range, or what a threadblock has."""
    ops = rng.choice([x for x in lists(plan) if x])
    at = rng.randrange(len(ops))
    op = ops[at]
    kind = rng.choice(('drop', 'drop', 'swap', 'twice', 'index', 'index', 'range', 'channel', 'nop', 'name', 'peer'))
    buffs = op.get('src_buff', []) + op.get('dst_buff', [])
    if kind == 'nop' and any(o['name'] == 'nop' for o in ops):
        ops.pop(rng.choice([i for i, o in enumerate(ops) if o['name'] == 'nop']))
    elif kind == 'swap' and at + 1 < len(ops):
        ops[at], ops[at + 1] = ops[at + 1], op
    elif kind == 'twice':
        ops.insert(at, copy.deepcopy(op))
    elif kind == 'index' and buffs:
        buff = rng.choice(buffs)
        buff['index'] = max(0, buff['index'] + rng.choice((-1, 1, 2)))
    elif kind == 'range' and buffs:
        buff = rng.choice([b for b in buffs if 'type' in b] or [{}])
        buff['type'] = rng.choice('ios')
    elif kind == 'channel' and op.get('channel_ids'):
        op['channel_ids'][rng.randrange(len(op['channel_ids']))] = rng.randrange(4)
    elif kind == 'name' and op['name'] in ('signal', 'wait', 'put', 'rre', 're', 'pws'):
        others = {'signal': 'wait', 'wait': 'signal', 'put': 'get', 'rre': 're', 're': 'rre', 'pws': 'put'}
        op['name'] = others[op['name']]
    elif kind == 'peer':
        gpu = rng.choice(plan['gpus'])
        remote = rng.choice(gpu['remote_buffers'] or [{}])
        remote['rank'] = rng.randrange(len(plan['gpus']))
    else:
        ops.pop(at)

def mutants(seed, n, path, folder):
    rng = random.Random(seed)
    for i in range(n):
        plan = load(path)
        change(plan, rng)
        save(plan, os.path.join(folder, '%04d.json' % i))

# ---- rules ----

def simple(ops, coll='allreduce', protocol='Simple', scratch=0, chunks=(1, 1), remotes=('i', 'o')):
    """Two GPUs, each with one threadblock of these operations, one channel to the other, and its buffers."""
    gpus = []
    for r in range(2):
        gpus.append({
            'id': r, 'input_chunks': chunks[0], 'output_chunks': chunks[1], 'scratch_chunks': scratch,
            'threadblocks': [{'id': 0, 'ops': copy.deepcopy(ops(r)),
                              'channels': [{'channel_type': 'memory', 'channel_ids': [0]}],
                              'remote_buffer_refs': [{'access_channel_type': 'memory',
                                                      'remote_buffer_ids': list(range(len(remotes)))}]}],
            'channels': [{'channel_type': 'memory', 'connected_to': [1 - r]}],
            'remote_buffers': [{'rank': 1 - r, 'type': b, 'access_channel_types': ['memory']} for b in remotes],
            'semaphores': []})
    return {'name': 'x', 'collective': coll, 'protocol': protocol, 'inplace': False, 'reuse_resources': False,
            'gpus': gpus, 'num_threads_per_block': 1024, 'use_double_scratch_buffer': protocol == 'LL',
            'buffer_alignment': 16, 'min_message_size': 0, 'max_message_size': 1 << 30}


def local(buffer, index=0):
    return {'type': buffer, 'index': index, 'size': 1}


def remote(number, index=0):
    return {'buffer_id': number, 'index': index, 'size': 1}


def signal(kind='signal'):
    return {'name': kind, 'channel_ids': [0], 'channel_type': 'memory'}


NOP = {'name': 'nop'}
SUM = {'name': 'rre', 'src_buff': [local('i'), remote(0)], 'dst_buff': [local('o')], 'channel_type': 'memory',
       'reduce_op': 'sum'}
BEGIN, END = [signal('rlxsignal'), signal('rlxwait'), NOP], [NOP, signal(), signal('wait')]


def packets(back=True):
    """Each sends its input to the other, or only 0 does."""
    def ops(r):
        put = {'name': 'ppkt', 'src_buff': [local('i')], 'dst_buff': [remote(0)], 'channel_type': 'memory'}
        add = {'name': 'repkt', 'src_buff': [local('i'), local('s')], 'dst_buff': [local('o')], 'reduce_op': 'sum'}
        own = {'name': 'copy', 'src_buff': [local('i')], 'dst_buff': [local('o')]}
        take = {'name': 'upkt', 'src_buff': [local('s')], 'dst_buff': [local('o')]}
        return [put, add] if back else [put, own] if r == 0 else [take]
    return simple(ops, 'allreduce' if back else 'broadcast', 'LL', 1, remotes=('s',))


def several():
    """An allgather: each reads what the other has by a get, and puts it by a port, too; three threadblocks meet."""
    def port(name, buff=True):
        op = {'name': name, 'channel_ids': [0], 'channel_type': 'port'}
        more = {'src_buff': [local('i')], 'dst_buff': [remote(0)]}
        return dict(op, **more) if buff else op
    meet = {'name': 'barrier', 'barrier_id': 0, 'num_threadblocks': 3}
    plan = simple(lambda r: BEGIN + [
        meet, {'name': 'copy', 'src_buff': [local('i')], 'dst_buff': [local('o', r)]}, NOP, signal(), signal('wait'),
        NOP,
        {'name': 'get', 'src_buff': [remote(1, 1 - r)], 'dst_buff': [local('o', 1 - r)], 'channel_type': 'memory'},
        {'name': 'sem_acquire', 'semaphore_ids': [0]}] + END, 'allgather', chunks=(1, 2), scratch=2)
    for r, gpu in enumerate(plan['gpus']):
        gpu['channels'].append({'channel_type': 'port', 'connected_to': [1 - r, 1 - r]})
        gpu['remote_buffers'].append({'rank': 1 - r, 'type': 's', 'access_channel_types': ['port']})
        gpu['semaphores'] = [{'init_value': 0}]
        last = [port('put'), port('signal', False), dict(port('flush', False), dst_buff=[remote(0)])]
        last[0]['dst_buff'] = [remote(0, 1)]
        for t, ops in enumerate(([port('pwsf'), port('pwsf')], last), 1):
            end = [port('wait', False)] * (2 if t == 1 else 1)
            gpu['threadblocks'].append({
                'id': t, 'ops': [meet] + ops + end + [{'name': 'sem_release', 'semaphore_ids': [0]}] * (t == 1),
                'channels': [{'channel_type': 'port', 'channel_ids': [t - 1]}],
                'remote_buffer_refs': [{'access_channel_type': 'port', 'remote_buffer_ids': [2]}]})
    return plan


def flush_ahead():
    """As several, but the thread that flushes is not the one that has told the port, and does not wait for it."""
    plan = several()
    for r, gpu in enumerate(plan['gpus']):
        gpu['channels'][1]['connected_to'].append(1 - r)
        tb = gpu['threadblocks'][2]
        tb['channels'][0]['channel_ids'] = [1, 2]
        tb['ops'][3].update(channel_ids=[1, 0], dst_buff=[remote(0)] * 2)
    return plan


def break_rules(base, ports):
    def exchange(ops=None):
        return simple(lambda r: BEGIN + [SUM] + END if ops is None else ops)

    def edit(plan, where):
        where(plan)
        return plan

    def first(plan, name):
        return next(o for ops in lists(plan) for o in ops if o['name'] == name)

    def ops(plan):
        return plan['gpus'][0]['threadblocks'][0]['ops']

    yield 'right', exchange()
    yield 'right', packets()
    yield 'right', several()
    yield 'gpu-ids', edit(exchange(), lambda p: p['gpus'][0].update(id=1))
    yield 'tb-ids', edit(exchange(), lambda p: p['gpus'][0]['threadblocks'][0].update(id=1))
    yield 'chunks', edit(exchange(), lambda p: p['gpus'][1].update(output_chunks=2))
    yield 'chunks', simple(lambda r: BEGIN + [SUM] + END, 'reducescatter', chunks=(1, 1))
    yield 'zero-chunks', edit(exchange(), lambda p: [g.update(input_chunks=0) for g in p['gpus']])
    yield 'peer', edit(exchange(), lambda p: p['gpus'][0]['channels'][0].update(connected_to=[0]))
    yield 'peer', edit(exchange(), lambda p: p['gpus'][0]['remote_buffers'][0].update(rank=2))
    yield 'channel', edit(exchange(), lambda p: ops(p)[0].update(channel_ids=[1]))
    yield 'channel', edit(exchange(), lambda p: p['gpus'][0]['threadblocks'][0]['channels'][0].update(channel_ids=[3]))
    yield 'channel', edit(copy.deepcopy(ports), lambda p: first(p, 'pws').update(channel_ids=[]))
    yield 'remote-buffer', edit(exchange(), lambda p: ops(p)[3]['src_buff'][1].update(buffer_id=2))
    yield 'remote-buffer', edit(exchange(), lambda p: p['gpus'][0]['remote_buffers'][0].update(access_channel_types=[]))
    yield 'operations', edit(exchange(), lambda p: ops(p).extend([NOP] * 64))
    yield 'arguments', edit(exchange(), lambda p: ops(p)[3].update(dst_buff=[]))
    yield 'arguments', edit(simple(lambda r: BEGIN + [SUM] + END, chunks=(2, 2)),
                            lambda p: ops(p)[3]['dst_buff'][0].update(size=2))
    yield 'arguments', edit(exchange(), lambda p: ops(p)[3].update(channel_type='switch'))
    yield 'offset', edit(exchange(), lambda p: ops(p)[3]['dst_buff'][0].update(index=1))
    get = {'name': 'get', 'src_buff': [remote(0, 1)], 'dst_buff': [local('o', 0)], 'channel_type': 'memory'}
    yield 'get', simple(lambda r: BEGIN + [get] + END, chunks=(2, 2))
    yield 'packets', edit(packets(), lambda p: p.update(protocol='Simple'))
    yield 'packets', edit(packets(), lambda p: p.update(use_double_scratch_buffer=False))
    yield 'packets', edit(packets(), lambda p: ops(p)[1]['src_buff'][1].update(type='i'))
    yield 'packets', edit(packets(), lambda p: p['gpus'][1].update(scratch_chunks=2))
    yield 'pipeline', edit(copy.deepcopy(base), lambda p: first(p, 'pipeline')['iter_context'].update(unit_size=100))
    yield 'pipeline', edit(copy.deepcopy(base), lambda p: first(p, 'pipeline')['iter_context'].update(unit_size=64))
    yield 'pipeline', edit(copy.deepcopy(base), lambda p: first(p, 'pipeline')['iter_context'].update(num_chunks=99))
    two = exchange()
    two['gpus'][0]['threadblocks'].append(dict(copy.deepcopy(two['gpus'][0]['threadblocks'][0]), id=1, ops=[signal()]))
    yield 'connection', two
    yield 'connection', edit(exchange(), lambda p: p['gpus'][1].update(channels=[])
                             or p['gpus'][1]['threadblocks'][0].update(ops=[], channels=[]))
    yield 'signals', edit(exchange(), lambda p: ops(p).append(signal()))
    yield 'signals', edit(copy.deepcopy(base), lambda p: first(p, 'pipeline')['ops'].append(
        {'name': 'signal', 'channel_ids': [0], 'channel_type': 'memory'}))
    yield 'semaphore', edit(exchange(), lambda p: p['gpus'][0].update(semaphores=[{'init_value': 0}])
                            or ops(p).append({'name': 'sem_release', 'semaphore_ids': [0]}))
    yield 'semaphore', edit(exchange(), lambda p: ops(p).append({'name': 'sem_acquire', 'semaphore_ids': [0]}))
    alone = {'name': 'barrier', 'barrier_id': 0, 'num_threadblocks': 2}
    yield 'barrier', edit(exchange(), lambda p: ops(p).append(alone))
    yield 'sizes', edit(exchange(), lambda p: p.update(min_message_size=1 << 31))
    yield 'sizes', edit(exchange(), lambda p: p.update(min_message_size=16, max_message_size=8))
    yield 'sizes', edit(exchange(), lambda p: p.update(buffer_alignment=8))
    yield 'deadlock', simple(lambda r: [signal('wait'), NOP, SUM, NOP, signal()])
    yield 'deadlock', edit(packets(), lambda p: p['gpus'][0]['threadblocks'][0]['ops'].pop(0))
    yield 'entry', simple(lambda r: [SUM] + END)
    yield 'race', simple(lambda r: BEGIN + [
        {'name': 'put', 'src_buff': [local('i')], 'dst_buff': [remote(1)], 'channel_type': 'memory'}, SUM] + END)
    yield 'race', simple(lambda r: BEGIN + [
        {'name': 'copy', 'src_buff': [local('i')], 'dst_buff': [local('s')]},
        {'name': 're', 'src_buff': [local('i'), local('s')], 'dst_buff': [local('o')]}] + END, scratch=1)
    yield 'exit', simple(lambda r: BEGIN + [SUM])
    yield 'exit', simple(lambda r: BEGIN + [SUM, signal(), signal('wait')])
    yield 'exit', flush_ahead()
    yield 'ahead', packets(False)
    yield 'result', simple(lambda r: BEGIN + [dict(SUM, name='re', src_buff=[local('i'), local('i')])] + END)
    channel = {'channel_type': 'switch', 'buff': 's', 'rank_groups': [{'size': 2, 'ranks': [0, 1]}]}
    yield 'switch-buffer', edit(exchange(), lambda p: p['gpus'][0]['channels'].append(channel))
    yield 'flush', edit(copy.deepcopy(ports), lambda p: first(p, 'flush').pop('dst_buff'))
    crowd = exchange()
    crowd['gpus'][0]['threadblocks'] += [{'id': t, 'ops': [], 'channels': [], 'remote_buffer_refs': []}
                                         for t in range(1, 120)]
    yield 'threadblocks', crowd
    yield 'root', simple(lambda r: [{'name': 'copy', 'src_buff': [local('i')], 'dst_buff': [local('o')]}], 'broadcast')


def broken(base, ports, folder):
    count = {}
    for rule, plan in break_rules(load(base), load(ports)):
        count[rule] = count.get(rule, 0) + 1
        save(plan, os.path.join(folder, '%s.%d.json' % (rule, count[rule])))


# ---- registration ----

class Registered:
    """What register.py uses of MSCCL++'s Python interface: the plan says its name and limits."""
    def __init__(self, id, execution_plan, constraint):
        self.id, self.constraint = id, constraint
        self.plan = load(execution_plan[0])
        self.name, self.collective = self.plan['name'], self.plan['collective']
        self.buffer_mode = self.plan['inplace']

    Constraint = staticmethod(lambda world_size, n_ranks_per_node: (world_size, n_ranks_per_node))


class Builder:
    added, selector = [], None

    def add_algorithm_builder(self, algorithm):
        Builder.added.append(algorithm)

    def set_algorithm_selector(self, selector):
        Builder.selector = selector


class Request:
    def __init__(self, collective, message_size, in_place, ranks, node):
        self.collective, self.message_size, self.in_place = collective, message_size, in_place
        self.world_size, self.n_ranks_per_node = ranks, node

    def buffer_mode(self):
        return self.in_place


def registered(folder, ranks, node):
    mscclpp = types.ModuleType('mscclpp')
    mscclpp.Algorithm, mscclpp.ExecutionPlan = Registered, lambda path, rank: (path, rank)
    mscclpp.ext = types.ModuleType('mscclpp.ext')
    mscclpp.ext.AlgorithmCollectionBuilder = Builder
    sys.modules.update({'mscclpp': mscclpp, 'mscclpp.ext': mscclpp.ext})
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location('register', os.path.join(folder, 'register.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.register(0)
    algorithms = {}
    for a in Builder.added:
        assert a.constraint == (ranks, node) and a.name not in algorithms.get(a.collective, {}), a.name
        algorithms.setdefault(a.collective, {})[a.name] = a
    for collective, those in algorithms.items():
        those = sorted(those.values(), key=lambda a: a.plan['min_message_size'])
        for a, after in zip(those, those[1:]):
            assert a.plan['max_message_size'] + 1 == after.plan['min_message_size'], a.name
        assert those[0].plan['min_message_size'] == 0
        for a in those:
            least, most = a.plan['min_message_size'], a.plan['max_message_size']
            first = a.plan['gpus'][0]
            chunks = max(first['input_chunks'], first['output_chunks'])
            step = chunks * a.plan['buffer_alignment']
            share = ranks if collective == 'allgather' else 1
            for size in {-(-least // step) * step, most // step * step}:
                ask = [Request(collective, size // share, a.plan['inplace'], ranks, node),
                       Request(collective, (size + step // 2) // share, a.plan['inplace'], ranks, node),
                       Request(collective, size // share, not a.plan['inplace'], ranks, node),
                       Request(collective, size // share, a.plan['inplace'], ranks, node + 1)]
                found = [Builder.selector(algorithms, one) for one in ask]
                assert least <= size <= most and found[0] is a and found[1] is not a and found[2:] == [None, None], \
                    (a.name, size, found)
    print('%d plans of %d collectives' % (len(Builder.added), len(algorithms)))


# ---- verdicts ----

def judge(seed, folder, said):
    counts = {}
    with open(said, encoding='utf-8') as file:
        lines = file.read().splitlines()
    for line in lines:
        match = re.match(r'(?:blinkc: )?(%s/[^:]*\.json): (.*)' % re.escape(folder), line)
        if not match:
            continue
        path, text = match.groups()
        verdict = text.split(':')[0]
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict == 'valid':
            found = outcome(load(path), seed, 3)
            if found != 'right':
                print('%s: valid, but %s' % (path, found))
        elif verdict in ('deadlock', 'result'):
            found = outcome(load(path), seed)
            if found == 'right' or (verdict == 'deadlock' and found != 'hang'):
                print('%s: %s, but %s' % (path, text, found))
    print('judged ' + ' '.join('%s %d' % c for c in sorted(counts.items())))

def main(argv):
    if argv[1] == 'run':
        for path, found in run(int(argv[2]), argv[3:]):
            print('%s: %s' % (path, found))
    elif argv[1] == 'mutants':
        mutants(int(argv[2]), int(argv[3]), argv[4], argv[5])
    elif argv[1] == 'broken':
        broken(*argv[2:])
    elif argv[1] == 'registered':
        registered(argv[2], int(argv[3]), int(argv[4]))
    elif argv[1] == 'judge':
        judge(int(argv[2]), argv[3], argv[4])
    return 0

if __name__ == '__main__':
    sys.exit(main(sys.argv))
