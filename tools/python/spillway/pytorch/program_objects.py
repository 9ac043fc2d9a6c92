"""The objects of a program, found by Python's garbage collector, and safe from its other threads.

PyTorch's operators run without Python's lock. A tensor that another thread's operator uses, or lets
go, must not be looked at meanwhile: that ends the process. So all other threads stand still.
"""

import contextlib
import ctypes
import gc
import os
import sys
import threading
import time

LONGER_THAN_A_LOOK = 0.5  # seconds, for which Python lets no other thread run
LONGEST_WAIT = 10.0  # seconds, for operators of other threads
POLL = 0.01  # seconds; longer than what threads that wait already are made to wait
LOOKING = threading.RLock()
LIBC = ctypes.PyDLL(None)  # its functions are called without letting go of Python's lock


class ThreadsBusy(Exception):
    """Operators of other threads did not end in time."""


class Stillness:
    """How often stillness() is entered; the outermost makes other threads wait."""

    depth = 0


@contextlib.contextmanager
def stillness(longest_wait=LONGEST_WAIT):
    """While it is entered no other thread runs. What is found goes before it ends. Throws:
    ThreadsBusy."""
    with LOOKING:
        is_outermost = Stillness.depth == 0 and threading.active_count() > 1
        before = sys.getswitchinterval()
        Stillness.depth += 1
        try:
            if is_outermost:
                sys.setswitchinterval(LONGER_THAN_A_LOOK)
                wait_for_other_threads(longest_wait)
            yield
        finally:
            Stillness.depth -= 1
            if is_outermost:
                sys.setswitchinterval(before)


def wait_for_other_threads(longest):
    """Until each waits for Python's lock, which this one keeps, or for something else. Throws:
    ThreadsBusy."""
    end = time.monotonic() + longest
    time.sleep(POLL)
    others = [int(thread) for thread in os.listdir("/proc/self/task")
              if int(thread) != threading.get_native_id()]
    while any(is_running(thread) for thread in others):
        if time.monotonic() > end:
            raise ThreadsBusy
        LIBC.usleep(500)


def is_running(thread):
    """Whether a thread of this process is, by the system's number for it."""
    file = LIBC.open(f"/proc/self/task/{thread}/stat".encode(), os.O_RDONLY)
    if file < 0:
        return False  # it has ended
    text = ctypes.create_string_buffer(512)
    LIBC.read(file, text, 511)
    LIBC.close(file)
    return text.value.rpartition(b")")[2][1:2] == b"R"


def is_alone():
    """Whether the program has no other thread of Python's that may change tensors."""
    return all(each is threading.current_thread() or each.name.startswith("spillway")
               for each in threading.enumerate())


def objects_of(kind):
    """All objects of a class that Python knows of; not what only says that it is of it."""
    with stillness():
        return [each for each in gc.get_objects() if issubclass(type(each), kind)]
