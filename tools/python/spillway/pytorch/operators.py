"""The moves of a plan as PyTorch operators: spillway::store, prefetch and wait.

    far = store(near, memory)            its bytes in far memory; `near` may go
    prefetch(far, memory)                starts bringing them back
    near = wait(far, memory, ...)        an ordinary tensor of the same layout and bits

They have effects, so that no pass of torch.fx drops them, and graphs run in their own order.
"""

import torch
from torch.fx.node import has_side_effect

from ..library import Error
from .far_memory import LIVE
from .step_graph import span

LIBRARY = torch.library.Library("spillway", "DEF")
LIBRARY.define("store(Tensor near, int memory) -> Tensor")
LIBRARY.define("prefetch(Tensor far, int memory) -> ()")
LIBRARY.define("wait(Tensor far, int memory, int[] size, int[] stride, ScalarType dtype) "
               "-> Tensor")

STORE = torch.ops.spillway.store.default
PREFETCH = torch.ops.spillway.prefetch.default
WAIT = torch.ops.spillway.wait.default


def memory_numbered(number):
    """Throws: Error where the model that it belonged to is gone."""
    if number not in LIVE:
        raise Error("the far memory of this graph is closed; compile the model again")
    return LIVE[number]


def store(near, memory):
    """The bytes from the tensor's first element to its last."""
    return memory_numbered(memory).store(near)


def prefetch(far, memory):
    """A hint."""
    memory_numbered(memory).prefetch(far)


def wait(far, memory, size, stride, dtype):
    """As store() was given it."""
    del size, stride, dtype
    return memory_numbered(memory).load(far)


def fake_store(near, memory):
    """Its layout."""
    del memory
    begin, end = span(near)
    return torch.empty(end - begin, dtype=torch.uint8, device=near.device)


def fake_wait(far, memory, size, stride, dtype):
    """Its layout."""
    del memory
    return torch.empty_strided(size, stride, dtype=dtype, device=far.device)


for operator, real, fake in ((STORE, store, fake_store), (PREFETCH, prefetch, lambda *_: None),
                             (WAIT, wait, fake_wait)):
    LIBRARY.impl(operator, real, "CPU")
    torch.library.register_fake(operator, fake, lib=LIBRARY)
    has_side_effect(operator)
