"""A call that fails ends a training on the emulated GPU in one sentence, or changes nothing."""

import collections
import os
import random
import unittest

import failures

CALLS = 24  # of each memory mode; all with SPILLWAY_ALL_FAILURES=1, which takes a quarter of an hour
ALL = os.environ.get("SPILLWAY_ALL_FAILURES") == "1"
RATES = [{"fail-rate": 0.05, "seed": seed} for seed in (1, 2, 3)]
RATES += [{"fail-rate": 0.002, "seed": seed} for seed in (4, 5, 6)]


class Failures(unittest.TestCase):
    def expect_kept(self, memory, card, twin):
        run, wrong = failures.run(memory, card)
        with self.subTest(memory=memory, card=card):
            self.assertEqual(failures.verdict(run, wrong, twin, card.get("lost") == "on"), "",
                             run.story())
        return run

    def undisturbed(self, memory):
        twin, wrong = failures.run(memory, {"sites": "on"})
        self.assertEqual((twin.status, wrong), (0, ""), twin.story())
        self.assertGreater(twin.summary["bytes_offloaded"], 0, twin.story())
        return twin

    def fail_some_sites(self, memory):
        twin = self.undisturbed(memory)
        cards = failures.cards_of(twin)
        self.assertGreater(len(cards), CALLS)
        ends = collections.Counter()
        for card in cards if ALL else random.Random(1).sample(cards, CALLS):
            run = self.expect_kept(memory, card, twin)
            # How often some places are reached depends on which thread is faster.
            has_failed = run.report.get("counts", {}).get(failures.FAILED) == 1
            ends[run.status if has_failed else "not reached"] += 1
        if ALL:
            print(f"{memory}: {len(cards)} calls; ends: {dict(ends)}")
        self.assertGreater(2 * ends[1], sum(ends.values()))
        self.assertLess(10 * ends["not reached"], sum(ends.values()))

    def test_of_one_call_in_managed_mode_are_told(self):
        self.fail_some_sites("managed")

    def test_of_one_call_in_copy_mode_are_told(self):
        self.fail_some_sites("copy")

    def test_of_calls_by_chance_are_told(self):
        for memory in failures.FLAGS:
            twin = self.undisturbed(memory)
            for card in RATES:
                self.expect_kept(memory, card, twin)


if __name__ == "__main__":
    unittest.main()
