"""Each kind of GPU and driver trains with the same bits, or says which memory it has instead."""

import tempfile
import unittest

from emulated_runs import profile, train, words

NET = "--net lenet --batch 96"
FLAGS = "--steps 3 --lr 0.01"
SMALL = "--budget min+30% --recompute off"
NO_HINTS = {"kind": "no-hints"}  # as on WSL, Windows and Jetson
INTEGRATED = {"kind": "integrated"}  # as GB10 and Jetson: near memory is the RAM


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bits = train(NET, FLAGS, "--memory resident").bits()

    def expect_bits(self, card, *flags):
        run = train(NET, FLAGS, flags, card=card)
        self.assertEqual((run.status, run.bits()), (0, self.bits), run.story())
        return run

    def expect_moves(self, card, *flags):
        run = self.expect_bits(card, SMALL, "--profile", profile(*words(NET)), flags)
        self.assertGreater(run.summary["bytes_offloaded"], 0, run.story())
        return run

    def expect_refusal(self, card, flags, *sentences):
        run = train(NET, FLAGS, SMALL, flags, card=card)
        self.assertNotIn(run.status, (None, 0), run.story())
        for sentence in sentences:
            self.assertIn(sentence, run.errors)

    def test_with_concurrent_managed_access_take_hints(self):
        for card in ({}, {"kind": "coherent"}):
            self.assertIn(", discards", self.expect_moves(card, "--memory managed --discard on").errors)

    def test_with_drivers_before_13_have_no_discards(self):
        run = self.expect_moves({"driver": 12080}, "--memory managed")
        self.assertIn(", no discards", run.errors)

    def test_without_concurrent_managed_access_copy(self):
        self.expect_moves(NO_HINTS, "--memory copy")
        self.assertIn("explicit copies", self.expect_moves(NO_HINTS, "--memory auto").errors)
        self.expect_refusal(NO_HINTS, "--memory managed", "use --memory copy")

    def test_that_are_integrated_have_files_far(self):
        self.expect_bits(INTEGRATED, "--memory resident")
        with tempfile.TemporaryDirectory() as folder:
            run = self.expect_moves(INTEGRATED, "--memory copy --far", f"file:{folder}")
            self.assertIn("far file in ", run.errors)
        for mode in ("managed", "copy"):
            self.expect_refusal(INTEGRATED, f"--memory {mode}", "is the host's RAM", "--far file:PATH")

    def test_that_are_discrete_may_have_files_far(self):
        with tempfile.TemporaryDirectory() as folder:
            run = self.expect_moves({}, "--memory copy --far", f"file:{folder}")
            self.assertEqual(run.summary["bytes_offloaded"], run.summary["bytes_prefetched"])

    def test_repeat_a_graph_where_it_can_be_captured(self):
        card = {"fail": "cudaStreamBeginCapture:1"}
        for flags in (["--memory resident"], ["--memory copy", SMALL]):
            self.assertEqual(self.count_launches(self.expect_bits({}, *flags)), 1)
            self.assertEqual(self.count_launches(self.expect_bits({}, "--graph off", *flags)), 0)
            run = self.expect_bits(card, *flags)
            self.assertEqual(self.count_launches(run), 0)
            self.assertIn("no CUDA graph could be made", run.errors)

    def count_launches(self, run):
        return run.report["counts"].get("launches of graphs", 0)


if __name__ == "__main__":
    unittest.main()
