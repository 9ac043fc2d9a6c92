"""The goals G1 to G7 of suite S, judged from points as `spillway sweep --json` writes them.

They were set for the published networks. Transformers are judged apart, by the same limits.
"""

CLASSES = 1000  # as all networks for images were published
# Batches on K40m and V100; eight times as large on H200. The published networks first.
NETWORKS = {"alexnet": 512, "vgg16": 128, "vgg19": 128, "vgg101": 128, "resnet18": 256,
            "resnet34": 256, "resnet50": 128, "resnet101": 128, "resnet152": 64,
            "densenet121": 128, "densenet201": 64, "googlenet": 256, "inception-v3": 128,
            "inception-v4": 64}
# Of whole texts, with AdamW. Resident, the smallest needs 15 GiB at these batches.
TRANSFORMERS = {"gpt2": 32, "tinyllama": 4, "bert-base": 64, "vit-b16": 128}
TINYLLAMA = "llama:22,32,4,2048,5632,2048"
# TinyLlama's weights, their gradients and AdamW's numbers are 16.4 GiB, more than a V100 has: they
# move, too.
FLAGS = {"tinyllama": ["--net", TINYLLAMA, "--state", "far"],
         "vit-b16": ["--net", "vit-b16", "--classes", CLASSES]}
MACHINES = ["k40m", "v100", "h200"]
BUDGETS = 12  # linear from the smallest feasible one (p = 0) to the resident need (p = 11)
# Where the joint choice of convolution algorithms is judged.
ALGORITHM_NETWORKS = ["vgg16", "resnet34"]
ALGORITHM_MACHINES = ["k40m", "v100"]
SMALL_STEP = 1000  # tasks


def batch_on(network, machine):
    return (NETWORKS | TRANSFORMERS)[network] * (8 if machine == "h200" else 1)


def flags_of(network, machine):
    """What `spillway sweep` is told of a network of the suite."""
    if network in NETWORKS:
        words = ["--net", network, "--classes", CLASSES]
    else:
        words = [*FLAGS.get(network, ["--net", network]), "--optimizer", "adamw"]
    return [*words, "--batch", batch_on(network, machine), "--machines", machine]


def of_networks(points, networks):
    return [point for point in points if point["net"] in networks]


def has_all(points, networks, machines, budgets):
    there = {(point["net"], point["machine"], point["p"]) for point in points}
    return there >= {(network, machine, p)
                     for network in networks for machine in machines for p in range(budgets)}


def has_whole_suite(points, networks=tuple(NETWORKS)):
    return has_all(points, networks, MACHINES, BUDGETS)


def has_all_algorithm_points(points):
    return has_all(points, ALGORITHM_NETWORKS, ALGORITHM_MACHINES, 1)


class Goal:
    """What the product must reach, and what it did."""

    def __init__(self, what, is_partial):
        self.what = what
        self.is_partial = is_partial  # not all that it is about was evaluated
        self.points = 0
        self.missing = 0  # points for which there was no plan or no makespan
        self.measures = {}  # the first is the main one

    def collect(self, points, value_of):
        """The values of `points`, which count as the goal's."""
        values = values_of(points, value_of)
        self.points += len(values)
        self.missing += len(points) - len(values)
        return values

    def tell(self, name, value, limit=None):
        """A measure, judged where it has a limit: at most this."""
        self.measures[name] = (value, limit)

    def tell_both(self, values, limits=(None, None), prefix=""):
        self.tell(prefix + "max", max(values, default=0), limits[0])
        self.tell(prefix + "mean", mean(values), limits[1])

    def is_met(self):
        """Whether all was evaluated, no point is missing, and every limit is kept."""
        return (self.points > 0 and self.missing == 0 and not self.is_partial
                and all(limit is None or value <= limit
                        for value, limit in self.measures.values()))

    def verdict(self):
        if self.points == 0:
            return "no points"
        return "partial" if self.is_partial else "met" if self.is_met() else "missed"

    def as_json(self):
        """The main measure as "value" and "goal", others as NAME and NAME_goal."""
        found = {"what": self.what, "points": self.points, "missing": self.missing}
        if self.points == 0:
            return {**found, "value": None, "goal": None, "met": None}
        found["met"] = self.is_met()
        if self.is_partial:
            found["partial"] = True
        for i, (name, (value, limit)) in enumerate(self.measures.items()):
            found[name if i else "value"] = value
            if limit is not None:
                found[name + "_goal" if i else "goal"] = limit
        return found


def mean(values):
    return sum(values) / len(values) if values else 0


def values_of(points, value_of):
    return [value for point in points if (value := value_of(point)) is not None]


def over_bound(bound):
    """A function from a point to its makespan over a bound; None where either is not there."""
    def ratio(point):
        if point["makespan_seconds"] is None or point["bounds"] is None:
            return None
        return point["makespan_seconds"] / point["bounds"][bound]
    return ratio


def over_fastest_that_fit(point):
    if point["makespan_seconds"] is None:
        return None
    return point["makespan_seconds"] / point["compute_that_fits_seconds"]


def is_hard(point):
    """Whether some bound is more than a thousandth above the arithmetic."""
    if point["p"] == 0 or point["bounds"] is None:
        return False
    largest = max(point["bounds"][name] for name in ("beaumont", "offload", "mixed"))
    return largest > 1.001 * point["compute_seconds"]


