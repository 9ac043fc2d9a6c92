"""How tools/bench/pytorch_budgets judges runs, over results that nobody measured."""

import unittest

from bench_program import tool


def result(allocated, resident=None, **others):
    """Of two steps."""
    steps = [{}, {"allocated_bytes": allocated, "resident_bytes": resident or allocated,
                  "held_bytes": 0}]
    return {"steps": steps, "losses": [1], "state": "s", "warnings": [], **others}


MIB = 1 << 20


class Judging(unittest.TestCase):
    def outcome(self, setting, found, plain=None, has_resident=True):
        row = {"model": "m", "way": "compiled", "setting": setting, "result": found}
        tool("pytorch_budgets").judge(row, plain or result(100 * MIB), has_resident)
        return row["outcome"]

    def test_a_byte_beyond_the_budget_is_over(self):
        for allocated, expected in ((60 * MIB, "kept"), (60 * MIB + 1, "over")):
            found = result(allocated, 60 * MIB, budget_bytes=60 * MIB)
            self.assertEqual(self.outcome(str(60 * MIB), found), expected)

    def test_the_resident_set_is_a_witness_of_its_own(self):
        found = result(50 * MIB, 70 * MIB, budget_bytes=60 * MIB)
        self.assertEqual(self.outcome(str(60 * MIB), found), "over")
        self.assertEqual(self.outcome(str(60 * MIB), found, has_resident=False), "kept")
        # Plain PyTorch has 30 MiB beside its tensors, too.
        plain = result(100 * MIB, 130 * MIB)
        self.assertEqual(self.outcome(str(60 * MIB), found, plain), "kept")

    def test_other_bits_and_missing_plans_are_told_apart(self):
        budget = {"budget_bytes": 60 * MIB}
        self.assertEqual(self.outcome("min", result(1, **{**budget, "state": "t"})),
                         "different bits")
        self.assertEqual(self.outcome("min", result(1)), "without a plan")
        self.assertEqual(self.outcome("min", result(1, **{**budget, "warnings": ["w"]})),
                         "without a plan")
        self.assertEqual(self.outcome("1", {"refused": "why", "smallest_bytes": 2}), "refused")

    def test_percentages_are_of_the_plain_peak(self):
        setting_of = tool("pytorch_budgets").setting_of
        self.assertEqual(setting_of("60%", result(100 * MIB)), str(60 * MIB))
        self.assertEqual(setting_of("min+20%", result(100 * MIB)), "min+20%")


class Comparing(unittest.TestCase):
    def test_a_way_may_have_the_peak_of_another(self):
        setting_of = tool("pytorch_methods").setting_of
        memory = {"plain": result(100), "checkpoint": result(70)}
        self.assertEqual(setting_of("compiled", "=checkpoint", memory), "70")
        self.assertEqual(setting_of("compiled", "60%", memory), "60")
        self.assertEqual(setting_of("compiled", "100%", memory), "100%")
        failure = tool("pytorch_methods").Failure
        with self.assertRaisesRegex(failure, "name the way before"):
            setting_of("compiled", "=files", memory)


if __name__ == "__main__":
    unittest.main()
