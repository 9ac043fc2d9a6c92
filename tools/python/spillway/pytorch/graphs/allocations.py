"""What PyTorch's allocator of ordinary memory does, as its profiler sees it."""

import bisect
import os

import torch
from torch.profiler import ProfilerActivity, profile, record_function

STRETCH = "spillway: a stretch of allocations"


class Allocations:
    """Records allocations while it is entered; `with stretch():` is around those of one peak."""

    def __init__(self):
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # it complains of machines without GPUs
        self.profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self.changes = []  # nanoseconds and bytes, in order
        self.stretches = []  # nanoseconds of begin and end, in order

    def __enter__(self):
        self.profile.__enter__()
        return self

    def __exit__(self, *error):
        self.profile.__exit__(*error)
        events = self.profile.profiler.kineto_results.events()
        self.changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
        self.stretches = sorted((e.start_ns(), e.start_ns() + e.duration_ns()) for e in events
                                if e.name() == STRETCH)

    def stretch(self):
        """A context."""
        return record_function(STRETCH)

    def peaks(self):
        """The most bytes at a time above its beginning, of each stretch."""
        def first(when):
            return bisect.bisect_left(self.changes, (when,))

        return [top_of(size for _, size in self.changes[first(begin):first(end + 1)])
                for begin, end in self.stretches]

    def peak(self):
        """The most bytes at a time above the beginning."""
        return top_of(size for _, size in self.changes)


def top_of(changes):
    """The largest of the sums."""
    now = top = 0
    for change in changes:
        now += change
        top = max(top, now)
    return top


def is_profiling():
    """Whether a profiler of PyTorch is running; a process has one at a time."""
    return torch.autograd._profiler_enabled() or torch.autograd.profiler._is_profiler_enabled
