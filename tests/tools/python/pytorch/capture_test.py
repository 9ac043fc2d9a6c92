"""Traces of models, and what is said of their plans."""

import collections
import contextlib
import io
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from pytorch_case import (ROOT, Allocations, Attention, Convolutions, PyTorchCase, nn, spillway,
                          text_step, torch)


class Captures(PyTorchCase):
    def test_a_trace_can_be_planned(self):
        model = self.made(Attention)
        optimizer = torch.optim.AdamW(model.parameters())
        text = torch.zeros(8, 64, dtype=torch.long)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.json"
            trace = spillway.capture(model, text, optimizer, path=path)
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), trace)
        phases = [t["phase"] for t in trace["tasks"]]
        self.assertEqual(phases, sorted(phases, key=["forward", "backward", "update"].index))
        self.assertGreater(spillway.plan(trace, "80%").figures["peak_bytes"], 0)
        # Parameters, and what AdamW will hold beside them: twice as much.
        held = sum(d["bytes"] for d in trace["data"] if d["kind"] == "weight")
        self.assertGreater(held, 3 * sum(p.numel() * 4 for p in model.parameters()))

    def test_views_are_no_blocks_and_random_tasks_run_once(self):
        model = self.made(Attention)
        trace = spillway.capture(model, torch.zeros(8, 64, dtype=torch.long), times="modelled")
        names = [t["name"] for t in trace["tasks"]]
        self.assertFalse([n for n in names if n.startswith(("view", "permute", "getitem", "t_"))])
        again = {t["name"]: t["recomputable"] for t in trace["tasks"]}
        dropouts = [n for n in again if "dropout" in n and "backward" not in n]
        self.assertTrue(dropouts)
        self.assertFalse(any(again[n] for n in dropouts))

    def test_a_batch_by_names(self):
        class Named(Convolutions):
            def forward(self, *, images):
                return super().forward(images)
        trace = spillway.capture(self.made(Named), collections.OrderedDict(
            images=torch.zeros(2, 3, 32, 32)), times="modelled")
        self.assertTrue(trace["tasks"])

    def test_what_is_no_single_graph_says_so(self):
        class Broken(Convolutions):
            def forward(self, images):
                torch._dynamo.graph_break()
                return super().forward(images)
        with self.assertRaisesRegex(spillway.Error, "cannot capture Broken: it is no single graph"):
            spillway.capture(self.made(Broken), torch.zeros(2, 3, 32, 32))

    def test_what_has_no_step_says_so(self):
        with self.assertRaisesRegex(spillway.Error, "nothing in it requires a gradient"):
            spillway.capture(nn.ReLU(), torch.zeros(4))


class Settings(PyTorchCase):
    def test_warnings_of_a_library_that_is_loaded_later_cut_no_graph(self):
        torch.compile(nn.Linear(2, 2), backend="spillway")

        def warning_once(*_):
            """As transformers'."""
        with unittest.mock.patch.object(logging.Logger, "warning_once", warning_once, create=True):
            torch.compile(nn.Linear(2, 2), backend="spillway")
            self.assertIn(warning_once, torch._dynamo.config.ignore_logging_functions)
        torch._dynamo.config.ignore_logging_functions.discard(warning_once)


class Measurements(PyTorchCase):
    def test_each_stretch_has_its_own_peak_and_takes_no_memory(self):
        with Allocations() as allocations:
            for count in (1000, 4000, 2000):
                with allocations.stretch():
                    first = torch.empty(count, dtype=torch.uint8)
                    del first
                    second = torch.empty(count // 2, dtype=torch.uint8)
                    del second
                torch.empty(100000)
        self.assertEqual(allocations.peaks(), [1000, 4000, 2000])
        self.assertLess(allocations.peak(), 1 << 20)

    def test_nothing_is_printed_beside_what_is_asked_for(self):
        program = ("import torch, spillway; "
                   "spillway.capture(torch.nn.Linear(8, 8), torch.ones(4, 8))")
        environment = {k: v for k, v in os.environ.items() if k != "KINETO_LOG_LEVEL"}
        environment["PYTHONPATH"] = str(ROOT / "tools" / "python")
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True,
                              env=environment, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Peaks(PyTorchCase):
    def test_each_stretch_reads_its_own_changes(self):
        class Counted(list):
            """Counts what is read of it."""

            reads = 0

            def __iter__(self):
                for each in super().__iter__():
                    self.reads += 1
                    yield each

            def __getitem__(self, place):
                found = super().__getitem__(place)
                self.reads += len(found) if isinstance(place, slice) else 1
                return found

        allocations = Allocations()
        allocations.changes = Counted((10 * n + k, size) for n in range(200)
                                      for k, size in ((0, 8), (3, n), (6, -n), (9, -8)))
        allocations.stretches = [(10 * n, 10 * n + 6) for n in range(200)] + [(5, 5)]
        self.assertEqual(allocations.peaks(), [8 + n for n in range(200)] + [0])
        self.assertLess(allocations.changes.reads, 200 * 30)  # 3 of each, and the searches


class Explanations(PyTorchCase):
    def test_a_plan_is_explained(self):
        model = self.made(Attention)
        call = torch.compile(model, backend="spillway",
                             options={"budget": "min"})
        with self.assertRaisesRegex(spillway.Error, "no plan of this model yet"):
            spillway.explain(call)
        text_step(model)(call).backward()
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            path = pathlib.Path(folder) / "step.json"
            spillway.explain(call, timeline=path)
            self.assertIn("traceEvents", json.loads(path.read_text(encoding="utf-8")))
        for word in ("budget", "moved", "again", "predicted", "none below"):
            self.assertIn(word, printed.getvalue())


if __name__ == "__main__":
    unittest.main()
