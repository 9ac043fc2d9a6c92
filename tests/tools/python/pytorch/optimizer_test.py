"""Optimizers whose state is far: the plain optimizer's bits, in little memory."""

import gc
import tempfile
import threading
import unittest

from pytorch_case import (Allocations, Attention, Convolutions, PyTorchCase, live_tensors, nn,
                          spillway, storages, text_step, torch)
from spillway.pytorch.far.far_optimizer import KINDS

MANY = ((torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.1}),
        (torch.optim.AdamW, {"lr": 1e-2, "amsgrad": True, "maximize": True}),
        (torch.optim.Adam, {"lr": 1e-2, "weight_decay": 0.01, "betas": (0.8, 0.95)}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
        (torch.optim.SGD, {"lr": 0.1}),
        (torch.optim.RMSprop, {"lr": 1e-3, "centered": True, "momentum": 0.5}),
        (torch.optim.Adagrad, {"lr": 1e-2, "lr_decay": 0.1}),
        (torch.optim.Adadelta, {}), (torch.optim.Adamax, {}), (torch.optim.NAdam, {}),
        (torch.optim.RAdam, {}), (torch.optim.AdamW, {"lr": 1e-2, "fused": True}),
        (torch.optim.Adam, {"lr": 1e-2, "fused": True, "amsgrad": True}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "fused": True}),
        (torch.optim.Adagrad, {"lr": 1e-2, "fused": True}),
        (torch.optim.AdamW, {"lr": 1e-2, "foreach": True}))


class Odd(nn.Module):
    """Parameters of odd sizes, one larger than a part, one in another order of memory."""

    def __init__(self):
        super().__init__()
        self.large, self.small = nn.Linear(1031, 517), nn.Linear(517, 3)
        self.images = nn.Conv2d(3, 5, 3).to(memory_format=torch.channels_last)
        self.frozen = nn.Parameter(torch.ones(7), requires_grad=False)

    def forward(self, x, images):
        return self.small(torch.tanh(self.large(x))).square().mean() + (
            self.images(images).square().mean())


def batches(count=4):
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(5, 1031, generator=generator),
             torch.randn(2, 3, 9, 9, generator=generator)) for _ in range(count)]


def groups_of(model):
    """Two groups."""
    return [{"params": [*model.large.parameters(), model.frozen]},
            {"params": [*model.small.parameters(), *model.images.parameters()], "lr": 3e-3}]


