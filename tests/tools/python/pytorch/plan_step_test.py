"""Which plan is taken, and how much near memory its moves get beside it."""

import unittest
import unittest.mock

from pytorch_case import PyTorchCase, spillway
from spillway import planning
from spillway.pytorch.plan_step import plan_within
from toy_trace import MIB, toy


class PlansWithin(PyTorchCase):
    def planned(self, budget, trace=None, **asked):
        """The plan, its room, and how often the planner was asked."""
        with unittest.mock.patch.object(planning, "plan", wraps=planning.plan) as asking:
            plan, room = plan_within(trace or toy(), budget, {"planner": "joint", **asked},
                                     (2 * MIB, MIB))
        return plan, room, asking.call_count

    def test_nothing_moves_where_all_is_near(self):
        plan, room, asked = self.planned(12 * MIB)
        self.assertEqual((plan.plan["offloads"], room, asked), ([], 0, 1))

    def test_moves_have_the_first_room_that_leaves_enough(self):
        plan, room, asked = self.planned(10 * MIB)
        self.assertTrue(plan.plan["offloads"])
        self.assertEqual((room, asked), (2 * MIB, 1))
        self.assertLessEqual(plan.figures["peak_bytes"] + room, 10 * MIB)
        _, room, asked = self.planned(9 * MIB)
        self.assertEqual((room, asked), (MIB, 2))

    def test_runs_again_alone_need_no_room(self):
        plan, room, _ = self.planned(8 * MIB, toy(recomputable=True), planner="recompute")
        self.assertEqual((plan.plan["offloads"], room), ([], 0))

    def test_planners_that_always_move_have_room(self):
        plan, room, _ = self.planned(20 * MIB, planner="vdnn-all")
        self.assertTrue(plan.plan["offloads"])
        self.assertEqual(room, 2 * MIB)

    def test_the_smallest_that_works_is_named(self):
        with self.assertRaisesRegex(spillway.BudgetTooSmall, "a step of this model") as caught:
            self.planned(8 * MIB)
        _, room, _ = self.planned(caught.exception.smallest)
        self.assertEqual(room, MIB)


if __name__ == "__main__":
    unittest.main()
