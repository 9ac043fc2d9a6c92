"""A model's training step as a spillway-trace, without running it."""

import json
import pathlib

import torch

from ..library import Error
from . import op_costs
from .backend import CompiledModel
from .plan_step import measured_trace
from .step_trace import trace_of


class Captured(Exception):
    """Ends the call of the model: its graphs are known."""

    def __init__(self, trace):
        super().__init__("captured")
        self.trace = trace


class CapturedModel(CompiledModel):
    """Stops where others would plan."""

    def plan(self, step, surroundings):
        """Throws: Captured."""
        if self.is_measured:
            raise Captured(measured_trace(step, self.name, surroundings))
        op_costs.model(step.tasks)
        raise Captured(trace_of(step, self.name, surroundings))


def capture(model, inputs, optimizer=None, *, path=None, times="measured", name=None):
    """The training step of `model` on `inputs` as a spillway-trace, for `spillway plan --trace-in`.

    `inputs` are the arguments of a call: a tensor, a tuple, or a dictionary of named ones. The step
    is not run, but each of its operators is a few times, unless `times` is "modelled". `path` is
    where the trace is written, too. Throws: Error where there is no graph of the whole model.
    """
    if times not in ("measured", "modelled"):
        raise Error(f"times is {times!r}; give \"measured\" or \"modelled\"")
    owner = CapturedModel({"optimizer": optimizer})
    owner.name, owner.is_measured = name or type(model).__name__, times == "measured"
    compiled = torch.compile(model, backend=lambda module, _: owner.add(module), fullgraph=True,
                             dynamic=False)
    args, kwargs = arguments(inputs)
    try:
        compiled(*args, **kwargs)
    except Captured as captured:
        trace = captured.trace
    else:
        reason = "; ".join(owner.told) or "nothing in it requires a gradient"
        raise Error(f"cannot capture {owner.name}: {reason}")
    if path is not None:
        pathlib.Path(path).write_text(json.dumps(trace), encoding="utf-8")
    return trace


def arguments(inputs):
    """Positional and named ones of a call."""
    if isinstance(inputs, dict):
        return (), inputs
    return (tuple(inputs), {}) if isinstance(inputs, (tuple, list)) else ((inputs,), {})
