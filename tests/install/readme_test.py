"""Runs the commands of README.md as printed, in their order, in one folder: in small, with the program of a
build (the folder SPILLWAY_BUILD). Runs the planner in Python of prefetch/planners/README.md, too.

  readme_test.py --time    runs them as they are, in build/examples, and prints the seconds of each one
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SPILLWAY_BUILD", ROOT / "build/release"))
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # as the README says
# Comes before the program: a training has a few small steps, and its weights are no good.
IN_SMALL = """#!/usr/bin/env bash
flags=()
for ((i = 1; i <= $#; ++i)); do
  case "$1 ${!i}" in
    "train --batch" | "train --warmup-steps") ((++i)) ;;
    "train --steps") ((++i)); flags+=(--steps $((${!i} / 100))) ;;
    "train --epochs") ((++i)); flags+=(--epochs 1 --train-samples 8) ;;
    *) flags+=("${!i}") ;;
  esac
done
[ "$1" != train ] || flags+=(--batch 4 --warmup-steps 0)
exec %s "${flags[@]}"
"""


def blocks(language, text=(ROOT / "README.md").read_text()):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def missing():
    """What the examples need and this machine lacks; None where all is there."""
    for file in ("/usr/share/datasets/fashion-mnist", "/usr/bin/bible", BUILD / "bin/libspillway_mpi.so"):
        if not pathlib.Path(file).exists():
            return file
    if shutil.which("mpirun") is None:
        return "mpirun"
    if subprocess.run(["/usr/bin/python3", "-c", "import PIL"], capture_output=True).returncode != 0:
        return "Pillow"
    return None


def make_folder(root):
    """A tree whose build is made, and whose program trains in small."""
    (root / "tools").mkdir()
    (root / "build/release/bin").mkdir(parents=True)
    (root / "tools/image_folder").symlink_to(ROOT / "tools/image_folder")
    scripts = {"tools/setup": "#!/bin/sh\n", "tools/quickstart": "#!/bin/sh\n",
               "build/release/bin/spillway": IN_SMALL % (BUILD / "bin/spillway")}
    for path, text in scripts.items():
        (root / path).write_text(text)
        (root / path).chmod(0o755)


class Readme(unittest.TestCase):
    def test_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), 120)

    def test_program_is_that_of_the_test_install(self):
        program = (ROOT / "tests/install/train_lenet.cpp").read_text()
        self.assertEqual(len(blocks("cpp")), 1)
        self.assertIn(blocks("cpp")[0], program)


class Commands(unittest.TestCase):
    def test_run_in_order(self):
        lacked = missing()
        if lacked:
            print(f"skipped: there is no {lacked}; 'tools/setup --examples' installs what the commands need",
                  file=sys.__stdout__)
            self.skipTest("no examples")
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            make_folder(root)
            environment = {**os.environ, **AS_ROOT, "HOME": name, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
            result = subprocess.run(["bash", "-exc", "".join(blocks(""))], cwd=root, env=environment,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, errors="replace")
            self.assertEqual(result.returncode, 0, result.stdout[-3000:])
            made = {path.name for path in (root / "build/examples").iterdir()}
            self.assertEqual(made, {
                "clothes", "clothes-run", "lenet-run", "lenet.json", "report.html", "bible.txt", "bible-run",
                "resnet18.safetensors", "tuned-run", "tuned.onnx", "ranks-run"})


class PlannerInPython(unittest.TestCase):
    def test_keeps_its_budget(self):
        page = (ROOT / "prefetch/planners/README.md").read_text()
        page = page.split("\n## In Python\n")[1].split("\n## ")[0]
        environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
        with tempfile.TemporaryDirectory() as name:
            pathlib.Path(name, "planner.py").write_text(blocks("python", page)[0])
            subprocess.run(["bash", "-exc", blocks("", page)[0]], cwd=name, env=environment, check=True)
            self.assertTrue(json.loads(pathlib.Path(name, "timeline.json").read_text()))
            figures = json.loads(subprocess.run(
                "spillway plan --net resnet18 --image-size 64 --batch 32 --plan plan.json --json -".split(),
                cwd=name, env=environment, check=True, capture_output=True).stdout)
            self.assertEqual(figures["planner"], "longest-gap")
            self.assertLess(figures["peak_bytes"], 0.8 * figures["resident_bytes"])
            self.assertGreater(figures["offloaded_bytes"], 0)


def measure():
    failed = False
    os.environ.update(AS_ROOT)
    os.environ["PATH"] = f"{BUILD / 'bin'}:{os.environ['PATH']}"
    os.chdir(ROOT)
    for command in "".join(blocks("")).splitlines():
        if "cd build/examples" in command:
            shutil.rmtree("build/examples", ignore_errors=True)
        start = time.monotonic()
        result = subprocess.run(["bash", "-c", command], stdout=subprocess.DEVNULL)
        failed = failed or result.returncode != 0
        print(f"{time.monotonic() - start:7.1f} s  status {result.returncode}  {command}", flush=True)
        if "cd build/examples" in command:
            os.chdir("build/examples")
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1:] == ["--time"]:
        measure()
    else:
        unittest.main()
