"""A trace as `spillway train --trace` writes it, with an invented step."""

import math
import random


def timeline(tasks=400, hostile=False):
    """A trace as `spillway train --trace` writes it, predicted and measured."""
    draw = random.Random(11)
    events, near = [], {}
    for process, name in ((1, "predicted"), (2, "measured, last step")):
        events.append(
            {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
        )
        lanes = ("compute", "waiting", "offload (near to far)", "prefetch (far to near)")
        for lane, text in enumerate(lanes, 1):
            events.append(
                {
                    "ph": "M",
                    "name": "thread_name",
                    "pid": process,
                    "tid": lane,
                    "args": {"name": text},
                }
            )
        now, holders = 0.0, []
        for task in range(tasks):
            forward = task < tasks // 2
            title = f"layer{task}.{'forward' if forward else 'backward'}"
            if hostile and task == 0:
                title = "</script><script>alert(1)</script>\u2028<!--"
            length = 1000 * draw.uniform(0.5, 9) * (1 + 0.06 * process)
            if task % 29 == 28:
                wait = 1000 * draw.uniform(1, 20)
                events.append(
                    {
                        "ph": "X",
                        "name": f"before {title}",
                        "pid": process,
                        "tid": 2,
                        "ts": now,
                        "dur": wait,
                        "args": {},
                    }
                )
                now += wait
            events.append(
                {
                    "ph": "X",
                    "name": title,
                    "pid": process,
                    "tid": 1,
                    "ts": now,
                    "dur": length,
                    "args": {"algorithm": "direct", "phase": "forward" if forward else "backward"},
                }
            )
            if task % 5 == 0:
                events.append(
                    {
                        "ph": "X",
                        "name": f"layer{task}.y",
                        "pid": process,
                        "tid": 3 if forward else 4,
                        "ts": now,
                        "dur": 0.8 * length,
                        "args": {"offset": 0, "bytes": 8388608},
                    }
                )
            size = int(2**20 * draw.uniform(2, 40) * math.sin(math.pi * (task + 1) / (tasks + 1)))
            holders.append(
                {
                    "name": f"layer{task}.y",
                    "purpose": "saved" if forward else "gradient",
                    "bytes_from": [[now, size], [now + 9 * length, 0]],
                }
            )
            events.append(
                {
                    "ph": "C",
                    "name": "near memory (MiB)",
                    "pid": process,
                    "ts": now,
                    "args": {"in use": 60 + size // 2**18, "budget": 400},
                }
            )
            now += length
        holders.append(
            {"name": "always near", "purpose": "always near", "bytes_from": [[0, 60 * 2**20]]}
        )
        near[str(process)] = holders
    return {
        "displayTimeUnit": "ms",
        "traceEvents": events,
        "spillway": {
            "planner": "joint",
            "budget_bytes": 400 * 2**20,
            "on_demand": False,
            "near": near,
        },
    }
