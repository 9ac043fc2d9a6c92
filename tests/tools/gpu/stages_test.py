"""The stages of tools/gpu/run, with a program that only pretends to train."""

import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools" / "gpu"))

import machine
import stages_correct
import stages_fast
import stages_overhead
from measuring import Bench, Failure


class Stages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(HERE / "fake_spillway.py", self.folder / "spillway")
        (self.folder / "spillway").chmod(0o755)

    def bench(self, fake="", cap=60, tests=()):
        programs = machine.Machine(self.folder, list(tests), {**os.environ, "FAKE": fake}, {})
        bench = Bench(programs, self.folder, quick=False, gpu=programs.expect_gpu())
        bench.begin_stage(cap, time.monotonic() + cap)
        return bench

    def copy_program(self, *names):
        for name in names:
            shutil.copy(self.folder / "spillway", self.folder / name)

    def fails(self, stage, bench):
        result = {}
        with self.assertRaises(Failure) as caught:
            stage(bench, result)
        return str(caught.exception), result

    def write_program(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def test_identity_passes_when_all_runs_are_equal(self):
        result = {}
        stages_correct.identity(self.bench(), result)
        self.assertEqual(list(result["precisions"]), ["fp32", "bf16"])
        self.assertEqual(list(result["precisions"]["fp32"]),
                         ["resident", "managed 60%", "copy 60%", "managed 40%", "copy 40%",
                          "managed min", "copy min"])

    def test_identity_names_what_has_other_weights(self):
        reason, _ = self.fails(stages_correct.identity, self.bench("copy:weights_sha256=other"))
        self.assertIn("fp32 copy 40%", reason)
        self.assertNotIn("managed", reason)

    def test_identity_names_what_has_another_loss(self):
        reason, _ = self.fails(stages_correct.identity, self.bench("managed:loss=1.25"))
        self.assertIn("fp32 managed min", reason)

    def test_identity_names_what_overran_its_budget(self):
        reason, _ = self.fails(stages_correct.identity, self.bench("managed:near_peak_bytes=51"))
        self.assertIn("managed 60%", reason)

    def test_identity_goes_on_after_a_run_that_fails(self):
        reason, result = self.fails(stages_correct.identity, self.bench("managed:fail"))
        self.assertIn("managed", reason)
        self.assertEqual(result["precisions"]["bf16"]["managed min"], {"failed": "there is no room"})
        self.assertIn("summary", result["precisions"]["bf16"]["copy min"])

    def test_identity_leaves_out_budgets_that_no_plan_fits(self):
        result = {}
        stages_correct.identity(self.bench("copy:refuse"), result)
        self.assertIn("skipped", result["precisions"]["fp32"]["copy 40%"])
        self.assertIn("summary", result["precisions"]["fp32"]["copy min"])

    def test_steady_refuses_faults_and_evictions(self):
        stages_correct.steady(self.bench(), {})
        for key in ("faults", "evictions"):
            reason, result = self.fails(stages_correct.steady, self.bench(f"managed:{key}=3"))
            self.assertIn("page faults or evictions", reason)
            self.assertEqual(result[f"steady_{key}"], [3] * 10)  # 12 steps but the first two

    def test_tests_count_what_failed_and_what_crashed(self):
        report = ('{"tests": 2, "failures": 1, "time": "1s", "testsuites": [{"name": "S", '
                  '"testsuite": [{"name": "A"}, {"name": "B", "failures": [{"failure": "no"}]}]}]}')
        half = self.write_program("half", f"echo '{report}' >\"${{1#--gtest_output=json:}}\"\nexit 1")
        crash = self.write_program("crash", "echo 'out of luck' >&2\nexit 134")
        reason, result = self.fails(stages_correct.tests, self.bench(tests=[half, crash]))
        self.assertIn("half, crash", reason)
        self.assertEqual(result["programs"][0]["failed"], [{"test": "S.B", "failure": "no"}])
        self.assertEqual(result["programs"][1]["last_words"], "out of luck")

    def test_tests_are_told_not_to_skip(self):
        report = '{"tests": 1, "failures": 0, "time": "1s", "testsuites": []}'
        program = self.write_program(
            "asks", f"test \"$SPILLWAY_REQUIRE_GPU\" = 1 && "
                    f"echo '{report}' >\"${{1#--gtest_output=json:}}\"")
        stages_correct.tests(self.bench(tests=[program]), {})

    def test_tests_that_leave_no_report_have_failed(self):
        program = self.write_program("silent", "exit 0")
        reason, _ = self.fails(stages_correct.tests, self.bench(tests=[program]))
        self.assertIn("silent", reason)

    def test_facts_has_the_driver_and_the_card(self):
        self.copy_program("driver_facts", "card_properties")
        result = {}
        stages_correct.facts(self.bench(), result)
        self.assertEqual(result, {"driver": {}, "card": {"text": "{}", "properties": {}}})

    def test_facts_keeps_the_driver_when_the_card_tells_nothing(self):
        self.copy_program("driver_facts", "card_properties")
        reason, result = self.fails(stages_correct.facts, self.bench("no-card"))
        self.assertEqual(reason, "cuDNN tells nothing")
        self.assertEqual(result, {"driver": {}})

    def test_engines_times_both_networks_in_both_precisions(self):
        self.copy_program("engine_times")
        result = {}
        stages_fast.engines(self.bench(), result)
        self.assertEqual([(s["network"], s["batch"], s["precision"]) for s in result["steps"]],
                         [("resnet50", 256, "bf16"), ("resnet50", 256, "tf32"),
                          ("vgg16", 128, "bf16"), ("vgg16", 128, "tf32")])
        self.assertEqual(result["steps"][3]["seconds_by_fastest"], 0.002)

    def test_engines_goes_on_after_a_network_that_fails(self):
        self.copy_program("engine_times")
        reason, result = self.fails(stages_fast.engines, self.bench("no-engine"))
        self.assertEqual(reason,
                         "resnet50 tf32: cuDNN has no engine; vgg16 tf32: cuDNN has no engine")
        self.assertIn("convolutions", result["steps"][2])

    def test_overhead_passes_when_steps_are_as_predicted(self):
        result = {}
        stages_overhead.overhead(self.bench("managed:seconds=0.109"), result)
        self.assertAlmostEqual(result["runs"][0]["over_prediction"], 0.09)
        self.assertAlmostEqual(result["runs"][0]["ratio_to_resident"], 1.09)

    def test_overhead_has_the_budgets_of_both_networks(self):
        result = {}
        stages_overhead.overhead(self.bench(), result)
        runs = {(r["network"], r["budget"], r["memory"], r["planner"], r["discards"])
                for r in result["runs"]}
        for network, budget in (("resnet50", "40%"), ("resnet50", "25%"), ("vgg16", "min+20%"),
                                ("vgg16", "min+50%")):
            for memory, planner in (("managed", "joint"), ("copy", "joint"), ("copy", "on-demand")):
                self.assertIn((network, budget, memory, planner, True), runs)
        for budget in ("60%", "100%"):
            self.assertIn(("resnet50", budget, "copy", "joint", True), runs)
        self.assertIn(("resnet50", "40%", "managed", "joint", False), runs)
        self.assertEqual(result["resident"]["vgg16"]["batch"], 128)

    def test_overhead_names_what_is_slower_than_predicted(self):
        # But not what swaps on demand: nothing was planned.
        reason, _ = self.fails(stages_overhead.overhead, self.bench("copy:seconds=0.12"))
        self.assertTrue(reason.endswith(": copy joint +20 %, copy capacity +20 %"), reason)

    def test_overhead_tells_how_many_runs_failed(self):
        reason, result = self.fails(stages_overhead.overhead, self.bench("on-demand:fail"))
        self.assertIn("4 of 20 runs failed: there is no room", reason)
        self.assertIn("median_step_seconds", result["large"])

    def test_overhead_takes_a_batch_whose_unified_memory_fits(self):
        gib = 1 << 30
        # 256 images of 50 MiB are 12.5 GiB: within 16, but not within a quarter of 40.
        self.assertEqual(stages_overhead.managed_batch("resnet50", 256, 80 * gib), 256)
        self.assertEqual(stages_overhead.managed_batch("resnet50", 256, 40 * gib), 128)

    def test_a_large_step_exceeds_a_card_whose_far_memory_fits_in_ram(self):
        resident = {"resident_bytes": 40 << 20, "batch": 1}
        gib = 1 << 30
        self.assertGreater(
            stages_overhead.large_batch(resident, 80 * gib, 128 * gib) * (40 << 20), 80 * gib)
        # 0.6 of 64 GiB is three quarters of 51.2 GiB: 1310 images, whole multiples of 64.
        self.assertEqual(stages_overhead.large_batch(resident, 80 * gib, 64 * gib), 1280)

    def test_a_stage_ends_when_its_time_is_used_up(self):
        program = self.write_program("sleeps", "exec sleep 60")
        begin = time.monotonic()
        reason, _ = self.fails(stages_correct.tests, self.bench(cap=2, tests=[program]))
        self.assertIn("time was used up", reason)
        self.assertLess(time.monotonic() - begin, 30)


class UsableGpu(unittest.TestCase):
    def test_is_the_first_that_can_be_used(self):
        devices = [{"name": "host", "usable": True}, {"name": "cuda:0", "usable": False},
                   {"name": "cuda:1", "usable": True}]
        self.assertEqual(machine.usable_gpu(devices)["name"], "cuda:1")

    def test_is_missed_with_the_programs_reason(self):
        with self.assertRaisesRegex(machine.Unusable, "there is no usable GPU: no driver"):
            machine.usable_gpu([{"name": "cuda", "usable": False, "reason": "no driver"}])
        with self.assertRaisesRegex(machine.Unusable, "without its CUDA side"):
            machine.usable_gpu([{"name": "host", "usable": True}])


if __name__ == "__main__":
    unittest.main()
