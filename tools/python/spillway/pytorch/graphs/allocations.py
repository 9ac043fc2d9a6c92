"""What PyTorch's allocator of ordinary memory does, as its profiler sees it."""

import os

import torch
from torch.profiler import ProfilerActivity, profile

MARK_BYTES = (1 << 28) + 12289  # a size that no tensor has; its pages are never touched


class Allocations:
    """Records allocations while it is entered; mark() says where a stretch begins or ends."""

    def __init__(self):
        os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # it complains of machines without GPUs
        self.profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self.changes = []

    def __enter__(self):
        self.profile.__enter__()
        return self

    def __exit__(self, *error):
        self.profile.__exit__(*error)
        events = [e for e in self.profile.profiler.kineto_results.events()
                  if e.name() == "[memory]"]
        self.changes = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]

    def mark(self):
        """Seen as an allocation of its own; its pages are never touched."""
        torch.empty(MARK_BYTES, dtype=torch.uint8)

    def peaks(self):
        """The most bytes at a time above its beginning, of each stretch between two marks."""
        found, inside, now, top = [], False, 0, 0
        for change in self.changes:
            if change == MARK_BYTES:
                if inside:
                    found.append(top)
                inside, now, top = not inside, 0, 0
            elif change != -MARK_BYTES:
                now += change
                top = max(top, now)
        return found

    def peak(self):
        """The most bytes at a time above the beginning."""
        now = top = 0
        for change in self.changes:
            now += change
            top = max(top, now)
        return top
