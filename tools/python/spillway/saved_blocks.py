"""The memory that holds saved tensors in a space, its steps, hints and counters."""

import collections
import ctypes
import threading
import weakref

from .library import Error
from .near_plan import Entry, NearPlan
from .space import Counters
from .step import Recordings, Step

COUNTED = ("steps", "recognised_steps", "saved", "saved_bytes", "shared", "left_alone", "uses",
           "again", "hits", "late", "misses", "surprises")


class SavedBlock:
    """A copy of memory in the space; gone with the last reference to it."""

    def __init__(self, block, entry, gone):
        self.block, self.entry, self.gone = block, entry, gone
        self.origin = None  # what it is a copy of; the owner's
        self.copy = None    # the latest copy out of it, while that is in hand; the owner's

    def __del__(self):
        self.gone.append(self.entry)  # nothing more: this may run anywhere


class SavedBlocks:
    """Blocks of the steps that are open: the current one, and those with live blocks.

    Thread safety: every function may be called from any thread; copies are made outside the lock.
    """

    @staticmethod
    def of(space):
        """Those of a space: one for all users, so that they share what near memory there is."""
        if space.saved_blocks is None:
            space.saved_blocks = SavedBlocks(weakref.proxy(space))
        return space.saved_blocks

    def __init__(self, space):
        if space.near is None:
            raise Error("the default space does not say how much of it is near; make a Space")
        self.space = space
        self.plan = NearPlan(space, space.near - space.near // 16)  # pages round up
        self.recordings = Recordings()
        self.steps = []  # the newest first
        self.gone = collections.deque()  # entries
        self.counts = Counters.fromkeys(COUNTED, 0)
        self.lock = threading.RLock()
        self.prepared = threading.local()

    def begin_step(self):
        """What is saved from now on belongs to a new step; those that are over are recorded."""
        with self.lock:
            self.sweep()
            over = [s for s in self.steps if not any(e.is_live for e in s.entries)]
            for step in reversed(over):
                self.recordings.add(step.recording())
            self.steps = [Step(self.recordings), *(s for s in self.steps if s not in over)]
            self.counts["steps"] += 1

    def save(self, address, size):
        """A SavedBlock with a copy of `size` bytes at `address`."""
        self.prepare_thread()
        block = self.space.allocate(size)
        ctypes.memmove(block.address, address, size)
        with self.lock:
            self.sweep()
            step = self.steps[0]
            entry = Entry(step, step.save(size), block.address, size)
            step.entries.append(entry)
            self.plan.arrive(entry)
            self.plan.make_room(self.room_ahead(step), self.steps, entry)
            self.count(saved=1, saved_bytes=size,
                       recognised_steps=int(entry.number == 0 and step.is_recognised()))
        return SavedBlock(block, entry, self.gone)

    def room_ahead(self, step):
        """Bytes to have free for what is saved next: some blocks, at most a quarter of near."""
        most = self.plan.budget // 4
        if not step.is_recognised():
            return most
        room = 0
        for size in step.sizes_to_come():
            if room + size > most:
                return max(room, min(size, self.plan.budget // 2))
            room += size
        return room

    def load(self, saved, address):
        """Copies the block to `address`, and prefetches what is used after it."""
        self.prepare_thread()
        entry = saved.entry
        with self.lock:
            self.sweep()
            was_hinted = self.plan.is_near(entry)
            is_near = self.space.near_bytes(saved.block) == entry.size
            self.count(hits=is_near, late=was_hinted and not is_near,
                       misses=not was_hinted and not is_near)
            self.use(entry)
        ctypes.memmove(address, saved.block.address, entry.size)

    def use_again(self, entry):
        """Says that a copy that load() made is used once more."""
        with self.lock:
            self.sweep()
            self.count(again=1)
            self.use(entry)

    def use(self, entry):
        with self.lock:
            self.count(uses=1, surprises=not entry.step.use(entry.number))
            at = self.steps.index(entry.step)
            steps = [*self.steps[at:], *self.steps[:at]]
            self.plan.arrive(entry)
            self.plan.make_room(0, steps, entry)
            self.plan.prefetch_ahead(steps, entry)

    def sweep(self):
        while self.gone:
            entry = self.gone.popleft()
            entry.is_live = False
            self.plan.leave(entry)

    def count(self, **amounts):
        with self.lock:
            for name, amount in amounts.items():
                self.counts[name] += amount

    def prepare_thread(self):
        if not getattr(self.prepared, "is_done", False):
            self.space.prepare_thread()
            self.prepared.is_done = True
