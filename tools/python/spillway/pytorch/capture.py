"""A model's training step as a spillway-trace, without running it."""

import collections.abc
import json
import pathlib

import torch
from torch._dynamo.exc import Unsupported as DynamoUnsupported

from ..library import Error
from .backend import Region, prepare
from .compiled_model import CompiledModel
from .graphs import op_costs
from .graphs.step_trace import trace_of
from .plan_step import measured_trace


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

    def hooked(self, function, args, reason, keep):
        """Throws: Error."""
        raise self.failure(reason)

    def failure(self, reason):
        """What capture() throws."""
        return Error(f"cannot capture {self.name}: {reason}")


def capture(model, inputs, optimizer=None, *, path=None, times="measured", name=None):
    """The training step of `model` on `inputs` as a spillway-trace, for `spillway plan --trace-in`.

    `inputs` are the arguments of a call: a tensor, a tuple, or a dictionary of named ones. The step
    is not run, but each of its operators is a few times, unless `times` is "modelled". `path` is
    where the trace is written, too. Throws: Error where there is no graph of the whole model.
    """
    if times not in ("measured", "modelled"):
        raise Error(f"times is {times!r}; give \"measured\" or \"modelled\"")
    captured = CapturedModel({"optimizer": optimizer})
    captured.name, captured.is_measured = name or type(model).__name__, times == "measured"
    prepare()
    compiled = torch.compile(model, backend=lambda module, _: CapturedRegion(module, captured),
                             fullgraph=True, dynamic=False)
    args, kwargs = arguments(inputs)
    try:
        with torch.enable_grad():
            compiled(*args, **kwargs)
    except Captured as found:
        trace = found.trace
    except DynamoUnsupported as why:
        raise captured.failure(f"it is no single graph ({str(why).splitlines()[0]})") from why
    else:
        raise captured.failure("nothing in it requires a gradient")
    if path is not None:
        pathlib.Path(path).write_text(json.dumps(trace), encoding="utf-8")
    return trace


class CapturedRegion(Region):
    """A graph of a model that is captured."""

    def __init__(self, module, captured):
        super().__init__(module, captured.given)
        self.captured = captured

    def owner(self, args):
        """The model."""
        return self.captured


def arguments(inputs):
    """Positional and named ones of a call."""
    if isinstance(inputs, collections.abc.Mapping):
        return (), dict(inputs)
    return (tuple(inputs), {}) if isinstance(inputs, (tuple, list)) else ((inputs,), {})
