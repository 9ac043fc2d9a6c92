"""The objects of a program, found by Python's garbage collector, and safe from its other threads.

PyTorch's operators run without Python's lock. A tensor that another thread's operator uses, or lets
go, must not be looked at meanwhile: that ends the process. So all other threads stand still.
"""

import concurrent.futures.thread
import contextlib
import ctypes
import gc
import os
import sys
import threading
import time

LONGER_THAN_A_LOOK = 0.5  # seconds, for which Python lets no other thread run
LONGEST_WAIT = 10.0  # seconds, for operators of other threads
MOMENT = 0.1  # seconds, likewise, where a program is not to wait
POLL = 0.01  # seconds; longer than what threads that wait already are made to wait
WAITS = (threading.Condition.wait.__code__,  # of a thread that does nothing else in them
         concurrent.futures.thread._worker.__code__)
LETS_GO = "zero_grad"  # functions in which a gradient is still there while it goes
LOOKING = threading.RLock()
LIBC = ctypes.PyDLL(None)  # its functions are called without letting go of Python's lock


def is_looked_at(number):
    """Whether a program is looked at again at a call or a step: 1, 2, 3, 5, 9, ..."""
    return (number - 1) & (number - 2) == 0


class ThreadsBusy(Exception):
    """Operators of other threads did not end in time."""


class Stillness:
    """How often stillness() is entered, of which the outermost makes other threads wait, and for
    how long it waits for them now."""

    depth = 0
    longest_wait = LONGEST_WAIT


@contextlib.contextmanager
def stillness(longest_wait=LONGEST_WAIT):
    """While it is entered no other thread runs. What is found goes before it ends. Throws:
    ThreadsBusy; once it has, it waits for no longer than a moment until threads stand still."""
    with LOOKING:
        is_outermost = Stillness.depth == 0 and threading.active_count() > 1
        before = sys.getswitchinterval()
        Stillness.depth += 1
        try:
            if is_outermost:
                sys.setswitchinterval(LONGER_THAN_A_LOOK)
                wait_for_other_threads(min(longest_wait, Stillness.longest_wait))
            yield
        finally:
            Stillness.depth -= 1
            if is_outermost:
                sys.setswitchinterval(before)


def wait_for_other_threads(longest):
    """Until each waits for Python's lock, which this one keeps, or for something else. Throws:
    ThreadsBusy."""
    time.sleep(POLL)
    end = time.monotonic() + longest  # a thread that computes may have kept the lock until now
    while not stand_still(end):
        if time.monotonic() > end:
            Stillness.longest_wait = MOMENT
            raise ThreadsBusy("operators of other threads did not end in time")
        time.sleep(POLL)
    Stillness.longest_wait = LONGEST_WAIT


def stand_still(end):
    """Whether other threads do, at the time `end` or before; False where one must go on first."""
    codes = [code for _, code in active_threads()]
    if any(code.co_name == LETS_GO for code in codes):
        return False
    others = [int(thread) for thread in os.listdir("/proc/self/task")
              if int(thread) != threading.get_native_id()]
    while codes and any(is_running(thread) for thread in others):  # else OpenMP's wait for work
        if time.monotonic() > end:
            return False
        LIBC.usleep(500)
    return True


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
    return all(thread.name.startswith("spillway") for thread, _ in active_threads())


def active_threads():
    """Python's other threads and the code that each is in; without those that wait for an event, a
    queue or work, as tqdm's does, which PyTorch starts."""
    frames = sys._current_frames()
    del frames[threading.get_ident()]  # a cycle, in which all callers' tensors would stay
    found = [(each, frames[each.ident].f_code) for each in threading.enumerate()
             if each.ident in frames]
    return [(thread, code) for thread, code in found if code not in WAITS]


def objects_of(kind):
    """All objects of a class that Python knows of; not what only says that it is of it."""
    with stillness():
        return [each for each in gc.get_objects() if issubclass(type(each), kind)]
