"""Spaces for tests of the hooks; skips them where there is no PyTorch."""

import gc
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import importing

try:
    import torch
except ImportError as error:
    print(f"skipped: PyTorch does not load ({error}); tools/setup --bench installs it")
    raise unittest.SkipTest("there is no PyTorch") from error

import spillway_um


class Hooks(unittest.TestCase):
    def setUp(self):
        self.space = self.make_space()

    def make_space(self, **options):
        # 24 pages of 8 KiB: three blocks of the small network, about 30 % of what it saves.
        space = spillway_um.Space(**{"near": "192KiB", "capacity": "16MiB", **options})
        self.addCleanup(space.close)
        return space

    def saved(self, space=None, keep=(), smallest=1024):
        return spillway_um.saved_tensors(space or self.space, keep, smallest)

    def expect_same(self, ours, theirs):
        self.assertEqual(ours[0], theirs[0])
        for a, b in zip(ours[1], theirs[1]):
            self.assertTrue(torch.equal(a, b))

    def expect_nothing_left(self):
        gc.collect()
        counters = self.space.counters()
        self.assertEqual(counters["allocations"], counters["frees"])
        self.assertEqual(counters["allocated_bytes"], 0)
