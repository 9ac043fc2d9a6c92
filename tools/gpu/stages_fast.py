"""Stages that say how fast kernels and steps are: engines, and speed beside PyTorch."""

import json
import os
import pathlib
import statistics
import sys

from measuring import GPU_FLAGS, WARM_UP, Failure, brief, spread

TORCH_STEP = pathlib.Path(__file__).resolve().with_name("torch_step.py")
LEARNING_RATE = 0.0001
BATCHES = {"resnet50": 256, "vgg16": 128}


def workload_of(net, batch, precision):
    return ["--net", net, "--batch", batch, "--classes", 1000, "--precision", precision]


def engines(bench, result):
    """Every engine that was tried for each distinct convolution: engine_times.cpp."""
    result["steps"] = []
    failed = []
    for net, batch in list(BATCHES.items())[:1 if bench.quick else None]:
        for precision in ["bf16"] if bench.quick else ["bf16", "tf32"]:
            step = {"network": net, "batch": batch, "precision": precision}
            result["steps"].append(step)
            try:
                step.update(time_engines(bench, net, batch, precision))
            except Failure as failure:
                step["failed"] = str(failure)
                failed.append(f"{net} {precision}: {failure}")
    if failed:
        raise Failure("; ".join(failed))


def time_engines(bench, net, batch, precision):
    path = bench.work / f"engines-{net}-{precision}.json"
    bench.call([bench.machine.program("engine_times"), *GPU_FLAGS,
                *workload_of(net, batch, precision), "--out", path])
    return json.loads(path.read_text(encoding="utf-8"))


def speed(bench, result):
    """Resident steps beside PyTorch's, on the same card, one after the other."""
    precisions = ["bf16"] if bench.quick else ["bf16", "tf32"]
    result["pairs"] = []
    slower = []
    for net, batch in BATCHES.items():
        for precision in precisions:
            pair = {"network": net, "batch": batch, "precision": precision}
            result["pairs"].append(pair)
            compare(bench, pair)
            if pair.get("ratio", 0) < 1:
                slower.append(f"{net} {precision}")
    if slower:
        raise Failure("slower than PyTorch, or not measured: " + ", ".join(slower))


def compare(bench, pair):
    """Adds what was measured to `pair`, or why not."""
    workload = workload_of(pair["network"], pair["batch"], pair["precision"])
    steps = WARM_UP + (6 if bench.quick else 20)
    try:
        profile = bench.profile(workload, "managed")
        run = bench.train(workload, ["--memory", "resident", "--steps", steps, "--lr",
                                     LEARNING_RATE, "--profile", profile])
        pair["ours"] = {**brief(run), **rate_of([s["seconds"] for s in run["steps"]], pair)}
        theirs = json.loads(bench.call(
            [sys.executable, TORCH_STEP, "--net", pair["network"], "--batch", pair["batch"],
             "--precision", pair["precision"], "--steps", steps, "--lr", LEARNING_RATE],
            dict(os.environ)))  # with its own libraries
        pair["pytorch"] = {**theirs, **rate_of(theirs["seconds"], pair)}
        take_better(pair["pytorch"], pair["batch"])
        expect_same_size(run["summary"], theirs)
        pair["ratio"] = pair["ours"]["images_per_second"] / pair["pytorch"]["images_per_second"]
    except Failure as failure:
        pair["failed"] = str(failure)


def rate_of(seconds, pair):
    counted = seconds[WARM_UP:]
    median = statistics.median(counted)
    return {"median_step_seconds": median, "spread": spread(counted),
            "images_per_second": pair["batch"] / median}


def take_better(pytorch, batch):
    """PyTorch's rate is that of steps that nobody waits for, where they are faster."""
    seconds = min(pytorch["median_step_seconds"], pytorch["unwatched_step_seconds"])
    pytorch["images_per_second"] = batch / seconds


def expect_same_size(ours, theirs):
    if ours["parameters"] != theirs["parameters"]:
        raise Failure(f"the networks differ: {ours['parameters']} and {theirs['parameters']} "
                      "parameters")
