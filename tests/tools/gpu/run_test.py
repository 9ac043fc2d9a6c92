"""tools/gpu/run and pack from outside, with programs that only pretend."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PROGRAMS = ["bin/spillway", "tests/gpu_tests", "tests/cuda_kernel_tests"]
# Options with a value each come before the program.
SANITIZER = """#!/bin/sh
export TOOL="$2"
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
"""
TRAINS = ["trains resident", "trains copy", "trains managed"]
SPEED = ["link", "steps in bf16", "resnet50", "gpt2", "large", "operations", "vgg16",
         "steps in tf32"]
STAGES = ["facts", *TRAINS, "tests", "identity", "steady", *SPEED, "racecheck", "memcheck"]
# The torch.py here has no CUDA, and --quick has no sanitizers.
NO_PYTORCH = dict.fromkeys(["steps in bf16", "steps in tf32"], "left out")
QUICK = {**dict.fromkeys(STAGES, "passed"), **NO_PYTORCH,
         **dict.fromkeys(["racecheck", "memcheck"], "left out")}


class Tree(unittest.TestCase):
    """A checkout with a build, in which all programs are the fake one."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "tree"
        no_bytecode = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "tools" / "gpu", self.root / "tools" / "gpu", ignore=no_bytecode)
        (self.root / "tools" / "bench").mkdir()
        for script in (ROOT / "tools" / "bench").glob("*.py"):
            shutil.copy(script, self.root / "tools" / "bench")
        for name in PROGRAMS:
            self.put(self.root / "build" / "release" / name)
        self.put(self.root / "path" / "ctest")
        self.write("path/compute-sanitizer", SANITIZER)
        # The interpreter itself: pyenv puts a shell script in its place, which takes longer.
        (self.root / "path" / "python3").symlink_to(sys.executable)
        self.write("path/torch.py", "class cuda:\n    is_available = staticmethod(bool)\n")
        self.results = self.root / "results"

    def put(self, path, source=HERE / "fake_spillway.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
        path.chmod(0o755)

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")
        (self.root / name).chmod(0o755)

    def command(self, script, *words, fake="", root=None):
        root = root or self.root
        first = self.root / "path"
        environment = {**os.environ, "FAKE": fake, "PATH": f"{first}:{os.environ['PATH']}",
                       "PYTHONPATH": str(first)}
        return [root / "tools" / "gpu" / script, *words], environment

    def start(self, script, *words, **how):
        command, environment = self.command(script, *words, **how)
        return subprocess.run(command, check=False, text=True, env=environment,
                              capture_output=True)

    def run_tool(self, *words, fake=""):
        return self.start("run", "--results", self.results, *words, fake=fake)

    def statuses(self):
        return {name: check["status"] for name, check in self.checks().items()}

    def checks(self):
        found = json.loads((self.results / "results.json").read_text(encoding="utf-8"))
        return {check["name"]: check for check in found["checks"]}

    def expect_logs_in_each_precision(self):
        for name, precision, suffixes in (
                ("gpu_tests", "fp32", [".log"]),
                ("cuda_kernel_tests", "fp32", [".log", ".racecheck.log", ".memcheck.log"]),
                ("cuda_kernel_tests_in_bf16", "bf16", [".log", ".racecheck.log",
                                                       ".memcheck.log"])):
            for suffix in suffixes:
                log = (self.results / f"{name}{suffix}").read_text(encoding="utf-8")
                self.assertEqual(log, f"in {precision}\n")


class Run(Tree):
    def test_checks_measures_and_prints_a_table(self):
        done = self.run_tool()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.statuses(), {**dict.fromkeys(STAGES, "passed"), **NO_PYTORCH})
        self.assertEqual(list(self.checks()), STAGES)
        self.assertEqual(done.stdout, (self.results / "summary.md").read_text(encoding="utf-8"))
        self.assertTrue(done.stdout.startswith("# Spillway on NVIDIA H200\n"))
        for row in ("| GPU memory, free | 80.0 GiB of cuda:0 (NVIDIA H200, 141.0 GiB) | |",
                    "left out: steps in bf16, steps in tf32\\",
                    "| gpt trains, managed | loss 1.500000 | ok |",
                    "| tests with a GPU | 6 run, 0 failed, 3 skipped | ok |",
                    "| tests of our kernels under racecheck | 4 run, 0 failed, 2 skipped | ok |",
                    "| runs with the resident run's bits, bf16 | 7 of 7 | ok |",
                    "| link, copy: in / out / both at once | 50.0 / 50.0 / 50.0 GB/s, one way at a "
                    "time, latency 40.0 us | |",
                    "| launch beside prefetch out: call / longest / done / longest | 4.0 / 900.0 / "
                    "4.0 / 900.0 us | |",
                    "| resnet50, batch 256, joint (managed) at 40%, discards on | 120.0 ms, 800 "
                    "images/s, 1.50 of resident; predicted 100.0 ms, measured +20 % (the prediction "
                    "is off) | |",
                    "| vgg16, batch 128, joint (copy) at 40%, graph off | 1 B is too small | |",
                    "| resnet50 bf16, batch 256, convolution: ms, ours / PyTorch's | 2.00 / not "
                    "measured | |"):
            self.assertIn(row, done.stdout)
        for name in ("report.html", "timelines-train-vgg16-graph-off",
                     "profile-resnet50-256-bf16-classes-managed.json"):
            self.assertTrue((self.results / name).exists(), name)
        self.expect_logs_in_each_precision()

    def test_a_failed_stage_stops_only_what_needs_it(self):
        done = self.run_tool("--quick", fake="test-fails")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(), {**QUICK, "tests": "failed"})
        self.assertIn("| tests | tests with a GPU failed; see gpu_tests.log, "
                      "cuda_kernel_tests.log, cuda_kernel_tests_in_bf16.log | FAILED |", done.stdout)

    def test_what_needs_a_failed_stage_is_left_out_and_says_so(self):
        done = self.run_tool("--quick", fake="managed:loss=1.25")
        self.assertEqual(done.returncode, 1)
        left_out = dict.fromkeys(["identity", "steady"], "left out")
        self.assertEqual(self.statuses(), {**QUICK, **left_out, "trains managed": "failed"})
        self.assertIn("| steady | it needs trains managed, which failed | |", done.stdout)
        # What trains by copies is measured all the same.
        self.assertIn("| resnet50, batch 64, joint (copy) at 40% | 1 B is too small | |",
                      done.stdout)
        self.assertNotIn("joint (managed)", done.stdout)

    def test_networks_that_do_not_train_do_not_stop_the_others(self):
        for fake, words in (("copy:fail", "there is no room"),
                            ("copy:loss=1.75", "and the host's are [1.5, "),
                            ("copy:loss=1.5001", "and the resident run's are [1.5, ")):
            with self.subTest(fake):
                done = self.run_tool("--stage", "trains resident", "--stage", "trains copy",
                                     fake=fake)
                self.assertEqual(done.returncode, 1)
                check = self.checks()["trains copy"]
                self.assertEqual([row[2] for row in check["rows"]], ["FAILED"] * 3)
                self.assertIn(words, check["rows"][2][1])
                shutil.rmtree(self.results)

    def test_a_stage_runs_what_it_needs_first(self):
        self.assertEqual(self.run_tool("--stage", "large", "--quick").returncode, 0)
        self.assertEqual(list(self.checks()), [*TRAINS, "resnet50", "large"])

    def test_a_second_run_goes_on_with_what_has_not_passed(self):
        self.run_tool("--quick", fake="test-fails")
        done = self.run_tool("--quick")
        self.assertEqual(done.returncode, 0, done.stderr)
        begun = re.compile("^(.*) [.]{3}$", re.MULTILINE)
        self.assertEqual(begun.findall(done.stderr),
                         ["tests", *(name for name in STAGES if QUICK[name] == "left out")])
        self.assertEqual(self.statuses(), QUICK)
        self.assertEqual(begun.findall(self.run_tool("--quick", "--stage", "link").stderr),
                         ["link"])

    def test_leaves_out_what_it_has_no_time_for(self):
        done = self.run_tool("--minutes", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.statuses(), dict.fromkeys(STAGES, "left out"))
        self.assertIn("| memcheck | it takes 20 s or more, and 0 s are left | |", done.stdout)

    def test_a_failed_stage_that_has_no_time_in_a_second_run_has_still_failed(self):
        self.run_tool("--quick", fake="test-fails")
        before = self.checks()
        done = self.run_tool("--quick", "--minutes", "0.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tests: failed before; it takes 20 s or more, and 0 s are left\n",
                      done.stderr)
        self.assertEqual(self.checks()["tests"], before["tests"])

    def test_a_failed_stage_that_is_ended_in_a_second_run_has_still_failed(self):
        self.be_impatient()
        self.run_tool("--stage", "link", fake="link:fails")
        before = self.checks()
        self.assertEqual(before["link"]["status"], "failed")
        done = self.run_tool("--stage", "link", "--minutes", "0.05", fake="link:hangs")
        self.assertEqual((done.returncode, self.checks()), (1, before))

    def test_takes_nothing_over_from_a_run_in_other_circumstances(self):
        self.assertEqual(self.run_tool("--quick", "--stage", "facts", fake="test-fails").returncode,
                         0)
        path = self.results / "results.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        card = {**found["gpu"], "description": "cuda:0 (NVIDIA L4, 22.0 GiB)"}
        for other, words in (({"quick": False}, "by another choice of --quick"),
                             ({"commit": "another"}, "at another commit"),
                             ({"has_local_changes": True}, "with other local changes"),
                             ({"gpu": card}, "on another GPU")):
            with self.subTest(words):
                path.write_text(json.dumps({**found, **other}), encoding="utf-8")
                done = self.run_tool("--quick", "--stage", "link")
                self.assertEqual(list(self.checks()), ["link"])
                self.assertIn(f"has was found {words}; it does not count\n", done.stderr)
        path.write_text(json.dumps({**found, "load_at_start": 99}), encoding="utf-8")
        self.run_tool("--quick", "--stage", "link")
        self.assertEqual(list(self.checks()), ["facts", "link"])

    def test_leaves_out_networks_that_no_memory_mode_trains(self):
        done = self.run_tool("--quick", "--stage", "vgg16", fake="copy:fail managed:fail")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.statuses(), {"trains resident": "passed", "trains copy": "failed",
                                           "trains managed": "failed", "vgg16": "left out"})
        self.assertIn("| vgg16 | it needs trains copy or trains managed, and neither has passed |",
                      done.stdout)

    def be_impatient(self):
        """From now on stages begin however little time is left, and programs end in a second."""
        for name, line in (("gpu_bench.py", r"^GRACE = \d+"), ("stages.py", r"least: float = \d+")):
            self.replace(f"tools/gpu/{name}", line, lambda found: re.sub(r"\d+", "1", found[0]))
        self.replace("tools/gpu/stages.py", r'(Stage\("link", .*), \d+, \d+\)', r"\1, 0, 90)")

    def replace(self, name, line, by):
        text, count = re.subn(line, by, (self.root / name).read_text(encoding="utf-8"),
                              flags=re.MULTILINE)
        self.assertEqual(count, 1, line)
        self.write(name, text)

    def test_ends_a_program_when_the_time_is_up(self):
        self.be_impatient()
        done = self.run_tool("--stage", "link", "--minutes", "0.05", fake="link:hangs")
        self.assertEqual(done.returncode, 0, done.stderr)
        link = self.checks()["link"]
        self.assertEqual((link["status"], link["reason"]),
                         ("left out", "there was no time left for all of it"))

    def test_has_written_what_was_done_when_it_is_stopped(self):
        command, environment = self.command("run", "--results", self.results, fake="link:hangs")
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as tool:
            for line in tool.stderr:
                if line == "link ...\n":
                    break
            tool.terminate()
            tool.stderr.read()
            self.assertEqual(tool.wait(), 130)
        before = STAGES[:STAGES.index("link")]
        self.assertEqual(self.statuses(), {**dict.fromkeys(before, "passed"), "link": "running"})
        summary = (self.results / "summary.md").read_text(encoding="utf-8")
        self.assertIn("| link | it was stopped | |", summary)

    def test_names_the_log_of_the_precision_that_failed(self):
        done = self.run_tool("--stage", "tests", fake="bf16-fails")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| tests | tests with a GPU failed; see cuda_kernel_tests_in_bf16.log | "
                      "FAILED |", done.stdout)

    def test_fails_where_the_sanitizer_finds_a_race(self):
        done = self.run_tool("--stage", "racecheck", "--stage", "memcheck", fake="race")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| tests of our kernels under racecheck failed; see cuda_kernel_tests."
                      "racecheck.log, cuda_kernel_tests_in_bf16.racecheck.log | FAILED |",
                      done.stdout)
        self.assertEqual(self.checks()["memcheck"]["status"], "passed")

    def test_does_one_stage_and_writes_json(self):
        done = self.run_tool("--stage", "link", "--quick", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([check["name"] for check in json.loads(done.stdout)["checks"]], ["link"])
        self.assertEqual(self.run_tool("--stage", "sped").returncode, 2)

    def test_stops_with_a_sentence_where_there_is_no_gpu(self):
        done = self.run_tool(fake="no-gpu")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines(), [
            f"{self.root}/tools/gpu/run: there is no usable GPU: there is no NVIDIA driver"])
        self.assertFalse(self.results.exists())

    def test_builds_the_program_where_there_is_none(self):
        program = self.root / "build" / "release" / "bin" / "spillway"
        program.unlink()
        self.write("path/cmake",
                   f"#!/bin/sh\n[ $1 = --preset ] || cp {self.root}/path/ctest {program}\n")
        self.assertEqual(self.run_tool("--quick", "--stage", "speed").returncode, 0)


