"""State of an optimizer in far memory, and the near memory through which parts of it go."""

import torch

from ...far_store import ALIGNMENT, FarStore, rounded


class Part:
    """Some elements of one parameter, all of whose state lies together in far memory: for each of
    `keys`, a piece of so many bytes from `offset` on."""

    def __init__(self, parameter, begin, end):
        self.parameter, self.begin, self.end = parameter, begin, end
        self.offset, self.piece = 0, rounded((end - begin) * parameter.element_size())

    def elements(self, tensor):
        """Of a tensor of the parameter's layout, in the order of memory."""
        flat = tensor.detach().as_strided((tensor.numel(),), (1,))
        return flat[self.begin:self.end]


class Buffer:
    """Ordinary memory for the state of one part at a time, aligned for far memory."""

    def __init__(self, size):
        self.memory = torch.empty(size + ALIGNMENT, dtype=torch.uint8)
        self.begin = rounded(self.memory.data_ptr()) - self.memory.data_ptr()
        self.pending = None  # a move that uses it

    def address(self):
        """Of its first byte."""
        return self.memory.data_ptr() + self.begin

    def tensors(self, part, count):
        """So many state tensors of a part."""
        dtype, size = part.parameter.dtype, (part.end - part.begin) * part.parameter.element_size()
        starts = [self.begin + number * part.piece for number in range(count)]
        return [self.memory[start:start + size].view(dtype) for start in starts]

    def wait(self):
        """Until no move uses it. Throws: Error where far memory has failed."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.result()


def parts_of(parameters, keys, near):
    """All parts, of which the state of one, times BUFFERS, takes at most `near` bytes."""
    parts = []
    for parameter in parameters:
        room = near // BUFFERS // max(1, keys) - ALIGNMENT
        most = max(ALIGNMENT, room // parameter.element_size() // ALIGNMENT * ALIGNMENT)
        for begin in range(0, parameter.numel(), most):
            parts.append(Part(parameter, begin, min(begin + most, parameter.numel())))
    return parts


BUFFERS = 3  # one comes, one is in use, one goes


class FarState:
    """Far memory with `keys` pieces for each part, and the three buffers."""

    def __init__(self, parts, keys, far):
        self.keys = keys
        end = 0
        for part in parts:
            part.offset, end = end, end + keys * part.piece
        self.store = FarStore(max(end, ALIGNMENT), far)
        size = keys * max((part.piece for part in parts), default=0)
        self.buffers = [Buffer(size) for _ in range(BUFFERS)]

    def near_bytes(self):
        """Of the buffers."""
        return sum(buffer.memory.numel() for buffer in self.buffers)

    def read(self, part, buffer):
        """All state of a part, in whatever thread."""
        self.store.read(part.offset, buffer.address(), self.keys * part.piece)

    def write(self, part, buffer):
        """Likewise."""
        self.store.write(part.offset, buffer.address(), self.keys * part.piece)
