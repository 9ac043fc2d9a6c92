"""An optimizer whose state lies in far memory: spillway.optimizer()."""

import collections
import concurrent.futures
import threading

import torch

from ...library import Error
from ...sizes import byte_count, size_text
from .far_state import BUFFERS, FarState, parts_of

KINDS = (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop,
         torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.Adamax, torch.optim.NAdam,
         torch.optim.RAdam)
"""Those that update each element by itself, so that parts of a parameter have the whole's bits."""

LEAST_NEAR = 1 << 20


class FarOptimizer(torch.optim.Optimizer):
    """Takes the place of `plain`, whose parameter groups it shares: the same bits.

    State tensors of a parameter's shape are in far memory, and come near in parts while the part
    before them is updated by the plain optimizer's own code. Others, such as step counters, stay.

    Throws: Error for optimizers and parameters that this cannot be done for.
    """

    def __init__(self, plain, near, far, clip_norm, as_gradients_come):
        self.plain, self.far = plain, far
        self.clip_norm, self.as_gradients_come = clip_norm, as_gradients_come
        expect_elementwise(plain)
        super().__init__(plain.param_groups, plain.defaults)
        self.group_of = {p: group for group in self.param_groups for p in group["params"]}
        expect_dense(self.group_of)
        self.keys = state_keys(plain)
        self.near = near
        self.parts = collections.defaultdict(list)
        for part in parts_of(self.group_of, len(self.keys), near):
            self.parts[part.parameter].append(part)
        self.far_state = FarState([p for parts in self.parts.values() for p in parts],
                                  len(self.keys), far) if self.keys else None
        self.has_state = set()  # parameters
        self.scalars = {}  # small state by parameter
        self.lock = threading.RLock()  # backward passes of several threads may update parameters
        self.mover = concurrent.futures.ThreadPoolExecutor(1, "spillway optimizer")
        self.worker = type(plain)([torch.nn.Parameter(torch.empty(0))], **worker_options(plain))
        self.worker.steps_over_parts = True  # for those who watch optimizers
        self.adopt(plain.state)
        self.hooks = [hook_when_gradient_is_there(p, self.update_now)
                      for p in self.group_of] if as_gradients_come else []

    # ---- as any optimizer

    @torch.no_grad()
    def step(self, closure=None):
        """Updates all parameters that have a gradient; returns what `closure` does."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        due = [p for p in self.group_of if p.grad is not None]
        if self.clip_norm is not None and due:
            torch.nn.utils.clip_grad_norm_(due, self.clip_norm)
        self.update(due)
        return loss

    def state_dict(self):
        """In the plain optimizer's format, with all state in ordinary memory."""
        self.plain.state.clear()
        for parameter in self.group_of:
            if parameter in self.has_state:
                self.plain.state[parameter] = self.whole_state(parameter)
        found = self.plain.state_dict()
        self.plain.state.clear()
        return found

    def load_state_dict(self, state_dict):
        """A state_dict() of the plain optimizer's, or of one like this."""
        self.plain.load_state_dict(state_dict)
        self.param_groups = self.plain.param_groups
        self.group_of = {p: group for group in self.param_groups for p in group["params"]}
        self.has_state.clear()
        self.scalars.clear()
        self.adopt(self.plain.state)

    def add_param_group(self, param_group):
        """Throws: Error once the optimizer is made."""
        if hasattr(self, "far_state"):
            raise Error("parameters cannot be added to an optimizer whose state is far; add them "
                        "to the plain optimizer before spillway.optimizer()")
        super().add_param_group(param_group)

    # ---- state

    def adopt(self, state):
        """Takes over state of the plain optimizer, and empties that."""
        for parameter, values in list(state.items()):
            if not values:
                continue
            self.scalars[parameter] = {k: v for k, v in values.items() if k not in self.keys}
            for part in self.parts[parameter]:
                buffer = self.next_buffer()
                for key, into in zip(self.keys, buffer.tensors(part, len(self.keys))):
                    into.copy_(part.elements(laid_out_as(values[key], parameter)))
                self.far_state.write(part, buffer)
            self.has_state.add(parameter)
        state.clear()

    def whole_state(self, parameter):
        """As the plain optimizer would have it."""
        values = {**self.scalars[parameter]}
        for key in self.keys:
            values[key] = torch.empty_like(parameter, requires_grad=False)
        for part in self.parts[parameter]:
            if not self.keys:
                break
            buffer = self.next_buffer()
            self.far_state.read(part, buffer)
            for key, piece in zip(self.keys, buffer.tensors(part, len(self.keys))):
                part.elements(values[key]).copy_(piece)
        return values

    def next_buffer(self):
        """The one that was used longest ago, free."""
        buffer = self.far_state.buffers.pop(0)
        self.far_state.buffers.append(buffer)
        buffer.wait()
        return buffer

    # ---- updates

    @torch.no_grad()
    def update_now(self, parameter):
        """When its gradient is there, during the backward pass; some functions give none."""
        if parameter.grad is not None:
            self.update([parameter])
            parameter.grad = None

    def update(self, parameters):
        """One step of parameters that have gradients: a part is read while the one before it is
        updated, and written while the one after it is."""
        for parameter in parameters:
            expect_gradient(parameter)
        with self.lock:
            self.update_all(parameters)

    def update_all(self, parameters):
        """Requires: the lock is held."""
        if self.far_state is None:
            for part in (part for p in parameters for part in self.parts[p]):
                self.update_part(part.parameter, part, None)
            return
        parts = [part for p in parameters for part in self.parts[p]]
        coming = collections.deque()
        for number, part in enumerate(parts):
            for ahead in parts[number + len(coming):number + 2]:
                coming.append(self.bring(ahead))
            buffer = coming.popleft()
            buffer.wait()
            self.update_part(part.parameter, part, buffer)
            buffer.pending = self.mover.submit(self.far_state.write, part, buffer)
        for buffer in self.far_state.buffers:
            buffer.wait()

    def bring(self, part):
        """A buffer that a part's state is on its way to; what has no state yet is not read."""
        buffer = self.next_buffer()
        if part.parameter in self.has_state:
            buffer.pending = self.mover.submit(self.far_state.read, part, buffer)
        return buffer

    def update_part(self, parameter, part, buffer):
        """By the plain optimizer's own code; a parameter's counters move with its last part."""
        is_last = part is self.parts[parameter][-1]
        tensors = buffer.tensors(part, len(self.keys)) if buffer is not None else []
        piece = torch.nn.Parameter(part.elements(parameter), parameter.requires_grad)
        piece.grad = part.elements(laid_out_as(parameter.grad, parameter))
        group = self.worker.param_groups[0]
        group.update({k: v for k, v in self.group_of[parameter].items()
                      if k not in ("params", "foreach")})
        group["params"] = [piece]
        self.worker.state.clear()
        if parameter in self.has_state:
            counters = {k: v.clone() if isinstance(v, torch.Tensor) else v
                        for k, v in self.scalars[parameter].items()}
            self.worker.state[piece] = {**counters, **dict(zip(self.keys, tensors))}
        self.worker.step()
        after = self.worker.state[piece]
        for key, tensor in zip(self.keys, tensors):
            if after[key] is not tensor:
                tensor.copy_(after[key])
        if is_last:
            self.scalars[parameter] = {k: v for k, v in after.items() if k not in self.keys}
            self.has_state.add(parameter)
        self.worker.state.clear()


