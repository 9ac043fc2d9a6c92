"""A model that torch.compile(backend="spillway") runs: its graphs, their plans, its far memory."""

import functools
import os
import shutil
import warnings

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.multiprocessing.reductions import StorageWeakRef

from ..planning import BudgetTooSmall
from ..space import Space
from .far.far_memory import FarMemory
from .graphs import fake_values, loss_only
from .graphs.step_graph import StepGraph
from .graphs.unsupported import Unsupported
from .graphs.written_order import in_written_order
from .options import Options
from .plan_step import plan_graphs
from .surroundings import surroundings_of

NEAR_OF_HOOKS = 64 << 20  # bytes
MOST_PLANS = 16  # of one model: sizes that change all the time are not worth planning
WITHOUT_A_PLAN = "runs without a plan, by hooks on what autograd saves: "
SIZES_CHANGE = (f"sizes have changed from call to call {MOST_PLANS} times; pad the batches, or "
                "drop the last")
SEVERAL_GRAPHS = ("the model has several graphs, of which only the first is planned; "
                  "TORCH_LOGS=graph_breaks says where it is cut")
HOLDS_RESULTS = ("; in the step before, the program held what the model returns beside its loss: "
                 "keep the loss alone (loss = model(...).loss), and less is needed")
TWO_PASSES = ("a forward pass began before the backward pass of the one before it; the budget "
              "counts the activations of one (torch.no_grad() is for passes without a backward)")


