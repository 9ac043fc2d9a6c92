"""Several models, several sizes, several modes: each call runs under the plan that is its own."""

import contextlib
import gc
import io
import unittest
import weakref

from pytorch_case import (Attention, Convolutions, PyTorchCase, functional, image_step, nn,
                          spillway, text_step, torch, train)


class Classes(nn.Module):
    """A model without batch statistics, for batches of any size."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(256, 512), nn.Linear(512, 8)

    def forward(self, x):
        return self.other(functional.dropout(functional.gelu(self.one(x)), 0.1, self.training))


class Models(PyTorchCase):
    def setUp(self):
        super().setUp()
        self.make_errors_of_warnings(category=UserWarning)  # of falling back

    def test_models_of_one_class_with_equal_options_have_plans_of_their_own(self):
        theirs = train(plain := self.made(Convolutions), plain, image_step(plain))
        for shared in ({"budget": "min+50%"}, {"budget": "100%"}):
            models = [self.made(Convolutions) for _ in range(2)]
            for model in models:
                call = torch.compile(model, backend="spillway", options=shared)
                self.expect_same(train(model, call, image_step(model)), theirs)
            first, other = (self.plans_of(m) for m in models)
            self.assertEqual((len(first), len(other)), (1, 1))
            self.assertIsNot(first[0], other[0])

    def test_models_of_other_classes_may_share_options(self):
        shared = {"budget": "min+50%"}
        for kind, step_of in ((Attention, text_step), (Convolutions, image_step)):
            theirs = train(plain := self.made(kind), plain, step_of(plain))
            model = self.made(kind)
            call = torch.compile(model, backend="spillway", options=shared)
            self.expect_same(train(model, call, step_of(model)), theirs)
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertIs(spillway.explain(model).plans[0], self.plans_of(model)[0])

    def test_a_smaller_last_batch_has_a_plan(self):
        batches = [torch.randn(n, 256, generator=torch.Generator().manual_seed(n))
                   for n in (64, 64, 24)]

        def epochs(call):
            optimizer = torch.optim.SGD(call.parameters(), 0.1)
            torch.manual_seed(9)
            for batch in batches * 2:
                optimizer.zero_grad()
                call(batch).square().mean().backward()
                optimizer.step()

        plain, model = self.made(Classes), self.made(Classes)
        epochs(plain)
        epochs(torch.compile(model, backend="spillway", options={"budget": "min+50%"}))
        for a, b in zip(plain.parameters(), model.parameters(), strict=True):
            self.assertTrue(torch.equal(a, b))
        self.assertIn(len(self.plans_of(model)), (2, 3))  # Dynamo may ask its newest graph first

    def test_a_relative_budget_is_of_the_largest_step(self):
        model = self.made(Classes)
        call = torch.compile(model, backend="spillway", options={"budget": "min+50%"})
        for count in (64, 24, 96):
            call(torch.ones(count, 256)).sum().backward()
            model.zero_grad()
        first, smaller, larger = (p.budget for p in self.plans_of(model))
        self.assertEqual(first, smaller)
        self.assertGreater(larger, first)

    def test_evaluation_with_gradients_is_planned_beside_training(self):
        model = self.made(Classes)
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        batch = torch.randn(16, 256, requires_grad=True)
        call(batch).sum().backward()
        model.eval()
        call(batch).sum().backward()
        self.assertEqual(len(self.plans_of(model)), 2)

    def test_a_pass_whose_results_are_gone_is_no_part_of_the_next(self):
        model = self.made(Classes)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        call, batch = torch.compile(model, backend="spillway", options={
            "budget": "100%", "optimizer": optimizer}), torch.ones(16, 256)
        for is_trained in (False, True, False):
            model.one.requires_grad_(is_trained)
            for _ in range(2):
                call(batch).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            call(batch)
        self.assertEqual(len(self.plans_of(model)), 2)

    def test_a_model_goes_with_its_last_reference(self):
        def trained(entered):
            model = self.made(Attention)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            with entered(model, optimizer) as call:
                text_step(model)(call).backward()
                optimizer.step()
            self.assertTrue(self.plans_of(model))
            return weakref.ref(model.words.weight)

        @contextlib.contextmanager
        def compiled(model, optimizer):
            yield torch.compile(model, backend="spillway", options={
                "budget": "min", "optimizer": optimizer})

        for entered in (compiled, lambda m, o: spillway.budget(m, "min", optimizer=o)):
            gone = trained(entered)
            torch._dynamo.reset()
            gc.collect()
            self.assertIsNone(gone())

    def test_plans_of_one_model_share_the_way_to_far_memory(self):
        model = self.made(Attention)
        call = torch.compile(model, backend="spillway", options={
            "budget": "min+20%", "recompute": False})
        for _ in range(2):  # the second finds gradients there
            text_step(model)(call).backward()
        passages = {p.passage for p in self.plans_of(model)}
        self.assertEqual(len(self.plans_of(model)), 2)
        self.assertEqual(len(passages), 1)


class Recomputation(PyTorchCase):
    def test_what_reads_a_buffer_that_changes_runs_once(self):
        class Counted(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.ones(64))
                self.one, self.other = nn.Linear(64, 64), nn.Linear(64, 64)

            def forward(self, x):
                x = torch.sigmoid(self.one(x) + self.scale)
                self.scale += 1
                return self.other(x).square().mean()

        trace = spillway.capture(self.made(Counted), torch.randn(8, 64), times="modelled")
        again = {t["name"]: t["recomputable"] for t in trace["tasks"]}
        self.assertFalse(again["add"])
        self.assertTrue(again["sigmoid"])

    def test_batch_norms_may_run_again(self):
        trace = spillway.capture(self.made(Convolutions), torch.randn(2, 3, 32, 32),
                                 times="modelled")
        norms = [t for t in trace["tasks"] if "batch_norm" in t["name"]
                 and "backward" not in t["name"]]
        self.assertTrue(norms)
        self.assertTrue(all(t["recomputable"] for t in norms))


if __name__ == "__main__":
    unittest.main()