class Pack(Tree):
    def test_makes_an_archive_that_runs_elsewhere(self):
        build = self.root / "build" / "release"
        for name in PROGRAMS:
            self.put(build / name, pathlib.Path("/bin/true"))  # a program with libraries
        self.assertIn("there is no", self.start("pack").stderr)  # libspillway_cuda.so
        self.put(build / "bin" / "libspillway_cuda.so", pathlib.Path("/bin/true"))
        golden = self.root / "tests" / "golden"
        golden.mkdir(parents=True)
        for name in ("x.net", "x.json"):
            (golden / name).write_text("", encoding="utf-8")
        done = self.start("pack")
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(self.root / "build" / "gpu" / "spillway-gpu.tar.gz") as tar:
            tar.extractall(self.root / "elsewhere")
        unpacked = self.root / "elsewhere" / "spillway-gpu"
        for name in ("x.net", "x.json"):
            self.assertTrue((unpacked / "tests" / "golden" / name).is_file(), name)
        for name in PROGRAMS:
            self.put(unpacked / "build" / "release" / name)
        (self.root / "path" / "ctest").unlink()  # there may be none
        done = self.start("run", "--results", self.results, "--stage", "correct", root=unpacked)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = self.checks()["tests"]["data"]["programs"]
        self.assertEqual([(run["name"], run["tests"]) for run in runs],
                         [("gpu_tests", 2), ("cuda_kernel_tests", 2),
                          ("cuda_kernel_tests_in_bf16", 2)])
        self.expect_logs_in_each_precision()

    def test_makes_no_archive_that_is_too_large(self):
        for name in (*PROGRAMS, "bin/libspillway_cuda.so"):
            self.put(self.root / "build" / "release" / name, pathlib.Path("/bin/true"))
        (self.root / "tests" / "golden").mkdir(parents=True)
        (self.root / "tests" / "golden" / "x.json").write_bytes(os.urandom(65 << 20))
        done = self.start("pack")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "is 65[.]. MiB, and may be 64 MiB\n$")
        self.assertFalse((self.root / "build" / "gpu" / "spillway-gpu.tar.gz").exists())


