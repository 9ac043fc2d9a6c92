"""Any two features together train on the emulated GPU with the bits of the resident twin.

SPILLWAY_ALL_TRAININGS=1 takes any three.
"""

import itertools
import os
import random
import tempfile
import unittest

import emulated_runs
from emulated_runs import Run, train, words
from families import FAMILIES

STEPS = 3
TOGETHER = 3 if os.environ.get("SPILLWAY_ALL_TRAININGS") == "1" else 2
NETS = ["wide", "residual"]
# Flags of what changes bits: the twin has them, too.
BITS = {
    "net": {name: "" for name in NETS},
    "precision": {"fp32": "", "bf16": "--precision bf16"},
    "optimizer": {name: f"--optimizer {name}" for name in ("sgd", "adam", "adamw", "lion")},
    "decay": {"weights": "", "all": "--weight-decay 0.1 --weight-decay-all"},
    "dropout": {"off": "", "on": "--dropout 0.2"},
    "clip": {"off": "", "on": "--clip-norm 0.5"},
    "ema": {"off": "", "on": "--ema 0.9"},
    "labels": {"off": "", "on": "--mixup 0.2 --label-smoothing 0.1"},
    "micro_batch_size": {"off": "", "on": ""},  # half the batch of the network
}
# Flags of what does not.
MEMORY = {
    "memory": {"managed": "--memory managed", "discards": "--memory managed --discard on",
               "copy": "--memory copy"},
    "state": {"auto": "", "far": "--state far"},
    "update": {"auto": "", "far": "--update far"},
    # The smallest budget of vDNN is nearly all, and with small pages more.
    "planner": {"joint": "", "capacity": "--planner capacity",
                "vdnn-all": "--planner vdnn-all --budget 120%"},
    "recompute": {"auto": "", "off": "--recompute off"},
    "graph": {"auto": "", "off": "--graph off"},
    "resume": {"off": "", "on": ""},
}
CARDS = {"order": {name: {"order": name} for name in ("eager", "late", "chance")}}
CHOICES = {**BITS, **MEMORY, **CARDS}
PLAIN = {name: next(iter(values)) for name, values in CHOICES.items()}
# What is refused, and words of the sentence.
REFUSED = [
    *[({"net": name, "dropout": "on"}, "has no dropout") for name in NETS if name != "wide"],
    *[({"net": name, "update": "far"}, "no weights of this network are large enough")
      for name in NETS if name != "wide"],
    ({"planner": "vdnn-all", "state": "far"}, "leaves weights and optimizer state near"),
    ({"planner": "vdnn-all", "update": "far"}, "plans no updates on the far side"),
    ({"precision": "bf16", "update": "far"}, "this device does not update on the far side"),
    ({"ema": "on", "update": "far"}, "no weights of this network are large enough"),
]


def is_refused(case):
    return any(parts.items() <= case.items() for parts, _ in REFUSED)


def groups_of(case):
    return set(itertools.combinations(case.items(), TOGETHER))


def all_groups():
    return {group for names in itertools.combinations(CHOICES, TOGETHER)
            for group in itertools.product(*([(name, value) for value in CHOICES[name]] for name in names))}


def cover():
    """Cases in which all values of so many choices meet, unless that is always refused."""
    chance = random.Random(1)
    groups = {group for group in all_groups() if not is_refused(dict(group))}
    cases = []
    while groups:
        first = min(groups)
        drawn = [{name: chance.choice(list(values)) for name, values in CHOICES.items()} | dict(first)
                 for _ in range(1000)]
        allowed = [case for case in drawn if not is_refused(case)]
        if not allowed:  # another choice is needed that goes with a part of them alone
            groups.discard(first)
            continue
        cases.append(max(allowed, key=lambda case: len(groups & groups_of(case))))
        groups -= groups_of(cases[-1])
    return cases


def run(case, memory=None):
    """The training of a case. One that is resumed ends in the middle and goes on."""
    family = FAMILIES[case["net"]]
    own = [tables[name][case[name]] for tables in ((BITS,) if memory else (BITS, MEMORY))
           for name in tables]
    flags = words(family.flags(), own, memory, "--lr 0.01")
    if case["micro_batch_size"] == "on":
        flags += ["--micro-batch-size", str(family.batch // 2)]
    if not memory and "--budget" not in flags:
        # Two halves keep gradients as well: percents are of the whole batch's need.
        needed_by_halves = "105%" if case["planner"] == "capacity" else "95%"
        flags += ["--budget", needed_by_halves if case["micro_batch_size"] == "on" else "min+30%"]
    card = {} if memory else CARDS["order"][case["order"]]
    if memory or case["resume"] == "off":
        return train(flags, "--steps", STEPS, card=card)
    with tempfile.TemporaryDirectory(dir=emulated_runs.folder.name) as folder:
        saved = ["--checkpoint", folder + "/saved", "--checkpoint-every 1"]
        first = train(flags, saved, "--steps", STEPS // 2, card=card)
        if first.status != 0:
            return first
        second = train(flags, saved, "--resume --steps", STEPS, card=card)
    return Run(**{**vars(second), "steps": first.steps + second.steps})


class Features(unittest.TestCase):
    def test_together_have_the_bits_of_the_resident_twin(self):
        met = set()
        twins = {}
        for case in cover():
            met |= groups_of(case)
            key = tuple(case[name] for name in BITS)
            if key not in twins:
                twins[key] = run(case, memory="--memory resident")
            with self.subTest(case=case):
                self.assertEqual(twins[key].status, 0, twins[key].story())
                self.expect_twin(run(case), twins[key])
        refused = {group for group in all_groups() if is_refused(dict(group))}
        self.assertGreater(len(met), 0.95 * len(all_groups() - refused))

    def expect_twin(self, one, twin):
        self.assertEqual(one.status, 0, one.story())
        self.assertEqual(one.bits(), twin.bits(), one.story())
        self.assertEqual(one.report["mistakes"], 0, one.report["first_mistake"])
        self.assertEqual(one.report["evicted_bytes"], 0, one.story())
        self.assertLessEqual(one.summary["near_peak_bytes"], one.summary["budget_bytes"], one.story())

    def test_are_refused_in_one_sentence_otherwise(self):
        for parts, sentence in REFUSED:
            with self.subTest(parts=parts):
                one = run({**PLAIN, "net": "wide", **parts})
                self.assertIn(one.status, (1, 2), one.story())
                self.assertEqual(len(one.sentences()), 1, one.story())
                self.assertRegex(one.sentences()[0], sentence)


if __name__ == "__main__":
    unittest.main()
