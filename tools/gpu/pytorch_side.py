"""Resident steps beside PyTorch's, and their operations beside those that its profiler names."""

import json
import pathlib
import re
import statistics
import subprocess
import sys

from card import own_environment
from gpu_bench import ROOT, WARM_UP, Failure, NotHere, median_step, wall_clock_step

TORCH_STEP = pathlib.Path(__file__).resolve().parent / "torch_step.py"
WAYS = {"eager": [], "compiled": ["--compile"]}
KINDS = ["convolution", "batch norm", "linear", "pool", "element-wise", "update", "other"]
# By the end of a task's name, then by its layer's.
OUR_KINDS = [("update", r"\.update$|\.accumulate$"),
             ("other", r"^load$|^loss\."),
             ("linear", r"^(fc|linear|classifier)[^.]*\."),
             ("pool", r"pool[^.]*\.(forward|backward)$"),
             ("batch norm", r"(bn|norm)[^.]*\.|downsample\.1\."),
             ("element-wise", r"\.gradient$|(add|relu|drop[^.]*)\.(forward|backward)$"),
             ("convolution", r"conv|downsample\.0\.|\.backward_(data|weights)$")]
# By PyTorch's names of operations: aten::cudnn_convolution, aten::threshold_backward.
THEIR_KINDS = [("batch norm", r"batch_norm"),
               ("pool", r"pool"),
               ("update", r"_foreach|_fused_sgd|optimizer"),
               ("convolution", r"conv"),
               ("linear", r"addmm|::mm$|linear"),
               ("element-wise",
                r"relu|elementwise|::add|clamp_min|threshold|copy_|triton|dropout|fill")]


def has_pytorch(bench):
    if bench.emulated:
        return False
    probe = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False,
                          env=own_environment(), cwd=ROOT).returncode == 0


def their_steps(bench, workload, steps, *flags):
    words = [*workload, "--steps", steps, "--lr", 0.0001, *flags]
    return json.loads(bench.call([sys.executable, TORCH_STEP, *words], own_environment()))


def expect_same_network(ours, theirs):
    if ours["parameters"] != theirs["parameters"]:
        raise Failure(f"the networks differ: {ours['parameters']} and {theirs['parameters']} "
                      "parameters")


def their_ways(bench, check, name, workload, steps, ours):
    """What PyTorch's steps say, by way. One that cannot be measured has a row that says so."""
    for way, flags in WAYS.items():
        try:
            theirs = their_steps(bench, workload, steps, *flags)
        except Failure as failure:  # a compiler may be missing
            check.row(f"{name}: PyTorch {way}", f"not measured: {failure}")
            continue
        expect_same_network(ours["summary"], theirs)
        yield way, theirs


def compare(bench, check, network, batch, precision):
    """Images a second of resident steps, by step and by the clock on the wall."""
    name = f"{network} {precision}, batch {batch}"
    workload = ["--net", network, "--batch", batch, "--precision", precision, "--classes", 1000]
    steps = 6 if bench.quick else 20
    ours = bench.train(workload, ["--memory", "resident", "--steps", WARM_UP + steps, "--lr",
                                  0.0001, "--profile", bench.profile(workload)])
    rates = [batch / median_step(ours), batch / wall_clock_step(ours)]
    found = check.data[name] = {"ours": ours, "images_per_second": rates[0],
                                "wall_clock_images_per_second": rates[1]}
    check.row(f"{name}: images/s resident, by step / wall clock",
              f"{rates[0]:.0f} / {rates[1]:.0f}")
    for way, theirs in their_ways(bench, check, name, workload, steps, ours):
        found[way] = theirs
        beside = [batch / statistics.median(theirs["seconds"]),
                  batch / theirs["wall_clock_seconds"]]
        check.row(f"{name}: PyTorch {way}'s", f"{beside[0]:.0f} / {beside[1]:.0f}, ours are "
                  f"{rates[0] / beside[0]:.2f} / {rates[1] / beside[1]:.2f} of it")


def steps_beside_pytorch(precision, batches):
    """The check in one precision."""
    def check_precision(bench, check):
        if not has_pytorch(bench):
            raise NotHere("PyTorch cannot use an emulated GPU" if bench.emulated
                          else f"{sys.executable} has no PyTorch with CUDA")
        for network, most in batches.items():
            compare(bench, check, *bench.network(network, most // (4 if bench.quick else 1)),
                    precision)
    return check_precision


def gpt2(bench, check):
    """The check of a language model: all near, and 40 % of it by copies, beside PyTorch's."""
    batch = 4 if bench.quick else 32
    workload = bench.emulated.GPT if bench.emulated else ["--net", "gpt2", "--batch", batch]
    workload = [*workload, "--precision", "bf16", "--optimizer", "adamw"]
    steps = 3 if bench.quick else 12
    name = f"gpt2 bf16, batch {batch}"
    for memory, budget in (("resident", []), ("copy", ["--budget", bench.budget("40%")])):
        run = check.data[memory] = bench.train(
            workload, ["--memory", memory, *budget, "--steps", WARM_UP + steps, "--lr", 0.0001,
                       "--profile", bench.profile(workload, "copy")])
        check.row(" ".join([f"{name}, {memory}", *budget[1:]]),
                  f"{1e3 * median_step(run):.1f} ms, near peak "
                  f"{run['summary']['near_peak_bytes'] / 2**30:.2f} GiB")
    if not has_pytorch(bench):
        return
    for way, theirs in their_ways(bench, check, name, workload, steps, check.data["resident"]):
        check.data[way] = theirs
        check.row(f"{name}: PyTorch {way}'s", f"{1e3 * statistics.median(theirs['seconds']):.1f} ms")


def kind_of(name, kinds):
    return next((kind for kind, pattern in kinds if re.search(pattern, name, re.IGNORECASE)),
                "other")


def by_kind(times, kinds):
    """Sums of {name: milliseconds}."""
    sums = dict.fromkeys(KINDS, 0.0)
    for name, time in times.items():
        sums[kind_of(name, kinds)] += time
    return sums


def our_operations(profile):
    """Milliseconds of each task of a profile, with its fastest algorithm."""
    return {task["task"]: min(task["duration_ns"].values()) / 1e6 for task in profile["tasks"]}


def operations(batches):
    """The check of single operations: ours as profiled, PyTorch's as its profiler says."""
    def check_operations(bench, check):
        network, most = next(iter(batches.items()))
        network, batch = bench.network(network, most // (4 if bench.quick else 1))
        workload = ["--net", network, "--batch", batch, "--precision", "bf16", "--classes", 1000]
        profile = json.loads(bench.profile(workload).read_text(encoding="utf-8"))
        ours = our_operations(profile)
        check.data["ours"] = {"milliseconds": ours, "by_kind": by_kind(ours, OUR_KINDS)}
        beside = dict.fromkeys(KINDS)
        if has_pytorch(bench):
            theirs = their_steps(bench, workload, WARM_UP, "--operations")
            times = {name: time / 1e3 for name, time in theirs["operations"].items()}
            beside = by_kind(times, THEIR_KINDS)
            check.data["pytorch"] = {"milliseconds": times, "by_kind": beside}
        for kind, time in check.data["ours"]["by_kind"].items():
            theirs = "not measured" if beside[kind] is None else f"{beside[kind]:.2f}"
            check.row(f"{pathlib.Path(network).name} bf16, batch {batch}, {kind}: ms, ours / PyTorch's",
                      f"{time:.2f} / {theirs}")
    return check_operations
