"""A model that torch.compile(backend="spillway") runs: its graphs, their plans, its far memory."""

import contextlib
import functools
import os
import shutil
import warnings
import weakref

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.convert_frame import compile_lock  # PyTorch captures one graph at a time
from torch._functorch.partitioners import default_partition
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

try:
    from torch._functorch._aot_autograd import graph_compile
except ImportError:  # its name in older ones
    from torch._functorch._aot_autograd import jit_compile_runtime_wrappers as graph_compile

from ..planning import BudgetTooSmall, is_relative
from ..sizes import size_text
from ..space import Space
from . import promises
from .far.far_memory import FarMemory
from .graphs import fake_values, loss_only
from .graphs.op_costs import ProfilerRuns
from .graphs.rewrite import in_written_order
from .graphs.step_graph import StepGraph, Unsupported
from .held import RESERVE, need_of_all, surroundings_of, unwrapped
from .options import Options
from .plan_step import plan_graphs
from .program_objects import MOMENT, ThreadsBusy, is_looked_at

NEAR_OF_HOOKS = 64 << 20  # bytes
MOST_PLANS = 16  # of one model: sizes that change all the time are not worth planning
MOST_RECOUNTED = 6  # plans that are made anew since the program holds more
MOST_OWED = 3  # calls in which the program cannot be counted, until it is told


class Run:
    """What runs a graph in one situation; `plan` is its PlannedGraphs, None where it has none."""

    def __init__(self, function, plan=None, surroundings=None):
        self.function, self.plan = function, plan
        self.held = surroundings.held if surroundings is not None else 0
        self.update = surroundings.update if surroundings is not None else 0

    def has_room_for(self, held, update):
        """Whether the budget is kept with so many bytes beside the graphs."""
        more = max(0, held - self.held) + max(0, update - self.update)
        return more <= self.plan.budget - self.plan.peak() + RESERVE


class ForwardPass:
    """A graph's, of `model`, whose backward pass may come: lives as long as that may. Called with
    a gradient of its results."""

    __torch_unserializable__ = True  # as hooks of tensors: no reason to warn when one is saved

    def __init__(self, model, run):
        self.model = weakref.ref(model)
        self.is_planned = run.plan is not None

    def last_as_long_as(self, results):
        """The autograd graph of these does."""
        for result in tree_leaves(results):
            if isinstance(result, torch.Tensor) and result.requires_grad and not result.is_leaf:
                result.register_hook(self)

    def __call__(self, gradient):
        """The backward pass begins; CompiledModel.end_backward() knows when a planned one ends."""
        model = self.model()
        if model is not None and not self.is_planned:
            model.passes.clear()


