"""Runs kinds of program in plain PyTorch and within a budget; tools/bench/pytorch_promises starts
it, with the counter of tensor_bytes.c preloaded.

Prints as JSON, of each: the bytes that were promised (none where the program was told that no
budget is kept), the most that PyTorch's allocator gave out, and whether all bits are eager's.
"""

import argparse
import ctypes
import gc
import hashlib
import json
import logging
import pathlib
import sys
import warnings

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from pytorch_programs import PROGRAMS

BUDGET = "min+30%"


class Plain:
    """A program's run in plain PyTorch."""

    def __init__(self):
        self.noted = []

    def made(self, make):
        """A model with the same weights each time."""
        torch.manual_seed(5)
        return make()

    def line(self, model, **given):
        """What calls it."""
        del given
        return model

    def line_of(self, model):
        """The model, which calls itself so."""
        return model

    def steps(self, count, measured_from=1):
        """Numbers of steps."""
        del measured_from
        return range(count)

    def note(self, *tensors, order=0):
        """Bits to compare; threads note theirs in any order."""
        self.noted.append((order, [digest_of(t) for t in tensors]))


class Budgeted(Plain):
    """Within a budget, far memory in a file; peaks are counted from the second step on."""

    def __init__(self, counter, far):
        super().__init__()
        self.counter, self.far, self.peak = counter, far, 0

    def options(self, budget=BUDGET):
        """Of torch.compile()."""
        return {"budget": budget, "far": self.far}

    def line(self, model, dynamic=None, **given):
        return torch.compile(model, backend="spillway", dynamic=dynamic,
                             options=self.options(**given))

    def line_of(self, model):
        model.compile(backend="spillway", options=self.options())
        return model

    def steps(self, count, measured_from=1):
        for number in range(count):
            if number == measured_from:
                gc.collect()
                self.counter.tensor_bytes_forget_peak()
            yield number
        self.peak = max(self.peak, self.counter.tensor_bytes_peak())


def digest_of(tensor):
    """Of its bits."""
    return hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest()


def bits_of(program, run):
    """What is compared of a program's run, and its model."""
    model = program(run)
    noted = sorted(run.noted, key=lambda each: each[0])
    return [noted, *map(digest_of, model.parameters())], model


def outcome(program, counter, far):
    """Of one program."""
    from spillway.pytorch.models import models_of  # pylint: disable=import-outside-toplevel
    torch._dynamo.reset()
    gc.collect()
    expected, _ = bits_of(program, Plain())
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, model = bits_of(program, run := Budgeted(counter, far))
    told = [str(w.message).removeprefix("spillway: ") for w in caught if "spillway" in str(
        w.message)]
    models = models_of(model)
    plans = [plan for each in models for plan in each.plans]
    slots = sum(each.memory.slot_bytes() for each in models if each.memory is not None)
    is_kept = plans and not any(reason.startswith("no budget is kept") for reason in told)
    return {"promised": max(plan.budget for plan in plans) if is_kept else None,
            "measured": run.peak + slots, "told": told, "bits": found == expected}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--far", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    counter = ctypes.CDLL(None)
    for name in ("held", "peak"):
        getattr(counter, f"tensor_bytes_{name}").restype = ctypes.c_longlong
    found = {name: outcome(PROGRAMS[name], counter, options.far)
             for name in options.only.split(",")}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
