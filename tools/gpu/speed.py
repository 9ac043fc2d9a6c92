"""Measurements: the link, and trainings beside their prediction and beside PyTorch's."""

import json
import os
import statistics
import subprocess
import sys

from card import own_environment
from gpu_bench import GPU, ROOT, WARM_UP, Failure, call, is_within_budget, median_step
from machine_file import LINKS, largest, link_of, machine_of

BATCHES = {"resnet50": 256, "vgg16": 128}
LEARNING_RATE = 0.0001
BUDGETS = "100%,60%,40%,25%,min+20%"  # the last one is for VGG-16, which needs two thirds
TRUSTED = 0.15  # how far a prediction may be off
TORCH_STEP = ROOT / "tools" / "bench" / "pytorch_out_of_core_step.py"


def workload_of(network, batch, precision="bf16"):
    return ["--net", network, "--batch", batch, "--precision", precision]


def milliseconds(seconds):
    return f"{1e3 * seconds:.1f} ms"


def link(bench, check):
    """Copies and hints of several sizes, and a machine file for `spillway plan --machine`."""
    path = bench.results / "link.json"
    sizes = "2MiB,32MiB" if bench.quick else "64KiB,2MiB,8MiB,32MiB,128MiB,256MiB"
    bench.spillway("bench", "link", *GPU, "--sizes", sizes, "--ways",
                   "prefetch,pageable_copy,pinned_copy", "--json", path,
                   *(["--quick"] if bench.quick else []))
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    for memory, way in LINKS.items():
        rates = [largest(rows, way, direction)["bytes_per_second"] / 1e9
                 for direction in ("in", "out", "both")]
        check.row(f"link, {memory}: in / out / both at once",
                  " / ".join(f"{rate:.1f}" for rate in rates) + " GB/s")
        check.data[memory] = link_of(rows, memory)
        machine = machine_of(bench.card, memory, check.data[memory])
        if machine:
            (bench.results / f"machine-{memory}.json").write_text(
                json.dumps(machine, indent=1) + "\n", encoding="utf-8")


def trainings(network):
    """The check that compares steps of a network in less memory with the prediction."""
    def check_network(bench, check):
        batch = bench.managed_batch(network, BATCHES[network] // (4 if bench.quick else 1))
        path = bench.results / f"train-{network}.json"
        path.unlink(missing_ok=True)  # an earlier run's
        flags = ["--quick", "--seconds", 120] if bench.quick else []
        try:
            bench.spillway("bench", "train", *GPU, "--precision", "bf16", "--net",
                           f"{network}:{batch}", "--batches", batch, "--budgets", BUDGETS,
                           "--conv-algorithm", "auto", "--strategies", "joint,capacity,copy",
                           "--json", path, *flags)
        finally:
            if path.is_file():  # what was measured counts, also when a run broke its budget
                rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
                check.data["rows"] = [row for row in rows if row["series"] == "budget"]
                for row in check.data["rows"]:
                    add_training(check, row)
    return check_network


def add_training(check, row):
    name = f"{row['net']}, batch {row['batch']}, "
    is_resident = row["memory"] == "resident"
    name += "resident" if is_resident else f"{row['planner']} ({row['memory']}) at {row['budget']}"
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


def discards(bench, check):
    """What it saves that dead blocks are discarded and not moved."""
    batch = bench.managed_batch("resnet50", BATCHES["resnet50"] // 4)
    workload = workload_of("resnet50", batch)
    steps = {}
    for name, told in {"with discards": "on", "without": "off"}.items():
        run = bench.train(workload, ["--memory", "managed", "--budget", "40%", "--discard", told,
                                     "--steps", 8, "--lr", LEARNING_RATE,
                                     "--profile", bench.profile(workload)])
        steps[name] = median_step(run)
        check.data[name] = run
    check.row(f"resnet50, batch {batch}, joint (managed) at 40%: " + " / ".join(steps),
              " / ".join(map(milliseconds, steps.values())))


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
    smaller = json.loads(path.read_text(encoding="utf-8"))["rows"][0]
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    image_bytes = smaller["resident_bytes"] / smaller["batch"]
    batch = 256 if bench.quick else large_batch(image_bytes, bench.free_bytes, ram)
    run = bench.train(workload_of("resnet50", batch),
                      ["--memory", "copy", "--budget", "25%", "--steps", 4, "--lr", LEARNING_RATE])
    check.data["run"] = run
    step = median_step(run)
    check.row(f"resnet50, batch {batch}, joint (copy) at 25 % of "
              f"{batch * image_bytes / 2**30:.0f} GiB",
              f"{milliseconds(step)}, {batch / step:.0f} images/s"
              + beside_prediction(step, run["summary"]["predicted_step_seconds"]))
    if not is_within_budget(run):
        raise Failure("the large step took more near memory than its budget")


def pytorch(bench, check):
    """Resident steps beside PyTorch's, one after the other."""
    probe = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False,
                      env=own_environment()).returncode != 0:
        check.row("PyTorch", f"not measured: {sys.executable} has no PyTorch with CUDA")
        return
    for network, most in BATCHES.items():
        for precision in ["bf16"] if bench.quick else ["bf16", "tf32"]:
            batch = bench.managed_batch(network, most // (4 if bench.quick else 1))
            name = f"{network} {precision}, batch {batch}"
            ours, theirs = both_steps(bench, network, batch, precision)
            check.data[name] = {"ours": ours, "pytorch": theirs}
            expect_same_network(ours["summary"], theirs)
            rates = [batch / median_step(ours),
                     batch / statistics.median(theirs["seconds"][WARM_UP:])]
            check.row(f"{name}: images/s, resident / PyTorch's",
                      f"{rates[0]:.0f} / {rates[1]:.0f} = {rates[0] / rates[1]:.2f}")


def both_steps(bench, network, batch, precision):
    workload = [*workload_of(network, batch, precision), "--classes", 1000]
    steps = ["--steps", WARM_UP + (6 if bench.quick else 20), "--lr", LEARNING_RATE]
    ours = bench.train(workload, ["--memory", "resident", *steps, "--profile",
                                  bench.profile(workload)])
    theirs = json.loads(call([sys.executable, TORCH_STEP, *workload, *steps, "--way", "resident",
                              "--device", "cuda", "--image-size", 224, "--weight-decay", 0,
                              "--threads", len(os.sched_getaffinity(0))], own_environment()))
    return ours, theirs


def expect_same_network(ours, theirs):
    if ours["parameters"] != theirs["parameters"]:
        raise Failure(f"the networks differ: {ours['parameters']} and {theirs['parameters']} "
                      "parameters")


CHECKS = {"link": link, **{network: trainings(network) for network in BATCHES},
          "discards": discards, "large": large, "pytorch": pytorch}
