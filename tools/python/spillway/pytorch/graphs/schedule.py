"""A plan's three queues as one sequence that a single thread executes."""

import collections

RUN, STORE, DROP, PREFETCH = "run", "store", "drop", "prefetch"

Event = collections.namedtuple("Event", "kind number")
"""Of a task or a block, by its number in the trace."""


def events_of(plan, task_numbers, block_numbers):
    """The events of a spillway-plan, each after what it waits for.

    A plan keeps its budget under any timing that its conditions allow. This is one: every move is
    made as soon as its conditions hold, and a store has ended when the next event begins.
    """
    return Sequence(plan, task_numbers, block_numbers).events()


class Sequence:
    """How far the three queues are."""

    def __init__(self, plan, task_numbers, block_numbers):
        self.plan, self.task_numbers, self.block_numbers = plan, task_numbers, block_numbers
        self.done = [0, 0, 0]  # runs, offloads, prefetches
        self.made = []

    def events(self):
        """All of them."""
        for run in self.plan["runs"]:
            self.move()
            self.expect_reached(run)
            self.add(RUN, self.task_numbers[run["task"]], 0)
        self.move()
        return self.made

    def add(self, kind, number, queue):
        self.made.append(Event(kind, number))
        self.done[queue] += 1

    def move(self):
        """All moves that may begin now."""
        while self.offload() or self.prefetch():
            pass

    def offload(self):
        """Whether one was due. Its room is free only after `free_after` runs: it waits for them."""
        move = self.next_of("offloads", 1)
        if move is None or move.get("free_after", 0) > self.done[0]:
            return False
        self.add(DROP if move.get("clean") else STORE, self.block_numbers[move["data"]], 1)
        return True

    def prefetch(self):
        """Whether one was due."""
        move = self.next_of("prefetches", 2)
        if move is None:
            return False
        self.add(PREFETCH, self.block_numbers[move["data"]], 2)
        return True

    def next_of(self, name, queue):
        """The next entry of a queue if its conditions hold."""
        entries = self.plan[name]
        if self.done[queue] == len(entries) or not self.has_reached(entries[self.done[queue]]):
            return None
        return entries[self.done[queue]]

    def has_reached(self, entry):
        return all(have >= want for have, want in zip(self.done, entry["after"]))

    def expect_reached(self, run):
        """A verified plan never waits for ever."""
        if not self.has_reached(run):
            raise AssertionError(f"the plan waits for ever before {run['task']}")
