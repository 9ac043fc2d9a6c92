"""A trace as `spillway train --timeline` writes it, with an invented step."""

import math
import random

LANES = "compute", "waiting", "offload (near to far)", "prefetch (far to near)"


def event(kind, name, process, **more):
    return {"ph": kind, "name": name, "pid": process, **more}


def span(name, process, lane, begin, length, **args):
    return event("X", name, process, tid=lane, ts=begin, dur=length, args=args)


def names(process, name):
    """Events that name a process and its lanes."""
    return [event("M", "process_name", process, tid=0, args={"name": name})] + [
        event("M", "thread_name", process, tid=lane, args={"name": text})
        for lane, text in enumerate(LANES, 1)
    ]


def step(draw, process, tasks, hostile, unit):
    """The events of one run of the step, and who holds near memory."""
    events, holders, now = [], [], 0.0
    for task in range(tasks):
        phase = "forward" if task < tasks // 2 else "backward"
        title = f"layer{task}.{phase}"
        if hostile and task == 0:
            title = "</script><script>alert(1)</script>\u2028<!--"
        length = 1000 * draw.uniform(0.5, 9) * (1 + 0.06 * process)
        if task % 29 == 28:
            wait = 1000 * draw.uniform(1, 20)
            events.append(span(f"before {title}", process, 2, now, wait))
            now += wait
        events.append(span(title, process, 1, now, length, algorithm="direct", phase=phase))
        if task % 5 == 0:
            lane = 3 if phase == "forward" else 4
            move = span(f"layer{task}.y", process, lane, now, 0.8 * length, offset=0, bytes=8388608)
            events.append(move)
        size = int(unit * draw.uniform(2, 40) * math.sin(math.pi * (task + 1) / (tasks + 1)))
        purpose = "saved" if phase == "forward" else "gradient"
        levels = [[now, size], [now + 9 * length, 0]]
        holders.append({"name": f"layer{task}.y", "purpose": purpose, "bytes_from": levels})
        in_use = {"in use": 60 * unit + 4 * size, "budget": 400 * unit}
        events.append(event("C", "near memory (bytes)", process, ts=now, args=in_use))
        now += length
    always = "always near"
    holders.append({"name": always, "purpose": always, "bytes_from": [[0, 60 * unit]]})
    return events, holders


def timeline(tasks=400, hostile=False, unit=2**20):
    """A trace as `spillway train --timeline` writes it, predicted and measured, within 400 units."""
    draw = random.Random(11)
    events, near = [], {}
    for process, name in ((1, "predicted"), (2, "measured, last step")):
        own, near[str(process)] = step(draw, process, tasks, hostile, unit)
        events += names(process, name) + own
    facts = {"planner": "joint", "budget_bytes": 400 * unit, "on_demand": False, "near": near}
    return {"displayTimeUnit": "ms", "traceEvents": events, "spillway": facts}
