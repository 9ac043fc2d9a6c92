"""What every check works with: the program, its runs on the GPU, and the rows of the summary."""

import dataclasses
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from measured_run import ROOT, Failure, call, train

BUILD = ROOT / "build" / "release"
# Page faults that evict have been seen to hang a GPU for every program until it is restarted. With
# --shared-gpu the program takes at most 16 GiB of unified memory, and at most a quarter of what is
# free. --oversubscribe is never given.
GPU = ["--device", "cuda", "--shared-gpu"]
# Unified memory of a training step for each image at most: bf16, and for ResNet-18 fp32.
IMAGE_BYTES = {"resnet18": 25 << 20, "resnet50": 50 << 20, "vgg16": 50 << 20}
WARM_UP = 3  # first steps of a training, which are not timed


@dataclasses.dataclass
class Check:
    """What one check found. A row of the summary is: figure, value, verdict."""
    name: str
    status: str = "passed"
    reason: str = ""
    seconds: float = 0
    rows: list = dataclasses.field(default_factory=list)
    data: dict = dataclasses.field(default_factory=dict)

    def row(self, figure, value, is_met=None):
        """`is_met`: None where nothing is judged."""
        self.rows.append([figure, value, {None: "", True: "ok", False: "FAILED"}[is_met]])


class Bench:
    """Runs the program on the GPU, and keeps the times of tasks that several runs share."""

    def __init__(self, program, results, quick, gpu):
        self.program = program
        self.results = results  # folder
        self.quick = quick
        self.card = gpu["description"]
        self.free_bytes = gpu["available_memory_bytes"]
        self.profiles = {}

    def spillway(self, *words):
        return call([self.program, *words])

    def profile(self, workload):
        """The file with the times of a step's tasks, which are measured once a workload."""
        key = tuple(map(str, workload))
        if key not in self.profiles:
            path = self.results / f"profile-{len(self.profiles) + 1}.json"
            self.spillway("profile", *GPU, *workload, "--memory", "managed", "--out", path)
            self.profiles[key] = path
        return self.profiles[key]

    def train(self, workload, flags):
        """One `spillway train`: its command, its steps and its summary."""
        return train(self.program, [*GPU, *workload, *flags])

    def managed_batch(self, network, most):
        """The largest batch, at most `most`, whose unified memory keeps to the limit of GPU."""
        limit = min(16 << 30, self.free_bytes // 4)
        while most > 1 and most * IMAGE_BYTES[network] > limit:
            most //= 2
        return most


def is_within_budget(run):
    return run["summary"]["near_peak_bytes"] <= run["summary"]["budget_bytes"]


def median_step(run):
    """Seconds of a step that is not one of the first."""
    seconds = [step["seconds"] for step in run["steps"]]
    return statistics.median(seconds[WARM_UP:] or seconds)
