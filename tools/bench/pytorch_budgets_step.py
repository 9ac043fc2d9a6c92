"""Trains a model in PyTorch in one of several ways to save memory; tools/bench/pytorch_budgets
starts it as a process of its own.

Prints as JSON: digests of all losses and of the final state, seconds of each step, the most bytes
of tensors in any step but the first, and the most memory of the process beyond its calibrated base.
"""

import argparse
import contextlib
import gc
import hashlib
import json
import os
import pathlib
import sys
import time
import warnings

import torch
from torch.profiler import ProfilerActivity, profile

from disk_hooks import saved_in_files
from pytorch_models import MODELS, parts_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

WAYS = ("plain", "compiled", "eager", "checkpoint", "partitioner", "files", "saved_tensors")


class Way:
    """`call` is the model as it is run, `step` a context of the forward pass, `whole` one of the
    training; all as `options` say."""

    def __init__(self, options, model, optimizer):
        self.call, self.step = model, contextlib.nullcontext
        self.whole = contextlib.nullcontext()
        getattr(self, options.way)(options, model, optimizer)

    def plain(self, options, model, optimizer):
        """PyTorch as it is."""

    def compiled(self, options, model, optimizer):
        """torch.compile with the backend."""
        import spillway.pytorch  # noqa: F401 pylint: disable=import-outside-toplevel,unused-import
        self.call = torch.compile(model, backend="spillway", options={
            "budget": options.budget, "far": options.far, "optimizer": optimizer})

    def eager(self, options, model, optimizer):
        """The context for code that compiles nothing."""
        import spillway  # pylint: disable=import-outside-toplevel
        self.whole = spillway.budget(model, optimizer, options.budget, options.far)

    def checkpoint(self, options, model, optimizer):
        """Each block of the model runs again in the backward pass."""
        for part in parts_of(model):
            def again(*args, forward=part.forward, **kwargs):
                return torch.utils.checkpoint.checkpoint(forward, *args, use_reentrant=False,
                                                         **kwargs)
            part.forward = again

    def partitioner(self, options, model, optimizer):
        """AOTAutograd's own, which is given a number from 0 to 1."""
        torch._functorch.config.activation_memory_budget = float(options.budget)
        self.call = torch.compile(model, backend="aot_eager_decomp_partition", dynamic=False)

    def files(self, options, model, optimizer):
        """Hooks that save each tensor to a file."""
        self.step = lambda: saved_in_files(options.far)

    def saved_tensors(self, options, model, optimizer):
        """Hooks over a space."""
        import spillway  # pylint: disable=import-outside-toplevel
        space = spillway.Space(near=options.budget, capacity="32GiB" if options.far else "6GiB",
                               far=options.far)
        saved = spillway.saved_tensors(space, keep=model)
        self.step = lambda: saved


def tensor_bytes():
    """Of all tensors that the program holds, and their gradients; each storage once."""
    held = [t for t in gc.get_objects() if issubclass(type(t), torch.Tensor)
            and type(t).__name__ != "FakeTensor" and t.device.type == "cpu"]
    held += [t.grad for t in held if t.is_leaf and t.grad is not None]
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in held}
    return sum(storages.values())


def allocated_peak(step):
    """The most bytes above the beginning that PyTorch's allocator gave out meanwhile."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    events = [e for e in recorded.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def status(name):
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10


def measure(options):
    """As this module says."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(5)
    model, loss_of = MODELS[options.model](options.real)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    way = Way(options, model, optimizer)
    losses, times, peaks, resident = [], [], [], []

    def step():
        with way.step():
            loss = loss_of(way.call)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    torch.manual_seed(11)
    with way.whole, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(options.steps):
            optimizer.zero_grad()
            gc.collect()
            held = tensor_bytes()
            base = status("VmRSS") - held
            with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
                reset.write("5")
            begin = time.perf_counter()
            if number == 1:
                peaks.append(held + allocated_peak(step))
            else:
                step()
                times.append(time.perf_counter() - begin)
            resident.append(status("VmHWM") - base)
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.detach().contiguous().view(torch.uint8).numpy().tobytes()
                      if value.dim() else str(value.item()).encode())
    return {"losses": [loss.item().hex() for loss in losses], "state": digest.hexdigest(),
            "first": times[0], "steps": times[1:], "peak": max(peaks), "resident": resident[1:],
            "told": [str(w.message) for w in told if "spillway" in str(w.message)],
            "torch": torch.__version__, **facts_of(options, model)}


def facts_of(options, model):
    """What the plan says of itself."""
    if options.way not in ("compiled", "eager"):
        return {}
    from spillway.pytorch.models import models_of  # pylint: disable=import-outside-toplevel
    planned = [p for each in models_of(model) for p in each.plans]
    if not planned:
        return {}
    figures = planned[0].planned.figures
    return {"budget": figures["budget_bytes"] + planned[0].passage, "figures": {
        k: v for k, v in figures.items() if not isinstance(v, dict)},
        "needs": planned[0].planned.needs, "passage": planned[0].passage}


def main():
    """One run."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--budget")
    parser.add_argument("--far")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    try:
        print(json.dumps(measure(options)))
    except Exception as error:
        if type(error).__name__ != "BudgetTooSmall":
            raise
        print(json.dumps({"refused": str(error), "smallest": error.smallest}))


if __name__ == "__main__":
    main()
