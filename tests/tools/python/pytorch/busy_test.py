"""Programs whose other threads leave no moment to look at tensors: they run, and are told."""

import contextlib
import io
import threading
import unittest
import unittest.mock
import warnings

from pytorch_case import Convolutions, PyTorchCase, image_step, nn, spillway, torch
from spillway.pytorch import program_objects, watch

BUSY = "no budget is kept: other threads' operators left no moment"


class BusyThreads(PyTorchCase):
    def setUp(self):
        super().setUp()
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        self.waits = []

    @contextlib.contextmanager
    def busy(self):
        """Other threads never stand still; `waits` are the seconds that were allowed for it."""
        def never(longest):
            self.waits.append(longest)
            raise program_objects.ThreadsBusy

        with unittest.mock.patch.object(program_objects, "wait_for_other_threads", never):
            yield

    @contextlib.contextmanager
    def told(self):
        """The sentences that the program hears."""
        found = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
        found += [str(w.message) for w in caught if "spillway" in str(w.message)]

    def step(self, model, call):
        """Its gradients."""
        model.zero_grad()
        torch.manual_seed(3)
        image_step(model)(call).backward()
        return [p.grad for p in model.parameters()]

    def expect_run_and_plan(self, model, call):
        """Runs as it is while threads are busy, and has a plan later."""
        plain = self.made(Convolutions)
        with self.told() as told, self.busy():
            for _ in range(2):
                for a, b in zip(self.step(model, call), self.step(plain, plain), strict=True):
                    self.assertTrue(torch.equal(a, b))
            torch.optim.SGD(model.parameters(), 0.0).step()
        self.assertEqual(len(told), 1)
        self.assertIn(BUSY, told[0])
        with self.assertRaisesRegex(spillway.Error, BUSY):
            spillway.explain(model)
        with self.told() as told:
            torch.optim.SGD(model.parameters(), 0.0).step()
            self.step(model, call)
        self.assertEqual((told, len(self.plans_of(model))), ([], 1))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertIn(BUSY.removeprefix("no budget is kept: "), str(spillway.explain(model)))

    def test_a_first_call_runs_and_a_later_one_is_planned(self):
        model = self.made(Convolutions)
        self.expect_run_and_plan(model, torch.compile(
            model, backend="spillway", options={"budget": "100%"}))

    def test_so_it_does_within_the_context(self):
        model = self.made(Convolutions)
        with spillway.budget(model, "100%"):
            self.expect_run_and_plan(model, model)

    def test_what_is_not_captured_runs_within_the_context(self):
        class Uncaptured(nn.Linear):
            @torch._dynamo.disable
            def forward(self, x):
                return super().forward(x)

        model = Uncaptured(4, 4)
        with self.told() as told, self.busy(), spillway.budget(model, "60%"):
            for _ in range(2):
                model(torch.ones(2, 4)).sum().backward()
        self.assertRegex(" ".join(told), "Dynamo captures nothing of the model")

    def test_what_could_not_be_counted_again_is_counted_later(self):
        model, held = self.made(Convolutions), []
        call = torch.compile(model, backend="spillway", options={"budget": "min+20%"})
        self.step(model, call)
        held.append(torch.ones(4 << 20))
        with self.told() as told, self.busy():
            self.step(model, call)  # the second call is one that counts
            self.step(model, call)
        self.assertEqual(told, [])
        with self.told() as told:
            self.step(model, call)
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], "the program holds 16.* more than when the budget was planned")

    def test_a_program_that_is_never_counted_again_is_told(self):
        model = self.made(Convolutions)
        call = torch.compile(model, backend="spillway", options={"budget": "100%"})
        self.step(model, call)
        with self.told() as told, self.busy():
            for _ in range(4):
                self.step(model, call)
        self.assertEqual(len(told), 1)
        self.assertIn(BUSY, told[0])

    def test_steps_of_any_optimizer_wait_for_a_moment_at_most(self):
        watch.begin()
        model = nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model(torch.ones(2, 4)).sum().backward()
        with self.busy():
            for _ in range(5):
                optimizer.step()
        self.assertEqual(self.waits, [program_objects.MOMENT] * 4)  # at steps 1, 2, 3 and 5

    def test_threads_that_never_stand_still_are_waited_for_once(self):
        stop = threading.Event()

        def work():
            while not stop.is_set():
                pass

        thread = threading.Thread(target=work)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        self.addCleanup(setattr, program_objects.Stillness, "longest_wait",
                        program_objects.LONGEST_WAIT)
        with unittest.mock.patch.object(program_objects, "stand_still", return_value=False):
            with self.assertRaisesRegex(program_objects.ThreadsBusy, "did not end in time"):
                with program_objects.stillness(0.0):
                    pass
        self.assertEqual(program_objects.Stillness.longest_wait, program_objects.MOMENT)
        with program_objects.stillness():
            pass
        self.assertEqual(program_objects.Stillness.longest_wait, program_objects.LONGEST_WAIT)


class Watching(PyTorchCase):
    def step_of_another(self):
        """An optimizer's over a model that no budget is of."""
        watch.begin()
        model = nn.Linear(4, 4)
        model(torch.ones(2, 4)).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()

    def test_variables_that_were_deleted_are_no_failure(self):
        model, batch = nn.Linear(4, 4), torch.ones(2, 4)

        def function():
            return model(batch).sum()

        call = torch.compile(function, backend="spillway")
        call().backward()
        del batch
        self.make_errors_of_warnings(message="spillway")
        self.step_of_another()
        self.assertEqual(watch.modules_of(function), [model])

    def test_failures_are_told_and_no_steps(self):
        with unittest.mock.patch.object(watch, "tell_of", side_effect=KeyError("odd")):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.step_of_another()
        self.assertEqual([str(w.message) for w in caught], [
            "spillway: cannot tell whether a budget counts what SGD trains (KeyError: 'odd')"])


if __name__ == "__main__":
    unittest.main()
