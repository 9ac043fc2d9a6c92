"""One allocation in a space."""

import ctypes

from .library import Error


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
