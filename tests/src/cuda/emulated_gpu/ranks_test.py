"""Ranks on emulated GPUs, one of each rank, have the bits of one rank with as many micro-batches."""

import os
import unittest

from emulated_runs import train, words

NET = "--net lenet --batch 32 --micro-batches 4"
FLAGS = "--steps 3 --lr 0.01 --optimizer adam --clip-norm 1"
WAYS = {  # how memory is used, how ranks share the work, and the order of work on each GPU
    "resident": ("--memory resident", "--bucket 64KiB", {"order": "late"}),
    "managed": ("--memory managed --budget min+30% --discard on", "--zero 1",
                {"order": "chance", "seed": 1}),
    "copy": ("--memory copy --budget min+30%", "--zero 1 --bucket 64KiB", {"order": "moves"}),
}


def train_ranks(*flags, card):
    return train(*flags, card={"devices": 2, **card}, launcher=words(
        os.environ["SPILLWAY_MPIRUN"], "--oversubscribe --allow-run-as-root --bind-to none -n 2"))


class Ranks(unittest.TestCase):
    """One test for each of WAYS; made below."""

    def train_in_ranks(self, memory, shared, card):
        one = train(NET, FLAGS, memory)
        self.assertEqual(one.status, 0, one.story())
        run = train_ranks(NET, FLAGS, memory, "--ranks 2", shared, card=card)
        self.assertEqual((run.status, run.bits()), (0, one.bits()), run.story())
        self.assertEqual(run.report["mistakes"], 0, run.report["first_mistake"])
        self.assertLessEqual(run.summary["near_peak_bytes"], run.summary["budget_bytes"], run.story())

    def test_whose_calls_fail_end_with_a_sentence(self):
        for call in ("ncclCommInitRankConfig:1", "ncclSend:9"):
            with self.subTest(call=call):
                run = train_ranks(NET, FLAGS, "--memory resident --ranks 2 --bucket 64KiB",
                                  card={"fail": call})
                self.assertNotIn(run.status, (None, 0), run.story())
                self.assertIn("NCCL: ", run.errors)
                self.assertNotIn("bug in spillway", run.errors)

    def test_on_one_gpu_are_refused(self):
        run = train_ranks(NET, FLAGS, "--memory resident --ranks 2", card={"devices": 1})
        self.assertNotEqual(run.status, 0, run.story())
        self.assertIn("each rank needs one of its own", run.errors)


def test_of(way):
    return lambda self: self.train_in_ranks(*way)


for name, each in WAYS.items():
    setattr(Ranks, f"test_in_{name}_mode_train_with_the_bits_of_one", test_of(each))


if __name__ == "__main__":
    unittest.main()
