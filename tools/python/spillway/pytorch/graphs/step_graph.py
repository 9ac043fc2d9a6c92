"""A training step's operators as tasks, and the storages they read and write as blocks.

Both come from the forward and the backward graph of AOTAutograd. Blocks are storages: views of one
are the same block and no task. A view is made again from its block wherever it is needed.
"""

import operator

import torch
from torch import fx

from ..far.far_memory import span

FORWARD, BACKWARD = "forward", "backward"


class Unsupported(Exception):
    """A graph that runs without a plan instead; the text completes "... because"."""


class Block:
    """One storage. `task` and `index` say which output of which task it first was; both are None
    for what the program holds: parameters, buffers, a batch. `value` is the fake tensor that was
    first seen of it."""

    def __init__(self, number, value, name, task=None, index=None):
        self.number, self.value, self.name = number, value, name
        self.task, self.index = task, index
        self.size = value.untyped_storage().nbytes()
        self.is_output = False  # the program gets it, and may hold it
        self.is_dropped = False  # the program holds it no longer when the backward pass begins


class Task:
    """One operator that makes or changes storages; reads and writes are blocks."""

    def __init__(self, node, phase, name):
        self.node, self.phase, self.name = node, phase, name
        self.reads, self.writes = [], []
        self.is_recomputable = False
        self.seconds, self.workspace = 0.0, 0


class StepGraph:
    """Tasks in the order of AOTAutograd's graphs, and what is needed to write these anew.

    With `drops_results` the program is taken to hold nothing of the results but numbers when the
    backward pass begins: those that it does not read are gone then. Throws: Unsupported.
    """

    def __init__(self, forward, backward, outputs, drops_results=False):
        self.forward, self.backward = forward, backward
        self.blocks, self.tasks = [], []
        self.block_of = {}  # of a node that has one tensor; views have their block's
        self.by_storage, self.outputs_of = {}, {}
        self.changed = {}  # the operand of an operator that changes it and returns it
        self.saved = {node.name: node for node in saved_nodes(forward, outputs)}
        self.results = output_args(forward)[:outputs]
        self.gradients = output_args(backward)
        self.needed = self.find_needed()
        self.tangents = []
        self.add_graph(forward, FORWARD)
        for node in self.results:
            if isinstance(node, fx.Node) and node in self.block_of:
                self.block_of[node].is_output = True
        self.add_graph(backward, BACKWARD)
        self.run_readers_of_changed_once()
        if drops_results:
            self.drop_results()

    def drop_results(self):
        """What reads one runs once, so that no run in the backward pass asks for it."""
        read = {b for t in self.tasks if t.phase == BACKWARD for b in t.reads}
        for block in self.blocks:
            block.is_dropped = (block.is_output and block.task is not None and block not in read
                                and block.value.numel() != 1)
        for task in self.tasks:
            if any(b.is_dropped for b in task.reads):
                task.is_recomputable = False

    def dropped_places(self):
        """Of the results that are gone when the backward pass begins."""
        return [place for place, node in enumerate(self.results)
                if isinstance(node, fx.Node) and node in self.block_of
                and self.block_of[node].is_dropped]

    def run_readers_of_changed_once(self):
        """Where an operand is changed later, as running statistics are, a second run has others."""
        changed = {b for t in self.tasks if is_mutation(t.node.target) for b in t.writes}
        for task in self.tasks:
            if changed.intersection(task.reads) and not is_training_batch_norm(task.node):
                task.is_recomputable = False

    def canonical(self, node):
        """The node that makes a value: the forward graph's where the backward graph has it as an
        input; the operand where an operator changes it and returns it."""
        if node.op == "placeholder":
            return self.saved.get(node.name, node)
        return self.canonical(self.changed[node]) if node in self.changed else node

    def find_needed(self):
        """Nodes that outputs or changed inputs depend on: AOTAutograd's graphs have dead ones, and
        a dead one that draws random numbers would change all later ones."""
        waiting = [n for n in self.results + self.gradients if isinstance(n, fx.Node)]
        waiting += [n for graph in (self.forward, self.backward) for n in graph.graph.nodes
                    if n.op == "call_function" and is_mutation(n.target)]
        needed = set()
        while waiting:
            node = self.canonical(waiting.pop())
            if node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        return needed

    def add_graph(self, module, phase):
        """All nodes of one graph."""
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.add_placeholder(node, phase)
            elif node.op == "get_attr":
                expect_tensor_attribute(module, node)
            elif node.op == "call_function" and node in self.needed:
                self.add_call(node, phase)

    def add_placeholder(self, node, phase):
        """A parameter or an input of the step; the gradient of an output."""
        if self.canonical(node) is not node:
            return
        value = node.meta.get("val")
        if isinstance(value, int):
            return  # a size: of its own for each plan
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"input {node.name} of the graph is a {type(value).__name__}")
        self.block_of[node] = self.block_at(value, node)
        if phase == BACKWARD:
            self.tangents.append(node)

    def block_at(self, value, node, task=None, index=None):
        """The block of `value`'s storage, a new one where it is the first seen of it. Throws:
        Unsupported."""
        if value.layout != torch.strided:
            raise Unsupported(f"{node.name} is a sparse tensor; use dense gradients "
                              "(torch.nn.Embedding(..., sparse=False))")
        key = storage_key(value)
        if key not in self.by_storage:
            self.by_storage[key] = Block(len(self.blocks), value, node.name, task, index)
            self.blocks.append(self.by_storage[key])
        return self.by_storage[key]

    def add_call(self, node, phase):
        """A view, a part of a task's result, or a task."""
        if node.target is operator.getitem:
            self.add_item(node)
        elif not isinstance(node.target, torch._ops.OpOverload):
            raise Unsupported(f"the graph calls {node.target}, which is no plain operator")
        elif is_view(node, self.operand_blocks(node)):
            block = self.operand_blocks(node)[0]
            expect_inside(block, node)
            self.block_of[node] = block
        else:
            self.add_task(node, phase)

    def add_item(self, node):
        """One of several results."""
        source, index = self.canonical(node.args[0]), node.args[1]
        if source in self.outputs_of:
            if self.outputs_of[source][index] is not None:
                self.block_of[node] = self.outputs_of[source][index]
        else:
            self.block_of[node] = self.block_of[source]  # of a list of views

    def operand_blocks(self, node):
        """Blocks of a node's operands, each once, in order."""
        operands = [self.block_of.get(self.canonical(n)) for n in node.all_input_nodes]
        return list(dict.fromkeys(b for b in operands if b is not None))

    def add_task(self, node, phase):
        """A task with the blocks of its results."""
        same = any(t.name == node.name for t in self.tasks)
        task = Task(node, phase, f"{node.name}.{phase}" if same else node.name)
        task.reads = self.operand_blocks(node)
        if is_mutation(node.target):
            changed = mutated_operands(node)
            task.writes = [self.block_of[self.canonical(n)] for n in changed]
            self.changed[node] = changed[0]
        else:
            task.writes = self.result_blocks(node)
            task.is_recomputable = phase == FORWARD and not is_random(node.target)
        self.tasks.append(task)

    def result_blocks(self, node):
        """New blocks for all results of a task."""
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self.block_of[node] = self.new_block(value, node, None)
            return [self.block_of[node]]
        if not isinstance(value, (tuple, list)):
            raise Unsupported(f"{node.target} gives {type(value).__name__}, which is no tensor")
        results = [self.new_block(part, node, index) if isinstance(part, torch.Tensor) else None
                   for index, part in enumerate(value)]
        self.outputs_of[node] = results
        if any(user.target is not operator.getitem for user in node.users):
            raise Unsupported(f"the results of {node.target} are used together")
        return [block for block in results if block is not None]

    def new_block(self, value, node, index):
        """Throws: Unsupported where the storage is not new, or the tensor not at its beginning."""
        if value.layout == torch.strided and (
                storage_key(value) in self.by_storage or value.storage_offset() != 0):
            raise Unsupported(f"a result of {node.target} shares memory with something else")
        return self.block_at(value, node, node, index)


