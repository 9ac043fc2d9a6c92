"""The moves of a plan as PyTorch operators: spillway::store, prefetch and wait.

    far = store(near, memory)    stands for its bytes in far memory; `near` may go
    prefetch(far)                starts bringing them back
    near = wait(far, ...)        an ordinary tensor of the same layout and bits

They have effects, so that no pass of torch.fx drops them, and graphs run in their own order.
"""

import torch
from torch.fx.node import has_side_effect

from ...library import Error
from .far_memory import BLOCKS, MEMORIES

LIBRARY = torch.library.Library("spillway", "DEF")
LIBRARY.define("store(Tensor near, int memory) -> Tensor")
LIBRARY.define("prefetch(Tensor far) -> ()")
LIBRARY.define("wait(Tensor far, int[] size, int[] stride, ScalarType dtype) -> Tensor")

STORE = torch.ops.spillway.store.default
PREFETCH = torch.ops.spillway.prefetch.default
WAIT = torch.ops.spillway.wait.default


def store(near, memory):
    """The bytes from the tensor's first element to its last."""
    if memory not in MEMORIES:
        raise Error("the far memory of this graph is gone with its model; compile the model again")
    return MEMORIES[memory].store(near)


def prefetch(far):
    """A hint."""
    BLOCKS[int(far)].prefetch()


def wait(far, size, stride, dtype):
    """As store() was given it."""
    del size, stride, dtype
    return BLOCKS[int(far)].wait()


def fake_store(near, memory):
    """Its layout: one number."""
    del memory
    return torch.empty(1, dtype=torch.int64, device=near.device)


def fake_wait(far, size, stride, dtype):
    """Its layout."""
    return torch.empty_strided(size, stride, dtype=dtype, device=far.device)


for operator, real, fake in ((STORE, store, fake_store), (PREFETCH, prefetch, lambda *_: None),
                             (WAIT, wait, fake_wait)):
    LIBRARY.impl(operator, real, "CPU")
    torch.library.register_fake(operator, fake, lib=LIBRARY)
    has_side_effect(operator)
