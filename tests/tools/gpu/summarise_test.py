"""The table and the machine file that tools/gpu/summarise makes of result files."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = HERE.parents[2] / "tools" / "gpu"
sys.path[:0] = [str(HERE), str(TOOLS)]

from goals import figures_of
from machine_file import Unknown, fault_ns, machine_of
from sample_results import DRIVER, about, results


def by_name(found, part):
    return next(figure for figure in figures_of(found) if part in figure.name)


def missed(found):
    return [figure.name for figure in figures_of(found) if figure.is_met is False]


class Table(unittest.TestCase):
    def test_has_every_goal_met_when_everything_went_well(self):
        self.assertEqual(missed(results()), [])
        self.assertEqual(sum(f.is_met is True for f in figures_of(results())), 10)

    def test_says_by_how_much_a_goal_was_met(self):
        self.assertEqual(by_name(results(), "images/s").value, "2500 / 2000 = 1.25")
        self.assertEqual(by_name(results(), "at 40%, managed, joint").value,
                         "200.0 ms, 1.50 of resident, +8 % of 185.2")
        self.assertEqual(by_name(results(), "discarded").value, "0.25")
        self.assertEqual(by_name(results(), "convolutions of").value,
                         "50.0 / 70.0 ms; 4 engines for 2 convolutions")
        self.assertEqual(by_name(results(), "link, copy").value,
                         "50.0 GB/s / 50.0 GB/s / 45.0 GB/s / 45.0 GB/s")

    def test_shows_each_missed_goal(self):
        found = results()
        found["tests"]["programs"][0]["failures"] = 1
        found["facts"]["driver"]["fault_counts"]["budgeted"]["out_by_eviction"] = 4096
        found["identity"]["precisions"]["fp32"]["managed min"]["summary"]["weights_sha256"] = "x"
        found["steady"]["steady_faults"] = [0, 1]
        found["speed"]["pairs"][0]["ratio"] = 0.99
        found["overhead"]["runs"][0]["over_prediction"] = -0.11
        self.assertEqual(missed(found), [
            "tests on the GPU that fail", "bytes evicted in moves by hints",
            "runs equal to the resident one, bit by bit, fp32",
            "faults in steady managed steps at 40 %",
            "resnet50 bf16 batch 256: images/s, ours / PyTorch's",
            "resnet50 at 40%, managed, joint"])

    def test_counts_near_memory_beyond_the_budget_as_missed(self):
        found = results()
        found["steady"]["run"]["summary"]["near_peak_bytes"] = 101
        self.assertEqual(missed(found), ["steady: near memory of the budget"])

    def test_has_no_goal_at_other_budgets_nor_for_other_plans(self):
        for part in ("at 60%", "on-demand", "without discards"):
            self.assertIsNone(by_name(results(), part).is_met, part)

    def test_counts_engines_that_could_not_be_timed_as_missed(self):
        found = results()
        found["engines"]["steps"] = [{"network": "vgg16", "precision": "tf32", "batch": 128,
                                      "failed": "there is no room"}]
        self.assertEqual(by_name(found, "convolutions of vgg16 tf32").value, "there is no room")
        self.assertEqual(len(missed(found)), 1)

    def test_names_a_stage_that_was_cut_short(self):
        found = {"speed": {**about("speed", "failed"), "reason": "its time is used up"}}
        self.assertEqual(by_name(found, "speed").value, "its time is used up")
        self.assertEqual(missed(found), ["speed: stage"])

    def test_does_not_pass_over_a_failed_stage_whose_figures_look_well(self):
        found = results()
        found["tests"].update({"status": "failed", "reason": "tests fail in b"})
        self.assertEqual(missed(found), ["tests: stage"])

    def test_shows_counters_that_could_not_be_had(self):
        found = results()
        found["facts"]["driver"]["fault_counts"] = {"failed": "no CUPTI"}
        self.assertEqual(by_name(found, "by CUPTI").value, "no CUPTI")


class MachineFile(unittest.TestCase):
    def test_has_the_link_of_the_memory_mode(self):
        link = machine_of(DRIVER, "managed")["link"]
        # The slower single move takes 80 us, 40 of them its bytes; faults 2 us each.
        self.assertEqual(link, {"offload_bytes_per_second": 50_000_000_000,
                                "prefetch_bytes_per_second": 50_000_000_000,
                                "latency_ns": 40_000, "duplex": False,
                                "copies_while_read": False, "fault_ns": 2000})
        link = machine_of(DRIVER, "copy")["link"]
        self.assertTrue(link["duplex"])
        self.assertEqual(link["latency_ns"], 0)

    def test_has_the_cards_memory_and_peaks(self):
        machine = machine_of(DRIVER, "copy")
        self.assertEqual(machine["near_memory_bytes"], 150_000_000_000)
        self.assertEqual(machine["memory_bytes_per_second"], 4.8e12)

    def test_has_no_fault_where_reading_caused_none(self):
        driver = results()["facts"]["driver"]
        driver["fault_counts"]["touched"]["by_device"]["device_faults"] = 0
        self.assertIsNone(fault_ns(driver, 50e9))

    def test_cannot_be_made_for_an_unknown_card_or_link(self):
        driver = results()["facts"]["driver"]
        driver["streaming"]["managed"] = {"why_not": "no unified memory"}
        with self.assertRaisesRegex(Unknown, "no unified memory"):
            machine_of(driver, "managed")
        driver["facts"]["name"] = "a toaster"
        with self.assertRaisesRegex(Unknown, "the peaks of a toaster"):
            machine_of(driver, "copy")


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def summarise(self, *words):
        return subprocess.run([TOOLS / "summarise", self.folder, *words], capture_output=True,
                              text=True, check=False)

    def write(self, found):
        for stage, result in found.items():
            (self.folder / f"{stage}.json").write_text(json.dumps(result), encoding="utf-8")

    def test_prints_a_row_for_each_figure(self):
        self.write(results())
        done = self.summarise()
        self.assertEqual(done.stderr, "")
        rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual(len(rows), 1 + len(figures_of(results())))
        self.assertIn("a card, commit c0ffee, 2026-11-22T05:00:00+00:00", done.stdout)

    def test_prints_a_machine_file(self):
        self.write(results())
        done = self.summarise("--machine", "copy")
        self.assertEqual(json.loads(done.stdout)["format"], "spillway-machine")

    def test_says_in_a_sentence_what_is_missing(self):
        self.assertIn("there are no result files in", self.summarise().stderr)
        self.write({"tests": results()["tests"]})
        self.assertIn("there are no facts", self.summarise("--machine", "copy").stderr)
        (self.folder / "facts.json").write_text("{", encoding="utf-8")
        self.assertIn("is not what tools/gpu/run wrote", self.summarise().stderr)


if __name__ == "__main__":
    unittest.main()
