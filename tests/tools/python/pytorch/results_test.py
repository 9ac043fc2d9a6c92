"""Results beside the loss: near as long as the program holds them, and no longer."""

import unittest

from pytorch_case import (Attention, PyTorchCase, functional, models_of, spillway, torch,
                          train)


class Scored(Attention):
    """Returns its loss and the scores, as models of transformers do."""

    def forward(self, text):
        x = self.words(text)
        for layer in self.layers:
            x = layer(x)
        scores = (x @ self.words.weight.t()).flatten(0, 1)
        return functional.cross_entropy(scores, text.flatten()), scores


def loss_step(held, keep=lambda scores: scores):
    """A step that has `keep` of what the model returns in `held`; without it, the loss alone."""
    text = torch.randint(0, 128, (8, 64), generator=torch.Generator().manual_seed(3))

    def loss_of(call):
        loss, scores = call(text)
        if held is not None:
            held[:] = [keep(scores)]
        return loss
    return loss_of


class ResultsBesideTheLoss(PyTorchCase):
    def trained(self, held, keep=lambda scores: scores):
        """The plans of a training that has eager's bits."""
        theirs = train(plain := self.made(Scored), plain, loss_step(None))
        model = self.made(Scored)
        call = torch.compile(model, backend="spillway", options={"budget": "min+20%"})
        self.expect_same(ours := train(model, call, loss_step(held, keep)), theirs)
        plans = self.plans_of(model)
        self.assertLessEqual(ours.peak, plans[-1].peak())
        return plans

    def kinds(self, plan):
        """Of the scores: kept as weights are, or not."""
        size = 8 * 64 * 128 * 4
        names = {b.number for b in plan.step.blocks if b.is_output and b.size == size}
        return {d["kind"] for d in plan.trace["data"] if d["id"] in names}

    def test_go_before_the_backward_pass_where_the_program_drops_them(self):
        plan, = self.trained(None)
        self.assertEqual(self.kinds(plan), {"tensor"})

    def test_stay_where_the_program_holds_them(self):
        dropped, = self.trained(None)
        for keep in (lambda scores: scores, torch.Tensor.detach, lambda s: s[1:].view(-1)):
            torch._dynamo.reset()
            plan, = self.trained([], keep)  # in place of the one without them
            self.assertEqual(self.kinds(plan), {"weight"})
            self.assertGreater(plan.planned.needs["smallest_bytes"],
                               dropped.planned.needs["smallest_bytes"])

    def test_a_loss_may_be_scaled_in_place(self):
        gradients = []
        for compiled in (False, True):
            model = self.made(Scored)
            call = torch.compile(model, backend="spillway", options={
                "budget": "100%"}) if compiled else model
            torch.manual_seed(7)
            loss = loss_step(None)(call)
            loss *= 0.5
            loss.backward()
            gradients.append(model.words.weight.grad)
        self.assertTrue(torch.equal(*gradients))

    def test_that_the_backward_pass_reads_are_planned_as_they_were(self):
        class Chosen(Scored):
            """Returns what its loss gathers by, too."""

            def forward(self, text):
                loss, scores = super().forward(text)
                best = scores.argmax(-1)
                return loss + scores.gather(1, best[:, None]).mean() / 10, scores, best

        def loss_of(call):
            return call(torch.randint(0, 128, (8, 64),
                                      generator=torch.Generator().manual_seed(3)))[0]

        theirs = train(plain := self.made(Chosen), plain, loss_of)
        model = self.made(Chosen)
        call = torch.compile(model, backend="spillway", options={"budget": "min+20%"})
        self.expect_same(train(model, call, loss_of), theirs)
        self.assertFalse(models_of(model)[0].holds_results)

    def test_a_budget_that_is_too_small_with_them_is_refused_with_a_hint(self):
        model, held = self.made(Scored), []
        call = torch.compile(model, backend="spillway", options={"budget": "1KiB"})
        with self.assertRaises(spillway.BudgetTooSmall) as caught:
            loss_step(held)(call)
        torch._dynamo.reset()
        call = torch.compile(model, backend="spillway",
                             options={"budget": caught.exception.smallest + (64 << 10)})
        loss_step(held)(call).backward()
        model.zero_grad()
        with self.assertRaisesRegex(spillway.BudgetTooSmall, "the smallest.*keep the loss alone"):
            loss_step(held)(call)


if __name__ == "__main__":
    unittest.main()
