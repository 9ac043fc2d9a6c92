"""A space: near memory in front of far memory, and allocations in it."""

import ctypes
import math
import operator
import os
import weakref

from .library import (ACCESS, ADVICE, COUNTERS_VERSION, LEARNED_COUNTERS_VERSION, CounterValues,
                      Error, Handle, LearnedCounterValues, load)
from .sizes import byte_count, size_text

PIECE = 4 << 20  # bytes of ordinary memory between a space and a file


class Counters(dict):
    """Counters by name; as text a line each."""

    def __str__(self):
        def value(name, count):
            if name.endswith("_nanoseconds"):
                return f"{count / 1e9:.3f} s"
            return size_text(count) if "bytes" in name else str(count)
        width = max(map(len, self), default=0)
        return "\n".join(f"{name.replace('_nanoseconds', '_time'):{width}}  {value(name, count)}"
                         for name, count in self.items())


class Space:
    """Memory of `capacity` with `near` of it near; sizes are bytes or text such as "2GiB".

    `far` is None for far memory in RAM, or a folder for a file without a name there. Hints take a
    Block, or anything with an address: a torch tensor or a NumPy array over a block's memory. The
    contract of each function is that of its namesake in um/dropin/spillway_um.h.

    Thread safety: as there; close() while another thread uses the memory is not safe.
    """

    def __init__(self, near, capacity, device="host", far=None, page=0, oversubscribe=False,
                 library=None):
        self.handle = None
        self.saved_blocks = None  # SavedBlocks', once there are some
        self.views = weakref.WeakValueDictionary()  # what arrays, tensors and memoryviews are made of
        self.library = library or load()
        self.near, self.capacity = byte_count(near), byte_count(capacity)
        options = self.library.options(self.near, self.capacity, device, far, byte_count(page),
                                       oversubscribe)
        handle = Handle()
        self.library.create(ctypes.byref(options), ctypes.byref(handle))
        self.handle = handle

    @property
    def is_open(self):
        return self.handle is not None

    def close(self):
        """Ends the space and all memory in it; a second call does nothing.

        Throws: Error while arrays, tensors or memoryviews over its memory are alive: the next touch
        of one would end the process.
        """
        count = len(self.views)
        if self.is_open and count:
            raise Error(f"{count} view{'s' * (count > 1)} of this space's memory (NumPy arrays, "
                        "tensors, memoryviews) are still alive; delete them, then close it",
                        "INVALID_ARGUMENT")
        handle, self.handle = self.handle, None
        if handle is not None:
            self.library.destroy(handle)

    def __enter__(self):
        self.expect_open()
        return self

    def __exit__(self, kind, error, trace):
        if kind is None or not self.views:
            self.close()  # else the traceback may hold views: the space goes after the last

    def __del__(self):
        if not self.views:
            self.close()

    def expect_open(self):
        """Throws: Error when the space was closed."""
        if self.handle is None:
            raise Error("the space is closed; keep it open as long as its memory is used",
                        "INVALID_SPACE")

    def call(self, name, *arguments):
        self.expect_open()
        getattr(self.library, name)(self.handle, *arguments)

    # ---- memory

    def allocate(self, size, alignment=0):
        """A Block; its content is indeterminate."""
        count = byte_count(size)
        address = ctypes.c_void_p()
        self.call("allocate", count, alignment, ctypes.byref(address))
        return Block(self, address.value, count)

    def empty(self, *shape, dtype=None):
        """A torch tensor in the space.

        PyTorch's threads take its page faults; oneDNN's AVX-512 convolutions have no stack for
        them (spillway_um_prepare_thread), so do not feed it to these.
        """
        import torch
        dtype = dtype or torch.get_default_dtype()
        count = math.prod(shape)
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        block = self.allocate(count * torch.empty(0, dtype=dtype).element_size())
        return torch.frombuffer(block.buffer(), dtype=dtype).view(shape)

    def array(self, shape, dtype=float):
        """A NumPy array in the space, of a shape and dtype as numpy.empty() takes them.

        System calls do not bring its pages near: save() and read_into() are for files.
        """
        numpy = with_numpy()
        kind = numpy.dtype(dtype)
        if kind.hasobject:
            raise Error(f"dtype {kind} has Python objects; a space holds numbers only")
        sizes = tuple(map(operator.index, shape if hasattr(shape, "__iter__") else [shape]))
        if any(size < 0 for size in sizes):
            raise ValueError(f"the shape {sizes} has a negative size")
        if 0 in (kind.itemsize, *sizes):
            return numpy.empty(sizes, kind)
        block = self.allocate(kind.itemsize * math.prod(sizes))
        return numpy.frombuffer(block.buffer(), kind).reshape(sizes)

    def save(self, file, array):
        """numpy.save(file, array) of an array in the space: by pieces in ordinary memory, since
        system calls fail on memory that is not near. `file` is a path or a file to write."""
        numpy = with_numpy()
        if hasattr(file, "write"):
            numpy.save(ByPieces(file), array)
            return
        path = os.fspath(file)
        with open(path if path.endswith(".npy") else path + ".npy", "wb") as opened:
            numpy.save(ByPieces(opened), array)

    def read_into(self, file, array):
        """Fills a contiguous array in the space with the next bytes of a file; how many there were.
        As file.readinto(array), by pieces in ordinary memory."""
        view = memoryview(array).cast("B")
        done = 0
        while done < len(view):
            piece = file.read(min(PIECE, len(view) - done))
            if not piece:
                break
            view[done:done + len(piece)] = piece
            done += len(piece)
        return done

    def free(self, address):
        """Of a Block; use Block.free(), which knows whether it is free already."""
        self.call("free", address)

    # ---- hints

    def prefetch(self, what):
        self.call("prefetch", *address_range(what))

    def offload(self, what):
        self.call("offload", *address_range(what))

    def discard(self, what):
        self.call("discard", *address_range(what))

    def advise(self, what, advice):
        """`advice` is "none", "prefer near", "prefer far" or "read mostly"."""
        self.call("advise", *address_range(what), one_of(ADVICE, advice, "advice"))

    def touch(self, what, access="read write"):
        """`access` is "read", "write" or "read write"."""
        self.call("touch", *address_range(what), one_of(ACCESS, access, "access"))

    def synchronize(self):
        self.call("synchronize")

    def prepare_thread(self):
        self.call("prepare_thread")

    # ---- learned prefetch

    def mark_iteration(self):
        """An iteration of a program that repeats itself ends here; touch() says what it uses."""
        self.call("mark_iteration")

    def learned_counters(self):
        """Since the first mark: iterations followed, touches expected (hits) and others."""
        values = LearnedCounterValues(version=LEARNED_COUNTERS_VERSION)
        self.call("get_learned_counters", ctypes.byref(values))
        return counters_of(values)

    def learned_status(self):
        """What learned prefetch is doing, or why it does nothing: one clause."""
        text = ctypes.create_string_buffer(500)
        self.call("learned_status", text, len(text))
        return text.value.decode(errors="replace")

    # ---- what has happened

    def near_bytes(self, what):
        count = ctypes.c_uint64()
        self.call("near_bytes", *address_range(what), ctypes.byref(count))
        return count.value

    def counters(self):
        """What the space has done since it was made; print it to read it."""
        values = CounterValues(version=COUNTERS_VERSION)
        self.call("get_counters", ctypes.byref(values))
        return counters_of(values)


