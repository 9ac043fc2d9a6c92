"""What a model's plan keeps near, moves and computes again, and how long that should take."""

import json
import pathlib

import torch

from ..library import Error
from ..sizes import size_text
from .graphs.schedule import RUN, STORE
from .models import UNCOUNTED, models_of
from .promises import BUSY, UNKEPT


class Explanation:
    """`text` says it; `plans` are the PlannedGraphs, of which there are two where gradients are
    accumulated, and more where sizes change. str() gives the text."""

    def __init__(self, model):
        self.plans = list(model.plans)
        self.text = "\n".join([*map(described, self.plans),
                               *(f"not kept      {reason}" for reason in model.unkept)])

    def __str__(self):
        return self.text

    def write_timeline(self, path):
        """Writes the predicted step as a Chrome trace, which Perfetto opens."""
        pathlib.Path(path).write_text(json.dumps(self.plans[0].planned.timeline), encoding="utf-8")


def explain(model, timeline=None):
    """The Explanation of a compiled model that has been called; printed, and returned.

    `timeline` is where the predicted step is written, a Chrome trace. Throws: Error where there is
    no plan, and why.
    """
    if not isinstance(model, torch.nn.Module):
        raise Error(f"explain() takes a module, and was given a {type(model).__name__}; give it "
                    "the model whose parameters the function trains")
    found = models_of(model)
    planned = [each for each in found if each.plans]
    if not planned:
        unkept = [reason for each in found for reason in each.unkept]
        if not found and any(p in UNCOUNTED for p in model.parameters()):
            unkept.append(BUSY)
        reasons = "; ".join(UNKEPT + reason for reason in unkept)
        raise Error("there is no plan of this model yet"
                    + (f": {reasons}" if reasons else "; call it with gradients first"))
    explanation = Explanation(planned[-1])
    print(explanation)
    if timeline is not None:
        explanation.write_timeline(timeline)
    return explanation


def described(graphs):
    """A few lines of text."""
    figures, needs = graphs.planned.figures, graphs.planned.needs
    runs = [e.number for e in graphs.events if e.kind == RUN]
    again = {getattr(t, "name", t) for t in runs if runs.count(t) > 1}
    moved = {f"{e.number.name} ({size_text(e.number.size)})" for e in graphs.events
             if e.kind == STORE}
    bounds = figures["bounds"]
    return "\n".join([
        f"budget        {size_text(graphs.budget)}, all near "
        f"{size_text(needs['resident_bytes'])}, peak {size_text(graphs.peak())}, planned",
        f"operators     {len(graphs.step.tasks)}, over {len(graphs.step.blocks)} blocks",
        f"moved         {size_text(figures['offloaded_bytes'])} out, "
        f"{size_text(figures['prefetched_bytes'])} in: {listed(moved)}",
        f"again         {listed(again)}",
        f"step          {figures['makespan_seconds']:.3f} s predicted, "
        f"{figures['arithmetic_seconds']:.3f} s of it arithmetic, none below "
        f"{bounds['mixed_turnover']:.3f} s"])


def listed(names, most=6):
    """Some of them."""
    ordered = sorted(names)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more if ordered else "nothing"