def hook_when_gradient_is_there(parameter, hook):
    """Registers it for a frozen parameter, too: a later requires_grad_() does not tell."""
    was_trained = parameter.requires_grad
    parameter.requires_grad_(True)
    handle = parameter.register_post_accumulate_grad_hook(hook)
    parameter.requires_grad_(was_trained)
    return handle


def laid_out_as(gradient, parameter):
    """The gradient with the parameter's strides."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter, requires_grad=False).copy_(gradient)


def worker_options(plain):
    """What makes an optimizer of one part."""
    known = {k: v for k, v in plain.defaults.items() if k != "decoupled_weight_decay"}
    return {**known, "foreach": False} if "foreach" in known else known


def state_keys(plain):
    """Names of the state that has a parameter's shape: tried on a small one."""
    probe = torch.nn.Parameter(torch.ones(2, 3))
    probe.grad = torch.ones(2, 3)
    worker = type(plain)([probe], **worker_options(plain))
    worker.param_groups[0].update({k: v for k, v in plain.param_groups[0].items()
                                   if k not in ("params", "foreach")})
    worker.step()
    return [key for key, value in worker.state[probe].items()
            if isinstance(value, torch.Tensor) and value.shape == probe.shape]


def expect_elementwise(plain):
    """Throws: Error."""
    if not isinstance(plain, torch.optim.Optimizer):
        raise Error(f"{type(plain).__name__} is no torch.optim.Optimizer; give one that is made of "
                    "the model's parameters")
    if type(plain) not in KINDS:
        raise Error(f"{type(plain).__name__} is not known to update each element by itself; state "
                    f"can be far for {', '.join(kind.__name__ for kind in KINDS)}")
    if len({frozenset(state_keys_of(plain, g)) for g in plain.param_groups}) > 1:
        raise Error("the groups of this optimizer keep different state; make one optimizer of each")


def state_keys_of(plain, group):
    """What decides which state a group has."""
    return [(k, bool(group[k])) for k in ("amsgrad", "momentum", "centered") if k in group]


def expect_dense(parameters):
    """Throws: Error."""
    for p in parameters:
        if p.device.type != "cpu" or p.is_complex() or p.layout != torch.strided:
            raise Error(f"a parameter is {p.dtype} on {p.device}; state can be far for real "
                        "parameters on the CPU")
        if not is_dense(p):
            raise Error(f"a parameter of shape {tuple(p.shape)} has gaps in memory; state can be "
                        "far for dense ones")


def is_dense(tensor):
    """Whether its elements are one stretch of memory, in whatever order."""
    expected = 1
    for stride, size in sorted((st, n) for st, n in zip(tensor.stride(), tensor.shape) if n > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def expect_gradient(parameter):
    """Throws: Error."""
    if parameter.grad.layout != torch.strided:
        raise Error("a gradient is sparse; state can be far where gradients are dense")


def optimizer(plain, near="64MiB", far=None, clip_norm=None, as_gradients_come=False):
    """As spillway.optimizer()."""
    size = byte_count(near)
    if size < LEAST_NEAR:
        raise Error(f"{size_text(size)} of near memory are too few for {BUFFERS} parts of the "
                    f"state; give {size_text(LEAST_NEAR)} or more")
    if clip_norm is not None and not clip_norm > 0:
        raise Error(f"clip_norm is {clip_norm}; give the largest norm of all gradients, above 0")
    if clip_norm is not None and as_gradients_come:
        raise Error("the norm of all gradients is known when all are there; leave out clip_norm or "
                    "as_gradients_come")
    return FarOptimizer(plain, size, far, clip_norm, as_gradients_come)
