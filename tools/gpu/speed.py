"""Measurements: the link, and trainings beside their prediction and beside PyTorch's."""

import json
import os
import pathlib

from gpu_bench import GPU, Failure, is_within_budget, median_step
from machine_file import LINKS, largest, link_of, machine_of
from pytorch_side import gpt2, operations, steps_beside_pytorch

BATCHES = {"resnet50": 256, "vgg16": 128}
LEARNING_RATE = 0.0001
BUDGETS = "100%,60%,40%,25%,min+20%"  # the last one is for VGG-16, which needs two thirds
TRUSTED = 0.15  # how far a prediction may be off
MOST_SECONDS = 80  # of each variant
MEMORY_OF = {"joint": "managed", "copy": "copy"}  # strategies of `bench train`
VARIANTS = {  # by what is not as usual: unified memory without discards, copies as a CUDA graph
    "": (["joint", "copy"], ["--discard", "off"]),
    "discards on": (["joint"], ["--discard", "on"]),
    "graph off": (["copy"], ["--graph", "off"]),
}


def workload_of(network, batch, precision="bf16"):
    return ["--net", network, "--batch", batch, "--precision", precision]


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f} ms"


def link(bench, check):
    """Copies and hints of several sizes, launches beside them, and machine files for `spillway plan
    --machine`."""
    path = bench.results / "link.json"
    sizes = "2MiB,32MiB" if bench.quick else "64KiB,2MiB,8MiB,32MiB,128MiB,256MiB"
    bench.spillway("bench", "link", *GPU, "--sizes", sizes, "--ways",
                   "prefetch,pageable_copy,pinned_copy", "--json", path,
                   *(["--quick"] if bench.quick else ["--seconds", 0.3]))
    measured = json.loads(path.read_text(encoding="utf-8"))
    rows = measured["rows"]
    for memory, way in LINKS.items():
        rates = [largest(rows, way, direction)["bytes_per_second"] / 1e9
                 for direction in ("in", "out", "both")]
        found = check.data[memory] = link_of(rows, memory)
        check.row(f"link, {memory}: in / out / both at once",
                  " / ".join(f"{rate:.1f}" for rate in rates) + " GB/s, "
                  + ("duplex" if found["duplex"] else "one way at a time")
                  + f", latency {found['latency_ns'] / 1e3:.1f} us")
        machine = machine_of(bench.card, memory, check.data[memory])
        if machine:
            (bench.results / f"machine-{memory}.json").write_text(
                json.dumps(machine, indent=1) + "\n", encoding="utf-8")
    for launch in measured.get("launches", []):
        add_launch(check, launch)


def add_launch(check, launch):
    """A driver that holds a lock during a move makes launches wait."""
    where = f"beside {launch['beside']} out" if launch["beside"] else "alone"
    times = [f"{1e6 * launch[key][value]:.1f}" for key in ("call_seconds", "seconds")
             for value in ("median", "max")]
    check.row(f"launch {where}: call / longest / done / longest", " / ".join(times) + " us")


