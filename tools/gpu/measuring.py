"""What a stage does its measuring with: runs of programs within a time, and their figures."""

import json
import statistics
import subprocess
import time

WARM_UP = 3  # steps of a training that are not counted


class Failure(Exception):
    """A run that gave no result; the text is one sentence."""


class Bench:
    """Starts the machine's programs, each within what is left of the stage's time."""

    def __init__(self, machine, work, quick, gpu):
        self.machine = machine
        self.work = work  # folder of files that need not last
        self.quick = quick
        self.gpu = gpu  # what spillway devices says of it
        self.end = None
        self.profiles = {}

    def begin_stage(self, cap, limit):
        self.end = min(time.monotonic() + cap, limit)

    def time_left(self):
        return self.end - time.monotonic()

    def call(self, command, environment=None):
        """Runs a command and returns what it prints. Throws: Failure with its last words."""
        done = self.attempt(command, environment)
        if done.returncode != 0:
            words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise Failure(words[-1])
        return done.stdout

    def attempt(self, command, environment=None):
        """Runs a command, whatever comes of it, in the machine's environment unless another is
        given. Throws: Failure when it takes too long."""
        command = [str(word) for word in command]
        if self.time_left() <= 1:
            raise Failure("the stage's time is used up")
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False,
                                  env=environment or self.machine.environment,
                                  cwd=self.work, timeout=self.time_left())
        except subprocess.TimeoutExpired:
            raise Failure(f"{' '.join(command[:2])} was ended when the stage's time was used up"
                          ) from None

    def profile(self, workload, memory):
        """Times of a step, measured once for each workload and memory mode."""
        key = (*map(str, workload), memory)
        if key not in self.profiles:
            path = self.work / f"profile-{len(self.profiles)}.json"
            begin = time.monotonic()
            self.call([self.machine.program("spillway"), "profile", *GPU_FLAGS, *workload,
                       "--memory", memory, "--out", path])
            self.profiles[key] = (path, time.monotonic() - begin)
        return self.profiles[key][0]

    def train(self, workload, flags):
        """One `spillway train`: its command, its steps, and its summary."""
        command = ["train", *GPU_FLAGS, *map(str, [*workload, *flags])]
        begin = time.monotonic()
        said = self.call([self.machine.program("spillway"), *command, "--json", "-"])
        lines = [json.loads(line) for line in said.splitlines()]
        return {"command": command,
                "wall_seconds": time.monotonic() - begin,
                "steps": [line for line in lines if "step" in line],
                "summary": next(line["summary"] for line in lines if "summary" in line)}


# Never --oversubscribe; of unified memory at most 16 GiB and a quarter of what is free.
GPU_FLAGS = ["--device", "cuda", "--shared-gpu"]


def median_step(run):
    """Seconds of a step, the first ones left out."""
    seconds = [step["seconds"] for step in run["steps"]]
    return statistics.median(seconds[WARM_UP:] or seconds[1:] or seconds)


def spread(values):
    """The distance from the smallest to the largest, as a part of the median."""
    return (max(values) - min(values)) / statistics.median(values)


def brief(run):
    """What is kept of a training: the summary, and each step's figures without its counters."""
    keys = ("loss", "seconds", "stalled_seconds", "near_peak_bytes", "faults", "evictions")
    return {"command": " ".join(run["command"]), "wall_seconds": run["wall_seconds"],
            "summary": run["summary"],
            "steps": [{key: step[key] for key in keys if key in step} for step in run["steps"]]}
