"""How fast far memory is."""

import ctypes
import functools
import mmap
import time

from ...far_store import FarStore

PIECE = 4 << 20
PIECES = 8


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
