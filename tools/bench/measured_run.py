"""Runs of the spillway program and of others, their figures, and where and of what they are."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "bin" / "spillway"
os.environ["SPILLWAY_CACHE"] = "off"  # each run measures, and leaves nothing in the home folder
INTERRUPTED = 130  # the exit status after Ctrl-C
SYSTEM_PYTHON = "/usr/bin/python3"
# As the tree's tests find it.
PYTHON_OF_PYTORCH_2 = os.environ.get("SPILLWAY_TORCH_PYTHON") or str(
    pathlib.Path.home() / ".cache" / "spillway" / "torch" / "bin" / "python")


class Failure(Exception):
    """A run that gave no result; the text is one sentence for the user."""


def find_program(path, how="tools/quickstart, or with"
                           " 'cmake --preset release && cmake --build --preset release'"):
    """The program at `path`; exits with a sentence on `how` to build it when there is none."""
    program = pathlib.Path(path).resolve()
    if not program.is_file() or not os.access(program, os.X_OK):
        sys.exit(f"{sys.argv[0]}: there is no program {program}: build it with {how}")
    return program


def call(command, environment=None):
    """Runs a command and returns what it prints. Throws: Failure with its last words.

    What it trains or measures is the host, also where there is a GPU.
    """
    if command[1] in ("train", "profile") and "--device" not in command:
        command = [*command, "--device", "host"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=environment, cwd=ROOT, check=False)
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failure(words[-1])
    return done.stdout


def train(program, options):
    """One `spillway train`: its command, its steps and its summary."""
    command = ["train", *map(str, options)]
    begin = time.monotonic()
    lines = [json.loads(line) for line in call([program, *command, "--json", "-"]).splitlines()]
    return {"command": command,
            "wall_seconds": time.monotonic() - begin,
            "steps": [line for line in lines if "step" in line],
            "summary": next(line["summary"] for line in lines if "summary" in line)}


def sweep(program, **options):
    """The points of a sweep with these flags: net="vgg16", budgets=12, planners=["greedy"]."""
    words = [program, "sweep", "--json", "-"]
    for name, value in options.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        words += ["--" + name.replace("_", "-"), text]
    return json.loads(call(words))["points"]


def planners_of(program):
    """The names of all planners there are."""
    return [point["planner"] for point in sweep(program, net="lenet", batch=8, budgets="100%")]


def result_of(run):
    """What may not depend on memory: all losses, and the weights at the end."""
    return [step["loss"] for step in run["steps"]], run["summary"]["weights_sha256"]


def expect_same_network(contestants):
    """Exits with a sentence unless all runs trained as many parameters."""
    counts = {run["parameters"] for c in contestants for run in c["runs"]}
    if len(counts) > 1:
        sys.exit(f"{sys.argv[0]}: the networks differ: they have {counts} parameters")


def circumstances(program):
    """Date, commit and device of what is measured."""
    return {**surroundings(), "devices": json.loads(call([program, "devices", "--json", "-"]))}


def heading(about):
    """The machine, the commit and the date of results."""
    return (f"{about['processor']}, {about['processors']} processors, commit {about['commit']}, "
            f"{about['date']}")


def surroundings():
    """Date, commit and processor, for what does not run the program."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": git("rev-parse", "HEAD"),
            "has_local_changes": bool(git("status", "--porcelain", "--untracked-files=no")),
            "processor": processor_name(),
            "processors": len(os.sched_getaffinity(0)),
            "load_at_start": os.getloadavg()[0]}


def interrupted():
    """Says so, and returns the exit status."""
    print(f"\n{sys.argv[0]}: interrupted", file=sys.stderr)
    return INTERRUPTED


def git(*words):
    try:
        return call(["git", *words]).strip()
    except (Failure, OSError):
        return None  # a copy without history


def processor_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return os.uname().machine


def need_pytorch(python):
    """Its version. Installs what lacks; exits with a sentence when there is no PyTorch then."""
    if python == SYSTEM_PYTHON and subprocess.call([ROOT / "tools" / "setup", "--bench"]) != 0:
        sys.exit(f"{sys.argv[0]}: PyTorch is not installed, see above; or name another Python that "
                 "has it with --python")
    try:
        return call([python, "-c", "import torch; print(torch.__version__)"]).strip()
    except (Failure, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {python} has no PyTorch: {error}")


def need_pytorch_2(python):
    """The versions of PyTorch and what models come from; exits with a sentence where one lacks."""
    names = "torch", "torchvision", "transformers"
    program = "\n".join(f"import {name}; print({name}.__version__)" for name in names)
    try:
        return dict(zip(names, call([python, "-c", program]).split()))
    except (Failure, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {python} does not load {', '.join(names)} ({error}); tools/setup "
                 "--torch installs them, or name a Python that has them with --python")
