"""What a step is expected to use next. Blocks are numbered in the order in which they are saved."""

import unittest

import importing
from spillway_um.step import KEPT_RECORDINGS, Recording, Recordings, Step


def saved(sizes, recordings=()):
    step = Step(recordings)
    for size in sizes:
        step.save(size)
    return step


def recorded(sizes, uses):
    step = saved(sizes)
    for number in uses:
        step.use(number)
    return step.recording()


class FirstStep(unittest.TestCase):
    def test_expects_the_blocks_in_reverse(self):
        step = saved([10, 20, 30])
        self.assertEqual(list(step.expected_uses()), [2, 1, 0])
        self.assertFalse(step.is_recognised())
        self.assertEqual(tuple(step.sizes_to_come()), ())
        self.assertEqual([step.use(2), step.use(1), step.use(0)], [True, True, True])

    def test_does_not_wonder_at_a_block_that_is_used_twice_in_a_row(self):
        step = saved([10, 20])
        self.assertEqual([step.use(1), step.use(1), step.use(0)], [True, True, True])

    def test_notices_another_order_and_expects_the_rest(self):
        step = saved([10, 20, 30])
        self.assertFalse(step.use(1))
        self.assertEqual(list(step.expected_uses()), [2, 0])
        self.assertTrue(step.use(2))

    def test_expects_what_is_saved_during_backward_first(self):
        step = saved([10, 20])
        step.use(1)
        step.save(5)
        self.assertEqual(list(step.expected_uses()), [2, 0])


class LaterStep(unittest.TestCase):
    def test_expects_the_recorded_order(self):
        step = saved([10, 20, 30], [recorded([10, 20, 30], [1, 2, 1, 0])])
        self.assertTrue(step.is_recognised())
        self.assertEqual(list(step.expected_uses()), [1, 2, 1, 0])
        self.assertEqual([step.use(n) for n in (1, 2, 1, 0)], [True] * 4)

    def test_knows_what_will_be_saved(self):
        step = saved([10], [recorded([10, 20, 30], [2, 1, 0])])
        self.assertEqual(step.sizes_to_come(), (20, 30))

    def test_follows_another_recording_when_sizes_differ(self):
        large, small = recorded([10, 20], [0, 1]), recorded([10, 5], [1, 0])
        step = saved([10], [large, small])
        self.assertEqual(step.sizes_to_come(), (20,))  # the latest until it is wrong
        step.save(5)
        self.assertEqual(list(step.expected_uses()), [1, 0])

    def test_knows_nothing_of_new_sizes(self):
        step = saved([10, 7], [recorded([10, 20], [0, 1])])
        self.assertFalse(step.is_recognised())
        self.assertEqual(list(step.expected_uses()), [1, 0])

    def test_that_saves_fewer_blocks_takes_the_recording_that_ends_there(self):
        step = saved([10, 20], [recorded([10, 20, 30], [2, 0, 1]), recorded([10, 20], [0, 1])])
        self.assertEqual(list(step.expected_uses()), [0, 1])


class Kept(unittest.TestCase):
    def test_are_the_latest_steps_of_each_shape(self):
        recordings = Recordings()
        for size in range(KEPT_RECORDINGS + 2):
            recordings.add(recorded([size], [0]))
        recordings.add(recorded([5], [0, 0]))
        kept = list(recordings)
        self.assertEqual(kept[0], Recording((5,), (0, 0)))
        self.assertEqual([r.sizes[0] for r in kept], [5, 9, 8, 7, 6, 4, 3, 2])

    def test_steps_have_uses(self):
        recordings = Recordings()
        recordings.add(recorded([5], []))
        self.assertEqual(list(recordings), [])
