"""What the operators of a graph cost: seconds, and bytes that only they see while they run.

Both are measured by running each operator alone over made-up operands, or modelled by a roofline.
"""

import time

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import flop_registry

from .allocations import Allocations

LONG = 0.05  # seconds; shorter operators run once more, when all of their code is loaded
FLOPS = 5e10  # a second, of a processor that nobody has measured
BANDWIDTH = 1e10  # bytes a second, likewise


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
    """Adds tasks, by signature, to what is known."""
    with (unset_fake_temporarily(), torch.no_grad(), torch.random.fork_rng(devices=[]),
          torch._C._DisableAutocast(), Allocations() as allocations):
        seconds = [seconds_of(task.node, allocations) for task in tasks.values()]
    for key, each, peak in zip(tasks, seconds, allocations.peaks(), strict=True):
        results = sum(b.size for b in set(tasks[key].writes) - set(tasks[key].reads))
        KNOWN[key] = each, max(0, peak - results)


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
    """The least of one or two runs, of which the first is marked."""
    args, kwargs = operands(node)
    allocations.mark()
    first = timed(node.target, args, kwargs)
    allocations.mark()
    return first if first > LONG else min(first, timed(node.target, args, kwargs))


def timed(operator, args, kwargs):
    """Seconds of one run."""
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