class Block:
    """`size` bytes at `address`, given back by free() or with the last reference to it.

    buffer() is for numpy.frombuffer, torch.frombuffer and memoryview; what is made of it keeps the
    block alive, but not beyond free(). The space is not closed as long as it is there.
    """

    def __init__(self, space, address, size):
        self.space, self.address, self.size = space, address, size

    def buffer(self):
        """The memory itself, without a copy, as a memoryview."""
        self.expect_usable()
        array = (ctypes.c_ubyte * self.size).from_address(self.address)
        array.block = self
        self.space.views[id(array)] = array
        return memoryview(array).cast("B")

    def free(self):
        """Nothing may use the memory any more. Throws: Error when it is free already."""
        self.expect_usable()
        address, self.address = self.address, None
        self.space.free(address)

    def expect_usable(self):
        """Throws: Error when the block or its space is gone."""
        if self.address is None:
            raise Error("this block was freed already; allocate another one", "NOT_ALLOCATED")
        self.space.expect_open()

    def __del__(self):
        if self.address is not None and self.space.is_open:
            self.free()


class ByPieces:
    """A file that NumPy does not know as one: it writes copies of pieces then."""

    def __init__(self, file):
        self.write = file.write


def with_numpy():
    """NumPy. Throws: Error where it is missing."""
    try:
        import numpy  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Error(f"this needs NumPy, which does not load: {error}") from error
    return numpy


def counters_of(values):
    return Counters((name, getattr(values, name)) for name, _ in values._fields_[2:])


def one_of(names, name, what):
    if name not in names:
        raise ValueError(f"there is no {what} {name!r}; there are {', '.join(names)}")
    return names[name]


def address_range(what):
    """Address and bytes of a Block, a torch tensor, a NumPy array or a contiguous buffer.

    Of a tensor that is a strided view: from its first to its last element.
    """
    if isinstance(what, Block):
        what.expect_usable()
        return what.address, what.size
    if hasattr(what, "data_ptr"):
        if what.numel() == 0:
            return what.data_ptr(), 0
        last = sum((n - 1) * step for n, step in zip(what.shape, what.stride()))
        return what.data_ptr(), (last + 1) * what.element_size()
    try:
        view = memoryview(what).cast("B")
        return ctypes.addressof(ctypes.c_ubyte.from_buffer(view)), len(view)
    except (TypeError, ValueError) as error:
        raise TypeError(f"a {type(what).__name__} has no address that can be hinted; give a Block, "
                        "a tensor or a writable contiguous array") from error
