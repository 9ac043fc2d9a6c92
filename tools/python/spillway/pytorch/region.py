"""One graph that Dynamo captured, run under a plan that is made when it is first called."""

import gc
import warnings

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.fx.graph import _BoxedCodeGen

from .held import live_tensors, optimizer_need, optimizer_of, storages
from .step_graph import StepGraph
from .step_trace import Surroundings
from .unsupported import Unsupported

SIZES_CHANGE = ("sizes change from call to call; torch.compile(model, dynamic=False, ...) plans "
                "for each size")
SEVERAL_GRAPHS = ("the model is cut into several graphs (TORCH_LOGS=graph_breaks says where), and "
                  "only the first is planned")


class Region:
    """A graph module; call it as the module.

    It plans for each of two situations: gradients are there already when the forward pass begins
    (accumulation, or zero_grad() afterwards), or not. Without gradients it runs as it is.
    """

    def __init__(self, module, owner):
        self.module, self.owner = module, owner
        self.compiled = {}  # by whether gradients are there
        self.plans = {}
        self.parameters = frozenset()  # their id()

    def __call__(self, *args):
        if not torch.is_grad_enabled() or not any(needs_gradient(a) for a in args):
            return self.module(*args)
        if not all(isinstance(a, torch.Tensor) for a in args):
            return self.owner.hooked(self.module, args, SIZES_CHANGE)
        if self.owner.is_first(self):
            key = any(a.is_leaf and a.grad is not None for a in args)
            if key not in self.compiled:
                self.compiled[key] = self.compile(args, key)
            return self.compiled[key](*args)
        return self.owner.hooked(self.module, args, SEVERAL_GRAPHS)

    def compile(self, args, key):
        """What runs the graph under its plan; by hooks where there can be none."""
        surroundings = surroundings_of(args, self.owner.options)
        self.parameters = frozenset(id(a) for a in args if needs_gradient(a))

        def partition(joint, inputs, *, num_fwd_outputs, **others):
            for node in joint.graph.nodes:
                node.meta.pop("recompute", None)  # of torch.utils.checkpoint: the plan decides
            forward, backward = default_partition(
                joint, inputs, num_fwd_outputs=num_fwd_outputs, **others)
            step = StepGraph(forward, backward, num_fwd_outputs)
            self.plans[key] = self.owner.plan(step, surroundings)
            return self.plans[key].write(self.owner.options.far)

        backend = aot_autograd(fw_compiler=in_written_order, bw_compiler=in_written_order,
                               partition_fn=partition)
        try:
            return backend(self.module, list(args))
        except Unsupported as why:
            reason = str(why)
            return lambda *args: self.owner.hooked(self.module, args, reason)


def needs_gradient(value):
    return isinstance(value, torch.Tensor) and value.requires_grad


def surroundings_of(args, options):
    """What there is beside the graph when it is first called."""
    gc.collect()
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    parameters = [a for a in inputs if a.is_leaf and a.requires_grad]
    live = storages(live_tensors("cpu"))
    for key in storages(inputs):
        live.pop(key, None)
    need = optimizer_need(options.optimizer or optimizer_of(parameters))
    return Surroundings(sum(live.values()) + need.state, need.update)


def in_written_order(module, inputs):
    """A graph's nodes one after another, by PyTorch's own kernels; operands go when they were used
    last."""
    del inputs
    module = fx.GraphModule(module, module.graph)
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()
    forward = module.forward

    def run(args):
        return forward(args)

    run._boxed_call = True
    return run


def warn_once(told, reason):
    """One warning for each reason."""
    if reason not in told:
        told.add(reason)
        warnings.warn(f"spillway: runs without a plan, by hooks on what autograd saves: {reason}",
                      stacklevel=2)
