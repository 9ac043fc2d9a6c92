"""Planning from Python; the planners themselves are tested in C++."""

import json
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import importing  # noqa: F401 pylint: disable=unused-import

import spillway
from spillway import planning
from toy_trace import MIB, toy


class Planning(unittest.TestCase):
    def test_a_plan_keeps_its_budget(self):
        planned = spillway.plan(toy(), "8MiB", timeline=True)
        self.assertEqual(planned.needs, {"resident_bytes": 12 * MIB, "smallest_bytes": 8 * MIB})
        self.assertLessEqual(planned.figures["peak_bytes"], 8 * MIB)
        self.assertTrue(planned.plan["offloads"])
        self.assertIn("traceEvents", planned.timeline)

    def test_budgets_are_relative_to_the_need(self):
        for text, count in (("75%", 9 * MIB), ("75 %", 9 * MIB), ("min", 8 * MIB),
                            ("min+50%", 10 * MIB), ("min + 50 %", 10 * MIB)):
            with self.subTest(text):
                self.assertEqual(spillway.plan(toy(), text).figures["budget_bytes"], count)

    def test_a_file_is_as_good_as_a_dictionary(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.json"
            path.write_text(json.dumps(toy()), encoding="utf-8")
            self.assertEqual(planning.needs(path), planning.needs(toy()))
            with self.assertRaisesRegex(spillway.Error, "cannot read the trace .*No such file"):
                planning.needs(path.with_name("other.json"))

    def test_budgets_beyond_all_memory_are_as_good_as_the_need(self):
        for budget in (2**63, 2**70, "99999999999TiB"):
            with self.subTest(budget):
                self.assertEqual(spillway.plan(toy(), budget).plan["offloads"], [])

    def test_too_small_a_budget_names_the_smallest(self):
        sentence = "smallest budget that works"
        with self.assertRaisesRegex(spillway.BudgetTooSmall, sentence) as caught:
            spillway.plan(toy(), "1MiB")
        self.assertEqual(caught.exception.smallest, 8 * MIB)

    def test_bad_input_gets_a_sentence(self):
        for budget, sentence in ((0, "a budget of 0 bytes"), ("12Gib", "no amount of memory"),
                                 ("0.6", "no amount of memory")):
            with self.subTest(budget), self.assertRaisesRegex(ValueError, sentence):
                spillway.plan(toy(), budget)
        with self.assertRaisesRegex(spillway.Error, "'best'"):
            spillway.plan(toy(), "8MiB", planner="best")
        with self.assertRaisesRegex(spillway.Error, "format"):
            spillway.plan({}, "8MiB")

    def test_another_library_in_its_place_is_named(self):
        with unittest.mock.patch.dict(os.environ, {"SPILLWAY_PLAN_LIBRARY": "libc.so.6"}):
            sentence = "libc.so.6 has no function spillway_plan_trace"
            with self.assertRaisesRegex(spillway.Error, sentence):
                planning.load_planners.__wrapped__()


if __name__ == "__main__":
    unittest.main()
