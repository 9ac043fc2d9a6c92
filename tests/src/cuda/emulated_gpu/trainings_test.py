"""Every family of networks trains on the emulated GPU, in each memory mode, with the host's losses.

SPILLWAY_ALL_TRAININGS=1 trains 10 steps of each, in every order of execution, which takes an hour.
"""

import os
import unittest

from emulated_runs import profile, train, train_on_host, words
from families import FAMILIES

CLOSE_IN_BF16 = 2e-2  # how far a loss may be from the host's, as a part of it
IN_BF16 = ["lenet", "gpt", "resnet18"]
ALL = os.environ.get("SPILLWAY_ALL_TRAININGS") == "1"
ORDERS = ("eager", "late", "moves", "compute", "all", "chance") if ALL else ("eager",)
BESIDE = 4 << 20  # bytes of near memory beside a budget: numbers of the step, a batch that waits


class Trainings(unittest.TestCase):
    """One test a family, and one more in bf16 for some; made below."""

    def train_in_each_mode(self, family, precision, close):
        net = words(family.flags(), "--precision", precision)
        # Small steps: batch norm amplifies rounding from step to step, at 0.001 to 1e-3 within ten of them.
        flags = [net, "--lr 0.0001 --steps 10" if ALL else f"--lr 0.001 --steps {family.steps}"]
        host = train_on_host(flags, "--emulate-bf16" if precision == "bf16" else None)
        has_host = "bf16 on processors with AVX-512 alone" not in host.errors
        if has_host:
            self.assertEqual(host.status, 0, host.story())
        planned = words("--budget", family.budget, "--recompute off --profile", profile(*net))
        resident = train(flags, "--memory resident")
        self.assertEqual(resident.status, 0, resident.story())
        if has_host:
            self.expect_losses(resident, host, close, family.compared)
        for order in ORDERS:
            for memory in ("managed --discard on", "copy"):
                run = train(flags, planned, "--memory", memory, card={"order": order})
                self.assertEqual(run.bits(), resident.bits(), run.story())
                self.expect_budget(run)
                self.assertEqual(run.report["device_faults"], 0, run.story())
                if family.moves and precision == "fp32":
                    self.assertGreater(run.summary["bytes_offloaded"], 0, run.story())

    def expect_losses(self, run, host, close, steps):
        self.assertEqual(len(run.losses()), len(host.losses()), run.story())
        for step, (loss, other) in enumerate(zip(run.losses()[:steps], host.losses()), 1):
            self.assertLessEqual(abs(loss - other), close * abs(other),
                                 f"step {step}: {loss}, and on the host {other}\n{run.story()}")

    def expect_budget(self, run):
        self.assertEqual(run.report["mistakes"], 0, run.report["first_mistake"])
        self.assertEqual(run.report["evicted_bytes"], 0, run.story())
        self.assertLessEqual(run.summary["near_peak_bytes"], run.summary["budget_bytes"], run.story())
        self.assertLessEqual(run.report["asked_peak_bytes"], run.summary["budget_bytes"] + BESIDE,
                             run.story())


def test_of(family, precision, close):
    return lambda self: self.train_in_each_mode(family, precision, close)


for name, each in FAMILIES.items():
    setattr(Trainings, "test_" + name, test_of(each, "fp32", each.close))
for name in IN_BF16:
    setattr(Trainings, f"test_{name}_in_bf16", test_of(FAMILIES[name], "bf16", CLOSE_IN_BF16))


if __name__ == "__main__":
    unittest.main()
