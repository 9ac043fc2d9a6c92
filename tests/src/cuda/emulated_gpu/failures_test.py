"""A call that fails ends a training on the emulated GPU in one sentence, or changes nothing."""

import collections
import os
import random
import unittest

import failures

CALLS = 16  # of each memory mode; all with SPILLWAY_ALL_FAILURES=1, which takes half an hour
CAPTURED = 6  # more of those in a capture
FORKS = ("cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamEndCapture")
ALL = os.environ.get("SPILLWAY_ALL_FAILURES") == "1"
RATES = [{"fail-rate": 0.05, "seed": seed} for seed in (1, 2)]
RATES += [{"fail-rate": 0.002, "seed": seed} for seed in (3, 4)]


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

    def fail_sites(self, memory, cards, twin):
        """Fails each of the calls in a training of its own. Returns how many ended in which way."""
        ends = collections.Counter()
        for card in cards:
            run = self.expect_kept(memory, card, twin)
            has_failed = run.report.get("counts", {}).get(failures.FAILED) == 1
            if not failures.is_reached_by_chance(card["fail"]):
                with self.subTest(memory=memory, card=card):
                    self.assertTrue(has_failed, "not reached: " + run.story())
            ends[run.status if has_failed else "not reached"] += 1
        if ALL:
            print(f"{memory}: {len(cards)} calls; ends: {dict(ends)}")
        return ends

    def fail_some_sites(self, memory):
        twin = self.undisturbed(memory)
        cards = [card for card in failures.cards_of(twin)
                 if not failures.is_captured(card["fail"])]
        self.assertGreater(len(cards), CALLS)
        ends = self.fail_sites(memory, cards if ALL else random.Random(1).sample(cards, CALLS),
                               twin)
        self.assertGreater(2 * ends[1], sum(ends.values()))

    def test_of_one_call_in_managed_mode_are_told(self):
        self.fail_some_sites("managed")

    def test_of_one_call_in_copy_mode_are_told(self):
        self.fail_some_sites("copy")

    def test_of_one_call_in_a_capture_leave_the_bits_or_are_told(self):
        twin = self.undisturbed("copy")
        cards = [card for card in failures.cards_of(twin) if failures.is_captured(card["fail"])]
        forks = [card for card in cards if failures.function_of(card["fail"]) in FORKS]
        self.assertEqual({failures.function_of(card["fail"]) for card in forks}, set(FORKS))
        if not ALL:
            # Of each place that forks, joins and ends a capture one kind of failure, and some more.
            chance = random.Random(1)
            places = sorted({card["fail"] for card in forks})
            cards = [chance.choice([card for card in forks if card["fail"] == place])
                     for place in places] + chance.sample(cards, CAPTURED)
        ends = self.fail_sites("copy", cards, twin)
        # Steps are launched anew where no graph can be made of them.
        self.assertGreater(ends[0], 0)
        self.assertGreater(ends[1], 0)

    def test_of_calls_by_chance_are_told(self):
        for memory in failures.FLAGS:
            twin = self.undisturbed(memory)
            for card in RATES:
                self.expect_kept(memory, card, twin)


if __name__ == "__main__":
    unittest.main()
