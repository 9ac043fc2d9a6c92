"""One graph that Dynamo captured."""

import threading

import torch

from ..library import Error
from .models import model_of

RUNS = threading.local()


class Region:
    """A graph module; call it as the module.

    Dynamo may use one for several models of a class, so whose it is depends on its arguments. A
    call without gradients runs as it is.
    """

    def __init__(self, module, given):
        self.module, self.given = module, given

    def __call__(self, *args):
        if not torch.is_grad_enabled() or not any(map(needs_gradient, args)):
            return self.module(*args)
        expect_processors(args)
        RUNS.count = runs() + 1
        return self.owner(args).call(self, args)

    def owner(self, args):
        """The CompiledModel that a call belongs to."""
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
