"""Spaces and blocks on the host."""

import gc
import pathlib
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import importing
from spillway_um import Block, Error, Space
from spillway_um.space import Counters, address_range

try:
    import numpy
except ImportError:
    numpy = None

KIB, MIB = 1 << 10, 1 << 20


class Spaces(unittest.TestCase):
    def make(self, **options):
        # 1 MiB near is 16 pages of 64 KiB.
        space = Space(**{"near": "1MiB", "capacity": "8MiB", **options})
        self.addCleanup(space.close)
        return space

    def test_hold_more_than_is_near(self):
        space = self.make()
        block = space.allocate("4MiB")
        memory = block.buffer()
        for page in range(64):
            memory[page * 64 * KIB] = page
        self.assertEqual([memory[page * 64 * KIB] for page in range(64)], list(range(64)))
        counters = space.counters()
        self.assertEqual(counters["near_peak_bytes"], MIB)
        self.assertGreaterEqual(counters["bytes_offloaded"], 3 * MIB)
        self.assertGreaterEqual(counters["bytes_prefetched"], 3 * MIB)

    def test_move_by_hints(self):
        space = self.make()
        block = space.allocate("512KiB")
        block.buffer()[0] = 7
        space.offload(block)
        space.synchronize()
        self.assertEqual(space.near_bytes(block), 0)
        space.prefetch(block)
        space.synchronize()
        self.assertEqual(space.near_bytes(block), 512 * KIB)
        self.assertEqual(block.buffer()[0], 7)
        space.touch(block, "read")
        space.advise(block, "prefer far")
        space.prepare_thread()
        self.assertEqual(space.counters()["touches"], 1)
        space.discard(block)
        self.assertEqual(space.near_bytes(block), 0)

    def test_learn_what_repeats(self):
        space = self.make()
        self.assertIn("mark", space.learned_status())
        block = space.allocate("2MiB")
        pages = [block.buffer()[at:at + 64 * KIB] for at in range(0, 2 * MIB, 64 * KIB)]
        space.mark_iteration()
        for iteration in range(8):
            for page in pages:
                space.touch(page)
                self.assertEqual(page[0], iteration)
                page[0] = iteration + 1
                time.sleep(1e-3)  # time in which to prefetch
            space.mark_iteration()
            space.synchronize()  # the lesson is learned, and the moves so far are over
        counters = space.learned_counters()
        self.assertEqual(counters["iterations"], 8)
        self.assertEqual(counters["touches"], 8 * len(pages))
        self.assertEqual(counters["lessons"], 1, space.learned_status())
        self.assertGreaterEqual(counters["followed"], 5, space.learned_status())
        self.assertEqual(counters["hits"], counters["followed"] * len(pages))

    def test_keep_content_in_a_file(self):
        space = self.make(far="/tmp")
        memory = space.allocate("4MiB").buffer()
        memory[:] = bytes(range(256)) * (4 * MIB // 256)
        self.assertEqual(bytes(memory), bytes(range(256)) * (4 * MIB // 256))

    def test_close_once_and_refuse_what_comes_later(self):
        with self.make() as space:
            block = space.allocate(100)
        space.close()
        self.assertFalse(space.is_open)
        for use in (block.buffer, block.free, space.counters, lambda: space.allocate(1)):
            with self.assertRaisesRegex(Error, "the space is closed; keep it open") as caught:
                use()
            self.assertEqual(caught.exception.status, "INVALID_SPACE")

    def test_are_64_at_a_time(self):
        spaces = []
        with self.assertRaisesRegex(Error, "64 managed memories are in use already; end one"):
            for _ in range(65):
                spaces.append(self.make(capacity="2MiB"))
        self.assertLessEqual(len(spaces), 64)
        spaces.pop().close()
        spaces.append(self.make(capacity="2MiB"))
        self.assertGreater(len(spaces), 50)

    def test_are_not_closed_under_live_views(self):
        for made in (lambda s: s.allocate(100).buffer(), lambda s: s.allocate(100).buffer()[5:]):
            space = Space(near="1MiB", capacity="2MiB")
            view = made(space)
            with self.assertRaisesRegex(Error, "1 view of this space's memory .* delete them"):
                space.close()
            view[0] = 1  # still there
            del view
            space.close()
            self.assertFalse(space.is_open)

    def test_do_not_hide_an_error_behind_live_views(self):
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            with Space(near="1MiB", capacity="2MiB") as space:
                view = space.allocate(100).buffer()
                raise ZeroDivisionError("mine")
        self.assertTrue(space.is_open)
        view[0] = 1
        del view
        space.close()

    def test_say_what_is_wrong(self):
        for options, sentence in (({"near": "1KiB"}, "near memory of"),
                                  ({"device": "tpu"}, "tpu"),
                                  ({"far": "/no/folder/here"}, "/no/folder"),
                                  ({"oversubscribe": True}, "oversubscribe is for a GPU")):
            with self.assertRaisesRegex(Error, sentence):
                self.make(**options)
        with self.assertRaisesRegex(ValueError, "'lots' is no amount of memory"):
            self.make(near="lots")
        space = self.make()
        with self.assertRaisesRegex(ValueError, "there is no advice 'pin'; there are none, prefer"):
            space.advise(space.allocate(1), "pin")
        with self.assertRaisesRegex(TypeError, "a float has no address that can be hinted"):
            space.prefetch(1.5)

    def test_have_no_more_than_their_capacity(self):
        with self.assertRaisesRegex(Error, "no room for 9.00 MiB") as caught:
            self.make().allocate("9MiB")
        self.assertEqual(caught.exception.status, "OUT_OF_MEMORY")

    def test_serve_threads(self):
        space = self.make(capacity="64MiB")
        failures = []

        def work(value):
            for _ in range(20):
                block = space.allocate("256KiB")
                memory = block.buffer()
                memory[:] = bytes([value]) * len(memory)
                space.offload(block)
                if bytes(memory) != bytes([value]) * len(memory):
                    failures.append(value)
                block.free()
        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        counters = space.counters()
        self.assertEqual((counters["allocations"], counters["frees"]), (80, 80))


class Blocks(unittest.TestCase):
    def setUp(self):
        self.space = Space("1MiB", "8MiB")
        self.addCleanup(self.space.close)

    def live(self):
        gc.collect()
        counters = self.space.counters()
        return counters["allocations"] - counters["frees"]

    def test_go_with_their_last_reference(self):
        block = self.space.allocate(100)
        memory = block.buffer()
        del block
        self.assertEqual(self.live(), 1)
        del memory
        self.assertEqual(self.live(), 0)

    def test_are_freed_once(self):
        block = self.space.allocate(100)
        block.free()
        with self.assertRaisesRegex(Error, "this block was freed already") as caught:
            block.free()
        self.assertEqual(caught.exception.status, "NOT_ALLOCATED")
        del block
        self.assertEqual(self.space.counters()["frees"], 1)

    def test_may_outlive_their_space(self):
        block = self.space.allocate(100)
        self.space.close()
        with mock.patch.object(sys, "unraisablehook") as complain:
            del block
        complain.assert_not_called()

    def test_of_a_foreign_address_are_refused(self):
        with self.assertRaisesRegex(Error, "is not an address of this space"):
            self.space.prefetch(Block(self.space, 4096, 1))

    def test_are_ranges_like_buffers_over_them(self):
        block = self.space.allocate(100)
        self.assertEqual(address_range(block.buffer()[10:30]), (block.address + 10, 20))


@unittest.skipIf(numpy is None, "there is no NumPy")
class Arrays(unittest.TestCase):
    def setUp(self):
        self.space = Space(near="1MiB", capacity="16MiB")

    def test_hold_numbers_of_any_kind(self):
        for shape, dtype in ((10, "f4"), ((3, 5), "i8"), ((2, 1, 7), "c16"), ([4], "u1")):
            array = self.space.array(shape, dtype)
            expected = numpy.zeros(shape, dtype)
            self.assertEqual((array.shape, array.dtype), (expected.shape, expected.dtype))
            array[...] = 3
            self.assertTrue((array == 3).all())
        self.assertEqual(self.space.array((0, 4)).shape, (0, 4))

    def test_keep_their_memory_as_long_as_they_live(self):
        part = self.space.array((1000, 100))[5:7]
        part[:] = 9
        gc.collect()
        self.assertEqual(self.space.counters()["frees"], 0)
        self.assertTrue((part == 9).all())
        del part
        gc.collect()
        self.assertEqual(self.space.counters()["frees"], 1)

    def test_of_no_sense_are_refused(self):
        with self.assertRaisesRegex(Error, "has Python objects"):
            self.space.array(3, object)
        with self.assertRaisesRegex(ValueError, "negative size"):
            self.space.array((3, -1))
        with self.assertRaises(TypeError):
            self.space.array(2.5)
        with self.assertRaisesRegex(Error, "no room|capacity"):
            self.space.array(1 << 30)

    def test_go_to_files_and_come_back_when_most_is_far(self):
        array = self.space.array((1 << 20, 2), "f4")  # 8 MiB
        expected = numpy.arange(array.size, dtype="f4").reshape(array.shape)
        array[:] = expected
        self.space.offload(array)
        self.space.call("synchronize")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "array.npy"
            for of, wanted in ((array, expected), (array[::3].T, expected[::3].T)):
                self.space.save(path, of)
                self.assertTrue((numpy.load(path) == wanted).all())
            raw = pathlib.Path(folder) / "raw"
            raw.write_bytes(expected[::-1].tobytes() + b"more")
            with raw.open("rb") as file:
                self.assertEqual(self.space.read_into(file, array), array.nbytes)
                self.assertEqual(file.read(), b"more")
            self.assertTrue((array == expected[::-1]).all())
            with raw.open("rb") as file:
                file.seek(array.nbytes)
                self.assertEqual(self.space.read_into(file, array), 4)  # the file has no more


class CountersText(unittest.TestCase):
    def test_has_a_line_each_with_units(self):
        self.assertEqual(str(Counters(faults=3, near_bytes=2048, fault_nanoseconds=5 * 10**8)),
                         "faults             3\n"
                         "near_bytes         2.00 KiB\n"
                         "fault_time         0.500 s")
