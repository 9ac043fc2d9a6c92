"""What optimizers will hold, found without giving them memory."""

import os
import subprocess
import sys
import threading
import unittest
import warnings
import weakref

from pytorch_case import ROOT, Convolutions, PyTorchCase, image_step, spillway, torch
from spillway.pytorch.held import (bytes_in, live_tensors, need_of_all, optimizer_need,
                                   optimizers_of, storages)
from spillway.pytorch.program_objects import active_threads


BESIDE_A_TRAINING = """
import threading, time, torch
from spillway.pytorch.held import live_tensors, storages
from spillway.pytorch.program_objects import stillness

model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(60)])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
has_moments, stop = threading.Event(), threading.Event()

def train():
    while not stop.is_set():
        model(torch.ones(4, 32)).sum().backward()
        optimizer.step()
        has_moments.set()
        model.zero_grad()

thread = threading.Thread(target=train)
thread.start()
has_moments.wait()
end, counted = time.monotonic() + 4, []
while time.monotonic() < end:
    with stillness():
        found = live_tensors("cpu", list(model.parameters()))
        counted.append(sum(storages(found).values()))
        del found
stop.set()
thread.join()
print(min(counted) >= 3 * sum(p.nbytes for p in model.parameters()))
"""


class LiveTensors(PyTorchCase):
    def test_gradients_are_counted_beside_a_thread_that_waits(self):
        def counted():
            return sum(storages(live_tensors("cpu")).values())

        held, stop = torch.ones(1000, requires_grad=True), threading.Event()
        waiting = threading.Thread(target=stop.wait, name="as tqdm's")
        waiting.start()
        self.addCleanup(waiting.join)
        self.addCleanup(stop.set)
        before = counted()
        held.sum().backward()
        self.assertEqual(counted() - before, 4000)

    def test_looking_at_threads_keeps_no_caller(self):
        def caller():
            local = torch.ones(4)
            active_threads()
            return weakref.ref(local)

        self.assertIsNone(caller()())

    def test_are_counted_beside_a_thread_that_trains(self):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python"),
                       "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-B", "-c", BESIDE_A_TRAINING], capture_output=True,
                              text=True, env=environment, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "True"), done.stderr)


class Optimizers(PyTorchCase):
    def test_each_needs_what_its_first_step_makes(self):
        for kind, given in ((torch.optim.AdamW, {}), (torch.optim.AdamW, {"fused": True}),
                            (torch.optim.AdamW, {"foreach": True, "amsgrad": True}),
                            (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.SGD, {}),
                            (torch.optim.RMSprop, {}), (torch.optim.Adagrad, {})):
            with self.subTest(kind=kind.__name__, **given):
                model = self.made(Convolutions)
                optimizer = kind(model.parameters(), lr=1e-3, **given)
                before = bytes_in(optimizer.state)
                expected = optimizer_need(optimizer).state
                image_step(model)(model).backward()
                optimizer.step()
                self.assertEqual(bytes_in(optimizer.state) - before, expected)

    def test_views_that_autograd_forbids_are_counted(self):
        base = torch.ones(4)
        with torch.no_grad():
            view = base.view(2, 2)
        base.mul_(torch.ones(4, requires_grad=True))
        with self.assertRaises(RuntimeError):
            view.is_leaf  # pylint: disable=pointless-statement
        self.assertTrue(any(each is view for each in live_tensors("cpu")))

    def test_parameters_of_one_element_have_state_as_others(self):
        for dimensions in ((), (1,), (1, 1)):
            for kind in (torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop):
                with self.subTest(kind=kind.__name__, dimensions=dimensions):
                    parameter = torch.nn.Parameter(torch.ones(dimensions))
                    optimizer = kind([parameter], foreach=False)
                    expected = bytes_in(optimizer.state) + optimizer_need(optimizer).state
                    parameter.grad = torch.ones(dimensions)
                    optimizer.step()
                    self.assertEqual(bytes_in(optimizer.state), expected)
                    self.assertEqual(optimizer_need(optimizer).state, 0)

    def test_all_optimizers_of_a_model_are_counted(self):
        model = self.made(Convolutions)
        parameters = list(model.parameters())
        both = [torch.optim.AdamW(parameters[:3]), torch.optim.SGD(parameters[3:], momentum=0.9)]
        found = optimizers_of(parameters)
        self.assertCountEqual(map(id, found), map(id, both))
        self.assertEqual(need_of_all(found).state, sum(optimizer_need(o).state for o in both))
        self.assertEqual(need_of_all([]).state, 0)

    def test_trying_one_changes_nothing_whatever_is_around_it(self):
        class Around(torch.optim.Optimizer):
            """As accelerate's: all attributes are copied, and the step belongs to the real one."""

            def __init__(self, inner):  # pylint: disable=super-init-not-called
                self.optimizer = inner
                self.step = lambda: inner.step()  # pylint: disable=unnecessary-lambda

            def __getattr__(self, name):
                return getattr(self.__dict__["optimizer"], name)

            def __getstate__(self):
                return self.__dict__

        model = self.made(Convolutions)
        inner = torch.optim.AdamW(model.parameters(), lr=0.1)
        torch.optim.lr_scheduler.StepLR(inner, 1)  # puts a step of its own on the instance
        around = Around(inner)
        image_step(model)(model).backward()
        before = [p.clone() for p in model.parameters()]
        self.assertEqual(optimizers_of(list(model.parameters())), [inner])
        for given in ([around], [inner], [around, inner]):
            need = need_of_all(given)
            self.assertGreater(need.state, 0)
            self.assertEqual(need.state, optimizer_need(inner).state)
        self.assertEqual(bytes_in(inner.state), 0)
        for p, value in zip(model.parameters(), before, strict=True):
            self.assertTrue(torch.equal(p, value))

    def test_far_state_is_not_counted_with_the_plain_optimizer_inside(self):
        model = self.made(Convolutions)
        optimizer = spillway.optimizer(torch.optim.AdamW(model.parameters()))
        self.assertEqual(optimizers_of(list(model.parameters())), [optimizer])

    def test_one_that_cannot_be_tried_is_warned_of_and_trains(self):
        model = self.made(Convolutions)
        optimizer = torch.optim.LBFGS(model.parameters())
        call = torch.compile(model, backend="spillway", options={
            "budget": "100%", "optimizer": [optimizer]})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            image_step(model)(call).backward()
        told = [str(w.message) for w in caught if "spillway" in str(w.message)]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "cannot tell what LBFGS will hold.*holds already")

    def test_what_is_no_optimizer_is_refused(self):
        model = self.made(Convolutions)
        call = torch.compile(model, backend="spillway", options={"optimizer": [model]})
        with self.assertRaisesRegex(spillway.Error, "optimizer is a Convolutions; give"):
            image_step(model)(call)


if __name__ == "__main__":
    unittest.main()
