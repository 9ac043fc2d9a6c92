"""What the operators of a graph cost: seconds, and bytes that only they see while they run.

Both are measured by running each operator alone over made-up operands, or modelled by a roofline.
"""

import time

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from ...library import Error
from .allocations import Allocations, is_profiling
from .step_graph import Unsupported

LONG = 0.05  # seconds; shorter operators run once more, when all of their code is loaded
FLOPS = 5e10  # a second, of a processor that nobody has measured
BANDWIDTH = 1e10  # bytes a second, likewise


class ProfilerRuns(Error):
    """Operators are measured by PyTorch's profiler, and the program's own is running."""


KNOWN = {}  # seconds and bytes by signature: a second plan measures what is new in it


def measure(tasks):
    """Sets `seconds` and `workspace` of tasks. Operators of one name and layout are run once."""
    alike = {}
    for task in tasks:
        alike.setdefault(signature(task.node), []).append(task)
    measure_unknown({key: same[0] for key, same in alike.items() if key not in KNOWN})
    for key, same in alike.items():
        for task in same:
            task.seconds, task.workspace = KNOWN[key]


def measure_unknown(tasks):
    """Adds tasks, by signature, to what is known. Throws: ProfilerRuns."""
    if not tasks:
        return
    if is_profiling():
        raise ProfilerRuns("operators are measured at a model's first call, which takes PyTorch's "
                           "profiler, and another one is running; make the first call outside it")
    with (unset_fake_temporarily(), torch.no_grad(), torch.random.fork_rng(devices=[]),
          torch._C._DisableAutocast(), Allocations() as allocations):
        seconds = [seconds_of(task.node, allocations) for task in tasks.values()]
    peaks = iter(allocations.peaks())
    for key, each in zip(tasks, seconds, strict=True):
        peak = [next(peaks) for _ in each][-1]  # the first may allocate what stays
        results = sum(b.size for b in set(tasks[key].writes) - set(tasks[key].reads))
        KNOWN[key] = min(each), max(0, peak - results)


def model(tasks):
    """The same by a roofline, without running anything; workspaces stay unknown."""
    for task in tasks:
        size = sum(b.size for b in {*task.reads, *task.writes})
        count = flop_registry.get(task.node.target.overloadpacket)
        flops = 0
        if count is not None:
            args, kwargs = fx.map_arg((task.node.args, task.node.kwargs), value_of)
            flops = count(*args, **kwargs, out_val=task.node.meta["val"])
        task.seconds = max(size / BANDWIDTH, flops / FLOPS)


def value_of(node):
    """The fake value of an operand."""
    return node.meta.get("val")


def signature(node):
    """Equal for nodes that cost the same."""
    given = fx.map_arg((node.args, node.kwargs), value_of)
    return torch.get_num_threads(), str(node.target), str(tree_map(layout, given))


def layout(value):
    """What a kernel's cost depends on."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), tuple(value.stride()), value.dtype
    return value


def operands(node):
    """Made-up ones."""
    return tree_map(made_up, fx.map_arg((node.args, node.kwargs), value_of))


def seconds_of(node, allocations):
    """Of one run, or of two. Throws: Unsupported."""
    try:
        args, kwargs = operands(node)
        first = timed(node.target, args, kwargs, allocations)
        return [first] if first > LONG else [first, timed(node.target, args, kwargs, allocations)]
    except RuntimeError as why:
        raise Unsupported(f"{node.target} does not run alone ({str(why).splitlines()[0]})") from why


def timed(operator, args, kwargs, allocations):
    """Seconds of one run, whose allocations are a stretch."""
    with allocations.stretch():
        begin = time.perf_counter()
        operator(*args, **kwargs)
        return time.perf_counter() - begin


def made_up(value):
    """A tensor of a fake one's layout: ones where they may be, zeros where they may be indices."""
    if not isinstance(value, torch.Tensor):
        return value
    real = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    flat = real.new_empty(0).set_(real.untyped_storage())
    flat.fill_(1 if value.dtype.is_floating_point else 0)
    return real
