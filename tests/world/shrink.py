"""A smaller case that breaks the same promise."""

import dataclasses

SIMPLER = {"steps": 1, "threads": 1, "optimizer": "sgd", "data": "synthetic", "micro_batch_size": 0,
           "memory": "managed", "planner": "joint", "budget": "min", "far": "ram", "state": "near",
           "paging": "auto", "recompute": "auto", "checkpoint_every": 0, "power_cut": False,
           "batch": 2, "algorithm": "direct"}


def shrink(case, breaks):
    """Leaves out faults and puts in the usual options for as long as breaks(case) holds."""
    changed = True
    while changed:
        changed = False
        for simpler in candidates(case):
            if breaks(simpler):
                case, changed = simpler, True
                break
    return case


def candidates(case):
    for left_out in range(len(case.faults)):
        yield dataclasses.replace(
            case, faults=case.faults[:left_out] + case.faults[left_out + 1:])
    for name, value in SIMPLER.items():
        if getattr(case, name) != value:
            yield dataclasses.replace(case, **{name: value})
    for index, one in enumerate(case.faults):
        if one.times > 1:
            fewer = dataclasses.replace(one, times=one.times // 2)
            yield dataclasses.replace(
                case, faults=(*case.faults[:index], fewer, *case.faults[index + 1:]))
