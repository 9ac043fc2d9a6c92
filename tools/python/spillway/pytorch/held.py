"""What a program holds beside a graph when it is called: other tensors, what its optimizers will
make, and what DistributedDataParallel has made."""

import copy
import gc
import warnings
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..library import Error
from .far.far_optimizer import FarOptimizer
from .graphs.step_trace import Surroundings
from .program_objects import LONGEST_WAIT, is_alone, objects_of, stillness

PART_OF_UPDATE = 2  # what kernels make for one part, of the near memory of three
COUNTER = "step"  # of updates, in an optimizer's state
RESERVE = 64 << 10  # bytes for what a program collects from call to call, such as its losses


def surroundings_of(args, options, late=(), longest_wait=LONGEST_WAIT):
    """The Surroundings of a call. `late` are optimizers that have stepped since a plan was made.
    Throws: ThreadsBusy after `longest_wait` seconds."""
    gc.collect()
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    parameters = [a for a in inputs if a.is_leaf and a.requires_grad]
    with stillness(longest_wait):
        live = storages(live_tensors("cpu", parameters))
        for key in storages(inputs):
            live.pop(key, None)
        buckets = bucket_bytes(parameters)
        optimizers = [*(options.optimizers or optimizers_of(parameters)), *late]
    need = need_of_all(optimizers)
    held = sum(live.values()) + need.state + buckets + RESERVE
    return Surroundings(held, need.update, optimizers)


def live_tensors(device, called=()):
    """All tensors of `device` that Python objects hold, and their gradients, but fake ones. Beside
    threads that may be about to let go of gradients, those that Python has not seen are left out,
    but for those of `called`, the leaves that a graph is called with."""
    found = [each for each in objects_of(torch.Tensor)
             if torch._C._has_storage(each) and not isinstance(each, FakeTensor)]
    found += [each.grad for each in (found if is_alone() else called)
              if each.requires_grad and not each._is_view()  # of views one may not always ask more
              and each.is_leaf and each.grad is not None]
    return [t for t in found if t.device.type == device and t.layout == torch.strided]


def storages(tensors):
    """Bytes of the tensors' storages, by storage."""
    sizes = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()
    return sizes


def bucket_bytes(parameters):
    """Of the buckets in which DistributedDataParallel exchanges gradients of any of these; no
    Python object holds them, unless gradients are views of them."""
    wanted, size = {id(p) for p in parameters}, 0
    for each in objects_of(DistributedDataParallel):
        exchanged = [p for p in each.module.parameters() if p.requires_grad]
        are_views = each.gradient_as_bucket_view and any(p.grad is not None for p in exchanged)
        if not are_views and any(id(p) in wanted for p in exchanged):
            size += sum(p.nbytes for p in exchanged)
    return size


def optimizers_of(parameters):
    """The optimizers that the program has made for them, without what is around or inside one."""
    wanted = {id(p) for p in parameters}
    found = [unwrapped(each) for each in objects_of(torch.optim.Optimizer)
             if any(id(p) in wanted for group in each.param_groups for p in group["params"])]
    inside = {id(each.plain) for each in found if isinstance(each, FarOptimizer)}
    return list({id(each): each for each in found if id(each) not in inside}.values())


def unwrapped(optimizer):
    """What does the work inside a wrapper, such as accelerate's."""
    inner = getattr(optimizer, "optimizer", None)
    return unwrapped(inner) if isinstance(inner, torch.optim.Optimizer) else optimizer


class OptimizerNeed:
    """Bytes of an optimizer: `state` beyond what it has now, and `update` at most during a step."""

    def __init__(self, state=0, update=0):
        self.state, self.update = state, update


def need_of_all(optimizers):
    """Of several, which step one after another. An optimizer whose step cannot be tried without
    memory is counted with what it has now, after a warning."""
    needs = []
    for optimizer in {id(o): o for o in map(unwrapped, optimizers)}.values():
        try:
            needs.append(optimizer_need(optimizer))
        except Error as error:
            warnings.warn(f"spillway: {error}; the budget counts only what it holds already",
                          stacklevel=2)
    return OptimizerNeed(sum(n.state for n in needs), max((n.update for n in needs), default=0))


def optimizer_need(optimizer):
    """Found by a step of a copy over tensors without memory.

    Throws: Error when the optimizer takes no such step.
    """
    if isinstance(optimizer, FarOptimizer):
        return OptimizerNeed(0, PART_OF_UPDATE * optimizer.near)  # its near memory is a tensor
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = tree_leaves(list(optimizer.state.values()))
    counters = counters_in(optimizer.state)
    shadows = {id(t): t.detach().clone() if id(t) in counters else without_memory(t)
               for t in [*parameters, *state] if isinstance(t, torch.Tensor)}
    has = bytes_in(optimizer.state)
    try:
        twin = twin_of(optimizer, shadows)
        for group in twin.param_groups:
            if group.get("fused"):  # has kernels for memory only, and the same state
                group["fused"] = False
        for parameter in parameters:
            shadow = shadows[id(parameter)]
            if parameter.requires_grad:
                shadow.grad = torch.empty_like(shadow)
        with AllocationCount() as count:
            type(twin).step(twin)
    except Exception as error:  # pylint: disable=broad-exception-caught
        raise Error(f"cannot tell what {type(optimizer).__name__} will hold: a step of it over "
                    f"tensors without memory fails ({str(error).splitlines()[0]})") from error
    grown = max(0, bytes_in(twin.state) - has)
    return OptimizerNeed(grown, max(0, count.peak - grown))


def twin_of(optimizer, shadows):
    """An optimizer of the same class over other tensors. Nothing but groups and state is taken
    over: a step that somebody has put on the instance may be bound to the real one."""
    twin = type(optimizer).__new__(type(optimizer))
    state = {"defaults": optimizer.defaults, "state": optimizer.state,
             "param_groups": optimizer.param_groups}
    twin.__setstate__(copy.deepcopy(state, dict(shadows)))
    return twin


def bytes_in(state):
    """Of an optimizer's state."""
    return sum(storages(t for t in tree_leaves(list(state.values()))
                        if isinstance(t, torch.Tensor)).values())


def counters_in(state):
    """Numbers in an optimizer's state that its code reads, as it reads no moments: by id. The
    moments of a parameter that is a number are numbers, too, and no counters."""
    return {id(value) for owner, values in state.items() if isinstance(values, dict)
            for name, value in values.items()
            if isinstance(value, torch.Tensor) and value.dim() == 0
            and (name == COUNTER or not isinstance(owner, torch.Tensor) or owner.dim() > 0)}


def without_memory(tensor):
    """A tensor of the same kind on the meta device."""
    shadow = torch.empty_like(tensor, device="meta")
    return torch.nn.Parameter(shadow, tensor.requires_grad) if isinstance(
        tensor, torch.nn.Parameter) else shadow.requires_grad_(tensor.requires_grad)


class AllocationCount(TorchDispatchMode):
    """Counts bytes of the storages that operators make, from when they are made until they go."""

    def __init__(self):
        super().__init__()
        self.current = self.peak = 0
        self.known = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        known = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        before = {t.untyped_storage()._cdata for t in known}
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.add(tensor.untyped_storage(), before)
        return result

    def add(self, storage, before):
        """A storage that is not among the operands' is new."""
        key = storage._cdata
        if key in self.known or key in before:
            return
        self.known[key] = size = storage.nbytes()
        self.current += size
        self.peak = max(self.peak, self.current)
        weakref.finalize(storage, self.remove, key)

    def remove(self, key):
        """The storage is gone."""
        self.current -= self.known.pop(key, 0)
