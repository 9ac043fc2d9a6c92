"""What cannot be planned runs all the same, by hooks, and says why once."""

import contextlib
import io
import unittest
import warnings

from pytorch_case import (Attention, Convolutions, PyTorchCase, functional, image_step, nn,
                          spillway, text_step, torch, train)
from spillway.pytorch.graphs.loss_only import LossOnly
from spillway.torch_hooks import untraced


class Broken(nn.Module):
    """Two halves with a graph break between them."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(256, 256), nn.Linear(256, 8)

    def forward(self, x):
        x = functional.gelu(self.one(x))
        torch._dynamo.graph_break()
        return self.other(x)


def number_step(model):
    """A batch for Broken."""
    del model
    numbers = torch.randn(64, 256, generator=torch.Generator().manual_seed(3))
    return lambda call: call(numbers).square().mean()


class Fallbacks(PyTorchCase):
    def compare(self, kind, step_of):
        """Trains twice; the warnings of the second training."""
        plain = self.made(kind)
        theirs = train(plain, plain, step_of(plain))
        model = self.made(kind)
        call = torch.compile(model, backend="spillway",
                             options={"budget": "100%"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = train(model, call, step_of(model))
        self.expect_same(ours, theirs)
        return [str(w.message) for w in caught if "spillway" in str(w.message)]

    def test_a_tensor_that_is_not_a_processors_is_refused_in_a_sentence(self):
        model = nn.Linear(4, 4, device="meta")  # as "cuda" would be
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        with self.assertRaisesRegex(spillway.Error, r"trains on processors.* on meta; .*\.cpu\(\)"):
            call(torch.empty(2, 4, device="meta"))

    def test_several_graphs_run_by_hooks_after_the_first(self):
        told = self.compare(Broken, number_step)
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "the model has several graphs")

    def test_no_part_of_a_need_is_that_of_one_graph_of_several(self):
        model = self.made(Broken)
        call = torch.compile(model, backend="spillway", options={"budget": "60%"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                number_step(model)(call).backward()
        self.assertEqual(self.plans_of(model), [])
        self.assertRegex(" ".join(str(w.message) for w in caught),
                         "no budget is kept: the model has several graphs")
        with self.assertRaisesRegex(spillway.Error, "no budget is kept: the model has several"):
            spillway.explain(model)

    def test_a_pass_that_is_held_without_a_backward_pass_ends_no_budget_for_good(self):
        model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8))
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        batch, plans = torch.ones(16, 64), []
        model[0].requires_grad_(False)
        call(batch).sum().backward()
        held = call(batch)
        model[0].requires_grad_(True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                model.zero_grad()
                call(batch).sum().backward()
                plans.append(len(self.plans_of(model)))
        self.assertEqual((plans, held.requires_grad), ([0, 1, 1], True))
        told = [str(w.message) for w in caught if "spillway" in str(w.message)]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "no budget is kept: the model has several graphs")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertNotIn("several graphs", str(spillway.explain(model)))

    def test_budgets_relative_to_the_need_are_raised_and_not_refused(self):
        theirs = train(plain := self.made(Convolutions), plain, image_step(plain))
        model = self.made(Convolutions)
        call = torch.compile(model, backend="spillway", options={"budget": "1%"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = train(model, call, image_step(model))
        self.expect_same(ours, theirs)
        plan, = self.plans_of(model)
        self.assertLessEqual(ours.peak, plan.budget)
        told = [str(w.message) for w in caught if "spillway" in str(w.message)]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "a budget of 1% is .* too small for a step.* is kept instead")

    def test_a_loss_beside_the_models_own_runs_the_model_again_once(self):
        class Scored(Attention):
            def forward(self, text):
                x = self.words(text)
                for layer in self.layers:
                    x = layer(x)
                return x.square().mean(), x

        def step_of(model):
            del model
            text = torch.randint(0, 128, (4, 64), generator=torch.Generator().manual_seed(3))

            def loss_of(call):
                loss, x = call(text)
                return loss + x.abs().mean()
            return loss_of

        plain, model = self.made(Scored), self.made(Scored)
        expected, found = [], []
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for each, of, gradients in ((plain, plain, expected), (model, call, found)):
                torch.manual_seed(7)
                for _ in range(2):
                    each.zero_grad()
                    step_of(each)(of).backward()
                    gradients.append([p.grad.clone() for p in each.parameters()
                                      if p.grad is not None])
        told = [str(w.message) for w in caught if "spillway" in str(w.message)]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "differentiates more than the loss")
        for ours, theirs in zip(found, expected, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                self.assertTrue(torch.equal(a, b))

    def test_what_is_not_captured_runs_by_hooks(self):
        class Uncaptured(Broken):
            @torch._dynamo.disable
            def forward(self, x):
                return self.other(functional.gelu(self.one(x)))

        theirs = train(plain := self.made(Uncaptured), plain, number_step(plain))
        model = self.made(Uncaptured)
        with warnings.catch_warnings(record=True) as caught, spillway.budget(
                model, "100%", optimizer=torch.optim.AdamW(model.parameters())):
            warnings.simplefilter("always")
            ours = train(model, model, number_step(model))
            with self.assertRaisesRegex(spillway.Error, "captures nothing"):
                spillway.explain(model)
        self.expect_same(ours, theirs)
        told = [str(w.message) for w in caught if "spillway" in str(w.message)]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "no budget is kept: Dynamo captures nothing")

    def test_hooks_are_not_traced(self):
        graphs = []

        def backend(module, _):
            graphs.append([n.target for n in module.graph.nodes])
            return module.forward

        for leave_alone, is_traced in ((lambda f: f, True), (untraced, False)):
            torch._dynamo.reset()
            graphs.clear()
            hook = leave_alone(lambda x: torch.sin(x))
            torch.compile(lambda x, h=hook: h(x) + 1, backend=backend)(torch.ones(3))
            self.assertEqual(any(torch.sin in graph for graph in graphs), is_traced)

    def test_a_rerun_keeps_running_statistics(self):
        class Scored(Convolutions):
            def forward(self, images):
                scores = super().forward(images)
                return scores.square().mean(), scores

        images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(3))
        plain, model = self.made(Scored), self.made(Scored)
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        for of in (plain, call):
            torch.manual_seed(7)
            loss, scores = of(images)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (loss + scores.abs().mean()).backward()
        for (name, a), b in zip(model.named_buffers(), plain.buffers(), strict=True):
            self.assertTrue(torch.equal(a, b), name)
        for a, b in zip(model.parameters(), plain.parameters(), strict=True):
            self.assertTrue(torch.equal(a.grad, b.grad))

    def test_a_rerun_has_the_autocast_of_the_first_run(self):
        seen, numbers = [], torch.ones(2, requires_grad=True)

        def again(args):
            seen.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
            return [args[0].sum(), args[0] * 2]

        run = LossOnly(lambda *args: [args[0].sum(), (args[0] * 2).detach()], [1], again)
        for is_cast, dtype in ((True, torch.float16), (False, torch.bfloat16)):
            with torch.autocast("cpu", dtype, is_cast):
                _, other = run(numbers)
            other.sum().backward()
            self.assertEqual(seen[-1], (is_cast, dtype))

    def test_too_many_sizes_keep_the_plans_there_are(self):
        model = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        with warnings.catch_warnings(record=True) as caught, spillway.budget(model, "100%"):
            warnings.simplefilter("always")
            for batch in [*range(1, 13), 3]:
                model(torch.ones(batch, 16)).sum().backward()
                model.zero_grad()
        told = [str(w.message) for w in caught if str(w.message).startswith("spillway")]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "Dynamo does not capture this call")
        self.assertEqual(len(self.plans_of(model)), torch._dynamo.config.recompile_limit)

    def test_a_second_forward_pass_is_warned_of_and_right(self):
        def steps(model):
            del model
            batches = torch.randn(3, 48, 256, generator=torch.Generator().manual_seed(3))
            return lambda call: sum(call(b).square().mean() for b in batches)

        class Whole(Broken):
            def forward(self, x):
                return self.other(functional.gelu(self.one(x)))

        told = self.compare(Whole, steps)
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "before the backward pass of the one before")

    def test_checkpoints_inside_are_planned_over(self):
        class Checkpointed(Attention):
            def forward(self, text):
                return torch.utils.checkpoint.checkpoint(super().forward, text,
                                                         use_reentrant=False)
        self.assertEqual(self.compare(Checkpointed, text_step), [])


class Mistakes(PyTorchCase):
    def test_each_gets_one_sentence(self):
        model = self.made(Convolutions)
        for options, sentence in (
                ({"budget": 0}, "a budget of 0 bytes holds no step"),
                ({"budget": "12Gib"}, "'12Gib' is no amount of memory"),
                ({"far": "/no/such/folder"}, "there is no folder /no/such/folder"),
                ({"bugdet": "1GiB"}, "did you mean 'budget'"),
                ({"budget": "0.6"}, "'0.6' is no amount of memory"),
                ({"recompute": "yes"}, "recompute is 'yes'; give True or False"),
                ({"planner": 3}, "planner is 3; give the name of a planner"),
                ({"mode": "max-autotune"}, "there is no option 'mode'"),
                ({"optimizer": "adam"}, "optimizer is a str")):
            with self.subTest(options):
                torch._dynamo.reset()
                mode = {"mode": options.pop("mode")} if "mode" in options else {}
                call = torch.compile(model, backend="spillway",
                                     **mode or {"options": options})
                with self.assertRaises((spillway.Error, ValueError)) as caught:
                    image_step(model)(call)
                self.assertRegex(str(caught.exception), sentence)
                self.assertNotIn("\n", str(caught.exception))

    def test_a_function_has_no_plan_to_explain(self):
        call = torch.compile(lambda x: x * 2, backend="spillway")
        with self.assertRaisesRegex(spillway.Error, "takes a module, and was given a function"):
            spillway.explain(call)

    def test_a_model_without_parameters_has_no_step(self):
        with self.assertRaisesRegex(spillway.Error, "no parameter that requires a gradient"):
            with spillway.budget(nn.ReLU(), "1GiB"):
                pass


if __name__ == "__main__":
    unittest.main()