class CompiledModel:
    """All graphs of one model under one set of options: the first is planned, others run by hooks.

    There is a plan for each situation that the graph runs in: training or eval(), gradients there
    already or not when the forward pass begins, and each size of the batch.
    """

    def __init__(self, given, root=None):
        self.given, self.root = given, root  # a weak reference to a module, or None
        self.name = "a step of PyTorch"
        self.first = {}  # parameters of the graph to plan, by is_training()
        self.calls = {}  # what runs a graph, by the graph and its situation
        self.plans = []
        self.budget = 0  # bytes: "60%" is of the largest step so far
        self.told = set()
        self.memory = self.hooks_space = None
        self.is_loss_all = True  # nothing else that the model returns is differentiated
        self.holds_results = False  # beside its loss, when the backward pass begins
        self.known = True, False  # these two, of all plans here
        self.watched = []  # weak references to storages to be gone by the backward pass
        self.passes = 0  # forward passes since the last backward pass

    @functools.cached_property
    def options(self):
        """Checked when the model is first called: what is wrong reaches the program as it is."""
        return Options(self.given)

    def is_training(self):
        """False after eval()."""
        module = self.root() if self.root is not None else None
        return module is None or module.training

    def call(self, region, args):
        """Runs a Region that needs gradients."""
        key = region, self.is_training(), situation(args)
        self.forget_other_plans()
        if key not in self.calls:
            self.calls[key] = self.compile(region, args)
        return self.calls[key](*args)

    def forget_other_plans(self):
        """Those made when something else was known of the results."""
        known = self.is_loss_all, self.holds_results
        if known != self.known:
            self.known = known
            self.calls.clear()
            self.plans.clear()

    def compile(self, region, args):
        """What runs a graph in the situation of `args`: under a plan, or else by hooks."""
        reason = self.reason_against(region, args)
        if reason is None:
            try:
                return self.planned(region, args)
            except Unsupported as why:
                reason = str(why)
        return lambda *args: self.hooked(region.module, args, reason, keep=args)

    def reason_against(self, region, args):
        """Why a graph is not planned; None where it is: what Dynamo captures of the same part of a
        model, for other sizes, has the same parameters."""
        part = frozenset(id(a) for a in args if is_parameter(a)) or region.code()
        if self.first.setdefault(self.is_training(), part) != part:
            return SEVERAL_GRAPHS
        return SIZES_CHANGE if len(self.calls) >= MOST_PLANS else None

    def planned(self, region, args):
        """What runs a graph under its plan. Throws: Unsupported; planning.BudgetTooSmall."""
        surroundings = surroundings_of(args, self.options)
        if self.hooks_space is not None:
            surroundings.held += NEAR_OF_HOOKS
        places = loss_only.results_beside_loss(region.module) if self.is_loss_all else []
        drops_results = bool(places) and not self.holds_results
        dropped = []  # places among the results of the forward graph

        def partition(joint, inputs, *, num_fwd_outputs, **others):
            fake_values.correct(joint.graph)
            for node in joint.graph.nodes:
                node.meta.pop("recompute", None)  # of torch.utils.checkpoint: the plan decides
            forward, backward = default_partition(
                joint, inputs, num_fwd_outputs=num_fwd_outputs, **others)
            step = StepGraph(forward, backward, num_fwd_outputs, drops_results)
            dropped.extend(step.dropped_places())
            return self.plan(step, surroundings)

        compiler = aot_autograd(
            fw_compiler=functools.partial(in_written_order, before=self.begin_forward,
                                          after=functools.partial(self.note_results, dropped)),
            bw_compiler=functools.partial(in_written_order, before=self.begin_backward),
            partition_fn=partition, keep_inference_input_mutations=True)
        if not places:
            return compiler(region.module, list(args))
        compiled = compiler(loss_only.without_gradients(region.module, places), list(args))
        return loss_only.LossOnly(compiled, places, functools.partial(self.run_again, region))

    def note_results(self, dropped, results):
        """A planned forward pass ends; begin_backward() asks what the program still holds."""
        self.watched = [StorageWeakRef(results[place].untyped_storage()) for place in dropped]

    def run_again(self, region, args):
        """The results of a graph, for the gradients of what the plan is without."""
        self.is_loss_all = False
        return self.hooked(region.module, args, loss_only.REASON, keep=args)

    def plan(self, step, surroundings):
        """The graphs that run a StepGraph within the budget. Throws: planning.BudgetTooSmall."""
        passage = self.memory.near if self.memory is not None else None
        refusal = None  # raised below, without a context whose frames hold tensors
        try:
            graphs = plan_graphs(step, self.name, self.options, surroundings, passage,
                                 self.budget)
        except BudgetTooSmall as why:
            refusal = why
        if refusal is not None:
            hint = HOLDS_RESULTS if self.holds_results else ""
            self.holds_results = False  # for a program that mends it, and goes on
            raise BudgetTooSmall(f"{refusal}{hint}", refusal.smallest)
        if graphs.passage and self.memory is None:
            self.memory = FarMemory(graphs.passage, self.options.far)
        self.budget = graphs.budget
        self.plans.append(graphs)
        return graphs.write(self.memory)

    def begin_forward(self):
        """A planned forward pass begins."""
        if self.passes > 0:
            self.tell(TWO_PASSES)
        self.passes += 1

    def begin_backward(self):
        """A planned backward pass begins."""
        self.passes = 0
        watched, self.watched = self.watched, []
        if not all(storage.expired() for storage in watched):
            self.holds_results = True  # the next step is planned with them

    def hooked(self, function, args, reason, keep):
        """Calls a function with what autograd saves in far memory, but for what is in `keep`."""
        from ..torch_hooks import SavedTensors  # pylint: disable=import-outside-toplevel
        self.tell(WITHOUT_A_PLAN + reason)
        if self.hooks_space is None:
            self.hooks_space = Space(near=NEAR_OF_HOOKS, capacity=free_bytes(self.options.far) // 2,
                                     far=self.options.far)
        kept = [k for k in keep if isinstance(k, (torch.Tensor, torch.nn.Module))]
        with SavedTensors(self.hooks_space, kept, 64 << 10):
            return function(*args)

    def tell(self, sentence):
        """Warns of it once."""
        if sentence not in self.told:
            self.told.add(sentence)
            warnings.warn(f"spillway: {sentence}", stacklevel=2)


def is_parameter(value):
    return isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad


def free_bytes(far):
    """What there is for far memory, in a folder or in RAM."""
    if far is not None:
        return shutil.disk_usage(far).free
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def situation(args):
    """What a plan of a graph depends on: sizes that change, and whether gradients are there."""
    sizes = tuple(a for a in args if not isinstance(a, torch.Tensor))
    return sizes, any(isinstance(a, torch.Tensor) and a.is_leaf and a.grad is not None
                      for a in args)
