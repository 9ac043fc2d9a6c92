"""The stage that says what part of the memory costs: overhead, beside the prediction."""

import dataclasses
import os

from measuring import WARM_UP, Failure, brief, median_step, spread
from stages_fast import BATCHES, LEARNING_RATE, workload_of

GOAL = 0.1  # how far the prediction may be off at 40 %
PLANNED = ("joint", "capacity")
# Unified memory that an image takes at most, in bf16 and with all that is beside the activations.
UNIFIED_BYTES = {"resnet50": 50 << 20, "vgg16": 50 << 20}


@dataclasses.dataclass(frozen=True)
class Case:
    """A training in part of the memory it needs."""
    network: str
    budget: str
    memory: str
    planner: str = "joint"
    discards: bool = True

    def flags(self):
        return ["--memory", self.memory, "--budget", self.budget, "--planner", self.planner,
                *([] if self.discards else ["--no-discard"])]


def compared(network, budget):
    """Plans by unified memory and by copies, and swapping on demand. There is none by page faults:
    they keep no budget on a GPU, and without one there is nothing to page."""
    return [Case(network, budget, "managed"), Case(network, budget, "copy"),
            Case(network, budget, "copy", "on-demand")]


# What has a goal first, should time run out.
FIRST = compared("resnet50", "40%")
QUICK = [Case("resnet50", "40%", "managed", discards=False), *compared("vgg16", "min+20%")[:2]]
FULL = [Case("resnet50", "40%", "managed", "capacity"), Case("resnet50", "40%", "copy", "capacity"),
        Case("resnet50", "40%", "managed", discards=False), *compared("resnet50", "25%"),
        *compared("vgg16", "min+20%"), *compared("vgg16", "min+50%"),
        *compared("resnet50", "60%")[:2], *compared("resnet50", "100%")[:2]]


def overhead(bench, result):
    """Steps in part of the memory they need, beside the resident step and the prediction; and one
    that needs more than the card has."""
    result["resident"], result["runs"] = {}, []
    for case in FIRST:
        add_run(bench, result, case)
    result["large"] = large(bench, result["resident"]["resnet50"])
    for case in QUICK if bench.quick else FULL:
        add_run(bench, result, case)
    judge(result)


def add_run(bench, result, case):
    steps = WARM_UP + (3 if bench.quick else 5)
    if case.network not in result["resident"]:
        result["resident"][case.network] = resident(bench, case.network, steps)
    result["runs"].append(run_case(bench, case, result["resident"][case.network], steps))


def managed_batch(network, most, free_bytes):
    """The largest batch, at most `most`, whose step takes no more unified memory than there may
    be: 16 GiB and a quarter of what is free."""
    limit = min(16 << 30, free_bytes // 4)
    while most > 32 and most * UNIFIED_BYTES[network] > limit:
        most //= 2
    return most


def resident(bench, network, steps):
    batch = managed_batch(network, BATCHES[network] // (4 if bench.quick else 1),
                          bench.gpu["available_memory_bytes"])
    workload = workload_of(network, batch, "bf16")
    run = bench.train(workload, ["--memory", "resident", "--steps", steps, "--lr", LEARNING_RATE,
                                 "--profile", bench.profile(workload, "managed")])
    return {**brief(run), "batch": batch, "median_step_seconds": median_step(run)}


def run_case(bench, case, beside, steps):
    """What was measured, or why not."""
    run = {**dataclasses.asdict(case), "batch": beside["batch"]}
    workload = workload_of(case.network, run["batch"], "bf16")
    try:
        done = bench.train(workload, [*case.flags(), "--steps", steps, "--lr", LEARNING_RATE,
                                      "--profile", bench.profile(workload, case.memory)])
    except Failure as failure:
        return {**run, "failed": str(failure)}
    return {**run, **figures(done),
            "spread": spread([step["seconds"] for step in done["steps"][WARM_UP:]]),
            "ratio_to_resident": median_step(done) / beside["median_step_seconds"]}


def figures(done):
    median = median_step(done)
    predicted = done["summary"]["predicted_step_seconds"]
    return {**brief(done), "median_step_seconds": median, "predicted_step_seconds": predicted,
            "over_prediction": median / predicted - 1}


def large_batch(resident_summary, card_bytes, ram_bytes):
    """Images of a step that needs a little more than the card has, if RAM holds what is far."""
    an_image = resident_summary["resident_bytes"] / resident_summary["batch"]
    # A quarter is near; of RAM, six tenths may be pinned.
    most = min(1.05 * card_bytes, 0.6 * ram_bytes / 0.75)
    return max(64, int(most / an_image) // 64 * 64)


def large(bench, beside):
    """A step in a quarter of the memory that it needs, by copies."""
    card = bench.gpu["available_memory_bytes"]
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    batch = 256 if bench.quick else large_batch(beside["summary"], card, ram)
    run = {**dataclasses.asdict(Case("resnet50", "25%", "copy")), "batch": batch}
    try:
        done = bench.train(workload_of("resnet50", batch, "bf16"),
                           ["--memory", "copy", "--budget", "25%", "--steps", 4, "--lr",
                            LEARNING_RATE])
    except Failure as failure:
        return {**run, "failed": str(failure)}
    return {**run, **figures(done), "images_per_second": batch / median_step(done),
            "card_bytes": card,
            "is_more_than_the_card": done["summary"]["resident_bytes"] > card}


def has_goal(run):
    """The prediction is of planned moves."""
    return run["budget"] == "40%" and run["planner"] in PLANNED and run["discards"]


def judge(result):
    """Throws: Failure when a run gave nothing, overran its budget, or missed the goal."""
    every = [*result["runs"], result["large"]]
    failed = [run for run in every if "failed" in run]
    if failed:
        raise Failure(f"{len(failed)} of {len(every)} runs failed: {failed[0]['failed']}")
    for run in every:
        if run["summary"]["near_peak_bytes"] > run["summary"]["budget_bytes"]:
            raise Failure(f"{run['network']} {run['memory']} {run['budget']} used more near memory "
                          "than its budget")
    missed = [f"{run['memory']} {run['planner']} {100 * run['over_prediction']:+.0f} %"
              for run in result["runs"] if has_goal(run) and abs(run["over_prediction"]) > GOAL]
    if missed:
        raise Failure("steps at 40 % are not within 10 % of the prediction: " + ", ".join(missed))
