"""From a step's graphs and a budget to the graphs that keep it."""

import torch

from .. import planning
from ..sizes import size_text
from . import op_costs, schedule
from .far_rates import far_rates
from .rewrite import rewrite
from .step_trace import numbers_of, trace_of

LEAST_PASSAGE = 256 << 10  # bytes of near memory through which blocks go far and come back
MOST_PASSAGE = 256 << 20
PART_FOR_PASSAGE = 16  # of the budget


class PlannedGraphs:
    """The graphs of a step under its plan, and what explains them."""

    def __init__(self, step, trace, planned, passage):
        self.step, self.trace, self.planned, self.passage = step, trace, planned, passage
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


def plan_graphs(step, name, options, surroundings, passage=None):
    """The PlannedGraphs of a StepGraph; `passage` is that of the model's other plans, if there are
    any that move. Throws: planning.BudgetTooSmall."""
    trace = measured_trace(step, name, surroundings)
    least = passage or LEAST_PASSAGE
    budget = planning.budget_bytes(options.budget, lambda: needs_with_passage(trace, least))
    preferred = max(LEAST_PASSAGE, min(MOST_PASSAGE, budget // PART_FOR_PASSAGE))
    rooms = (passage,) if passage else (preferred, LEAST_PASSAGE)
    return PlannedGraphs(step, trace, *plan_within(trace, budget, options, rooms))


def needs_with_passage(trace, passage):
    """As planning.needs(), of a step that moves."""
    needs = planning.needs(trace)
    return {**needs, "smallest_bytes": needs["smallest_bytes"] + passage}


def plan_within(trace, budget, options, rooms):
    """A plan, and the near memory of the space that its moves need beside it: the first of `rooms`
    that leaves enough for one."""
    asked = {"planner": options.planner, "recompute": options.recompute, "timeline": True,
             "link": link_of(options.far)}
    try:
        planned = planning.plan(trace, budget, **asked)
        if not planned.plan["offloads"]:
            return planned, 0
        for room in rooms:
            try:
                return planning.plan(trace, max(1, budget - room), **asked), room
            except planning.BudgetTooSmall as refusal:
                last = refusal
    except planning.BudgetTooSmall as refusal:
        last = refusal
    raise too_small(budget, last, rooms[-1])


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
