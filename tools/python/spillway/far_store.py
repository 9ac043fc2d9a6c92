"""Far memory alone: other RAM, or a file, that a program copies to and from by itself."""

import ctypes
import os

from .library import FarHandle, load

ALIGNMENT = 4096  # of addresses, offsets and sizes


def rounded(count):
    """The next multiple of the alignment."""
    return -count % ALIGNMENT + count


class FarStore:
    """`size` bytes in RAM, or in a file without a name in `folder`, which gets all its room now.

    Copies return when the bytes have moved, and let other threads run meanwhile. Thread safety:
    those of ranges that do not overlap may be made at the same time. Throws: Error.
    """

    def __init__(self, size, folder=None, library=None):
        self.handle = None
        self.library = library or load()
        self.size = rounded(size)
        handle = FarHandle()
        self.library.far_create(os.fsencode(folder) if folder is not None else None, self.size,
                                ctypes.byref(handle))
        self.handle = handle

    def write(self, offset, address, size):
        """From ordinary memory. All are multiples of ALIGNMENT."""
        self.library.far_write(self.handle, offset, address, size)

    def read(self, offset, address, size):
        """To ordinary memory, likewise."""
        self.library.far_read(self.handle, offset, address, size)

    def __del__(self):
        handle, self.handle = self.handle, None
        if handle is not None:
            self.library.far_destroy(handle)
