"""Blocks of a step outside near memory: in other RAM or in a file, moved beside the computation."""

import collections
import concurrent.futures
import ctypes
import functools
import itertools
import mmap
import threading
import time
import weakref

import torch

from ...far_store import ALIGNMENT, FarStore, rounded

SMALL = 64 << 10  # bytes; larger blocks come back without a copy, and are padded for that
SLOTS = 4
MOST_SLOT = 4 << 20
LEAST_STORE = 8 << 20
PIECE = 4 << 20  # bytes, of which some are moved to measure how fast that is
PIECES = 8
NUMBERS = itertools.count(1)
MEMORIES = weakref.WeakValueDictionary()  # operators know a memory by its number
BLOCKS = weakref.WeakValueDictionary()  # and a block by its own


def span(value):
    """First byte and end of a tensor in its storage."""
    begin = value.storage_offset() * value.element_size()
    if value.numel() == 0:
        return begin, begin
    last = sum((n - 1) * step for n, step in zip(value.shape, value.stride()))
    return begin, begin + (last + 1) * value.element_size()


def bytes_near(size):
    """Of a block of `size` bytes once it has come back."""
    return size if size < SMALL else rounded(size) + 2 * ALIGNMENT


Leaving = collections.namedtuple("Leaving", "near size write")
"""A tensor on its way far, alive until it is written; let go by the thread that runs the step, so
that PyTorch's profiler sees it."""


