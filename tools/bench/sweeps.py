"""`spillway sweep` and its points."""

import json

import measured_run


def sweep(program, **options):
    """The points of a sweep with these flags: net="vgg16", budgets=12, planners=["greedy"]."""
    words = [program, "sweep", "--json", "-"]
    for name, value in options.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        words += ["--" + name.replace("_", "-"), text]
    return json.loads(measured_run.call(words))["points"]


def planners(program):
    """The names of all planners there are."""
    return [point["planner"] for point in sweep(program, net="lenet", batch=8, budgets="100%")]
