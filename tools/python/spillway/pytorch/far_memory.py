"""Blocks of a step outside near memory: in a space of the drop-in, in RAM or a file."""

import ctypes
import itertools
import os
import shutil
import threading
import weakref

import torch

from ..space import Space
from .step_graph import span

IDENTIFIERS = itertools.count(1)
LIVE = weakref.WeakValueDictionary()  # operators know a memory by its number
MOST_ROOM = 1 << 38  # bytes; what knows of each page grows with it


def free_bytes(far):
    """What there is for far memory, in a folder or in RAM."""
    if far is not None:
        return shutil.disk_usage(far).free
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class FarMemory:
    """A space of its own, with `near` bytes through which blocks come and go, and as much room in
    RAM or in a folder as half of what is free.

    A block in it is a tensor of bytes, which lives as long as that tensor.
    """

    def __init__(self, near, far):
        capacity = min(MOST_ROOM, free_bytes(far) // 2)
        self.space = Space(near=near, capacity=max(capacity, 2 * near), far=far)
        self.near = near
        self.number = next(IDENTIFIERS)
        self.prepared = threading.local()
        self.layouts = {}  # of stored tensors, by the address of their bytes
        LIVE[self.number] = self

    def prepare(self):
        """Lets this thread touch the space."""
        if not getattr(self.prepared, "is_done", False):
            self.space.prepare_thread()
            self.prepared.is_done = True

    def store(self, near):
        """A copy of a tensor's bytes, on its way far when this returns."""
        self.prepare()
        begin, end = span(near)
        block = self.space.allocate(end - begin)
        ctypes.memmove(block.address, near.untyped_storage().data_ptr() + begin, end - begin)
        self.space.offload(block)
        # The kernels' own layout: that of fake tensors may be another one.
        self.layouts[block.address] = near.dtype, near.shape, near.stride()
        return torch.frombuffer(block.buffer(), dtype=torch.uint8)

    def prefetch(self, far):
        """Starts bringing a block near."""
        self.space.prefetch(far)

    def load(self, far):
        """The tensor that was stored, in ordinary memory."""
        self.prepare()
        near = torch.empty(far.numel(), dtype=torch.uint8)
        ctypes.memmove(near.data_ptr(), far.data_ptr(), far.numel())
        dtype, shape, stride = self.layouts[far.data_ptr()]
        return near.view(dtype).as_strided(shape, stride)
