"""From result files to figures: one line each, with its goal and whether it was met."""

import dataclasses

from stages_correct import differing, is_over_budget
from stages_overhead import GOAL, has_goal


@dataclasses.dataclass
class Figure:
    name: str
    value: str
    goal: str = ""
    is_met: bool = None  # None: there is no goal, the figure is for information

    def verdict(self):
        return {None: "", True: "met", False: "MISSED"}[self.is_met]


def figures_of(results):
    """`results`: what the stages wrote, by stage. Stages that did not run give no figure."""
    figures = []
    for stage, figures_of_stage in STAGES.items():
        if stage not in results:
            continue
        result = results[stage]
        try:
            found = figures_of_stage(result)
        except (KeyError, IndexError, TypeError, ZeroDivisionError):
            found = []  # it was cut short
        if not found or (result["status"] != "passed" and all(f.is_met is not False for f in found)):
            found.append(Figure(f"{stage}: stage", result.get("reason", result["status"]), "passes",
                                result["status"] == "passed"))
        figures += found
    return figures


def of_tests(result):
    programs = result["programs"]
    failures = sum(p["failures"] + (p["status"] != 0 and not p["failures"]) for p in programs)
    count = sum(p["tests"] for p in programs)
    return [Figure("tests on the GPU that fail", f"{failures} of {count}", "0",
                   failures == 0 and count > 0)]


def rate(value):
    return f"{value / 1e9:.1f} GB/s"


def of_facts(result):
    driver = result["driver"]
    figures = [Figure("card", driver["facts"]["name"])]
    for memory in ("managed", "copy"):
        link = driver.get("streaming", {}).get(memory, {})
        if "in" in link:
            value = " / ".join(rate(link[way]["median"])
                               for way in ("in", "out", "in_while_out", "out_while_in"))
            figures.append(Figure(f"link, {memory}: in / out / in and out at once", value))
    free = driver.get("free_memory", {})
    if "far_gives_back" in free:
        figures.append(Figure("free memory after a prefetch to the host",
                              "rises" if free["far_gives_back"] else "stays flat"))
    discard = driver.get("discard", {})
    if "renew_far" in discard:
        renew, bring = (discard[name]["stream_seconds"]["median"]
                        for name in ("renew_far", "bring_back_far"))
        figures.append(Figure("room for what is far, discarded / with its content",
                              f"{renew / bring:.2f}"))
    if "card" in result:
        name = result["card"]["properties"].get("deviceName", "unnamed")
        figures.append(Figure("card as cuDNN sees it", name))
    return figures + of_counts(driver.get("fault_counts", {}))


def of_counts(counts):
    if "budgeted" not in counts:
        return [Figure("faults and evictions by CUPTI", counts.get("failed", "not counted"),
                       "counted", False)]
    budgeted = counts["budgeted"]
    faults = budgeted["device_faults"] + budgeted["host_faults"]
    evicted = budgeted["out_by_eviction"]
    return [Figure("faults in moves by hints", f"{faults}", "0", faults == 0),
            Figure("bytes evicted in moves by hints", f"{evicted}", "0", evicted == 0)]


def of_identity(result):
    figures = []
    for precision, runs in result["precisions"].items():
        wrong = differing(runs)
        count = sum("skipped" not in run for run in runs.values())
        figures.append(Figure(f"runs equal to the resident one, bit by bit, {precision}",
                              f"{count - len(wrong)} of {count}", "all", not wrong))
    return figures


def of_steady(result):
    figures = []
    for what in ("faults", "evictions"):
        total = sum(result[f"steady_{what}"])
        figures.append(Figure(f"{what} in steady managed steps at 40 %", f"{total}", "0",
                              total == 0))
    figures.append(within_budget("steady", [result["run"]]))
    return figures


def within_budget(name, runs):
    most = max(run["summary"]["near_peak_bytes"] / run["summary"]["budget_bytes"] for run in runs)
    return Figure(f"{name}: near memory of the budget", f"{100 * most:.1f} %", "<= 100 %",
                  not any(is_over_budget(run) for run in runs))


def of_engines(result):
    return [engines_figure(step) for step in result["steps"]]


def engines_figure(step):
    name = (f"convolutions of {workload_of(step)}: by the fastest engines / by those with the least "
            "workspace")
    if "convolutions" not in step:
        return unmeasured(name, step, "runs")
    tried = sum(len(each["engines"]) for each in step["convolutions"])
    return Figure(name, f"{1e3 * step['seconds_by_fastest']:.1f} / "
                  f"{1e3 * step['seconds_by_least_workspace']:.1f} ms; {tried} engines for "
                  f"{len(step['convolutions'])} convolutions")


def of_speed(result):
    return [speed_figure(pair) for pair in result["pairs"]]


def speed_figure(pair):
    name = f"{workload_of(pair)}: images/s, ours / PyTorch's"
    if "ratio" not in pair:
        return unmeasured(name, pair, ">= 1")
    ours, theirs = (pair[who]["images_per_second"] for who in ("ours", "pytorch"))
    return Figure(name, f"{ours:.0f} / {theirs:.0f} = {pair['ratio']:.2f}", ">= 1",
                  pair["ratio"] >= 1)


def workload_of(item):
    return f"{item['network']} {item['precision']} batch {item['batch']}"


def unmeasured(name, item, goal):
    return Figure(name, item.get("failed", "not measured"), goal, False)


def of_overhead(result):
    figures = [overhead_figure(name_of(run), run, has_goal(run)) for run in result["runs"]]
    if "large" in result:
        run = result["large"]
        beyond = ", more than the card" if run.get("is_more_than_the_card") else ""
        figures.append(overhead_figure(f"{name_of(run)}, batch {run['batch']}{beyond}", run, False))
    done = [run for run in result["runs"] if "failed" not in run]
    return figures + ([within_budget("overhead", done)] if done else [])


def name_of(run):
    without = "" if run["discards"] else ", without discards"
    return f"{run['network']} at {run['budget']}, {run['memory']}, {run['planner']}{without}"


def overhead_figure(name, run, is_judged):
    goal = f"within {100 * GOAL:.0f} % of the prediction" if is_judged else ""
    if "failed" in run:
        return unmeasured(name, run, goal or "runs")
    value = f"{1e3 * run['median_step_seconds']:.1f} ms"
    if "ratio_to_resident" in run:
        value += f", {run['ratio_to_resident']:.2f} of resident"
    value += f", {100 * run['over_prediction']:+.0f} % of {1e3 * run['predicted_step_seconds']:.1f}"
    return Figure(name, value, goal,
                  abs(run["over_prediction"]) <= GOAL if is_judged else None)


STAGES = {"tests": of_tests, "facts": of_facts, "identity": of_identity, "steady": of_steady,
          "engines": of_engines, "speed": of_speed, "overhead": of_overhead}
