"""What one training step saves and uses again, and what is expected of it."""

import collections
import itertools

KEPT_RECORDINGS = 8  # shapes that take turns, such as the last, smaller batch of an epoch

Recording = collections.namedtuple("Recording", "sizes uses")
"""Of a step that is over: bytes of each block, in order; numbers of those used, in order."""


class Step:
    """Blocks are numbered from 0 in the order in which they are saved.

    The uses to come are those of the recorded step that saved blocks of the same sizes; without
    one, the blocks in reverse order, as a plain chain's backward pass uses them.
    """

    def __init__(self, recordings):
        self.matching = list(recordings)  # the latest first
        self.sizes = []
        self.uses = []
        self.entries = []  # by number
        self.to_come = None  # uses, once the first has happened

    def save(self, size):
        """The number of a new block."""
        number = len(self.sizes)
        self.matching = [r for r in self.matching
                         if number < len(r.sizes) and r.sizes[number] == size]
        self.sizes.append(size)
        if self.to_come is not None and number not in self.to_come:
            self.to_come.appendleft(number)  # saved during the backward pass
        return number

    def is_recognised(self):
        """Whether a recorded step began like this one."""
        return bool(self.matching)

    def sizes_to_come(self):
        """Of the blocks that will be saved; empty when nothing is known."""
        return self.matching[0].sizes[len(self.sizes):] if self.matching else ()

    def use(self, number):
        """Whether this use of a block was the next one expected."""
        if self.to_come is None:
            self.to_come = collections.deque(self.expected_uses())
        is_again = bool(self.uses) and self.uses[-1] == number
        self.uses.append(number)
        if self.to_come and self.to_come[0] == number:
            self.to_come.popleft()
            return True
        if number in self.to_come:
            self.to_come.remove(number)
            return False
        return is_again  # the block is in hand: nothing to be wrong about

    def expected_uses(self):
        """The uses to come, in order."""
        if self.to_come is not None:
            return self.to_come
        same = [r for r in self.matching if len(r.sizes) == len(self.sizes)]
        if self.matching:
            return (same or self.matching)[0].uses
        return range(len(self.sizes) - 1, -1, -1)

    def recording(self):
        return Recording(tuple(self.sizes), tuple(self.uses))


class Recordings:
    """The latest steps that were not alike."""

    def __init__(self):
        self.kept = []

    def __iter__(self):
        return iter(self.kept)

    def add(self, recording):
        """A step without uses teaches nothing."""
        if not recording.uses:
            return
        others = (r for r in self.kept if r.sizes != recording.sizes)
        self.kept = [recording, *itertools.islice(others, KEPT_RECORDINGS - 1)]
