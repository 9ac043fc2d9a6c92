"""The stages of tools/gpu/run: what each needs, how long it takes, and in which order they come."""

import dataclasses
import time

import correct
import speed
from gpu_bench import Failure, NotHere, TimeIsUp
from trains import STAGE_MOST, trains_in


@dataclasses.dataclass
class Stage:
    """A check. It begins when `needs`, names of earlier stages, have passed and so many seconds are
    left; it ends after `most`. The stages that it `tries` come first, too: one must have passed."""
    name: str
    run: object  # function of a Bench and a Check
    least: float = 10
    most: float = 120
    needs: tuple = ()
    tries: tuple = ()


TRAINS = ("trains resident", "trains copy", "trains managed")
# What matters comes first: what has no time left is left out. Sanitizers are last.
STAGES = [
    Stage("facts", correct.facts, 1, 30),
    *(Stage(f"trains {memory}", trains_in(memory), 5, STAGE_MOST)
      for memory in ("resident", "copy", "managed")),
    Stage("tests", correct.tests, 20, 240),
    Stage("identity", correct.identity, 30, 150, TRAINS),
    Stage("steady", correct.steady, 15, 90, ("trains managed",)),
    Stage("link", speed.CHECKS["link"], 15, 90),
    Stage("steps in bf16", speed.CHECKS["steps in bf16"], 30, 270, ("trains resident",)),
    Stage("resnet50", speed.CHECKS["resnet50"], 45, 240, TRAINS[:1], TRAINS[1:]),
    Stage("gpt2", speed.CHECKS["gpt2"], 30, 180, ("trains resident", "trains copy")),
    Stage("large", speed.CHECKS["large"], 30, 120, ("trains copy", "resnet50")),
    Stage("operations", speed.CHECKS["operations"], 15, 90, ("trains resident",)),
    Stage("vgg16", speed.CHECKS["vgg16"], 45, 240, TRAINS[:1], TRAINS[1:]),
    Stage("steps in tf32", speed.CHECKS["steps in tf32"], 30, 270, ("trains resident",)),
    Stage("racecheck", correct.sanitizer("racecheck"), 20, 240),
    Stage("memcheck", correct.sanitizer("memcheck"), 20, 240),
]
GROUPS = {"correct": ["facts", *TRAINS, "tests", "identity", "steady", "racecheck", "memcheck"],
          "speed": ["link", "steps in bf16", "resnet50", "gpt2", "large", "operations",
                    "vgg16", "steps in tf32"]}


def chosen(names, results):
    """The stages of these names and groups, and what these need or try and has not passed; for no
    names all that have not passed. In order."""
    wanted = {stage for name in names for stage in GROUPS.get(name, [name])}
    needed = set(wanted)
    for stage in reversed(STAGES):  # a stage needs earlier ones
        if stage.name in needed or not names:
            needed.update(stage.needs + stage.tries)
    return [stage for stage in STAGES if stage.name in wanted or
            (results.status(stage.name) != "passed" and (not names or stage.name in needed))]


def run_stage(stage, bench, check):
    """Fills the Check. Nothing that goes wrong in one stage ends the others."""
    begin = time.monotonic()
    bench.begin_stage(stage.most)
    try:
        bench.seconds_left()
        stage.run(bench, check)
    except TimeIsUp:
        if check.status == "running":
            check.reason = ("there was no time left for all of it" if bench.seconds_to_end() <= 0
                            else f"it took more than its {bench.patience * stage.most:.0f} s")
            check.status = "left out"
            if check.has_failed_row():
                check.status, check.reason = "failed", f"see above; {check.reason}"
    except NotHere as reason:
        check.status, check.reason = "left out", str(reason)
    except (Failure, OSError) as failure:
        check.status, check.reason = "failed", str(failure)
    except Exception as error:  # pylint: disable=broad-exception-caught
        check.status = "failed"
        check.reason = f"a program wrote something unexpected ({type(error).__name__}: {error})"
    if check.status == "running":
        check.status, check.reason = "passed", ""
    check.seconds = time.monotonic() - begin


def why_not(stage, bench, results):
    """Why a stage is left out before it begins; nothing where it may begin."""
    for need in stage.needs:
        status = results.status(need)
        if status != "passed":
            return f"it needs {need}, which {verb(status)}"
    if stage.tries and all(results.status(name) != "passed" for name in stage.tries):
        return f"it needs {' or '.join(stage.tries)}, and neither has passed"
    left = bench.seconds_to_end()
    if left < stage.least:
        return f"it takes {stage.least:.0f} s or more, and {max(0, left):.0f} s are left"
    return ""


def verb(status):
    return {"failed": "failed", "left out": "was left out", "running": "was stopped"}.get(
        status, "has not run")
