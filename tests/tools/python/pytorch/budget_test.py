"""Training within a budget: the bits of plain PyTorch, and no more bytes than were allowed."""

import tempfile
import threading
import time
import unittest
import warnings

from pytorch_case import (Attention, Convolutions, PyTorchCase, image_step, nn, spillway,
                          text_step, torch, train)


def slept_until(stop):
    """Waits, but not as the threads that are known to do nothing else."""
    while not stop.is_set():
        time.sleep(0.01)


class Budgets(PyTorchCase):
    def compare(self, kind, step_of, options, **given):
        """Trains twice, and returns the plans of the second training."""
        plain = self.made(kind)
        theirs = train(plain, plain, step_of(plain), **given)
        del plain
        model = self.made(kind)
        call = torch.compile(model, backend="spillway", options=options)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            ours = train(model, call, step_of(model), **given)
        self.expect_same(ours, theirs)
        plans = self.plans_of(model)
        self.assertTrue(plans)
        for plan in plans[-1:]:
            self.assertLessEqual(ours.peak, plan.peak())
        return plans

    def test_moves_and_recomputation_keep_the_bits_of_attention(self):
        plan, = self.compare(Attention, text_step, {"budget": "min"})
        self.assertTrue(plan.planned.plan["offloads"])

    def test_a_file_is_far_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            plan, = self.compare(Attention, text_step, {
                "budget": "min+20%", "far": folder, "recompute": False})
            self.assertGreater(plan.planned.figures["offloaded_bytes"], 0)

    def test_recomputation_alone_keeps_the_bits(self):
        plan, = self.compare(Attention, text_step, {"budget": "75%", "planner": "recompute"})
        self.assertGreater(plan.planned.figures["recomputed_tasks"], 0)
        self.assertEqual(plan.passage, 0)

    def test_running_statistics_are_updated_once(self):
        plan, = self.compare(Convolutions, image_step, {"budget": "min"})
        self.assertTrue(plan.planned.plan["offloads"]
                        or plan.planned.figures["recomputed_tasks"])

    def test_added_gradients_are_planned_for(self):
        plans = self.compare(Convolutions, image_step, {"budget": "min+50%"},
                             parts=2)
        self.assertEqual(len(plans), 2)  # with gradients there already, and without

    def test_added_gradients_are_counted_beside_a_thread_that_sleeps(self):
        class Wide(nn.Sequential):
            """Has more bytes of gradients than of activations."""

            def __init__(self):
                super().__init__(*[f() for _ in range(3) for f in (
                    lambda: nn.Linear(512, 512), nn.ReLU)])

        stop = threading.Event()
        sleeping = threading.Thread(target=slept_until, args=(stop,))
        sleeping.start()
        self.addCleanup(sleeping.join)
        self.addCleanup(stop.set)
        plans = self.compare(Wide, lambda model: lambda call: call(
            torch.ones(128, 512)).square().mean(), {"budget": "100%"}, parts=2,
            made_by=torch.optim.SGD)
        self.assertEqual(len(plans), 2)

    def test_all_that_is_needed_is_as_good_as_no_plan(self):
        plan, = self.compare(Convolutions, image_step, {"budget": "100%"})
        self.assertEqual(plan.planned.plan["offloads"], [])
        self.assertEqual(plan.passage, 0)

    def test_too_small_a_budget_is_refused_before_the_first_step(self):
        model = self.made(Convolutions)
        before = [p.clone() for p in model.parameters()]
        call = torch.compile(model, backend="spillway",
                             options={"budget": "100KiB"})
        with self.assertRaisesRegex(spillway.BudgetTooSmall, "the smallest that works") as caught:
            image_step(model)(call)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(before, model.parameters())))
        torch._dynamo.reset()
        call = torch.compile(model, backend="spillway", options={
            "budget": caught.exception.smallest + 4096})
        image_step(model)(call).backward()


class Contexts(PyTorchCase):
    def test_code_that_is_not_compiled_keeps_a_budget(self):
        plain = self.made(Attention)
        theirs = train(plain, plain, text_step(plain))
        model = self.made(Attention)
        optimizer = torch.optim.AdamW(model.parameters())
        with spillway.budget(model, "60%", optimizer=optimizer):
            ours = train(model, model, text_step(model))
        self.expect_same(ours, theirs)
        self.assertEqual(len(self.plans_of(model)), 1)
        self.assertIsNone(model._compiled_call_impl)

    def test_evaluation_needs_no_plan(self):
        model = self.made(Convolutions).eval()
        images = torch.randn(2, 3, 32, 32)
        with torch.no_grad():
            plain = model(images)
            call = torch.compile(model, backend="spillway", options={"budget": "60%"})
            self.assertTrue(torch.equal(call(images), plain))
        self.assertEqual(self.plans_of(model), [])


if __name__ == "__main__":
    unittest.main()
