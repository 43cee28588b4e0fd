"""Chakra execution traces, decoded and executed: chakra.py GIBS PREFIX [RANKS]

Every link between two ranks carries one message after the other, in the order in which they become ready, at GIBS times
2^30 bytes a second; sums take no time. Prints the time in ms as a fraction, the number of nodes, and the bytes that the
busiest link carries. It fails if a message is sent and not received, or received and not sent, and if nodes wait
forever.
It knows the format by its description alone.
"""
import heapq
import os
import sys
from fractions import Fraction

COMP, SEND, RECEIVE = 4, 5, 6


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, 'wire type %d' % (key & 7)
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, 'cut'
        yield key >> 3, value


def messages(data):
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        assert at + size <= len(data), 'cut'
        yield data[at:at + size]
        at += size


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def node(data):
    out = {'deps': [], 'id': 0, 'duration': 0}
    for field, value in fields(data):
        if field == 1:
            out['id'] = value
        elif field == 3:
            out['type'] = value
        elif field == 5:
            out['deps'] += packed(value)
        elif field == 7:
            out['duration'] = value
        elif field == 10:
            attribute = dict(fields(value))
            name = attribute.pop(1).decode()
            kind, = attribute
            want = {'comm_size': 9, 'comm_src': 7, 'comm_dst': 7, 'comm_tag': 7, 'is_cpu_op': 27}[name]
            assert kind == want, '%s has the type of field %d' % (name, kind)
            out[name] = attribute[kind]
    return out


def read(path, rank):
    parts = list(messages(open(path, 'rb').read()))
    assert dict(fields(parts[0]))[1], 'no version'
    nodes = {}
    for data in parts[1:]:
        n = node(data)
        assert n['id'] not in nodes, 'a node twice'
        assert all(d in nodes for d in n['deps']), 'a dependency on a later node'
        assert n['type'] == COMP or n['comm_src' if n['type'] == SEND else 'comm_dst'] == rank, 'of another rank'
        nodes[n['id']] = n
    return nodes


def execute(ranks, rate):
    """Events in the order of time; a send ends, for its own rank, when it has left the link."""
    waits, children, arrivals, receivers, free, queue, order = {}, {}, {}, {}, {}, [], 0
    loads = {}
    for r, nodes in enumerate(ranks):
        for n in nodes.values():
            waits[r, n['id']] = len(n['deps']) + (n['type'] == RECEIVE)
            for d in n['deps']:
                children.setdefault((r, d), []).append((r, n['id']))
            if n['type'] == RECEIVE:
                key = n['comm_src'], n['comm_dst'], n['comm_tag']
                assert key not in receivers, 'received twice'
                receivers[key] = r, n['id']
    for key in sorted(waits):
        if waits[key] == 0:
            heapq.heappush(queue, (Fraction(0), key))
    done, last = 0, Fraction(0)
    sent = set()

    def release(time, key):
        waits[key] -= 1
        if waits[key] == 0:
            heapq.heappush(queue, (time, key))

    while queue:
        time, key = heapq.heappop(queue)
        n = ranks[key[0]][key[1]]
        end = time + Fraction(n['duration'], 1000)
        if n['type'] == SEND:
            link = n['comm_src'], n['comm_dst']
            end = max(time, free.get(link, Fraction(0))) + n['comm_size'] / rate
            free[link] = end
            loads[link] = loads.get(link, 0) + n['comm_size']
            message = link + (n['comm_tag'],)
            assert message in receivers and message not in sent, 'nobody receives it'
            sent.add(message)
            to = receivers[message]
            assert ranks[to[0]][to[1]]['comm_size'] == n['comm_size'], 'sizes differ'
            release(end, to)
        done += 1
        last = max(last, end)
        for child in children.get(key, []):
            release(end, child)
    assert done == len(waits), '%d of %d nodes wait forever' % (len(waits) - done, len(waits))
    return last, done, max(loads.values())


def main():
    prefix = sys.argv[2]
    ranks = []
    while os.path.exists('%s.%d.et' % (prefix, len(ranks))):
        ranks.append(read('%s.%d.et' % (prefix, len(ranks)), len(ranks)))
    rate = Fraction(sys.argv[1]) * 2 ** 30 / 1000
    time, nodes, load = execute(ranks, rate)
    print('%d ranks: %s ms, %d nodes, %d bytes' % (len(ranks), time, nodes, load))


main()