class FarOptimizers(PyTorchCase):
    def train(self, wrap, kind, given, scheduled=False, clip=None, steps=None):
        """The model after a few steps, and its optimizer."""
        model = self.made(Odd)
        optimizer = wrap(kind(groups_of(model), **given))
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5) if scheduled else None
        for batch in steps or batches():
            optimizer.zero_grad()
            model(*batch).backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(
                    [p for p in model.parameters() if p.requires_grad], clip)
            optimizer.step()
            if schedule is not None:
                schedule.step()
        return model, optimizer

    def expect_same_parameters(self, found, expected):
        for (name, a), b in zip(found.named_parameters(), expected.parameters(), strict=True):
            self.assertTrue(torch.equal(a, b), name)

    def test_have_the_bits_of_plain_ones(self):
        self.assertEqual({kind for kind, _ in MANY}, set(KINDS))
        with tempfile.TemporaryDirectory() as folder:
            for kind, given in MANY:
                expected, _ = self.train(lambda o: o, kind, given)
                for options in ({"near": "1MiB"}, {"far": folder, "near": "1MiB"},
                                {"as_gradients_come": True}):
                    with self.subTest(kind.__name__, **given, **options):
                        found, _ = self.train(lambda o, options=options: spillway.optimizer(
                            o, **options), kind, given)
                        self.expect_same_parameters(found, expected)

    def test_clip_and_follow_schedules_as_plain_ones(self):
        for given in ({"lr": 1e-2}, {"lr": 1e-2, "foreach": True}):
            expected, _ = self.train(lambda o: o, torch.optim.AdamW, given, True, 0.01)
            found, _ = self.train(lambda o: spillway.optimizer(o, clip_norm=0.01),
                                  torch.optim.AdamW, given, True)
            self.expect_same_parameters(found, expected)

    def test_take_over_and_hand_back_state(self):
        for kind, given in MANY[:4]:
            with self.subTest(kind.__name__, **given):
                all_steps = batches(4)
                expected, plain = self.train(lambda o: o, kind, given, steps=all_steps)
                model, ours = self.train(lambda o: spillway.optimizer(o, near="1MiB"), kind, given,
                                         steps=all_steps[:2])
                other = kind(groups_of(model), **given)
                other.load_state_dict(ours.state_dict())  # the plain one goes on
                again = spillway.optimizer(other)         # and ours takes over
                fresh = spillway.optimizer(kind(groups_of(model), **given))
                fresh.load_state_dict(again.state_dict())
                for batch in all_steps[2:]:
                    fresh.zero_grad()
                    model(*batch).backward()
                    fresh.step()
                self.expect_same_parameters(model, expected)
                theirs, found = plain.state_dict(), fresh.state_dict()
                self.assertEqual(theirs["param_groups"], found["param_groups"])
                for number, values in theirs["state"].items():
                    for key, value in values.items():
                        same = found["state"][number][key]
                        self.assertTrue(value is same or torch.equal(
                            torch.as_tensor(value), torch.as_tensor(same)), key)

    def test_gradients_go_as_they_come(self):
        model = self.made(Odd)
        optimizer = spillway.optimizer(torch.optim.AdamW(model.parameters()),
                                       as_gradients_come=True)
        model(*batches()[0]).backward()
        self.assertTrue(all(p.grad is None for p in model.parameters()))
        optimizer.step()  # finds nothing to do

    def test_gradients_that_are_none_are_left_out(self):
        class Half(torch.autograd.Function):
            """Gives one of two gradients."""

            @staticmethod
            def forward(ctx, x, weight):
                return x * 1

            @staticmethod
            def backward(ctx, gradient):
                return gradient, None

        used, unused = nn.Parameter(torch.ones(4, 64)), nn.Parameter(torch.ones(4, 64))
        spillway.optimizer(torch.optim.SGD([used, unused], 0.5), as_gradients_come=True)
        Half.apply(used * 2, unused).sum().backward()
        self.assertTrue(torch.equal(used, torch.zeros(4, 64)))
        self.assertTrue(torch.equal(unused, torch.ones(4, 64)))

    def test_thawed_layers_learn_as_gradients_come(self):
        def trained(wrap):
            model = self.made(Odd)
            model.large.requires_grad_(False)
            optimizer = wrap(torch.optim.AdamW(model.parameters(), 1e-2))
            for number, batch in enumerate(batches()):
                if number == 2:
                    model.large.requires_grad_(True)
                optimizer.zero_grad()
                model(*batch).backward()
                optimizer.step()
            self.assertFalse(model.frozen.requires_grad)
            return model

        self.expect_same_parameters(
            trained(lambda o: spillway.optimizer(o, as_gradients_come=True)), trained(lambda o: o))

    def test_backward_passes_of_two_threads_update_one_after_another(self):
        models = [self.made(Odd) for _ in range(2)]
        spillway.optimizer(torch.optim.SGD(
            [p for m in models for p in m.parameters()], 0.1, momentum=0.9), near="1MiB",
            as_gradients_come=True)

        def train(model):
            for batch in batches(8):
                model(*batch).backward()

        threads = [threading.Thread(target=train, args=(m,)) for m in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        plain = self.made(Odd)
        theirs = torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9)
        for batch in batches(8):
            theirs.zero_grad()
            plain(*batch).backward()
            theirs.step()
        for model in models:
            self.expect_same_parameters(model, plain)

    def test_no_tensor_holds_the_state(self):
        model = nn.Linear(2048, 1024)  # 8 MiB, and 16 MiB of state
        before = sum(storages(live_tensors("cpu")).values())
        optimizer = spillway.optimizer(torch.optim.AdamW(model.parameters()), near="1MiB")
        gc.collect()
        self.assertLess(sum(storages(live_tensors("cpu")).values()) - before, 2 << 20)
        for number in range(2):
            model(torch.ones(2, 2048)).sum().backward()
            with Allocations() as allocations:
                optimizer.step()
            self.assertLess(allocations.peak(), 2 << 20, number)

    def planned_peak(self, wrap):
        """Of a budget in which all is near; two steps."""
        torch._dynamo.reset()
        gc.collect()
        model = self.made(lambda: Attention(width=256))
        optimizer = wrap(torch.optim.AdamW(model.parameters()))
        call = torch.compile(model, backend="spillway", options={
            "budget": "100%", "optimizer": optimizer})
        for _ in range(2):
            optimizer.zero_grad()
            text_step(model)(call).backward()
            optimizer.step()
        size = sum(p.numel() * 4 for p in model.parameters())
        return self.plans_of(model)[0].planned.figures["peak_bytes"], size

    def test_a_budget_counts_what_is_near(self):
        plain, size = self.planned_peak(lambda o: o)
        ours, _ = self.planned_peak(lambda o: spillway.optimizer(o, near="1MiB"))
        self.assertGreater(plain - ours, 1.5 * size)  # of two moments

    def test_what_cannot_be_is_said(self):
        model = self.made(Convolutions)
        for make, sentence in (
                (lambda: spillway.optimizer(model), "Convolutions is no torch.optim.Optimizer"),
                (lambda: spillway.optimizer(torch.optim.LBFGS(model.parameters())),
                 "LBFGS is not known to update each element by itself"),
                (lambda: spillway.optimizer(torch.optim.SGD(model.parameters()), near=10),
                 "10 B of near memory are too few"),
                (lambda: spillway.optimizer(torch.optim.SGD(model.parameters()), clip_norm=0),
                 "clip_norm is 0; give"),
                (lambda: spillway.optimizer(torch.optim.SGD(model.parameters()), clip_norm=1,
                                            as_gradients_come=True), "known when all are there"),
                (lambda: spillway.optimizer(torch.optim.AdamW(model.parameters()),
                                            far="/no/such/folder"), "/no/such/folder"),
                (lambda: spillway.optimizer(torch.optim.AdamW(
                    [{"params": [model.last.weight], "amsgrad": True},
                     {"params": [model.last.bias]}])), "keep different state"),
                (lambda: spillway.optimizer(torch.optim.AdamW(
                    [nn.Parameter(torch.ones(3, dtype=torch.complex64))])), "complex64")):
            with self.subTest(sentence), self.assertRaises(spillway.Error) as caught:
                make()
            self.assertRegex(str(caught.exception), sentence)


if __name__ == "__main__":
    unittest.main()
