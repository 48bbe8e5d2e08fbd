#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make traces as docs/TRACE.md describes them, without the program that records.

usage: traces.py FILE small | ticks | locks | load CPUS EVENTS | repeat TIMES OTHER | far | empty

`small` is a trace of two CPUs whose events are in SMALL below, with names that are hostile to
pages and terminals; `ticks` one of a CPU without frequencies, TICKS below; `locks` one of a chain of two locks, LOCKS below; `load` one of tasks that run, sleep and wake each other, always the
same; `repeat` has those of OTHER, which is of this program, so often, each time later; `far` has two events that are 10 s apart; `empty` has none.
"""

import array
import json
import random
import struct
import sys
import zlib

KINDS = ["fork", "exec", "exit", "wakeup", "wakeup-new", "switch", "migrate", "idle", "idle-end",
         "frequency", "name", "name-rest", "tick", "place", "throttle", "lock-wait", "lock-hold", "handoff", "boost",
         "slice-end", "spinner", "inversion", "lock-left"]
NUMBER = {name: number for number, name in enumerate(KINDS)}
EVENT = struct.Struct("<QIHHII")
CHUNK = 8192
BEGIN = 1_000_000_000

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\x1b[31m\u202e&\"'"

# Time in us after BEGIN, CPU, event, PID, low, high.
SMALL = [
    (0, 0, "switch", 100, 0, 0),
    (100, 0, "wakeup", 101, 100, 1),
    (150, 1, "idle-end", 0, 0, 0),
    (160, 1, "switch", 101, 0, 0),
    (200, 1, "frequency", 0, 3_000_000, 1),
    (400, 0, "fork", 102, 100, 102),
    (410, 0, "wakeup-new", 102, 100, 0),
    (500, 0, "switch", 102, 100, 0),
    (510, 0, "name", 102, 0x6c3c6362, 0x3e69),
    (900, 0, "exit", 102, 0, 0),
    (950, 0, "switch", 100, 102, 0x80),
    (1200, 1, "switch", 0, 101, 1),
    (1210, 1, "idle", 0, 2, 0),
    (1500, 0, "migrate", 100, 1, 0),
    (1600, 1, "idle-end", 0, 0, 0),
    (1700, 0, "switch", 0, 100, 1),
    (1800, 1, "switch", 100, 0, 0),
]


# Of 1024: half its speed for a while, then all of it.
TICKS = [
    (0, 0, "switch", 100, 0, 0),
    (200, 0, "tick", 100, 512, 0),
    (600, 0, "tick", 100, 1024, 0),
]


# 100 waits for 5, which 101 holds; that waits for 6, which 102 holds.
LOCKS = [
    (0, 0, "switch", 101, 0, 0),
    (0, 1, "switch", 102, 0, 0),
    (400, 0, "lock-wait", 101, 6, 0),
    (400, 0, "lock-hold", 102, 6, 0),
    (410, 0, "switch", 100, 101, 2),
    (600, 0, "lock-wait", 100, 5, 0),
    (600, 0, "lock-hold", 101, 5, 0),
    (610, 0, "switch", 0, 100, 2),
    (1000, 1, "handoff", 101, 6, 102),
    (1010, 0, "switch", 101, 0, 0),
    (1400, 0, "inversion", 100, 101, 800),
    (1400, 0, "handoff", 100, 5, 101),
    (1410, 0, "switch", 100, 101, 1),
]


def zstd(data):
    """A frame of zstd that is not compressed."""
    out = [struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))]
    parts = [data[at : at + (1 << 17)] for at in range(0, len(data), 1 << 17)] or [b""]
    for number, part in enumerate(parts):
        last = number + 1 == len(parts)
        out += [struct.pack("<I", len(part) << 3 | last)[:3], part]
    return b"".join(out)


def chunk(tag, cpu, number, content):
    head = struct.pack("<4sHHQII", tag, cpu, 0, number, len(content), 0)
    return head + struct.pack("<II", zlib.crc32(head + content), 0) + content


def head_of(cpus, tasks, **others):
    head = {"clock": "CLOCK_MONOTONIC", "begin_ns": BEGIN, "begin_utc_s": 1_700_000_000, "release": "6.18.0",
            "scheduler": None, "overwrite": False, "events": KINDS, "wanted": KINDS, "cpus": cpus, "tasks": tasks}
    return head | others


def write(path, head, events, end_ns):
    """`events` are by time: (ns, CPU, number of kind, PID, low, high)."""
    lanes = {cpu["id"]: bytearray() for cpu in head["cpus"]}
    text = json.dumps(head).encode()
    with open(path, "wb") as out:
        out.write(b"FLTRACE\n" + struct.pack("<III", 1, len(text), zlib.crc32(text)) + text)

        def put(cpu):
            content = zstd(bytes(lanes[cpu]))
            out.write(chunk(b"EVNT", cpu, len(lanes[cpu]) // EVENT.size, content))
            lanes[cpu].clear()

        for time, cpu, kind, pid, low, high in events:
            lane = lanes[cpu]
            lane += EVENT.pack(time, pid, kind, cpu, low, high)
            if len(lane) == CHUNK * EVENT.size:
                put(cpu)
        for cpu, lane in lanes.items():
            if lane:
                put(cpu)
        end = {"end_ns": end_ns, "lost": [], "overwritten": [], "elsewhere": 0, "recursion": 0}
        out.write(chunk(b"END\n", 0, 0, json.dumps(end).encode()))


def cpu(number, khz=1_000_000):
    return {"id": number, "capacity": 1024, "max_khz": 4_000_000, "khz": khz, "running": 0}


def task(pid, name):
    return {"pid": pid, "tgid": pid, "name": name}


def small(path, **others):
    tasks = [task(100, HOSTILE), task(101, "make")]
    events = [(BEGIN + us * 1000, on, NUMBER[kind], pid, low, high) for us, on, kind, pid, low, high in SMALL]
    write(path, head_of([cpu(0, 4_000_000), cpu(1)], tasks, **others), events, BEGIN + 2_000_000)


def locks(path):
    tasks = [task(100, "waiter"), task(101, "middle"), task(102, "holder")]
    events = [(BEGIN + us * 1000, on, NUMBER[kind], pid, low, high) for us, on, kind, pid, low, high in LOCKS]
    write(path, head_of([cpu(0), cpu(1)], tasks), events, BEGIN + 2_000_000)


def ticks(path):
    events = [(BEGIN + us * 1000, on, NUMBER[kind], pid, low, high) for us, on, kind, pid, low, high in TICKS]
    only = {"id": 0, "capacity": None, "max_khz": None, "khz": None, "running": 0}
    write(path, head_of([only], [task(100, "busy")]), events, BEGIN + 1_000_000)


def load_events(cpus, count):
    """Tasks that run for 20 to 400 us, sleep, and wake another one; 16 for each CPU."""
    rng = random.Random(1)
    clock, running, khz = [BEGIN] * cpus, [0] * cpus, [1_000_000] * cpus
    switch, wakeup, frequency = NUMBER["switch"], NUMBER["wakeup"], NUMBER["frequency"]
    made = 0
    while made < count:
        on = min(range(cpus), key=clock.__getitem__)
        now = clock[on]
        before = running[on]
        after = 0 if before and rng.random() < 0.4 else 1000 + on * 16 + rng.randrange(16)
        if after == before:
            after = 0
        yield now, on, switch, after, before, 1 if before else 0
        running[on] = after
        made += 1
        if after and made < count:
            yield now + 1000, on, wakeup, 1000 + rng.randrange(cpus * 16), after, rng.randrange(cpus)
            made += 1
        if rng.random() < 0.05 and made < count:
            khz[on] = rng.choice((800_000, 1_600_000, 2_400_000, 3_200_000, 4_000_000))
            yield now + 2000, on, frequency, 0, khz[on], on
            made += 1
        clock[on] = now + rng.randrange(20_000, 400_000)


def repeat(path, times, other):
    with open(other, "rb") as file:
        data = file.read()
    at = 20 + struct.unpack_from("<I", data, 12)[0]
    chunks, head = [], data[:at]
    while data[at : at + 4] == b"EVNT":
        on, length = struct.unpack_from("<H", data, at + 4)[0], struct.unpack_from("<I", data, at + 16)[0]
        # Of a frame that is not compressed: its head, then blocks with three bytes before each.
        blocks, content = data[at + 32 + 9 : at + 32 + length], b""
        while blocks:
            size = int.from_bytes(blocks[:3], "little") >> 3
            content, blocks = content + blocks[3 : 3 + size], blocks[3 + size :]
        chunks.append((on, array.array("Q", content)))
        at += 32 + length
    span = max(max(words[0::3]) for _, words in chunks) - BEGIN + 100_000
    with open(path, "wb") as out:
        out.write(head)
        for _ in range(times):
            for on, words in chunks:
                out.write(chunk(b"EVNT", on, len(words) // 3, zstd(words.tobytes())))
                words[0::3] = array.array("Q", map(span.__add__, words[0::3]))
        end = {"end_ns": BEGIN, "lost": [], "overwritten": [], "elsewhere": 0, "recursion": 0}
        out.write(chunk(b"END\n", 0, 0, json.dumps(end).encode()))


def main():
    path, what = sys.argv[1], sys.argv[2]
    if what in ("small", "ticks", "locks"):
        {"small": small, "ticks": ticks, "locks": locks}[what](path)
    elif what == "repeat":
        repeat(path, int(sys.argv[3]), sys.argv[4])
    elif what == "far":
        events = [(BEGIN, 0, NUMBER["switch"], 7, 0, 0), (BEGIN + 10**10, 0, NUMBER["switch"], 0, 7, 1)]
        write(path, head_of([cpu(0)], [task(7, "far")]), events, BEGIN + 2 * 10**10)
    elif what == "empty":
        write(path, head_of([], []), [], BEGIN)
    else:
        cpus, count = int(sys.argv[3]), int(sys.argv[4])
        tasks = [task(1000 + number, f"load/{number // 16}") for number in range(cpus * 16)]
        write(path, head_of([cpu(number) for number in range(cpus)], tasks), load_events(cpus, count), BEGIN)


if __name__ == "__main__":
    main()