def trainings(network):
    """The check that compares steps of a network in less memory with the prediction."""
    def check_network(bench, check):
        net, batch = bench.network(network, BATCHES[network] // (4 if bench.quick else 1))
        for variant, (strategies, flags) in VARIANTS.items():
            usable = [s for s in strategies if MEMORY_OF[s] not in bench.untrained]
            if usable:
                train_variant(bench, check, network, f"{net}:{batch}", variant,
                              ["--strategies", ",".join(usable), *flags])
    return check_network


def train_variant(bench, check, name, network, variant, flags):
    batch = network.rpartition(":")[2]
    ending = f"{name}-{variant}" if variant else name
    path = bench.results / f"train-{ending.replace(' ', '-')}.json"
    path.unlink(missing_ok=True)  # an earlier run's
    seconds = int(bench.seconds_left(MOST_SECONDS))
    try:
        bench.spillway("bench", "train", *GPU, "--precision", "bf16", "--net", network,
                       "--batches", batch, "--budgets", BUDGETS, "--conv-algorithm", "auto",
                       *flags, "--json", path, "--timeline",
                       path.with_name(f"timelines-{path.stem}"), "--seconds", seconds,
                       *(["--quick"] if bench.quick else []))
    except Failure as failure:
        # A run that broke its budget, or had other losses.
        check.row(f"{name}, batch {batch}{', ' + variant if variant else ''}", str(failure), False)
        check.status, check.reason = "failed", str(failure)
    finally:
        if path.is_file():  # what was measured counts, however it ended
            rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
            rows = [row for row in rows if row["series"] == "budget"
                    and (not variant or row["memory"] != "resident")]
            check.data[variant or "usual"] = rows
            for row in rows:
                add_training(check, row, variant)


def add_training(check, row, variant=""):
    name = f"{pathlib.Path(row['net']).name}, batch {row['batch']}, "
    is_resident = row["memory"] == "resident"
    name += "resident" if is_resident else f"{row['planner']} ({row['memory']}) at {row['budget']}"
    name += f", {variant}" if variant else ""
    if "failed" in row:
        check.row(name, row["failed"].partition(":")[0])  # without the sizes behind the reason
        return
    value = f"{milliseconds(row['seconds']['median'])}, {row['images_per_second']:.0f} images/s"
    if row["ratio"] and not is_resident:
        value += f", {row['ratio']:.2f} of resident"
    check.row(name, value + beside_prediction(row["seconds"]["median"], row["predicted_seconds"]))


def beside_prediction(measured, predicted):
    if not predicted:
        return ""
    off = measured / predicted - 1
    return (f"; predicted {milliseconds(predicted)}, measured {100 * off:+.0f} %"
            + (" (the prediction is off)" if abs(off) > TRUSTED else ""))


def large_batch(image_bytes, gpu_bytes, ram_bytes):
    """Images of a step that needs a little more than the GPU has, if RAM holds what is far."""
    # A quarter is near; of RAM, six tenths may be pinned.
    most = min(1.05 * gpu_bytes, 0.6 * ram_bytes / 0.75)
    return max(64, int(most / image_bytes) // 64 * 64)


def large(bench, check):
    """A step that needs more than the GPU has, in a quarter of that, by copies."""
    path = bench.results / "train-resnet50.json"
    if not path.is_file():
        raise Failure("how much an image takes is not known: resnet50 was not measured")
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    if not rows:
        raise Failure("how much an image takes is not known: resnet50 has no measurement")
    smaller = rows[0]
    image_bytes = smaller["resident_bytes"] / smaller["batch"]
    # RAM may grow with its use, so what it is now is the second try.
    rams = [float("inf"), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    batches = [256] if bench.quick else [large_batch(image_bytes, bench.free_bytes, ram)
                                         for ram in rams]
    name = pathlib.Path(bench.network("resnet50", 1)[0]).name
    for batch in dict.fromkeys(batches):
        try:
            run = train_large(bench, batch)
            break
        except Failure as failure:
            check.row(f"{name}, batch {batch}, joint (copy) at {bench.budget('25%')}",
                      str(failure))
    else:
        raise Failure("no large step had room")
    check.data["run"] = run
    step = median_step(run)
    need = batch * image_bytes
    check.row(f"{name}, batch {batch}, joint (copy) at {bench.budget('25%')} of "
              f"{need / 2**30:.0f} GiB, "
              f"{need / bench.free_bytes:.2f} of the GPU's",
              f"{milliseconds(step)}, {batch / step:.0f} images/s"
              + beside_prediction(step, run["summary"]["predicted_step_seconds"]))
    if not is_within_budget(run):
        raise Failure("the large step took more near memory than its budget")


def train_large(bench, batch):
    return bench.train(workload_of(bench.network("resnet50", batch)[0], batch),
                       ["--memory", "copy", "--budget", bench.budget("25%"), "--steps", 4,
                        "--lr", LEARNING_RATE,
                        "--timeline", bench.results / "timeline-large.json"])


CHECKS = {"link": link, "steps in bf16": steps_beside_pytorch("bf16", BATCHES),
          **{network: trainings(network) for network in BATCHES},
          "gpt2": gpt2, "operations": operations(BATCHES), "large": large,
          "steps in tf32": steps_beside_pytorch("tf32", BATCHES)}