class CompiledModel:
    """All graphs of one model under one set of options: the first is planned, others run by hooks.

    There is a plan for each situation that the graph runs in: training or eval(), gradients there
    already or not when the forward pass begins, and each size of the batch.

    Thread safety: several threads may call the model; plans are made one after another.
    """

    def __init__(self, given, root=None):
        self.given, self.root = given, root  # a weak reference to a module, or None
        self.name = "a step of PyTorch"
        self.first = {}  # parameters of the graph to plan, by is_training()
        self.is_cut = False  # into several graphs
        self.cut_at = None  # parameters of the graph that showed it
        self.runs = {}  # by the graph and its situation
        self.calls = {}  # how many, likewise
        self.owed = {}  # how often other threads left no moment to count again, likewise
        self.plans = []
        self.budget = 0  # bytes: "60%" is of the largest step so far
        self.told, self.unkept = set(), []  # sentences; reasons why no budget is kept
        self.memory = self.hooks_space = None
        self.is_loss_all = True  # nothing else that the model returns is differentiated
        self.holds_results = False  # beside its loss, when the backward pass begins
        self.known = True, False  # these two, of all plans here
        self.watched = []  # weak references to storages to be gone by the backward pass
        self.passes = weakref.WeakSet()  # ForwardPasses since the last backward pass
        self.counted = weakref.WeakKeyDictionary()  # parameters of optimizers that are planned for
        self.late = weakref.WeakSet()  # optimizers that were not
        self.recounted = 0  # plans that were made anew for what the program holds
        self.graph_inputs = set()  # parameters that are arguments of a graph, by id

    @functools.cached_property
    def options(self):
        """Checked when the model is first called: what is wrong reaches the program as it is."""
        return Options(self.given)

    def is_training(self):
        """False after eval()."""
        module = self.root() if self.root is not None else None
        return module is None or module.training

    # ---- calls

    def call(self, region, args):
        """Runs a Region that needs gradients."""
        if torch._C._autograd._top_saved_tensors_default_hooks(False) is not None:
            self.graph_inputs.update(id(a) for a in args if is_parameter(a))
            self.tell_unkept(promises.OWN_HOOKS)
            return region.module(*args)
        key = region, self.is_training(), situation(args)
        self.forget_other_plans()
        self.forget_cut(region, args)
        run = self.runs.get(key)
        if run is not None and run.plan is not None:
            run = self.recounted_run(run, key, args)
        if run is None:
            with compile_lock:
                run = self.runs.get(key) or self.compile(key, region, args)
        self.calls[key] = self.calls.get(key, 0) + 1
        if self.passes and run.plan is not None:
            self.tell_unkept(promises.TWO_PASSES)
        this = ForwardPass(self, run)
        self.passes.add(this)
        results = run.function(*args)
        this.last_as_long_as(results)
        return results

    def recounted_run(self, run, key, args):
        """The run; None where the program holds too much for its plan now. Counted at calls 2, 3,
        5, 9, ..., or where other threads are busy then, at one of the next, unless another pass is
        open, whose activations are not the program's."""
        calls = self.calls.get(key, 0)
        is_due = is_looked_at(calls + 1) or key in self.owed
        if not is_due or self.passes or self.recounted > MOST_RECOUNTED:
            return run
        try:
            now = surroundings_of(args, self.options, self.late, longest_wait=MOMENT)
        except ThreadsBusy:
            self.owed[key] = self.owed.get(key, 0) + 1
            if self.owed[key] == MOST_OWED:
                del self.owed[key]
                self.tell_unkept(promises.BUSY)
            return run
        self.owed.pop(key, None)
        if run.has_room_for(now.held, now.update):
            return run
        self.recounted += 1
        if self.recounted > MOST_RECOUNTED:
            self.tell_unkept(promises.GROWS)
            return run
        if calls > 1:
            self.tell(promises.GROWN, size_text(max(now.held - run.held, 1)))
        self.forget_plans()
        return None

    def note_step_of(self, optimizer):
        """An optimizer of this model's parameters is about to step: plans that do not count it are
        made anew."""
        if not self.plans or self.counted.get(optimizer) == parameters_in(optimizer):
            return
        self.late.add(optimizer)
        self.counted[optimizer] = parameters_in(optimizer)
        need = need_of_all([optimizer])
        runs = [run for run in list(self.runs.values()) if run.plan is not None]
        if not all(run.has_room_for(run.held + need.state, need.update) for run in runs):
            self.tell(promises.LATE_OPTIMIZER)
            self.forget_plans()

    def forget_other_plans(self):
        """Those made when something else was known of the results."""
        known = self.is_loss_all, self.holds_results
        if known != self.known:
            self.known = known
            self.forget_plans()

    def forget_plans(self):
        """Makes all anew when they are needed."""
        self.runs.clear()
        self.owed.clear()
        self.plans.clear()

    # ---- plans

    def compile(self, key, region, args):
        """What runs a graph in the situation of `args`: under a plan, or else by hooks."""
        self.graph_inputs.update(id(a) for a in args if is_parameter(a))
        reason = self.reason_against(region, args)
        run = None
        if reason is None:
            try:
                run = self.planned(region, args)
            except Unsupported as why:
                reason = str(why)
            except ProfilerRuns:
                if self.budget == 0:
                    raise
                return Run(lambda *args: self.hooked(region.module, args, promises.PROFILED, args))
            except ThreadsBusy:
                return Run(lambda *args: self.hooked(region.module, args, promises.BUSY, args))
        self.runs[key] = run or Run(lambda *args: self.hooked(region.module, args, reason, args))
        return self.runs[key]

    def reason_against(self, region, args):
        """Why a graph is not planned; None where it is: what Dynamo captures of the same part of a
        model, for other sizes, has the same parameters. A part of a budget that is relative to a
        step's need would be that of a part of the step."""
        part = part_of(region, args)
        if self.first.setdefault(self.is_training(), part) != part:
            if self.passes:
                self.cut_at = part
                self.cut()
            elif not self.is_cut:
                self.first[self.is_training()] = part  # such as after a layer was thawed
        if self.is_cut and (is_relative(self.options.budget)
                            or self.first[self.is_training()] != part):
            return promises.SEVERAL_GRAPHS + promises.hint_of_ddp()
        return promises.SIZES_CHANGE if len(self.runs) >= MOST_PLANS else None

    def cut(self):
        """The model has more than one graph."""
        if not self.is_cut and is_relative(self.options.budget):
            self.forget_plans()
        self.is_cut = True

    def forget_cut(self, region, args):
        """Where the graph that showed a cut begins a pass itself, the model is not cut: the pass
        before had no backward pass, and its results are held."""
        if self.passes or self.cut_at is None or part_of(region, args) != self.cut_at:
            return
        self.first[self.is_training()], self.cut_at, self.is_cut = self.cut_at, None, False
        self.unkept = [why for why in self.unkept if not why.startswith(promises.SEVERAL_GRAPHS)]
        self.forget_plans()

    def planned(self, region, args):
        """The Run of a graph under its plan. Throws: Unsupported; planning.BudgetTooSmall."""
        surroundings = surroundings_of(args, self.options, self.late)
        self.counted.update((o, parameters_in(o)) for o in map(unwrapped, surroundings.optimizers))
        if self.hooks_space is not None:
            surroundings.held += NEAR_OF_HOOKS
        places = loss_only.results_beside_loss(region.module) if self.is_loss_all else []
        drops_results = bool(places) and not self.holds_results
        dropped = []  # places among the results of the forward graph
        captured = []  # graphs, once PyTorch has them

        def partition(joint, inputs, *, num_fwd_outputs, **others):
            captured.append(joint)
            fake_values.correct(joint.graph)
            for node in joint.graph.nodes:
                node.meta.pop("recompute", None)  # of torch.utils.checkpoint: the plan decides
            forward, backward = default_partition(
                joint, inputs, num_fwd_outputs=num_fwd_outputs, **others)
            step = StepGraph(forward, backward, num_fwd_outputs, drops_results)
            dropped.extend(step.dropped_places())
            return self.plan(step, surroundings)

        compiler = aot_autograd(
            fw_compiler=functools.partial(in_written_order,
                                          after=functools.partial(self.note_results, dropped)),
            bw_compiler=functools.partial(in_written_order, before=self.begin_backward,
                                          after=self.end_backward),
            partition_fn=partition, keep_inference_input_mutations=True)
        graph = (loss_only.without_gradients(region.module, places) if places
                 else region.module)
        with without_donated_buffers(), unsupported_unless(captured):
            compiled = compiler(graph, list(args))
        if places:
            compiled = loss_only.LossOnly(compiled, places,
                                          functools.partial(self.run_again, region))
        return Run(compiled, self.plans[-1], surroundings)

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
            hint = promises.HOLDS_RESULTS if self.holds_results else ""
            self.holds_results = False  # for a program that mends it, and goes on
            raise BudgetTooSmall(f"{refusal}{hint}", refusal.smallest)
        if graphs.budget > graphs.wanted:
            self.tell(promises.RAISED, self.options.budget, size_text(graphs.wanted),
                      size_text(graphs.budget))
        if graphs.passage and self.memory is None:
            self.memory = FarMemory(graphs.passage, self.options.far)
        self.budget = graphs.budget
        self.plans.append(graphs)
        return graphs.write(self.memory)

    # ---- what happens in planned passes

    def note_results(self, dropped, results):
        """A planned forward pass ends; begin_backward() asks what the program still holds."""
        self.watched = [StorageWeakRef(results[place].untyped_storage()) for place in dropped]

    def begin_backward(self):
        """A planned backward pass begins."""
        watched, self.watched = self.watched, []
        if not all(storage.expired() for storage in watched):
            self.holds_results = True  # the next step is planned with them
        if torch._C._autograd._get_current_graph_task_keep_graph():
            self.tell_unkept(promises.RETAINED)

    def end_backward(self, results):
        """A planned backward pass ends: another thread's forward pass may be beside it no more."""
        del results
        self.passes.clear()

    def run_again(self, region, args):
        """The results of a graph, for the gradients of what the plan is without."""
        self.is_loss_all = False
        return self.hooked(region.module, args, loss_only.REASON, keep=args)

    def hooked(self, function, args, reason, keep):
        """Calls a function with what autograd saves in far memory, but for what is in `keep`."""
        from ..torch_hooks import SavedTensors  # pylint: disable=import-outside-toplevel
        self.tell_unkept(reason)
        with compile_lock:
            if self.hooks_space is None:
                self.hooks_space = Space(near=NEAR_OF_HOOKS, far=self.options.far,
                                         capacity=free_bytes(self.options.far) // 2)
        kept = [k for k in keep if isinstance(k, (torch.Tensor, torch.nn.Module))]
        with SavedTensors(self.hooks_space, kept, 64 << 10):
            return function(*args)

    def tell_unkept(self, reason):
        """Warns once that no budget is kept, and why; explain() says it, too."""
        if reason not in self.unkept:
            self.unkept.append(reason)
        self.tell(promises.UNKEPT + reason)

    def tell(self, sentence, *values):
        """Warns of it once, whatever the values that it is formatted with."""
        if sentence not in self.told:
            self.told.add(sentence)
            text = sentence.format(*values) if values else sentence
            warnings.warn(f"spillway: {text}", stacklevel=2)


def part_of(region, args):
    """Tells the graphs of a model apart, whatever the sizes."""
    return frozenset(id(a) for a in args if is_parameter(a)) or region.code()


def is_parameter(value):
    return isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad


def parameters_in(optimizer):
    """How many."""
    return sum(len(group["params"]) for group in optimizer.param_groups)


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


@contextlib.contextmanager
def without_donated_buffers():
    """While a graph is compiled: its kernels give no saved tensor's memory to another tensor, so
    that backward(retain_graph=True) is no reason to refuse. Requires: the compile lock is held."""
    before = graph_compile.collect_bw_donated_buffer_idxs
    graph_compile.collect_bw_donated_buffer_idxs = lambda *_: []
    try:
        yield
    finally:
        graph_compile.collect_bw_donated_buffer_idxs = before


@contextlib.contextmanager
def unsupported_unless(captured):
    """Throws: Unsupported, in place of what PyTorch throws before it has `captured` a graph."""
    try:
        yield
    except Exception as why:
        if captured or isinstance(why, Unsupported):
            raise
        first_line = str(why).strip().partition("\n")[0]
        raise Unsupported("PyTorch does not capture its backward pass "
                          f"({type(why).__name__}: {first_line})") from why
