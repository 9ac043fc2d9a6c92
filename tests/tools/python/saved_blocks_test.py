"""Saved blocks in a host space: content, what is near, counters. No PyTorch."""

import ctypes
import unittest

import importing
from spillway_um import Space
from spillway_um.saved_blocks import SavedBlocks

SIZE = 64 << 10


class Blocks(unittest.TestCase):
    def setUp(self):
        # Pages of 16 KiB. The plan's budget is 15/16 of near memory: 240 KiB, three blocks.
        self.space = Space("256KiB", "8MiB")
        self.addCleanup(self.space.close)
        self.blocks = SavedBlocks.of(self.space)
        self.memory = ctypes.create_string_buffer(SIZE)
        self.saved = []

    def step(self, count):
        """Saves so many blocks; each is full of its place among all."""
        self.blocks.begin_step()
        for _ in range(count):
            ctypes.memset(self.memory, len(self.saved), SIZE)
            self.saved.append(self.blocks.save(ctypes.addressof(self.memory), SIZE))

    def load(self, place):
        self.blocks.load(self.saved[place], ctypes.addressof(self.memory))
        return set(self.memory.raw)

    def near(self):
        return [place for place, saved in enumerate(self.saved)
                if saved and self.blocks.plan.is_near(saved.entry)]

    def use_and_drop(self, places):
        for place in places:
            self.assertEqual(self.load(place), {place})
            self.saved[place] = None

    def test_belong_to_the_space(self):
        self.assertIs(SavedBlocks.of(self.space), self.blocks)

    def test_keep_their_content(self):
        self.step(10)
        self.use_and_drop([9, 8, 3, 4, 5, 7, 6, 2, 0, 1])

    def test_leave_room_for_the_next_while_nothing_is_known(self):
        self.step(10)
        self.assertEqual(self.near(), [8, 9])  # and a quarter of the budget, less than a block

    def test_fill_near_memory_when_no_more_will_be_saved(self):
        self.step(10)
        self.use_and_drop(range(9, -1, -1))
        self.saved.clear()
        self.step(9)
        self.assertEqual(self.near(), [7, 8])
        self.saved.append(self.blocks.save(ctypes.addressof(self.memory), SIZE))
        self.assertEqual(self.near(), [7, 8, 9])

    def test_that_are_used_next_come_near(self):
        self.step(10)
        self.load(9)
        self.assertEqual(self.near(), [7, 8, 9])
        self.saved[9] = None
        self.load(8)
        self.assertEqual(self.near(), [6, 7, 8])
        self.saved.clear()
        self.blocks.begin_step()
        self.assertEqual(self.blocks.plan.held, 0)

    def test_come_by_the_recorded_order(self):
        for _ in range(2):
            self.saved.clear()
            self.step(6)
            self.use_and_drop(range(6))  # first in, first out
        self.saved.clear()
        self.step(6)
        self.assertEqual(self.near(), [0, 4, 5])  # 0 is next; 4 and 5 have just been saved
        self.load(0)
        self.assertEqual(self.near(), [0, 1, 2])
        self.assertEqual(self.blocks.counts["surprises"], 5)  # in the first step; its last was due

    def test_of_an_older_step_are_followed_within_it(self):
        self.step(5)
        self.step(5)
        self.load(4)
        self.assertEqual(self.near(), [2, 3, 4])

    def test_are_counted(self):
        self.step(10)
        self.space.synchronize()
        self.load(9)
        self.load(0)
        self.blocks.use_again(self.saved[0].entry)
        self.assertEqual(dict(self.blocks.counts), {
            "steps": 1, "recognised_steps": 0, "saved": 10, "saved_bytes": 10 * SIZE, "shared": 0,
            "left_alone": 0, "uses": 3, "again": 1, "hits": 1, "late": 0, "misses": 1,
            "surprises": 1})
