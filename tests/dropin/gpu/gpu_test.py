"""The drop-in's surfaces under foreign programs on the emulated GPU: bits, hints, devices."""

import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(ROOT / "tests/src/cuda/emulated_gpu"))

import emulated_runs  # noqa: E402  pylint: disable=wrong-import-position

# The libraries, CUDA's runtime among them, and beside them the programs.
FOLDER = pathlib.Path(os.environ.get("SPILLWAY_DROPIN_GPU",
                                     ROOT / "build/release/tests/dropin_gpu"))
MIB = 1 << 20
PAGE = 2 * MIB
ORDERS = ("eager", "late", "moves", "compute", "all", "chance")
FRAMEWORKS = [sys.executable, "-B", HERE / "frameworks.py"]
SPACE = {"SPILLWAY_UM_NEAR": "16MiB", "SPILLWAY_UM_CAPACITY": "16MiB"}


class Gpu(unittest.TestCase):
    maxDiff = 2000

    def run_on(self, command, card=None, **variables):
        """Runs a program with these settings of the emulated GPU: its result, and the report."""
        environment = {"LD_LIBRARY_PATH": FOLDER, "PYTHONPATH": ROOT / "tools/python",
                       "SPILLWAY_UM_LIBRARY": FOLDER / "libspillway_um.so.0", **variables}
        settings = [f"{name}={value}" for name, value in environment.items()]
        done, report = emulated_runs.call(
            emulated_runs.words("env", settings, command), card)
        self.assertEqual((done.returncode, report.get("mistakes")), (0, 0), done.stderr[-1500:])
        return done, report


class Spaces(Gpu):
    def test_move_by_hints_and_keep_the_bits(self):
        for order in ORDERS:
            with self.subTest(order=order):
                _, report = self.run_on([FOLDER / "spaces", "hints", "cuda:0"],
                                        {"order": order, "races": "on"})
                # All of near memory goes near, far, and near again; the GPU writes what is near.
                self.assertEqual(report["counts"]["bytes of a prefetch near"], 32 * MIB)
                self.assertEqual(report["prefetched_bytes"], 16 * MIB)
                self.assertEqual(report["offloaded_bytes"], 16 * MIB)
                self.assertEqual(report["device_faults"], 0)
                self.assertEqual(report["contexts"], [0])

    def test_without_hints_fault_and_keep_the_bits(self):
        _, report = self.run_on([FOLDER / "spaces", "faults", "cuda:0"])
        self.assertEqual(report["device_faults"], 4)  # a third of 24 MiB, in pages
        self.assertNotIn("bytes of a prefetch near", report["counts"])

    def test_reuse_memory_when_streams_allow(self):
        for order in ORDERS:
            with self.subTest(order=order):
                self.run_on([FOLDER / "spaces", "streams", "cuda:0"],
                            {"order": order, "races": "on"})

    def test_lie_on_their_own_devices(self):
        _, report = self.run_on([FOLDER / "spaces", "two-devices"], {"devices": 2})
        self.assertEqual(report["contexts"], [0, 1])

    def test_touch_no_other_device(self):
        for what in ("hints", "streams"):
            _, report = self.run_on([FOLDER / "spaces", what, "cuda:2"], {"devices": 3})
            self.assertEqual(report["contexts"], [2])

    def test_of_threads_new_to_cuda_touch_no_other_device(self):
        _, report = self.run_on([FOLDER / "spaces", "threads", "cuda:1"], {"devices": 2})
        self.assertEqual(report["contexts"], [1])


class Resources(Gpu):
    def test_of_each_library_keep_the_bits(self):
        for what in ("pmr", "cuda-mr", "thrust"):
            # A vector that is freed after main leaves its space to the process.
            card = {"devices": 2, "keep": "on" if what == "pmr" else "off"}
            for order in ORDERS:
                with self.subTest(what=what, order=order):
                    _, report = self.run_on([FOLDER / "resources", what, "cuda:1"],
                                            {**card, "order": order, "races": "on"})
                    self.assertEqual(report["left"]["blocks of memory"], what == "pmr")
                    self.assertEqual(report["contexts"], [1])


class Preload(Gpu):
    def run_twice(self, card):
        """The program by itself, and with the preloaded library: output, unified blocks, reports."""
        plain, _ = self.run_on([FOLDER / "unchanged"], card)
        done, report = self.run_on([FOLDER / "unchanged"], {**card, "keep": "on"},
                                   LD_PRELOAD=FOLDER / "libspillway_um_preload.so",
                                   SPILLWAY_UM_PRELOAD_REPORT=1,
                                   SPILLWAY_UM_DEVICE=f"cuda:{card['devices'] - 1}", **SPACE)
        self.assertEqual(done.stdout, plain.stdout)
        self.assertEqual(plain.stderr, "0 unified blocks\n")
        self.assertEqual(report["left"]["blocks of memory"], 1)  # the space's
        return done.stderr.splitlines(), report

    def test_serves_a_program_that_cannot_be_changed(self):
        for order in ORDERS:
            with self.subTest(order=order):
                lines, report = self.run_twice({"order": order, "devices": 1, "races": "on"})
                # Two blocks of one device, eight pieces, one of a thread's stream, and the last.
                self.assertEqual(lines[0], "12 unified blocks")
                self.assertIn(": allocations: 12 served (24.0 MiB), 1 small, 0 refused, "
                              "1 on other devices or captured; frees: 12 served, 1 of the CUDA "
                              "runtime's", lines[1])
                self.assertEqual(report["contexts"], [0])

    def test_leaves_other_devices_to_the_runtime(self):
        lines, report = self.run_twice({"devices": 2})
        self.assertEqual(lines[0], "2 unified blocks")
        self.assertEqual(report["contexts"], [0, 1])


class Frameworks(Gpu):
    def run_framework(self, name, device, card):
        done, report = self.run_on([*FRAMEWORKS, name, device], {**card, "keep": "on"})
        counters = json.loads(done.stdout)
        self.assertEqual(counters["frees"], counters["allocations"])
        self.assertEqual(report["left"]["blocks of memory"], 1)
        return done, counters, report

    def test_of_pytorch_allocate_segments(self):
        for order in ORDERS:
            with self.subTest(order=order):
                done, counters, report = self.run_framework(
                    "torch", 1, {"devices": 2, "order": order, "races": "on"})
                self.assertEqual(counters["allocations"], 6)
                self.assertIn("spillway_torch_malloc: no room for 200 MiB", done.stderr)
                self.assertEqual(report["contexts"], [1])

    def test_of_cupy_allocate_chunks(self):
        for order in ORDERS:
            with self.subTest(order=order):
                done, counters, report = self.run_framework(
                    "cupy", 1, {"devices": 2, "order": order, "races": "on"})
                self.assertEqual((counters["allocations"], done.stderr), (5, ""))
                self.assertEqual(report["contexts"], [1])


if __name__ == "__main__":
    unittest.main()
