"""The backend of torch.compile: torch.compile(model, backend="spillway", options={...})."""

import logging
import threading

import torch

from ..library import Error
from . import watch
from .graphs import grouped_attention
from .models import model_of, tell_uncounted
from .options import without_owning
from .program_objects import ThreadsBusy

RUNS = threading.local()


def spillway(module, example_inputs, *, options=None, **others):
    """Compiles a graph of Dynamo's; the plan is made at its first call, with all that is held.
    `others`, such as torch.compile()'s `mode`, are options that there are not."""
    del example_inputs
    others.pop("name", None)  # of the model, for PyTorch's own logs
    prepare()
    return Region(module, without_owning({**(options or {}), **others}))


def prepare():
    """Settings of Dynamo's, whenever a model is compiled: transformers may be loaded by then.

    transformers warns once of a loss that its configuration does not name; for that, Dynamo would
    cut the model in two. Numbers that change are constants of a graph: as tensors, which
    dynamic=True makes of them, they cannot be captured further. Hooks of modules that are
    registered after the first call would be ignored without a word.
    """
    config = torch._dynamo.config
    if hasattr(logging.Logger, "warning_once"):
        config.ignore_logging_functions.add(logging.Logger.warning_once)
    config.specialize_float = True
    config.skip_nnmodule_hook_guards = False
    watch.begin()


spillway._dynamo_backend_init = prepare


class Region:
    """A graph module; call it as the module.

    Dynamo may use one for several models of a class, so whose it is depends on its arguments. A
    call without gradients runs as it is.
    """

    def __init__(self, module, given):
        self.module, self.given = grouped_attention.as_eager(module), given

    def __call__(self, *args):
        if not torch.is_grad_enabled() or not any(map(needs_gradient, args)):
            return self.module(*args)
        expect_processors(args)
        RUNS.count = runs() + 1
        try:
            owner = self.owner(args)
        except ThreadsBusy:  # a later call has a plan
            tell_uncounted(args)
            return self.module(*args)
        return owner.call(self, args)

    def owner(self, args):
        """The CompiledModel that a call belongs to. Throws: ThreadsBusy."""
        return model_of(args, self.given)

    def code(self):
        """The operators, whatever the sizes."""
        return [(n.op, str(n.target)) for n in self.module.graph.nodes if n.op != "placeholder"]


def runs():
    """How many regions with gradients this thread has run."""
    return getattr(RUNS, "count", 0)


def expect_processors(args):
    """Throws: Error for a tensor that is elsewhere."""
    for value in args:
        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise Error(f"the backend trains on processors, and a tensor is on {value.device}; "
                        "move the model and its batches with .cpu(), or compile without it and "
                        "give PyTorch's CUDA allocator spillway.cuda_mem_pool()")


def needs_gradient(value):
    return isinstance(value, torch.Tensor) and value.requires_grad