def storage_key(value):
    """The same for tensors that share memory."""
    return value.untyped_storage()._cdata


def output_args(module):
    """What a graph returns."""
    return list(next(iter(module.graph.find_nodes(op="output"))).args[0])


def saved_nodes(forward, outputs):
    """What the forward graph returns for the backward graph."""
    saved = output_args(forward)[outputs:]
    if not all(isinstance(n.meta.get("val"), torch.Tensor) for n in saved):
        raise Unsupported("sizes change from call to call; torch.compile(dynamic=False) plans for "
                          "each size")
    return saved


def is_mutation(target):
    """Whether an operator changes an operand."""
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable


def is_random(target):
    """Whether an operator draws random numbers, or may give other bits when it runs again."""
    return (torch.Tag.nondeterministic_seeded in target.tags
            or torch.Tag.nondeterministic_bitwise in target.tags)


def is_training_batch_norm(node):
    """Its normalised results do not depend on the running statistics that it reads."""
    names = [a.name for a in node.target._schema.arguments]
    return ("batch_norm" in node.target.name() and "training" in names
            and node.args[names.index("training")] is True)


def mutated_operands(node):
    """The nodes of the operands that an operator changes."""
    schema = node.target._schema.arguments
    nodes = [a for a, s in zip(node.args, schema) if s.alias_info is not None
             and s.alias_info.is_write]
    if not nodes or not all(isinstance(n, fx.Node) for n in nodes):
        raise Unsupported(f"{node.target} changes operands in a way that is not followed")
    return nodes


def is_view(node, operands):
    """Whether all results are views of the node's only block."""
    if is_mutation(node.target) or len(operands) != 1:
        return False
    value = node.meta.get("val")
    results = value if isinstance(value, (tuple, list)) else [value]
    base = storage_key(operands[0].value)
    return bool(results) and all(
        isinstance(r, torch.Tensor) and storage_key(r) == base for r in results)


def expect_inside(block, node):
    """Throws: Unsupported where a view shows more than what a move of its block would keep."""
    value = node.meta["val"]
    begin, end = span(block.value)
    for view in value if isinstance(value, (tuple, list)) else [value]:
        if span(view)[0] < begin or span(view)[1] > end:
            raise Unsupported(f"{node.name} is a view of more than {block.name}")


def expect_tensor_attribute(module, node):
    """Throws: Unsupported for a graph inside the graph."""
    if not isinstance(getattr(module, node.target, None), torch.Tensor):
        raise Unsupported(f"the graph has a graph inside, {node.target}")