# Knows how the plug-in is built: of a source of its own and of another folder's library.
NINJA = """#!/bin/sh
root=$(dirname "$(dirname "$2")")
case "$4 $5" in
"commands bin/libspillway_cuda.so") cat <<END
/usr/bin/c++ -I$root -fPIC -Wall -Werror -o src/cuda/x.o -c $root/src/cuda/x.cpp
/usr/bin/c++ -fPIC -o nets/n.o -c $root/nets/n.cpp
: && cmake -E rm -f src/cuda/libx.a && /usr/bin/ar qc src/cuda/libx.a src/cuda/x.o && ranlib x && :
: && /usr/bin/c++ -shared -o bin/libspillway_cuda.so -Wl,--whole-archive src/cuda/libx.a \
-Wl,--no-whole-archive nets/libn.a && :
END
;;
deps*) printf 'src/cuda/x.o: #deps 2\n    %s\n    %s\n' $root/src/cuda/x.cpp $root/src/cuda/x.h ;;
esac
"""


class Rebuild(Tree):
    def setUp(self):
        super().setUp()
        build = self.root / "build" / "release"
        for name in (*PROGRAMS, "bin/libspillway_cuda.so"):
            self.put(build / name, pathlib.Path("/bin/true"))
        self.write("path/ninja", NINJA)
        for name, text in (("build/release/build.ninja", ""),
                           ("src/cuda/x.h", "inline int other() { return 2; }\n"),
                           ("src/cuda/x.cpp", '#include "src/cuda/x.h"\nint n();\n'
                            'extern "C" int sum() { return n() + other(); }\n'),
                           ("nets/n.cpp", "int n() { return 40; }\n")):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            self.write(name, text)
        (build / "nets").mkdir()
        for words in (["c++", "-fPIC", "-o", "n.o", "-c", self.root / "nets" / "n.cpp"],
                      ["ar", "qc", "libn.a", "n.o"]):
            subprocess.run(words, cwd=build / "nets", check=True)

    def unpacked(self):
        done = self.start("pack")
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(self.root / "build" / "gpu" / "spillway-gpu.tar.gz") as tar:
            tar.extractall(self.root / "elsewhere")
        shutil.rmtree(self.root / "src")  # nothing is taken from where it was packed
        shutil.rmtree(self.root / "nets")
        return self.root / "elsewhere" / "spillway-gpu"

    def test_builds_the_cuda_side_anew_from_the_archive(self):
        there = self.unpacked()
        (there / "src" / "cuda" / "x.h").write_text("inline int other() { return 3; }\n",
                                                    encoding="utf-8")
        done = self.start("rebuild", root=there)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("1 compilations and 1 links"), done.stdout)
        plug_in = ctypes.CDLL(there / "build" / "release" / "bin" / "libspillway_cuda.so")
        self.assertEqual(plug_in.sum(), 43)

    def test_says_what_does_not_compile(self):
        there = self.unpacked()
        (there / "src" / "cuda" / "x.h").write_text("typo\n", encoding="utf-8")
        done = self.start("rebuild", root=there)
        self.assertEqual(done.returncode, 1)
        self.assertIn("typo", done.stderr)


if __name__ == "__main__":
    unittest.main()
