"""The backend of torch.compile: torch.compile(model, backend="spillway", options={...})."""

import functools
import os
import shutil
import weakref

import torch

from ..space import Space
from .options import Options
from .plan_step import plan_graphs
from .region import Region, warn_once

NEAR_OF_HOOKS = 64 << 20  # bytes

OWNERS = weakref.WeakValueDictionary()  # by the options that one torch.compile gives


class CompiledModel:
    """All graphs of one compiled model: the first is planned, others run by hooks."""

    def __init__(self, given):
        self.given = given
        self.name = "a step of PyTorch"
        self.regions = []
        self.told = set()
        self.space = None

    @functools.cached_property
    def options(self):
        """Checked when the model is first called: what is wrong reaches the program as it is."""
        return Options(self.given)

    def add(self, module):
        """A graph that Dynamo has captured."""
        self.regions.append(Region(module, self))
        return self.regions[-1]

    def plan(self, step, surroundings):
        """The PlannedGraphs of a region's StepGraph. Throws: planning.BudgetTooSmall."""
        return plan_graphs(step, self.name, self.options, surroundings)

    def is_first(self, region):
        """Whether a graph is the one to plan: the first, or one like it for another shape."""
        planned = next((r for r in self.regions if r.compiled), region)
        return planned is region or code_of(planned) == code_of(region)

    def hooked(self, module, args, reason):
        """Runs a module with what autograd saves in far memory."""
        from ..torch_hooks import SavedTensors  # pylint: disable=import-outside-toplevel
        warn_once(self.told, reason)
        if self.space is None:
            self.space = Space(near=NEAR_OF_HOOKS, capacity=free_bytes(self.options.far) // 2,
                               far=self.options.far)
        with SavedTensors(self.space, [a for a in args if isinstance(a, torch.Tensor)], 64 << 10):
            return module(*args)


def free_bytes(far):
    """What there is for far memory, in a folder or in RAM."""
    if far is not None:
        return shutil.disk_usage(far).free
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def code_of(region):
    """The operators of a graph, whatever the sizes."""
    return [(n.op, str(n.target)) for n in region.module.graph.nodes]


def spillway(module, example_inputs, *, options=None, **_):
    """Compiles a graph of Dynamo's; the plan is made at its first call, with all that is held."""
    del example_inputs
    return owner_of(options).add(module)


def owner_of(options):
    """The CompiledModel of one torch.compile, which hands out one dictionary of options."""
    key = id(options)
    owner = OWNERS.get(key)
    if owner is None or owner.given is not options:
        OWNERS[key] = owner = CompiledModel(options)
    return owner
