"""What surrounds models in programs: autocast, DDP, workers of a DataLoader, double backward."""

import contextlib
import os
import tempfile
import threading
import unittest

from pytorch_case import (Attention, Convolutions, PyTorchCase, functional, image_step, nn,
                          spillway, text_step, torch, train)
from torch.nn.parallel import DistributedDataParallel


def with_autocast(loss_of):
    """The forward pass in bfloat16."""
    def under(call):
        with torch.autocast("cpu", torch.bfloat16):
            return loss_of(call)
    return under


class Images(torch.utils.data.Dataset):
    """Of Convolutions."""

    def __len__(self):
        return 32

    def __getitem__(self, number):
        generator = torch.Generator().manual_seed(number)
        return torch.randn(3, 32, 32, generator=generator), number % 10


class Programs(PyTorchCase):
    def setUp(self):
        super().setUp()
        self.make_errors_of_warnings(message="spillway")

    def test_autocast_has_the_bits_of_captured_graphs(self):
        """AOTAutograd's backward pass under autocast may have other last bits than eager's; those
        of aot_eager, which plans nothing, are ours."""
        for kind, step_of in ((Attention, text_step), (Convolutions, image_step)):
            for limit in ("min", "60%", "100%"):
                with self.subTest(kind=kind.__name__, limit=limit):
                    torch._dynamo.reset()
                    plain, model = self.made(kind), self.made(kind)
                    captured = torch.compile(plain, backend="aot_eager")
                    theirs = train(plain, captured, with_autocast(step_of(plain)))
                    options = {"budget": "min+20%" if limit == "60%" else limit}
                    call = torch.compile(model, backend="spillway", options=options)
                    ours = train(model, call, with_autocast(step_of(model)))
                    self.expect_same(ours, theirs)
                    plan, = self.plans_of(model)
                    self.assertLessEqual(ours.peak, plan.peak())

    def test_autocast_runs_what_norms_save_in_float(self):
        norms = {"layer": nn.LayerNorm(16), "group": nn.GroupNorm(4, 16),
                 "batch": nn.BatchNorm1d(16, affine=False)}
        for name, norm in norms.items():
            with self.subTest(name):
                torch._dynamo.reset()
                model = nn.Sequential(nn.Linear(16, 16), norm, nn.Tanh(), nn.Linear(16, 4))
                numbers = torch.randn(32, 16, generator=torch.Generator().manual_seed(3))
                gradients = []
                for backend in ({"backend": "aot_eager"}, {
                        "backend": "spillway", "options": {"budget": "min+20%"}}):
                    model.zero_grad()
                    call = torch.compile(model, **backend)
                    with torch.autocast("cpu", torch.bfloat16):
                        loss = call(numbers).float().square().mean()
                    loss.backward()
                    gradients.append([p.grad for p in model.parameters()])
                for a, b in zip(*gradients, strict=True):
                    self.assertTrue(torch.equal(a, b))
                self.assertEqual(len(self.plans_of(model)), 1)

    def test_another_profiler_is_told_apart(self):
        model = self.made(Classes)
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        numbers = torch.randn(7, 16)
        with torch.profiler.profile() as mine:
            with self.assertRaisesRegex(spillway.Error, "make the first call outside it"):
                call(numbers)
        self.assertTrue(mine.events())
        call(numbers).sum().backward()

    def test_operators_that_are_known_need_no_profiler(self):
        numbers = torch.randn(9, 16)
        for is_profiled in (False, True):
            torch._dynamo.reset()
            call = torch.compile(self.made(Classes), backend="spillway",
                                 options={"budget": "100%"})
            with torch.profiler.profile() if is_profiled else contextlib.nullcontext() as mine:
                torch.mm(torch.ones(3, 3), torch.ones(3, 3))
                call(numbers).sum().backward()
        self.assertIn("aten::mm", {e.name for e in mine.events()})

    def test_two_models_may_be_called_first_at_the_same_time(self):
        models = [self.made(Attention) for _ in range(2)]
        calls = [torch.compile(m, backend="spillway", options={"budget": "min"}) for m in models]
        failures = []

        def first(call):
            try:
                text_step(None)(call).backward()
            except BaseException as error:  # pylint: disable=broad-exception-caught
                failures.append(error)

        threads = [threading.Thread(target=first, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual([len(self.plans_of(m)) for m in models], [1, 1])

    def test_ddp_around_a_compiled_model_keeps_its_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=(
                torch.distributed.FileStore(os.path.join(folder, "store"), 1)))
            self.addCleanup(torch.distributed.destroy_process_group)
            plain = self.made(Convolutions)
            theirs = train(plain, DistributedDataParallel(plain), image_step(plain))
            model = self.made(Convolutions)
            model.compile(backend="spillway", options={"budget": "min+20%"})
            ours = train(model, DistributedDataParallel(model), image_step(model))
            self.expect_same(ours, theirs)
            self.assertTrue(self.plans_of(model))

    def test_workers_of_a_loader_load_beside_a_budget(self):
        def trained(call):
            loader = torch.utils.data.DataLoader(Images(), 8, num_workers=2)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            torch.manual_seed(5)
            for _ in range(2):
                for images, labels in loader:
                    optimizer.zero_grad()
                    functional.cross_entropy(call(images), labels).backward()
                    optimizer.step()
            return [p.clone() for p in model.parameters()]

        model = self.made(Convolutions)
        theirs = trained(model)
        model = self.made(Convolutions)
        with spillway.budget(model, "min+20%"):
            ours = trained(model)
        for a, b in zip(ours, theirs, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_double_backward_is_refused_in_pytorchs_words(self):
        model = self.made(Classes)
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        numbers = torch.randn(4, 16, requires_grad=True)
        with self.assertWarnsRegex(UserWarning, "no budget is kept: .*create_graph=True"):
            gradient, = torch.autograd.grad(call(numbers).sum(), numbers, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "does not currently support double backward"):
            gradient.square().sum().backward()


class Classes(nn.Module):
    """With a second derivative that is not zero."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(16, 4)

    def forward(self, x):
        return torch.tanh(self.one(x))


if __name__ == "__main__":
    unittest.main()
