"""Plans a recorded step within a budget, by libspillway_plan.so: the planners in a C function."""

import ctypes
import functools
import json
import os
import pathlib
import re

from .library import Error
from .sizes import byte_count

FILE_NAME = "libspillway_plan.so"
FUNCTIONS = "spillway_plan_trace", "spillway_plan_free"
RELATIVE = re.compile(r"(?:(\d+(?:\.\d+)?)\s*%|min(?:\s*\+\s*(\d+(?:\.\d+)?)\s*%)?)")
MOST_BYTES = 1 << 62


class BudgetTooSmall(Error):
    """No plan keeps the budget; `smallest` bytes is the smallest that works."""

    def __init__(self, sentence, smallest):
        super().__init__(sentence, "BUDGET_TOO_SMALL")
        self.smallest = smallest


class PlannedStep:
    """A plan that keeps its budget under any timing, proved before it is handed out.

    `plan` is a spillway-plan, `figures` what `spillway plan --json` says of one, `needs` the bytes
    of the step with everything near and of the smallest budget, `timeline` a Chrome trace or None.
    """

    def __init__(self, answer):
        self.needs, self.plan, self.figures = answer["needs"], answer["plan"], answer["figures"]
        self.timeline = answer.get("timeline")


def plan(trace, budget, *, planner="joint", recompute=True, parts=False, offload_weights=False,
         link=None, timeline=False):
    """The PlannedStep of `trace`, a spillway-trace as a dictionary or the path of a file.

    `budget` is bytes, "6GiB", "60%" of what the step needs with everything near, "min", or
    "min+20%" of the way from there. `parts` lets moves take parts of blocks, `link` is that of a
    spillway-machine. `joint` chooses the variants of tasks that have several: "variants" in `plan`
    and `figures`. Throws: BudgetTooSmall; Error that says what is wrong with the trace.
    """
    text = trace_text(trace)
    request = {"planner": planner, "recompute": recompute, "parts": parts,
               "offload_weights": offload_weights, "timeline": timeline}
    if link is not None:
        request["link"] = link
    request["budget_bytes"] = budget_bytes(budget, lambda: asked(
        text, {"planner": planner, "offload_weights": offload_weights})["needs"])
    answer = asked(text, request)
    if "refused" in answer:
        raise BudgetTooSmall(answer["refused"]["sentence"], answer["refused"]["smallest_bytes"])
    return PlannedStep(answer)


def needs(trace):
    """Bytes of a trace's step: "resident_bytes" with everything near, and "smallest_bytes"."""
    return asked(trace_text(trace), {})["needs"]


def is_relative(budget):
    """Whether it is a part of a step's need, such as "60%" or "min"."""
    return isinstance(budget, str) and RELATIVE.fullmatch(budget.strip()) is not None


def budget_bytes(budget, needs_of_step):
    """`budget` in bytes; `needs_of_step()` is called where it is relative to them."""
    if not is_relative(budget):
        count = min(byte_count(budget), MOST_BYTES)
        if count == 0:
            raise ValueError("a budget of 0 bytes holds no step; give bytes (\"6GiB\"), a part of "
                             "the step's need (\"60%\"), or \"min\"")
        return count
    match, need = RELATIVE.fullmatch(budget.strip()), needs_of_step()
    if match[1] is not None:
        return int(need["resident_bytes"] * float(match[1]) / 100)
    above = need["resident_bytes"] - need["smallest_bytes"]
    return need["smallest_bytes"] + int(above * float(match[2] or 0) / 100)


def trace_text(trace):
    """JSON of a trace that is a dictionary, or that lies in a file."""
    if isinstance(trace, dict):
        return json.dumps(trace)
    try:
        return pathlib.Path(trace).read_text(encoding="utf-8")
    except OSError as error:
        raise Error(f"cannot read the trace {trace}: {error.strerror}") from error


def asked(trace, request):
    """The library's answer. Throws: Error with its sentence."""
    library = load_planners()
    pointer = library.spillway_plan_trace(trace.encode(), json.dumps(request).encode())
    if not pointer:
        raise Error("the system has no memory left to plan with", "OUT_OF_MEMORY")
    try:
        answer = json.loads(ctypes.string_at(pointer))
    finally:
        library.spillway_plan_free(pointer)
    if "error" in answer:
        raise Error(answer["error"])
    return answer


@functools.cache
def load_planners():
    """The library: what SPILLWAY_PLAN_LIBRARY names, else beside the package, else the tree's."""
    named = os.environ.get("SPILLWAY_PLAN_LIBRARY")
    package = pathlib.Path(__file__).resolve().parent
    built = package.parent.parent.parent / "build" / "release" / "bin"
    places = [named] if named else [package / FILE_NAME, FILE_NAME, built / FILE_NAME]
    failure = None
    for place in places:
        try:
            library = ctypes.CDLL(str(place))
            break
        except OSError as error:
            failure = error
    else:
        raise Error(f"cannot load {FILE_NAME} ({failure}); build it with 'ninja -C build/release "
                    "spillway_plan_dropin' and set SPILLWAY_PLAN_LIBRARY to its path")
    for name in FUNCTIONS:
        if not hasattr(library, name):
            raise Error(f"{place} has no function {name}, so it is no {FILE_NAME} of this version; "
                        "build it again, or set SPILLWAY_PLAN_LIBRARY to one")
    library.spillway_plan_trace.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.spillway_plan_trace.restype = ctypes.c_void_p
    library.spillway_plan_free.argtypes = [ctypes.c_void_p]
    library.spillway_plan_free.restype = None
    return library
