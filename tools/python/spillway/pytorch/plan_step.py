"""From a step's graphs and a budget to the graphs that keep it."""

import torch

from .. import planning
from ..sizes import size_text
from .far.far_memory import far_rates
from .graphs import op_costs, schedule
from .graphs.rewrite import rewrite
from .graphs.step_trace import numbers_of, trace_of

LEAST_PASSAGE = 256 << 10  # bytes of near memory through which blocks go far and come back
MOST_PASSAGE = 256 << 20
PART_FOR_PASSAGE = 16  # of the budget


class PlannedGraphs:
    """The graphs of a step under its plan, and what explains them."""

    def __init__(self, step, trace, planned, passage, budget):
        self.step, self.trace, self.planned = step, trace, planned
        self.passage, self.budget = passage, budget  # bytes
        self.wanted = budget  # less where the budget that was asked for does not work
        tasks, blocks = numbers_of(step)
        self.events = schedule.events_of(planned.plan, tasks, blocks)
        self.written = ()  # the forward and the backward graph

    def write(self, memory):
        """The forward and the backward graph that execute the plan, with moves to `memory`."""
        self.written = rewrite(self.step, self.events, memory)
        return self.written

    def peak(self):
        """Bytes that the step needs at most, proved."""
        return self.planned.figures["peak_bytes"] + self.passage


def measured_trace(step, name, surroundings):
    """A StepGraph with the costs of its operators, as a spillway-trace."""
    op_costs.measure(step.tasks)
    return trace_of(step, name, surroundings)


def plan_graphs(step, name, options, surroundings, passage=None, least_budget=0):
    """The PlannedGraphs of a StepGraph; `passage` is that of the model's other plans, if there are
    any that move, and `least_budget` theirs. A budget relative to the step's need is at least the
    smallest that works. Throws: planning.BudgetTooSmall for bytes."""
    trace = measured_trace(step, name, surroundings)
    least = passage or LEAST_PASSAGE
    budget = max(least_budget, planning.budget_bytes(
        options.budget, lambda: needs_with_passage(trace, least)))
    try:
        return graphs_within(budget, step, trace, options, passage)
    except planning.BudgetTooSmall as why:
        if not planning.is_relative(options.budget):
            raise
        smallest = why.smallest
    graphs = graphs_within(smallest, step, trace, options, passage)
    graphs.wanted = budget
    return graphs


def graphs_within(budget, step, trace, options, passage):
    """The PlannedGraphs of a budget in bytes. Throws: planning.BudgetTooSmall."""
    preferred = max(LEAST_PASSAGE, min(MOST_PASSAGE, budget // PART_FOR_PASSAGE))
    asked = {"planner": options.planner, "recompute": options.recompute, "timeline": True,
             "link": link_of(options.far)}
    if passage:  # is there already, whether this plan moves anything or not
        planned, _, refusal = first_plan(trace, budget, asked, [passage])
        if planned is None:
            raise too_small(budget, refusal, passage)
        return PlannedGraphs(step, trace, planned, passage, budget)
    rooms = preferred, LEAST_PASSAGE
    return PlannedGraphs(step, trace, *plan_within(trace, budget, asked, rooms), budget)


def needs_with_passage(trace, passage):
    """As planning.needs(), of a step that moves."""
    needs = planning.needs(trace)
    return {**needs, "smallest_bytes": needs["smallest_bytes"] + passage}


def plan_within(trace, budget, asked, rooms):
    """A plan, and the near memory that its moves need beside it: the first of `rooms` that leaves
    enough for one, or none where nothing moves. `asked` is for planning.plan()."""
    is_all_near = budget >= planning.needs(trace)["resident_bytes"]
    without_moves = refusal = None
    for tried in ((0,), rooms) if is_all_near else (rooms, (0,)):
        planned, room, why = first_plan(trace, budget, asked, tried)
        if planned is not None and bool(planned.plan["offloads"]) == (room > 0):
            return planned, room
        if tried is rooms:
            without_moves, refusal = planned, why
    if without_moves is not None:
        return without_moves, 0
    raise too_small(budget, refusal, rooms[-1])


def first_plan(trace, budget, asked, rooms):
    """A plan beside the first of `rooms` that leaves enough for one, and that room; or else None,
    None, and the last refusal."""
    for room in rooms:
        try:
            return planning.plan(trace, max(1, budget - room), **asked), room, None
        except planning.BudgetTooSmall as why:
            refusal = why.with_traceback(None)  # whose frames hold tensors
    return None, None, refusal


def too_small(budget, refusal, passage):
    """The refusal of a whole step."""
    smallest = refusal.smallest + passage
    return planning.BudgetTooSmall(
        f"a budget of {size_text(budget)} is too small for a step of this model; the smallest that "
        f"works is {smallest} bytes ({size_text(smallest)})", smallest)


def link_of(far):
    """How fast blocks move, as measured once in each folder."""
    out, back = far_rates(far)
    return {"offload_bytes_per_second": out, "prefetch_bytes_per_second": back,
            "latency_ns": 50000, "duplex": True,
            "compute_speed_while_moving": 1.0 if torch.get_num_threads() == 1 else 0.8}
