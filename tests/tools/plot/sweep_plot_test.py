"""tools/plot/sweep: what its pictures say, and that all points are in them."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "tools" / "plot"
MIB = 1 << 20

try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError as missing:
    print("skipped: there is no matplotlib; 'tools/setup --plot' has it")
    raise unittest.SkipTest("there is no matplotlib") from missing


def load():
    loader = importlib.machinery.SourceFileLoader("sweep_plot", str(FOLDER / "sweep"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("sweep_plot", loader))
    loader.exec_module(module)
    return module


sweep = load()


def point(planner, position, budget, makespan, recomputed=0):
    """Of a step of 1 s in 10 MiB, of which Beaumont's bound is 2 s."""
    bounds = {"beaumont": 2.0, "mixed_turnover": 1.1}
    made = {
        "net": "lenet", "batch": 8, "machine": "v100", "link_factor": 1.0, "p": position,
        "budget_bytes": budget * MIB, "resident_bytes": 10 * MIB, "min_budget_bytes": 4 * MIB,
        "planner": planner, "recompute": True, "compute_seconds": 1.0, "feasible": bool(makespan),
        "bounds": bounds if makespan else None, "makespan_seconds": makespan,
    }
    if makespan:
        made |= {"recomputed_tasks": recomputed, "prefetched_bytes": MIB,
                 "memory_bytes": [3 * MIB, 5 * MIB, budget * MIB, 3 * MIB]}
    else:
        made["smallest_budget_bytes"] = 4 * MIB
    return made


def texts(figure):
    """All that a figure says, on one line."""
    found = [*figure.texts]
    for axis in figure.axes:
        if axis.get_visible():
            found += [*axis.texts, axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label]
    return " ".join(" ".join(text.get_text() for text in found).split())


class Makespans(unittest.TestCase):
    points = [point("joint", 0, 5, 1.2, recomputed=3), point("on-demand", 0, 5, 90.0),
              point("joint", 1, 8, 1.0), point("on-demand", 1, 8, 2.5)]

    def test_say_why_joint_is_below_beaumonts_bound(self):
        said = texts(sweep.draw_makespan(self.points))
        self.assertIn("It is of plans that only move", said)
        self.assertIn("Below 1: joint may run tasks again", said)

    def test_do_not_where_nobody_is(self):
        said = texts(sweep.draw_makespan([point("joint", 0, 5, 2.5), point("joint", 1, 8, 2.4)]))
        self.assertNotIn("Below 1", said)

    def test_cut_no_point(self):
        for axis in sweep.draw_makespan(self.points).axes:
            low, high = axis.get_ylim()
            for line in axis.get_lines():
                if line.get_label() not in ("joint", "on-demand"):
                    continue
                self.assertFalse(line.get_clip_on())
                self.assertGreater(min(line.get_ydata()), 1.02 * low)
                self.assertLess(max(line.get_ydata()), high / 1.02)

    def test_of_budgets_without_a_plan_say_so(self):
        said = texts(sweep.draw_makespan([point("joint", 0, 1, None), point("joint", 1, 2, None)]))
        self.assertIn("no plan: budgets of 1 MiB to 2 MiB are too small, at least 4 MiB", said)


class Memory(unittest.TestCase):
    def test_of_a_budget_without_a_plan_says_so(self):
        said = texts(sweep.draw_memory([point("joint", 0, 1, None), point("capacity", 0, 1, None)]))
        self.assertIn("a budget of 1 MiB is too small, at least 4 MiB are needed", said)

    def test_names_the_planners_without_a_plan(self):
        said = texts(sweep.draw_memory([point("joint", 0, 5, 1.2), point("capacity", 0, 5, None)]))
        self.assertIn("no plan within this budget: capacity", said)

    def test_needs_curves(self):
        bare = point("joint", 0, 5, 1.2)
        del bare["memory_bytes"]
        with self.assertRaises(SystemExit) as refused:
            sweep.draw_memory([bare])
        self.assertIn("--memory-curves", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
