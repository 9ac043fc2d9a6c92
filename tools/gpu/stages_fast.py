"""Stages that say how fast steps are: speed beside PyTorch, overhead beside the prediction."""

import json
import os
import pathlib
import statistics
import sys

from measuring import WARM_UP, Failure, brief, median_step, spread

TORCH_STEP = pathlib.Path(__file__).resolve().with_name("torch_step.py")
LEARNING_RATE = 0.0001
BATCHES = {"resnet50": 256, "vgg16": 128}


def workload_of(net, batch, precision):
    return ["--net", net, "--batch", batch, "--classes", 1000, "--precision", precision]


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


GOAL = 0.1  # how far the prediction may be off at 40 %


def overhead(bench, result):
    """Steps in part of the memory they need, beside the resident step and the prediction."""
    batch = 64 if bench.quick else BATCHES["resnet50"]
    workload = workload_of("resnet50", batch, "bf16")
    steps = WARM_UP + (3 if bench.quick else 7)
    resident = bench.train(workload, ["--memory", "resident", "--steps", steps, "--lr",
                                      LEARNING_RATE, "--profile",
                                      bench.profile(workload, "managed")])
    result["batch"] = batch
    result["resident"] = {**brief(resident), "median_step_seconds": median_step(resident)}
    result["runs"] = []
    # What has a goal first, in case time runs out.
    for budget in ["40%"] if bench.quick else ["40%", "60%", "100%"]:
        for memory in ("managed", "copy"):
            for planner in ("joint", "capacity"):
                result["runs"].append(
                    overhead_run(bench, workload, steps, resident, memory, budget, planner))
        if budget == "40%":
            result["large"] = large(bench, resident)
    judge(result)


def overhead_run(bench, workload, steps, resident, memory, budget, planner):
    run = {"memory": memory, "budget": budget, "planner": planner}
    try:
        profile = bench.profile(workload, memory)
        done = bench.train(workload, ["--memory", memory, "--budget", budget, "--planner", planner,
                                      "--steps", steps, "--lr", LEARNING_RATE, "--profile",
                                      profile])
    except Failure as failure:
        return {**run, "failed": str(failure)}
    median = median_step(done)
    predicted = done["summary"]["predicted_step_seconds"]
    return {**run, **brief(done), "median_step_seconds": median,
            "spread": spread([step["seconds"] for step in done["steps"][WARM_UP:]]),
            "predicted_step_seconds": predicted, "over_prediction": median / predicted - 1,
            "ratio_to_resident": median / median_step(resident)}


def large_batch(resident, card_bytes, ram_bytes):
    """Images of a step that needs a little more than the card has, if RAM holds what is far."""
    an_image = resident["resident_bytes"] / resident["batch"]
    # A quarter is near; of RAM, six tenths may be pinned.
    most = min(1.05 * card_bytes, 0.6 * ram_bytes / 0.75)
    return max(64, int(most / an_image) // 64 * 64)


def large(bench, resident):
    """A step in a quarter of the memory that it needs, by copies."""
    card = bench.gpu["available_memory_bytes"]
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    batch = 256 if bench.quick else large_batch(resident["summary"], card, ram)
    run = {"memory": "copy", "budget": "25%", "planner": "joint", "batch": batch}
    try:
        done = bench.train(workload_of("resnet50", batch, "bf16"),
                           ["--memory", "copy", "--budget", "25%", "--steps", 4, "--lr",
                            LEARNING_RATE])
    except Failure as failure:
        return {**run, "failed": str(failure)}
    seconds = median_step(done)
    predicted = done["summary"]["predicted_step_seconds"]
    return {**run, **brief(done), "median_step_seconds": seconds,
            "images_per_second": batch / seconds, "predicted_step_seconds": predicted,
            "over_prediction": seconds / predicted - 1,
            "card_bytes": card,
            "is_more_than_the_card": done["summary"]["resident_bytes"] > card}


def judge(result):
    """Throws: Failure when a run gave nothing, overran its budget, or missed the goal."""
    every = [*result["runs"], result["large"]]
    failed = [run for run in every if "failed" in run]
    if failed:
        raise Failure(f"{len(failed)} of {len(every)} runs failed: {failed[0]['failed']}")
    for run in every:
        if run["summary"]["near_peak_bytes"] > run["summary"]["budget_bytes"]:
            raise Failure(f"{run['memory']} {run['budget']} used more near memory than its budget")
    missed = [f"{run['memory']} {run['planner']} {100 * run['over_prediction']:+.0f} %"
              for run in result["runs"]
              if run["budget"] == "40%" and abs(run["over_prediction"]) > GOAL]
    if missed:
        raise Failure("steps at 40 % are not within 10 % of the prediction: " + ", ".join(missed))
