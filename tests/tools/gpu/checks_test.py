"""The checks of tools/gpu/run, with a program that only pretends to train."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools" / "gpu"))

import correct
import pytorch_side
import rebuild_plan
import speed
import stages
import trains
from gpu_bench import GRACE, Bench, Check, Failure, TimeIsUp, name_of, wall_clock_step
from machine_file import link_of, machine_of

GIB = 1 << 30


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        shutil.copy(HERE / "fake_spillway.py", self.folder / "spillway")
        (self.folder / "spillway").chmod(0o755)
        self.check = Check("a check")

    def bench(self, free=80 * GIB):
        return Bench(self.folder / "spillway", self.folder, False,
                     {"description": "cuda:0 (NVIDIA H200, 141.0 GiB)",
                      "available_memory_bytes": free})

    def reason(self, function, fake):
        with mock.patch.dict(os.environ, FAKE=fake), self.assertRaises(Failure) as caught:
            function(self.bench(), self.check)
        return str(caught.exception)

    def test_packed_files_have_plain_names(self):  # ccache's dependencies lead through the build
        plan = rebuild_plan.Plan.__new__(rebuild_plan.Plan)
        plan.files = {}
        said = ["x.o: #deps 2", "    ../../src/cuda/plugin.cpp", "    /usr/include/stdio.h"]
        with mock.patch.object(rebuild_plan, "ninja", return_value=said):
            plan.add_dependencies("x.o")
        self.assertEqual(list(map(str, plan.files)), ["src/cuda/plugin.cpp"])

    def test_identity_names_what_has_other_weights_or_losses(self):
        reason = self.reason(correct.identity, "copy:weights_sha256=other")
        self.assertIn("fp32 copy 40%", reason)
        self.assertNotIn("managed", reason)
        self.assertIn("bf16 managed min", self.reason(correct.identity, "managed:loss=1.25"))

    def test_identity_names_what_overran_its_budget_or_failed(self):
        self.assertIn("managed 60%", self.reason(correct.identity, "managed:near_peak_bytes=51"))
        self.assertIn("copy min", self.reason(correct.identity, "copy:fail"))

    def test_identity_leaves_out_budgets_that_no_plan_fits(self):
        with mock.patch.dict(os.environ, FAKE="copy:refuse"):
            correct.identity(self.bench(), self.check)
        self.assertIn("skipped", self.check.data["fp32"]["copy 40%"])
        self.assertEqual(self.check.rows[0][1:], ["5 of 5", "ok"])

    def test_steady_refuses_faults_and_evictions(self):
        for what in ("faults", "evictions"):
            reason = self.reason(correct.steady, f"managed:{what}=3")
            self.assertIn("page faults or evictions", reason)
        self.assertIn(["faults in steady steps at 40 %, managed", "30", "FAILED"],
                      self.check.rows)  # 12 steps but the first two

    def test_a_training_that_hangs_has_failed_and_the_others_go_on(self):
        with mock.patch.object(trains, "MOST", 1):
            reason = self.reason(trains.trains_in("copy"), "copy:hangs")
        self.assertTrue(reason.startswith("lenet, resnet18, gpt: no result"), reason)
        self.assertEqual([row[1] for row in self.check.rows], ["it did not end within 1 s"] * 3)

    def test_a_training_that_had_no_time_to_begin_has_not_failed(self):
        bench = self.bench()
        bench.begin_stage(GRACE - 1)
        with self.assertRaises(TimeIsUp):
            trains.trains_in("copy")(bench, self.check)
        self.assertEqual(self.check.rows, [])

    def test_the_trainings_of_a_stage_and_the_hosts_have_time_to_end(self):
        most = {stage.most for stage in stages.STAGES if stage.name in stages.TRAINS}
        self.assertGreaterEqual(min(most), 2 * len(trains.NETWORKS) * trains.MOST + GRACE)

    def run_stage(self, function, most=120):
        bench, check = self.bench(), Check("a check", "running")
        stages.run_stage(stages.Stage("a check", function, most=most), bench, check)
        return check

    def test_a_stage_in_which_a_test_had_no_time_has_not_passed(self):
        def run(bench, check):
            bench.begin_stage(GRACE - 1)
            correct.run_all_tests(bench, check, "tests", [correct.GpuTest("x_tests", ["true"], {})])
        check = self.run_stage(run)
        self.assertEqual((check.status, check.rows),
                         ("left out", [["tests", "0 run, 0 failed, 0 skipped; no time for all of "
                                        "x_tests", ""]]))

    def test_a_stage_that_has_no_time_left_after_a_failure_has_failed(self):
        def run(_, check):
            check.row("a figure", "wrong", False)
            raise TimeIsUp
        check = self.run_stage(run)
        self.assertEqual((check.status, check.reason),
                         ("failed", "see above; it took more than its 120 s"))

    def test_a_loss_that_is_no_number_is_not_close(self):
        self.assertTrue(trains.are_close([2.0, 2.001], [2.0, 2.0]))
        for losses in ([2.0, None], [2.0, float("nan")], [2.0, 2.01], [2.0]):
            self.assertFalse(trains.are_close(losses, [2.0, 2.0]), losses)

    def test_sanitizers_run_no_kernels_of_libraries(self):
        tests = [correct.GpuTest(name, [name], environment) for name, environment in (
            ("gpu_tests", {}), ("cuda_kernel_tests", {}),
            ("cuda_kernel_tests_in_tf32", {"GTEST_FILTER": "*WeightedLayer*:*BatchNorm*"}))]
        with mock.patch.object(correct, "gpu_tests", lambda: tests):
            found = correct.kernel_tests()
        self.assertEqual([(test.name, test.environment["GTEST_FILTER"]) for test in found],
                         [("cuda_kernel_tests", "-*WeightedLayer*:*AttentionAlgorithms*")])

    def test_large_needs_to_know_an_image(self):
        self.assertIn("resnet50 was not measured", self.reason(speed.large, ""))

    def compare_with_pytorch(self, parameters):
        (self.folder / "torch.py").write_text(
            "class cuda:\n    is_available = staticmethod(lambda: True)\n", encoding="utf-8")
        step = self.folder / "torch_step.py"
        found = json.dumps({"parameters": parameters, "seconds": [0.2], "wall_clock_seconds": 0.25})
        step.write_text("import sys\nif '--compile' in sys.argv:\n    sys.exit('no compiler')\n"
                        f"print({found!r})", encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        with mock.patch.multiple(pytorch_side, TORCH_STEP=step,
                                 own_environment=lambda: environment):
            speed.CHECKS["steps in tf32"](self.bench(), self.check)

    def test_pytorch_stands_beside_both_networks_by_step_and_wall_clock(self):
        self.compare_with_pytorch(parameters=10)
        self.assertEqual([row[0] for row in self.check.rows[3:]],
                         ["vgg16 tf32, batch 128: images/s resident, by step / wall clock",
                          "vgg16 tf32, batch 128: PyTorch eager's",
                          "vgg16 tf32, batch 128: PyTorch compiled"])
        self.assertTrue(self.check.rows[4][1].startswith("640 / 512, ours are 2.00 / "))
        self.assertEqual(self.check.rows[5][1], "not measured: no compiler")

    def test_pytorch_must_train_the_same_network(self):
        with self.assertRaisesRegex(Failure, "10 and 11 parameters"):
            self.compare_with_pytorch(parameters=11)

    def test_unified_memory_is_never_oversubscribed(self):
        with self.assertRaises(ValueError):
            self.bench().spillway("bench", "link", "--oversubscribe")
        with self.assertRaises(ValueError):
            self.bench().train(["--net", "lenet"], ["--oversubscribe"])

    def test_a_test_that_had_no_time_is_bad_only_when_it_failed(self):
        run = {"status": "unfinished", "tests": 0, "failures": 0}
        self.assertFalse(correct.is_bad(run))
        self.assertTrue(correct.is_bad({**run, "failures": 1}))
        self.assertTrue(correct.is_bad({**run, "status": 0}))  # no test ran

    def test_a_large_step_exceeds_the_gpu_where_ram_holds_what_is_far(self):
        image = 40 << 20
        self.assertGreater(speed.large_batch(image, 80 * GIB, 128 * GIB) * image, 80 * GIB)
        # 0.6 of 64 GiB is three quarters of 51.2 GiB: 1310 images, whole multiples of 64.
        self.assertEqual(speed.large_batch(image, 80 * GIB, 64 * GIB), 1280)

    def test_batches_keep_to_the_limit_of_unified_memory(self):
        # 256 images of 50 MiB are 12.5 GiB: within 16, but not within a quarter of 40.
        self.assertEqual(self.bench().network("resnet50", 256), ("resnet50", 256))
        self.assertEqual(self.bench(40 * GIB).network("resnet50", 256), ("resnet50", 128))


class MachineFile(unittest.TestCase):
    def rows(self, both):
        return [{"way": "prefetch", "direction": direction, "bytes": size, "bytes_per_second": rate}
                for direction, rates in (("in", (40e9, 50e9)), ("out", (25e9, 50e9)),
                                         ("both", (25e9, both)))
                for size, rate in zip((2_000_000, 512_000_000), rates)]

    def test_has_the_largest_moves_rates_and_the_smallest_ones_latency(self):
        # 2 MB at 50 GB/s take 40 us; at 25 GB/s 80 us.
        self.assertEqual(link_of(self.rows(both=80e9), "managed"),
                         {"offload_bytes_per_second": 50_000_000_000,
                          "prefetch_bytes_per_second": 50_000_000_000, "latency_ns": 40_000,
                          "duplex": True, "copies_while_read": False})
        self.assertFalse(link_of(self.rows(both=60e9), "managed")["duplex"])

    def test_is_duplex_also_where_one_way_is_slower(self):
        rows = self.rows(both=50e9)  # one byte in 20 ns in, in 40 ns out and in 40 ns both
        rows[3]["bytes_per_second"] = 25e9
        self.assertTrue(link_of(rows, "managed")["duplex"])

    def test_is_of_cards_with_known_peaks(self):
        machine = machine_of("cuda:0 (NVIDIA H200, 141.0 GiB)", "copy", {"a": "link"})
        self.assertEqual((machine["format"], machine["near_memory_bytes"], machine["link"]),
                         ("spillway-machine", 141 * GIB, {"a": "link"}))
        self.assertEqual(machine["bf16_flops_per_second"], 989e12)
        self.assertIsNone(machine_of("cuda:0 (a toaster, 1 GiB)", "copy", {}))


class Operations(unittest.TestCase):
    def test_are_of_the_kinds_that_their_names_say(self):
        for name, kind in (("layer1.0.conv2.backward_data", "convolution"),
                           ("layer1.0.downsample.0.forward", "convolution"),
                           ("layer1.0.downsample.1.backward", "batch norm"),
                           ("features.3.backward_weights", "convolution"),
                           ("bn1.forward", "batch norm"), ("layer2.1.add.forward", "element-wise"),
                           ("layer1.0.relu.gradient", "element-wise"), ("fc.forward", "linear"),
                           ("maxpool.backward", "pool"), ("bn1.update", "update"),
                           ("load", "other"), ("loss.forward", "other")):
            self.assertEqual(pytorch_side.kind_of(name, pytorch_side.OUR_KINDS), kind, name)
        for name, kind in (("aten::cudnn_convolution", "convolution"),
                           ("aten::cudnn_batch_norm_backward", "batch norm"),
                           ("aten::threshold_backward", "element-wise"), ("aten::mm", "linear"),
                           ("aten::addmm", "linear"), ("aten::_foreach_add_", "update"),
                           ("aten::max_pool2d_with_indices", "pool"), ("aten::add_", "element-wise"),
                           ("aten::clamp_min_", "element-wise"), ("aten::nll_loss", "other")):
            self.assertEqual(pytorch_side.kind_of(name, pytorch_side.THEIR_KINDS), kind, name)

    def test_are_ours_with_the_fastest_algorithm(self):
        profile = {"tasks": [{"task": "conv1.forward", "duration_ns": {"a": 3e6, "b": 2e6}}]}
        self.assertEqual(pytorch_side.our_operations(profile), {"conv1.forward": 2.0})


class Steps(unittest.TestCase):
    def test_by_the_wall_clock_are_from_end_to_end(self):
        # After three to warm up each takes 0.5 s, whatever it says of itself.
        run = {"steps": [{"seconds": 0.1, "at": at} for at in (0, 5, 9, 9.5, 10, 10.5)]}
        self.assertEqual(wall_clock_step(run), 0.5)

    def test_have_a_name_for_their_files(self):
        self.assertEqual(name_of(["--net", "vgg16", "--batch", 8, "--precision", "tf32"]),
                         "vgg16-8-tf32")
        self.assertEqual(name_of(["--net", "vgg16", "--batch", 8, "--deterministic"]),
                         "vgg16-8-deterministic")


if __name__ == "__main__":
    unittest.main()
