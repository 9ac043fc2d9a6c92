"""Files as `spillway bench` writes them, with invented but likely times."""

import json
import random

STRATEGIES = {  # time over the resident step at 100 % of the memory, and how fast it grows below
    "resident": (1.0, 0.0),
    "joint": (1.0, 0.035),
    "copy": (1.03, 0.08),
    "capacity": (1.02, 0.35),
    "on-demand": (1.05, 1.1),
    "vdnn_all": (1.3, 0.2),
    "superneurons": (1.08, 0.3),
}


def machine(identity="0f3a9c1d77be", processor="Intel Xeon Processor (Sapphire Rapids)", load=0.12):
    return {"id": identity, "processor": processor, "processors": 2, "memory_bytes": 25190326272,
            "kernel": "6.18.5", "device": "host", "paging": "uffd", "load_at_start": load}


def timing(draw, median, spread=0.02, runs=5):
    return {"median": median,
            "min": median * (1 - draw.uniform(0.2, 1) * spread),
            "max": median * (1 + draw.uniform(0.5, 2.5) * spread),
            "deviation": spread * draw.uniform(0.2, 0.6),
            "runs": runs,
            "settled": draw.random() > 0.05}


def bench(kind, rows, **of):
    return {"format": "spillway-bench", "version": 2, "bench": kind, "date": "2026-11-22T11:00:00Z",
            "seconds": 204.5, "build": {"version": "0.1.0", "commit": "9b31562" + 33 * "0"},
            "machine": machine(**of), "options": {"link-bandwidth": "2GB/s", "rounds": 5},
            "rows": rows}


def step(draw, net, series, strategy, batch, share, resident_seconds, resident_bytes):
    base, growth = STRATEGIES[strategy]
    ratio = 1.0
    if strategy != "resident":
        ratio = base + growth * (1 / share - 1) ** 1.3 + draw.uniform(0, 0.02)
    if strategy == "joint" and share < 0.3:
        ratio += 0.08
    memory = strategy if strategy in ("resident", "copy") else "managed"
    seconds = timing(draw, ratio * resident_seconds)
    return {
        "series": series,
        "net": net,
        "image_size": 224,
        "batch": batch,
        "strategy": strategy,
        "memory": memory,
        "planner": "joint" if strategy == "copy" else None if strategy == "resident" else strategy,
        "budget": f"{100 * share:.0f}%",
        "budget_bytes": int(share * resident_bytes),
        "resident_bytes": resident_bytes,
        "seconds": seconds,
        "images_per_second": batch / seconds["median"],
        "ratio": seconds["median"] / resident_seconds,
        "resident_seconds": resident_seconds,
        "resident_is": "measured",
        "predicted_seconds": seconds["median"] * draw.uniform(0.9, 1.03),
        "near_peak_bytes": int(0.98 * share * resident_bytes),
        "bytes_in": int((1 - share) * resident_bytes),
        "bytes_out": int((1 - share) * resident_bytes),
        "faults": 5200 if strategy == "on-demand" else 0,
        "stalled_seconds": (ratio - 1) * resident_seconds,
    }


def failed(row, sentence):
    told = ("series", "net", "image_size", "batch", "strategy", "memory", "planner", "budget",
            "budget_bytes", "resident_bytes")
    return {key: row[key] for key in told} | {"failed": sentence}


def train(seed=3, **of):
    draw = random.Random(seed)
    rows = []
    for net, seconds, size in (("resnet18", 1.31, 1503238553), ("densenet121", 3.9, 3543348019)):
        for share in (1.0, 0.6, 0.4, 0.25):
            for strategy in ("resident", "joint", "copy", "capacity", "on-demand"):
                if strategy == "resident" and share < 1:
                    continue
                row = step(draw, net, "budget", strategy, 32, share, seconds, size)
                if strategy == "capacity" and share < 0.3:
                    row = failed(row, "a budget of 375 MiB is too small for capacity: "
                                      "task layer1.0.conv1.forward needs most; "
                                      "the smallest budget that works is 401 MiB")
                rows.append(row)
    for batch in (8, 16, 32, 64, 128):
        share = min(1.0, 16 / batch)
        for strategy in ("resident", "joint", "copy", "capacity", "on-demand"):
            row = step(draw, "resnet18", "batch", strategy, batch, share,
                       batch * (0.041 + 0.04 / batch), 47000000 * batch)
            row |= {"budget": "750 MiB", "budget_bytes": 47000000 * 16}
            if strategy == "resident" and share < 1:
                row = failed(row, "the resident step needs more than the budget")
            rows.append(row)
    return bench("train", rows, **of)


