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
FEW_ORDERS = ("eager", "late", "chance")
FRAMEWORKS = [sys.executable, "-B", HERE / "frameworks.py"]
SPACE = {"SPILLWAY_UM_NEAR": "16MiB", "SPILLWAY_UM_CAPACITY": "16MiB"}


def prefetched(report):
    """The bytes of all hints that bring near; pages without content move nothing."""
    return report["counts"].get("bytes of a prefetch near", 0)


class Gpu(unittest.TestCase):
    maxDiff = 2000

    def start(self, command, card=None, **variables):
        """Runs a program with these settings of the emulated GPU: its result, and the report."""
        environment = {"LD_LIBRARY_PATH": FOLDER, "PYTHONPATH": ROOT / "tools/python",
                       "SPILLWAY_UM_LIBRARY": next(FOLDER.glob("libspillway_um.so.*")), **variables}
        settings = [f"{name}={value}" for name, value in environment.items()]
        return emulated_runs.call(emulated_runs.words("env", settings, command), card)

    def run_on(self, command, card=None, **variables):
        """Runs a program that succeeds."""
        done, report = self.start(command, card, **variables)
        self.assertEqual((done.returncode, report.get("mistakes")), (0, 0), done.stderr[-1500:])
        return done, report


class Spaces(Gpu):
    def test_move_by_hints_and_keep_the_bits(self):
        for order in ORDERS:
            with self.subTest(order=order):
                _, report = self.run_on([FOLDER / "spaces", "hints", "cuda:0"],
                                        {"order": order, "races": "on"})
                # All of near memory goes near, far, and near again; the GPU writes what is near.
                self.assertEqual(prefetched(report), 32 * MIB)
                self.assertEqual(report["prefetched_bytes"], 16 * MIB)
                self.assertEqual(report["offloaded_bytes"], 16 * MIB)
                self.assertEqual(report["device_faults"], 0)
                self.assertEqual(report["contexts"], [0])

    def test_without_hints_fault_and_keep_the_bits(self):
        _, report = self.run_on([FOLDER / "spaces", "faults", "cuda:0"])
        self.assertEqual(report["device_faults"], 4)  # a third of 24 MiB, in pages
        self.assertEqual(prefetched(report), 0)

    def test_reuse_memory_when_streams_allow(self):
        for order in ORDERS:
            with self.subTest(order=order):
                self.run_on([FOLDER / "spaces", "streams", "cuda:0"],
                            {"order": order, "races": "on"})

    def test_larger_than_the_gpu_tell_it_what_is_dead(self):
        for order in ORDERS:
            with self.subTest(order=order):
                _, report = self.run_on([FOLDER / "spaces", "oversubscription", "cuda:0"],
                                        {"order": order, "races": "on", "memory-mib": 64})
                self.assertEqual(report["discarded_bytes"], 8 * 24 * MIB)
                if order == "eager":  # one lasting block and one other at a time
                    self.assertEqual(report["evicted_bytes"], 0)

    def test_tell_of_calls_that_fail(self):
        for what in ("hints", "streams"):
            _, report = self.run_on([FOLDER / "spaces", what, "cuda:0"])
            for name, calls in report["calls"].items():
                for number in {1, calls}:
                    self.expect_told([FOLDER / "spaces", what, "cuda:0"], f"{name}:{number}")

    def expect_told(self, command, call):
        """Expects that a program with this failing call ends with a sentence, or is not harmed."""
        with self.subTest(command=command[1], call=call):
            done, report = self.start(command, {"fail": call, "keep": "on"})
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertEqual(done.returncode == 1, "not so: " in done.stderr, done.stderr)
            self.assertEqual(report["mistakes"], 0, done.stderr)

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
            for order in FEW_ORDERS:
                with self.subTest(what=what, order=order):
                    _, report = self.run_on([FOLDER / "resources", what, "cuda:1"],
                                            {**card, "order": order, "races": "on"})
                    self.assertEqual(report["left"]["blocks of memory"], what == "pmr")
                    self.assertEqual(report["contexts"], [1])
                    # Allocations for a stream are brought near: six, and one for the default one.
                    self.assertEqual(prefetched(report), 7 * 8 * MIB if what == "cuda-mr" else 0)
                    self.assertEqual(report["device_faults"], 0)


class Preload(Gpu):
    def run_twice(self, card):
        """Runs the program alone and preloaded: what that wrote to standard error, the report."""
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
        for order in FEW_ORDERS:
            with self.subTest(order=order):
                lines, report = self.run_twice({"order": order, "devices": 1, "races": "on"})
                # Two blocks of one device, eight pieces, one of a thread's stream, and the last.
                self.assertEqual(lines[0], "12 unified blocks")
                self.assertIn(": allocations: 12 served (24.0 MiB), 1 small, 0 refused, "
                              "1 on other devices or captured; frees: 12 served, 1 of the CUDA "
                              "runtime's", lines[1])
                self.assertEqual(report["contexts"], [0])
                self.assertEqual(prefetched(report), 12 * PAGE)
                self.assertEqual(report["device_faults"], 0)

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

    def expect_near(self, allocated, counters, report, shared=0):
        """Expects hints for all, unless freed memory that streams still use fills the budget, or
        lies in one of `shared` pages, which is then near already."""
        refused = counters["refused_hints"]
        hinted = prefetched(report) + refused * PAGE
        self.assertLessEqual(hinted, allocated)
        self.assertGreaterEqual(hinted, allocated - shared * PAGE)
        self.assertLessEqual(report["device_faults"], refused)

    def test_of_pytorch_allocate_segments(self):
        for order in FEW_ORDERS:
            with self.subTest(order=order):
                done, counters, report = self.run_framework(
                    "torch", 1, {"devices": 2, "order": order, "races": "on"})
                self.assertEqual(counters["allocations"], 6)
                self.assertIn("spillway_torch_malloc: no room for 200 MiB", done.stderr)
                self.assertEqual(report["contexts"], [1])
                self.expect_near(120 * MIB, counters, report)

    def test_of_cupy_allocate_chunks(self):
        for order in FEW_ORDERS:
            with self.subTest(order=order):
                done, counters, report = self.run_framework(
                    "cupy", 1, {"devices": 2, "order": order, "races": "on"})
                self.assertEqual((counters["allocations"], done.stderr), (5, ""))
                self.assertEqual(report["contexts"], [1])
                # Whole pages; those of all chunks but the last may be another's too.
                self.expect_near(88 * MIB, counters, report, shared=4)


if __name__ == "__main__":
    unittest.main()
