"""A plan's events as two graphs: recomputations are nodes again, moves are operators. They run as
they are written."""

import operator

import torch
from torch import fx
from torch.fx.graph import _BoxedCodeGen

from ..far.operators import PREFETCH, STORE, WAIT
from . import schedule
from .step_trace import END, TURN


class Values:
    """Where the blocks of a step are while a graph is written: nodes of the new graph.

    A block may be in `near`, in `far`, or in both. Views hold their block, so they are forgotten
    with it, and made again when they are needed.
    """

    def __init__(self):
        self.near, self.far, self.views = {}, {}, {}
        self.inputs = {}  # what the program holds: always near

    def forget_near(self, block):
        """The block has left, or is about to be made again."""
        self.near.pop(block, None)
        self.views.pop(block, None)


class GraphWriter:
    """Writes one of the two graphs. `before` has what the other one left, for the backward graph;
    what is taken from there becomes an input, in `taken`."""

    def __init__(self, step, memory, before=None):
        self.step, self.memory, self.before = step, memory, before
        self.graph = fx.Graph()
        self.values = Values()
        self.taken = []  # nodes of the other graph
        self.attributes = {}

    def add_input(self, node):
        """A placeholder of the old graph, which the program gives."""
        new = self.graph.placeholder(node.name)
        new.target = new.name
        new.meta = dict(node.meta)
        if self.before is None:
            self.values.inputs[node] = new
        else:
            self.values.near[self.step.block_of[node]] = new
        return new

    def write(self, event):
        """Throws: AssertionError where a plan would use what is not there."""
        if event.kind == schedule.RUN:
            self.run(event.number)
        elif event.kind == schedule.PREFETCH:
            self.values.forget_near(event.number)
            self.graph.call_function(PREFETCH, (self.far(event.number),))
        else:
            if event.kind == schedule.STORE:
                self.store(event.number)
            self.values.forget_near(event.number)
            self.drop_before(event.number)

    def drop_before(self, block):
        """What the other graph left near is gone, too."""
        if self.before is not None:
            self.before.near.pop(block, None)

    def store(self, block):
        """The block's root goes far."""
        near = self.near(block)
        far = self.graph.call_function(STORE, (near, self.memory.number))
        far.meta["val"] = a_number_like(block.value)
        self.values.far[block] = far

    def run(self, task):
        """One task; what it writes is new from now on."""
        arguments = [self.value(n) for n in task.node.all_input_nodes]
        by_old = dict(zip(task.node.all_input_nodes, arguments))
        new = self.graph.node_copy(task.node, lambda n: by_old[n])
        if any(b in task.reads for b in task.writes):
            for block in task.writes:
                self.values.views.pop(block, None)
            return
        for block in task.writes:
            self.values.forget_near(block)
            self.drop_before(block)
            self.values.near[block] = self.part(new, block)

    def part(self, new, block):
        """The node of one result."""
        if block.index is None:
            return new
        item = self.graph.call_function(operator.getitem, (new, block.index))
        item.meta["val"] = block.value
        return item

    def near(self, block):
        """The block's root, brought back or taken from the other graph where it must be."""
        if block in self.values.near:
            return self.values.near[block]
        if self.before is not None and block in self.before.near:
            self.values.near[block] = self.take(self.before.near[block])
        else:
            self.values.near[block] = self.wait(block)
        return self.values.near[block]

    def wait(self, block):
        """The block, from far memory."""
        value = block.value
        node = self.graph.call_function(WAIT, (
            self.far(block), list(value.shape), list(value.stride()), value.dtype))
        node.meta["val"] = value
        return node

    def far(self, block):
        """The block's bytes in far memory."""
        if block not in self.values.far:
            if self.before is None or block not in self.before.far:
                raise AssertionError(f"{block.name} is neither near nor far when it is used")
            self.values.far[block] = self.take(self.before.far[block])
        return self.values.far[block]

    def take(self, node):
        """A value of the other graph as an input of this one."""
        new = self.graph.placeholder(node.name)
        new.target = new.name  # else the generated code renames inputs, one after another
        new.meta = dict(node.meta)
        self.taken.append((node, new))
        return new

    def value(self, old):
        """A node of the new graph with the value of one of the old."""
        old = self.step.canonical(old)
        if old.op == "get_attr":
            return self.attribute(old)
        if self.is_held(old):
            return self.held(old)
        block = self.step.block_of.get(old)
        if block is None:
            return self.copy_of(old)  # a list of views
        if self.is_root(old, block):
            return self.near(block)
        views = self.values.views.setdefault(block, {})
        if old not in views:
            new = self.copy_of(old)
            self.values.views.setdefault(block, {})[old] = new
        return self.values.views[block][old]

    def is_held(self, old):
        """Whether it is an input of the forward graph."""
        return old in (self.before or self.values).inputs

    def held(self, old):
        """The input itself."""
        if old not in self.values.inputs:
            self.values.inputs[old] = self.take(self.before.inputs[old])
        return self.values.inputs[old]

    def is_root(self, old, block):
        """Whether it is the block itself and no view of it."""
        if old.target is operator.getitem:
            return self.step.canonical(old.args[0]) is block.task
        return old is block.task or old.op == "placeholder"

    def copy_of(self, old):
        """A view, over the block that it shows."""
        return self.graph.node_copy(old, self.value)

    def attribute(self, old):
        """A constant of the old graph."""
        owner = old.graph.owning_module
        self.attributes[old.target] = getattr(owner, old.target)
        new = self.graph.get_attr(old.target)
        new.meta = dict(old.meta)
        return new

    def finish(self, results):
        """The graph, as a module that returns `results`."""
        self.graph.output(tuple(results))
        return fx.GraphModule(self.attributes, self.graph)


def a_number_like(value):
    """What stands for a block in far memory, fake as `value` is."""
    with value.fake_mode:
        return torch.empty(1, dtype=torch.int64, device=value.device)


def rewrite(step, events, memory):
    """The forward and the backward graph that execute `events`, as AOTAutograd wants them."""
    turn = next(i for i, e in enumerate(events) if e.number == TURN)
    forward = GraphWriter(step, memory)
    for node in step.forward.graph.nodes:
        if node.op == "placeholder":
            forward.add_input(node)
    for event in events[:turn]:
        forward.write(event)
    results = [mapped(forward, node) for node in step.results]
    backward = GraphWriter(step, memory, before=forward.values)
    tangents = [backward.add_input(node) for node in step.tangents]
    for event in events[turn + 1:]:
        if event.number != END:
            backward.write(event)
    gradients = [mapped(backward, node) for node in step.gradients]
    put_first(backward, tangents)
    saved = [node for node, _ in backward.taken]
    return forward.finish(results + saved), backward.finish(gradients)


def mapped(writer, node):
    """A result: a value, or what is none."""
    return writer.value(node) if isinstance(node, fx.Node) else node


def put_first(backward, tangents):
    """Inputs in AOTAutograd's order: what was saved, then the gradients of the results."""
    saved = [new for _, new in backward.taken]
    anchor = backward.graph._root
    for node in saved + tangents:
        anchor.append(node)
        anchor = node


def in_written_order(module, inputs, before=lambda: None, after=lambda results: None):
    """A graph's nodes one after another, by PyTorch's own kernels; operands go when they were used
    last. `before` is called as a run begins, `after` with its results."""
    del inputs
    module = fx.GraphModule(module, module.graph)
    module.graph.set_codegen(_BoxedCodeGen())
    module.recompile()
    forward = module.forward

    def run(args):
        before()
        results = forward(args)
        after(results)
        return results

    run._boxed_call = True
    return run
