"""What every check works with: the program, its runs on the GPU, and the rows of the summary."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from measured_run import ROOT, Failure, call

BUILD = ROOT / "build" / "release"
# Page faults that evict have been seen to hang a GPU for every program until it is restarted. With
# these limits the program takes at most 16 GiB of unified memory, and at most a quarter of what is
# free. --oversubscribe is never given.
GPU = ["--device", "cuda", "--managed-limit", "16GiB", "--managed-limit", "25%"]
HOST = ["--device", "host"]
FORBIDDEN = "--oversubscribe"
# Unified memory of a training step for each image at most: bf16, and for ResNet-18 fp32.
IMAGE_BYTES = {"resnet18": 25 << 20, "resnet50": 50 << 20, "vgg16": 50 << 20}
WARM_UP = 3  # first steps of a training, which are not timed
GRACE = 20  # seconds to end in, for a program that is told to


class NotHere(Exception):
    """What the stage needs is not on this machine; the text says what."""


class TimeIsUp(Exception):
    """The stage has no time left for this."""


@dataclasses.dataclass
class Check:
    """What one stage found. A row of the summary is: figure, value, verdict."""
    name: str
    status: str = "passed"  # or "failed", "left out", "running": then it was killed
    reason: str = ""
    seconds: float = 0
    rows: list = dataclasses.field(default_factory=list)
    data: dict = dataclasses.field(default_factory=dict)

    def row(self, figure, value, is_met=None):
        """`is_met`: None where nothing is judged."""
        self.rows.append([figure, value, {None: "", True: "ok", False: "FAILED"}[is_met]])

    def has_failed_row(self):
        return any(verdict == "FAILED" for _, _, verdict in self.rows)


@contextlib.contextmanager
def started(command, seconds, environment=None, output=subprocess.PIPE):
    """A program that is told to end after so many seconds, and made to a little later.

    Yields it and what stands for its errors. Throws at the end: TimeIsUp when it was told to end.
    """
    if seconds <= 0:
        raise TimeIsUp
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        program = subprocess.Popen([str(word) for word in command], stdout=output, text=True,
                                   stderr=errors if output == subprocess.PIPE else output,
                                   env=environment, cwd=ROOT)
        is_told = threading.Event()

        def tell():
            is_told.set()
            program.send_signal(signal.SIGINT)

        timers = [threading.Timer(seconds, tell),
                  threading.Timer(seconds + GRACE, program.kill)]
        for timer in timers:
            timer.start()
        try:
            yield program, errors
            program.wait()
        finally:
            for timer in timers:
                timer.cancel()
            if program.poll() is None:
                program.kill()
                program.wait()
        if is_told.is_set():
            raise TimeIsUp


def last_words(program, errors):
    errors.seek(0)
    words = errors.read().strip().splitlines()
    return words[-1] if words else f"exit status {program.returncode}"


class Bench:
    """Runs the program on the GPU, keeps to the time, and shares what several runs need."""

    def __init__(self, program, results, quick, gpu, seconds=float("inf"), emulated=None):
        """`emulated`: the module emulated_gpu where the GPU is a test double."""
        self.program = program
        self.results = results  # folder
        self.quick = quick
        self.emulated = emulated
        self.patience = emulated.PATIENCE if emulated else 1
        self.card = gpu["description"]
        self.free_bytes = gpu["available_memory_bytes"]
        self.end = self.deadline = time.monotonic() + seconds
        self.profiles = {}
        self.untrained = set()  # memory modes that do not train
        self.losses = {}  # of the first stages, by network and memory mode

    def begin_stage(self, most):
        """A stage begins, which may take at most so many seconds."""
        self.deadline = min(self.end, time.monotonic() + self.patience * most)

    def seconds_to_end(self):
        """Of all stages, less what a program may take to end."""
        return self.end - time.monotonic() - GRACE

    def seconds_left(self, most=float("inf")):
        """Of the stage, less what the program may take to end. Throws: TimeIsUp."""
        left = min(self.patience * most, self.deadline - time.monotonic() - GRACE)
        if left <= 0:
            raise TimeIsUp
        return min(left, threading.TIMEOUT_MAX - GRACE)

    def lines(self, command, environment=None, most=float("inf")):
        """What a program prints: each line, and when it came. Throws: Failure, TimeIsUp."""
        with started(command, self.seconds_left(most), environment) as (program, errors):
            lines = [(line, time.monotonic()) for line in program.stdout]
            program.wait()
            if program.returncode != 0:
                reason = last_words(program, errors)
        if program.returncode != 0:
            raise Failure(reason)
        return lines

    def call(self, command, environment=None, most=float("inf")):
        return "".join(line for line, _ in self.lines(command, environment, most))

    def spillway(self, *words, most=float("inf")):
        if FORBIDDEN in words:
            raise ValueError(f"{FORBIDDEN} may hang the GPU")
        return self.call([self.program, *words], most=most)

    def profile(self, workload, memory="managed"):
        """The file with the times of a step's tasks, which are measured once a workload."""
        key = (memory, *map(str, workload))
        if key not in self.profiles:
            path = self.results / f"profile-{name_of(workload)}-{memory}.json"
            self.spillway("profile", *GPU, *workload, "--memory", memory, "--out", path)
            self.profiles[key] = path
        return self.profiles[key]

    def train(self, workload, flags, device=GPU, most=float("inf")):
        """One `spillway train` of at most so many seconds: its command, its steps and its summary;
        each step's "at" is when its line came, on a clock of its own."""
        command = ["train", *device, *map(str, [*workload, *flags])]
        if FORBIDDEN in command:
            raise ValueError(f"{FORBIDDEN} may hang the GPU")
        steps, summary = [], None
        for line, moment in self.lines([self.program, *command, "--json", "-"], most=most):
            entry = json.loads(line)
            if "step" in entry:
                steps.append({**entry, "at": moment})
            summary = entry.get("summary", summary)
        if summary is None:
            raise Failure("a training ended without a summary")
        return {"command": command, "steps": steps, "summary": summary}

    def budget(self, usual):
        return self.emulated.BUDGET if self.emulated else usual

    def network(self, network, most):
        """What --net takes for a network, and its batch: the largest, at most `most`, whose unified
        memory keeps to the limit of GPU."""
        if self.emulated:
            return self.emulated.thin(network, self.results), self.emulated.BATCHES[network]
        limit = min(16 << 30, self.free_bytes // 4)
        while most > 1 and most * IMAGE_BYTES[network] > limit:
            most //= 2
        return network, most


def name_of(workload):
    """For file names: resnet50-256-bf16 of --net resnet50 --batch 256 --precision bf16."""
    words = list(map(str, workload))
    values = [pathlib.Path(words[words.index(flag) + 1]).stem
              for flag in ("--net", "--batch", "--precision")
              if flag in words]
    rest = [word.strip("-") for word in words[2 * len(values):] if word.startswith("--")]
    return "-".join([*values, *rest])


def is_within_budget(run):
    return run["summary"]["near_peak_bytes"] <= run["summary"]["budget_bytes"]


def median_step(run):
    """Seconds of a step that is not one of the first."""
    seconds = [step["seconds"] for step in run["steps"]]
    return statistics.median(seconds[WARM_UP:] or seconds)


def wall_clock_step(run):
    """Seconds from the end of one step to that of the next, whatever happens between them: the mean
    of all but the first."""
    moments = [step["at"] for step in run["steps"]]
    moments = moments[WARM_UP - 1:] if len(moments) > WARM_UP else moments
    if len(moments) < 2:
        return median_step(run)
    return (moments[-1] - moments[0]) / (len(moments) - 1)
