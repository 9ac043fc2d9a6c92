"""tools/plot/timeline: what it takes from a trace."""

import importlib.machinery
import importlib.util
import json
import pathlib
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "tools" / "plot"

try:
    from matplotlib import pyplot
except ModuleNotFoundError as missing:
    print("skipped: there is no matplotlib; 'tools/setup --plot' has it")
    raise unittest.SkipTest("there is no matplotlib") from missing


def load():
    loader = importlib.machinery.SourceFileLoader("timeline_plot", str(FOLDER / "timeline"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("timeline_plot", loader))
    loader.exec_module(module)
    return module


def span(process, lane, name, begin, end, **more):
    return {"ph": "X", "pid": process, "tid": lane, "name": name, "ts": begin * 1e6,
            "dur": (end - begin) * 1e6, "args": more}


def lanes(process):
    return [{"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": name}}
            for number, name in enumerate(("compute", "waiting", "offload (near to far)"), 1)]


# Predicted: 1 s. Measured: 3 s, with 6 bytes live and 4 of them near.
TRACE = {
    "traceEvents": [*lanes(1), span(1, 1, "a", 0, 1, phase="forward"),
                    *lanes(2), span(2, 1, "a", 0, 1, phase="forward"), span(2, 3, "x", 1, 2),
                    span(2, 1, "a (recomputed)", 1, 2, phase="forward"),
                    span(2, 1, "b", 2, 3, phase="backward")],
    "spillway": {"budget_bytes": 4, "near": {"1": [], "2": [
        {"name": "w", "bytes_from": [[0, 2]]}, {"name": "x", "bytes_from": [[1e6, 4], [2e6, 0]]}]}}}


class Timeline(unittest.TestCase):
    def setUp(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(TRACE, file)
            file.flush()
            self.step = load().Step("planned", file.name)

    def test_is_of_the_measured_step(self):
        self.assertEqual(self.step.seconds, 3)
        self.assertEqual((self.step.times, self.step.sizes), ([0, 1, 2], [2, 6, 2]))
        self.assertEqual(self.step.spans("offload"), [(1, 1)])

    def test_draws_no_more_near_than_the_budget(self):
        figure, (compute, memory) = pyplot.subplots(2)
        self.addCleanup(pyplot.close, figure)
        self.step.draw(compute, memory, 3)
        near, paged_out = memory.collections
        tallest = [max(y for _, y in area.get_paths()[0].vertices) * (1 << 30) for area in (near, paged_out)]
        self.assertEqual(tallest, [4, 6])
        self.assertEqual(paged_out.get_label(), "paged out of near memory")
        self.assertIn("3.00 s", compute.get_title(loc="left"))


if __name__ == "__main__":
    unittest.main()