class FarMemory:
    """Far memory that grows as it is needed. `near` bytes are for stores on their way.

    store() returns at once where the tensor may stay until a thread has written it: tensors on
    their way and the slots take no more than `near` bytes. Larger ones go through slots.
    prefetch() makes the tensor that wait() gives back; another thread reads into it.

    Thread safety: steps of several threads may move blocks at the same time.
    """

    def __init__(self, near, far):
        self.near, self.far = near, far
        slot = max(ALIGNMENT, min(MOST_SLOT, near // (2 * SLOTS) // ALIGNMENT * ALIGNMENT))
        self.slots = [Slot(slot) for _ in range(SLOTS)]
        self.bounce = self.slots.pop()  # the writer's
        self.most_leaving = near - self.slot_bytes()
        self.leaving = collections.deque()
        self.leaving_bytes = 0
        self.stores = []
        self.free = {}  # (store, offset) by bytes
        self.gone = collections.deque()  # of blocks: what they had, and writes that may still run
        self.lock = threading.Lock()
        self.writer, self.reader = (concurrent.futures.ThreadPoolExecutor(1, name)
                                    for name in ("spillway out", "spillway in"))
        self.number = next(NUMBERS)
        MEMORIES[self.number] = self

    def slot_bytes(self):
        """Near memory that is no tensor."""
        return SLOTS * self.bounce.size

    def store(self, near):
        """A tensor that stands for the bytes of `near` in far memory, as long as it lives."""
        block = FarBlock(self, near)
        with self.lock:
            if block.size <= self.most_leaving:
                self.make_room(block.size)
                write = self.writer.submit(block.write, block.first_byte(near))
                self.leaving.append(Leaving(near, block.size, write))
                self.leaving_bytes += block.size
                block.writes.append(write)
            else:
                self.store_by_slots(block, near)
        handle = (ctypes.c_int64 * 1)(block.number)
        handle.block = block  # given back with the last tensor over it
        return torch.frombuffer(handle, dtype=torch.int64)

    def make_room(self, size=0):
        """Lets go of what has left, and waits until `size` bytes more may be on their way. A write
        that has failed is its block's matter, in wait(). Requires: the lock is held."""
        while self.leaving and (self.leaving[0].write.done()
                                or self.leaving_bytes + size > self.most_leaving):
            first = self.leaving.popleft()
            concurrent.futures.wait([first.write])
            self.leaving_bytes -= first.size

    def store_by_slots(self, block, near):
        """Returns when the rest of the block fits into the slots."""
        address, left = block.first_byte(near), block.size
        while left:
            slot = self.slots.pop(0)
            self.slots.append(slot)
            slot.wait()
            size = min(left, slot.size)
            ctypes.memmove(slot.address, address, size)
            slot.write = self.writer.submit(block.store.write, block.offset + block.size - left,
                                            slot.address, rounded(size))
            address, left = address + size, left - size
            block.writes.append(slot.write)

    def take(self, size):
        """A store, and an offset in it where `size` bytes are free."""
        with self.lock:
            self.take_back()
            known = self.free.get(size)
            if known:
                return known.pop()
            last = self.stores[-1] if self.stores else None
            if last is None or last.used + size > last.size:
                last = FarStore(max(LEAST_STORE, size, last.size if last else 0), self.far)
                last.used = 0
                self.stores.append(last)
            last.used += size
            return last, last.used - size

    def take_back(self):
        """What blocks had that are gone, unless it is still being written. Requires: the lock."""
        for _ in range(len(self.gone)):
            size, place, writes = self.gone.popleft()
            if all(write.done() for write in writes):
                self.free.setdefault(size, []).append(place)
            else:
                self.gone.append((size, place, writes))


class Slot:
    """Near memory for a part of a block on its way far."""

    def __init__(self, size):
        self.memory, self.size = mmap.mmap(-1, size), size  # page-aligned
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.write = None

    def wait(self):
        """Until it is free."""
        if self.write is not None:
            concurrent.futures.wait([self.write])


class FarBlock:
    """One tensor's bytes, from its first element to its last, in far memory."""

    def __init__(self, memory, near):
        begin, end = span(near)
        self.memory, self.size = memory, end - begin
        # The kernels' own layout: that of fake tensors may be another one.
        self.layout = near.dtype, near.shape, near.stride()
        self.room = rounded(self.size) + (ALIGNMENT if self.size >= SMALL else 0)
        self.shift = 0  # bytes in front of the tensor's, which share its first page
        self.writes = []
        self.near = self.read = self.store = None
        self.store, self.offset = memory.take(self.room)
        self.number = next(NUMBERS)
        BLOCKS[self.number] = self

    def first_byte(self, near):
        """Its address in a tensor of the layout."""
        return near.untyped_storage().data_ptr() + span(near)[0]

    def write(self, address):
        """All of it, in the writer's thread. To RAM with the whole pages that it lies in: what else
        is in them may change meanwhile, which would spoil a file's checksums."""
        if self.memory.far is None and self.size >= SMALL:
            self.shift = address % ALIGNMENT
            self.store.write(self.offset, address - self.shift, rounded(self.shift + self.size))
            return
        bounce = self.memory.bounce
        for done in range(0, self.size, bounce.size):
            size = min(bounce.size, self.size - done)
            ctypes.memmove(bounce.address, address + done, size)
            self.store.write(self.offset + done, bounce.address, rounded(size))

    def prefetch(self):
        """Starts bringing it near."""
        with self.memory.lock:
            self.start()

    def start(self):
        """Requires: the memory's lock is held."""
        if self.near is None:
            self.near = torch.empty(bytes_near(self.size), dtype=torch.uint8)
            self.read = self.memory.reader.submit(self.bring, self.near)

    def bring(self, near):
        """In the reader's thread, after the writer's."""
        for write in self.writes:
            write.result()
        if self.size >= SMALL:
            self.store.read(self.offset, rounded(near.data_ptr()),
                            rounded(self.shift + self.size))
        elif self.size:
            with mmap.mmap(-1, self.room) as piece:
                source = ctypes.c_char.from_buffer(piece)
                self.store.read(self.offset, ctypes.addressof(source), self.room)
                ctypes.memmove(near.data_ptr(), ctypes.addressof(source), self.size)
                del source

    def wait(self):
        """The tensor that was stored. Throws: Error where far memory has failed."""
        with self.memory.lock:
            self.memory.make_room()
            self.start()
            near, read, self.near, self.read = self.near, self.read, None, None
        read.result()
        begin = rounded(near.data_ptr()) - near.data_ptr() + self.shift if self.size >= SMALL else 0
        dtype, shape, stride = self.layout
        return near[begin:begin + self.size].view(dtype).as_strided(
            shape, stride, begin // dtype.itemsize)

    def __del__(self):
        if self.store is not None:  # nothing more: this may run anywhere, in any thread
            self.memory.gone.append((self.room, (self.store, self.offset), self.writes))


@functools.cache
def far_rates(far):
    """Bytes a second to and from far memory in a folder, or in RAM, measured."""
    store = FarStore(PIECE * PIECES, far)
    with mmap.mmap(-1, PIECE) as memory:
        memory[:] = bytes(range(256)) * (PIECE // 256)
        piece = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(piece)
        rate_of(store.write, address)  # the first takes RAM from the system
        rates = [rate_of(copy, address) for copy in (store.write, store.read)]
        del piece
    return tuple(rates)


def rate_of(copy, address):
    """Of one direction."""
    begin = time.perf_counter()
    for number in range(PIECES):
        copy(number * PIECE, address, PIECE)
    return PIECE * PIECES / (time.perf_counter() - begin)
