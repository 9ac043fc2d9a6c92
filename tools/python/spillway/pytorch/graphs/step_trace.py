"""A step as a spillway-trace: its tasks and blocks, and what the program does between them."""

from ..far.far_memory import bytes_near
from .step_graph import BACKWARD, FORWARD

TURN = "loss"  # from the forward graph's results to their gradients, in the program
END = "update"  # the optimizer, when all gradients are there
HELD = "held by the program"
OUTSIDE = 2  # bytes that a loss outside the graph makes for each byte of what it is of


class Surroundings:
    """Bytes beside the graphs: `held` all step long, `update` while the optimizer runs. Those of
    `optimizers` are in both."""

    def __init__(self, held=0, update=0, optimizers=()):
        self.held, self.update, self.optimizers = held, update, optimizers


def trace_of(step, name, surroundings):
    """A spillway-trace of a StepGraph. Tasks and blocks go by their names; see numbers_of()."""
    data = [data_entry(block, step) for block in step.blocks]
    data.append({"id": len(data), "bytes": max(1, surroundings.held), "kind": "weight",
                 "name": HELD})
    tasks = [task_entry(t) for t in step.tasks if t.phase == FORWARD]
    tasks.append(turn_entry(step))
    tasks += [task_entry(t) for t in step.tasks if t.phase == BACKWARD]
    tasks.append(end_entry(step, surroundings))
    return {"format": "spillway-trace", "version": 1, "name": name, "tasks": tasks, "data": data}


def data_entry(block, step):
    """What the program may hold is always near: moving it would free nothing."""
    tangents = {step.block_of[node] for node in step.tangents}
    is_held = (block.is_output and not block.is_dropped or block.size == 0
               or (block.task is None and block not in tangents))
    size = block.size if is_held else bytes_near(block.size)
    return {"id": block.number, "bytes": max(1, size), "kind": "weight" if is_held else "tensor",
            "name": f"{block.number} {block.name}"}


def task_entry(task):
    return {"name": task.name, "reads": [b.number for b in task.reads],
            "writes": sorted({b.number for b in task.writes}),
            "duration_ns": max(1, round(task.seconds * 1e9)), "workspace_bytes": task.workspace,
            "phase": task.phase, "recomputable": task.is_recomputable}


def turn_entry(step):
    """A model that returns a number is taken to return its loss, and the program to add nothing."""
    outputs = [b for b in step.blocks if b.is_output]
    results = [b for b in outputs if b.value.numel() == 1] or outputs
    return {"name": TURN, "reads": [b.number for b in outputs],
            "writes": sorted({step.block_of[n].number for n in step.tangents}),
            "duration_ns": 1, "workspace_bytes": OUTSIDE * sum(b.size for b in results),
            "phase": FORWARD, "recomputable": False}


def end_entry(step, surroundings):
    """All gradients are near when it runs: autograd and the optimizer use them."""
    gradients = {step.block_of[step.canonical(n)].number for n in step.gradients
                 if n is not None and step.canonical(n) in step.block_of}
    return {"name": END, "reads": sorted(gradients), "writes": [], "duration_ns": 1,
            "workspace_bytes": surroundings.update, "phase": "update", "recomputable": False}


def numbers_of(step):
    """Of tasks by the names of trace_of(), with the turn and the end; of blocks likewise."""
    forward = [t for t in step.tasks if t.phase == FORWARD]
    backward = [t for t in step.tasks if t.phase == BACKWARD]
    sequence = [*forward, TURN, *backward, END]
    tasks = {getattr(task, "name", task): task for task in sequence}
    return tasks, {f"{b.number} {b.name}": b for b in step.blocks}
