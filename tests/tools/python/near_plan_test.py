"""Hints of a plan, over a space that only takes notes. Blocks have 10 bytes; the budget holds 3."""

import unittest

import importing
from spillway_um.library import Error
from spillway_um.near_plan import Entry, NearPlan
from spillway_um.step import Step


class Notes:
    def __init__(self):
        self.hints = []
        self.failure = None

    def call(self, name, address, size):
        if self.failure:
            raise self.failure
        self.hints.append((name, address))


class Plan(unittest.TestCase):
    def setUp(self):
        self.space = Notes()
        self.plan = NearPlan(self.space, 30)
        self.step = Step(())
        self.entries = [self.save() for _ in range(5)]  # addresses 0 to 4

    def save(self):
        entry = Entry(self.step, self.step.save(10), len(self.step.entries), 10)
        self.step.entries.append(entry)
        return entry

    def near(self, *numbers):
        for number in numbers:
            self.plan.arrive(self.entries[number])

    def taken_hints(self):
        hints, self.space.hints = self.space.hints, []
        return hints

    def test_offloads_what_is_used_last(self):
        self.near(1, 0, 2)
        self.plan.make_room(20, [self.step], self.entries[2])
        self.assertEqual(self.taken_hints(), [("offload", 0), ("offload", 1)])
        self.assertEqual(self.plan.held, 10)

    def test_offloads_nothing_while_there_is_room(self):
        self.near(0, 1)
        self.plan.make_room(10, [self.step], self.entries[1])
        self.assertEqual(self.taken_hints(), [])

    def test_spares_what_is_in_hand(self):
        self.near(0, 1, 2)
        self.plan.make_room(30, [self.step], self.entries[0])
        self.assertEqual(self.taken_hints(), [("offload", 1), ("offload", 2)])

    def test_prefetches_what_is_used_next_until_it_is_full(self):
        self.near(4)
        self.step.use(4)
        self.plan.prefetch_ahead([self.step], self.entries[4])
        self.assertEqual(self.taken_hints(), [("prefetch", 3), ("prefetch", 2)])
        self.assertEqual(self.plan.held, 30)

    def test_prefetches_no_block_that_is_gone(self):
        self.entries[3].is_live = False
        self.plan.prefetch_ahead([self.step], None)
        self.assertEqual(self.taken_hints(), [("prefetch", 4), ("prefetch", 2), ("prefetch", 1)])

    def test_gives_up_what_is_used_later_for_what_is_used_next(self):
        self.near(4, 0, 1)
        self.step.use(4)
        self.plan.prefetch_ahead([self.step], self.entries[4])
        self.assertEqual(self.taken_hints(),
                         [("offload", 0), ("prefetch", 3), ("offload", 1), ("prefetch", 2)])

    def test_gives_up_first_what_is_not_used_again(self):
        self.near(3, 2, 4)  # a graph that is retained: 4 was used and lives
        self.step.use(4)
        self.step.use(3)
        self.plan.prefetch_ahead([self.step], self.entries[3])
        self.assertEqual(self.taken_hints(), [("offload", 4), ("prefetch", 1)])

    def test_takes_steps_in_the_order_given(self):
        older, self.step = self.step, Step(())
        newer = self.save()
        newer.address = 7
        self.plan.prefetch_ahead([older, self.step], None)
        self.assertEqual(self.taken_hints(), [("prefetch", 4), ("prefetch", 3), ("prefetch", 2)])
        self.plan.prefetch_ahead([self.step, older], None)
        self.assertEqual(self.taken_hints(), [("offload", 2), ("prefetch", 7)])

    def test_passes_over_what_is_larger_than_near_memory(self):
        self.entries[4].size = 31
        self.plan.prefetch_ahead([self.step], None)
        self.assertEqual(self.taken_hints()[0], ("prefetch", 3))

    def test_minds_no_block_that_has_just_gone(self):
        self.space.failure = Error("freed", "NOT_ALLOCATED")
        self.plan.prefetch_ahead([self.step], None)
        self.space.failure = Error("far memory failed", "FAILED")
        self.plan.leave(self.entries[4])
        with self.assertRaisesRegex(Error, "far memory failed"):
            self.plan.prefetch_ahead([self.step], None)