def planners(seed=5):
    draw = random.Random(seed)
    return bench("planners", [step(draw, "resnet18", "planner", strategy, 16, share, 0.68, 751619276)
                              for share in (0.8, 0.6, 0.4) for strategy in STRATEGIES
                              if strategy not in ("resident", "copy")])


def link(seed=7):
    draw = random.Random(seed)
    rows = []
    limits = {"fault": (1.7e9, 9e-6), "prefetch": (5.4e9, 2.1e-5), "pageable_copy": (7.9e9, 4e-7),
              "pinned_copy": (8.3e9, 9e-6), "file": (1.9e9, 3.1e-5)}
    for way, (rate, start) in limits.items():
        for direction, share in (("in", 1.0), ("out", 0.85), ("both", 1.3)):
            for power in range(12, 31, 2):
                size = 2**power
                slow = 0.55 if size > 2**27 else 1.0
                ways = 2 if direction == "both" else 1
                seconds = timing(draw, start + size * ways / (rate * share * slow), 0.05)
                rows.append({"way": way, "direction": direction, "bytes": size,
                             "seconds": seconds, "bytes_per_second": size * ways / seconds["median"],
                             "call_seconds": None if way == "fault" else timing(draw, 2e-6)})
    return bench("link", rows)


def paging(seed=9):
    draw = random.Random(seed)
    rows = []
    for pattern, harder in (("stream", 1.0), ("stride", 1.6), ("reverse", 1.05), ("random", 2.8)):
        for way, cost in (("faults", 9.0), ("advised", 6.0), ("prefetched", 3.2),
                          ("discarded", 4.4)):
            for times in (0.5, 1, 1.5, 2, 4):
                ratio = 1.02 if times <= 1 else 1 + harder * cost * (1 - 0.5 / times)
                plain = 0.021 * times
                moved = max(0, times - 1)
                rows.append({"pattern": pattern, "way": way, "near_times": times,
                             "bytes": int(times * 2**28), "near_bytes": 2**28,
                             "seconds": timing(draw, ratio * plain),
                             "plain_seconds": timing(draw, plain), "ratio": ratio,
                             "faults": 0 if times <= 1 else int(128 * times),
                             "evictions": int(moved * 128), "bytes_in": int(moved * 2**28),
                             "bytes_out": int(moved * 2**28)})
    return bench("paging", rows)


def training(steps=1000, name="lenet", seed=13):
    """Lines as `spillway train --json` writes them, with an evaluation after each fifth."""
    draw = random.Random(seed)
    lines = []
    for step in range(1, steps + 1):
        done = step / steps
        loss = 2.3 * 0.05**done * draw.uniform(0.8, 1.25)
        lines.append({"step": step, "epoch": 1, "loss": loss, "accuracy": min(1, 0.1 + 0.85 * done),
                      "learning_rate": 0.1 * (1 - done) + 1e-5, "seconds": draw.uniform(0.2, 0.22),
                      "data_wait_seconds": draw.uniform(0, 0.004), "near_peak_bytes": 700000})
        if step % max(1, steps // 5) == 0:
            lines.append({"evaluation": {"step": step, "epoch": 1, "test_loss": 1.1 * loss,
                                         "test_accuracy": 0.1 + 0.8 * done,
                                         "test_top5": min(1, 0.5 + 0.5 * done)}})
    lines.append({"summary": {"network": name, "batch": 8, "data": "synthetic images"}})
    return "".join(json.dumps(line) + "\n" for line in lines)


def unsettled_resident():
    """Small steps beside a resident one that took from nothing to two seconds."""
    train_file = train()
    train_file["rows"] = [row for row in train_file["rows"] if row["series"] == "budget"]
    for row in train_file["rows"]:
        if "seconds" not in row:
            continue
        row["resident_seconds"] = 1000.0
        row["ratio"] = row["seconds"]["median"] / 1000
        if row["strategy"] == "resident":
            row["seconds"] |= {"settled": False, "deviation": 1.0}
    return train_file


def write(folder, **files):
    """Each under its name with .json behind it; text as it is."""
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text)