def violates_memory(point):
    return point["feasible"] and (not point["verified"]
                                  or point["peak_bytes"] > point["budget_bytes"]
                                  or point.get("noise_peak_bytes", 0) > point["budget_bytes"])


def judge_ratio(what, points, bound, limits, is_partial):
    goal = Goal(what, is_partial)
    goal.tell_both(goal.collect(points, over_bound(bound)), limits)
    return goal


def tell_transition_bound(goal, points, bound):
    """The same over a stronger bound: told, not judged."""
    goal.tell_both(values_of(points, over_bound(bound + "_turnover")), prefix="turnover_")


def judge_moving(points, is_partial):
    goal = judge_ratio("plans that only move over LB2", points, "offload", (1.01, 1.003),
                       is_partial)
    tell_transition_bound(goal, points, "offload")
    return goal


def judge_mixed(points, is_partial):
    larger = [point for point in points if point["p"] > 0]
    goal = judge_ratio("mixed plans over LB2mix, p >= 1", larger, "mixed", (1.02, 1.001),
                       is_partial)
    hard = values_of(filter(is_hard, points), over_bound("mixed"))
    goal.tell_both(hard, prefix="hard_")
    goal.tell("hard_points", len(hard))
    tell_transition_bound(goal, larger, "mixed")
    return goal


def judge_over_beaumont(points, is_partial):
    return judge_ratio("mixed plans over Beaumont's Proposition 3", points, "beaumont",
                       (1.07, 0.88), is_partial)


def judge_smallest(points, is_partial):
    smallest = [point for point in points if point["p"] == 0]
    goal = judge_ratio("mixed plans over LB2mix at the smallest feasible budget", smallest,
                       "mixed", (1.35, 1.06), is_partial)
    tell_transition_bound(goal, smallest, "mixed")
    return goal


def planning(point):
    return point.get("planning_seconds")


def judge_small_planning(what, mixed, is_partial):
    goal = Goal(what, is_partial)
    small = [point for point in mixed if point["tasks"] <= SMALL_STEP]
    goal.tell("max", max(goal.collect(small, planning), default=0), 1)
    return goal


def judge_planning(mixed, large):
    goal = judge_small_planning(
        "seconds of planning: the suite's steps of up to 1000 tasks, and a large one of above "
        "8000 tasks within min+10 %, a tenth of the way from its smallest feasible budget to its "
        "resident need", mixed, not has_whole_suite(mixed) or not large)
    if large:
        goal.tell("large", max(goal.collect(large, planning), default=0), 5)
        goal.tell("large_over_bound", max(values_of(large, over_bound("mixed")), default=0), 1.02)
    return goal


def judge_algorithms(points):
    goal = Goal("joint choice of convolution algorithms at min+15 %: step over each task's "
                "fastest that fits", not has_all_algorithm_points(points))
    goal.tell_both(goal.collect(points, over_fastest_that_fit), (1.05, None))
    return goal


def judge_robustness(mixed, others, is_partial):
    goal = Goal("plans that exceed their budget or do not verify; what 10 % noise costs mixed "
                "plans", is_partial)
    goal.tell("violations", sum(map(violates_memory, [*others, *mixed])), 0)
    losses = goal.collect(mixed, lambda point: point.get("noise_loss"))
    goal.tell("noise_loss", max([0, *losses]), 0.005)
    goal.tell("noise_loss_mean", mean(losses))
    return goal


def judge(moving, mixed, algorithms, large):
    """All goals by name: of plans that only move and of mixed ones over the published networks of
    suite S, of the joint choice of algorithms, of a step of more than 8000 tasks."""
    moving, mixed = (of_networks(points, NETWORKS) for points in (moving, mixed))
    is_partial = not has_whole_suite(mixed)
    is_all_partial = (is_partial or not has_whole_suite(moving)
                      or not has_all_algorithm_points(algorithms) or not large)
    return {"G1": judge_moving(moving, not has_whole_suite(moving)),
            "G2": judge_mixed(mixed, is_partial),
            "G3": judge_over_beaumont(mixed, is_partial),
            "G4": judge_smallest(mixed, is_partial),
            "G5": judge_planning(mixed, large),
            "G6": judge_algorithms(algorithms),
            "G7": judge_robustness(mixed, [*moving, *algorithms, *large], is_all_partial)}


def judge_transformers(moving, mixed):
    """The same of transformers, by the same limits; without G6, as there are no convolutions to
    choose for, and without a large step."""
    moving, mixed = (of_networks(points, TRANSFORMERS) for points in (moving, mixed))
    lacks_moving, is_partial = (not has_whole_suite(points, tuple(TRANSFORMERS))
                                for points in (moving, mixed))
    return {"G1": judge_moving(moving, lacks_moving),
            "G2": judge_mixed(mixed, is_partial),
            "G3": judge_over_beaumont(mixed, is_partial),
            "G4": judge_smallest(mixed, is_partial),
            "G5": judge_small_planning("seconds of planning: steps of up to 1000 tasks", mixed,
                                       is_partial),
            "G7": judge_robustness(mixed, moving, is_partial or lacks_moving)}
