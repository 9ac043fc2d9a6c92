"""Trainings with features in combination: what each choice means, and which do not go together."""

import itertools
import random
import tempfile

import emulated_runs
from emulated_runs import Run, train, words
from families import FAMILIES

STEPS = 4
# Flags of what changes bits: the twin has them, too.
BITS = {
    "net": {name: family.flags for name, family in FAMILIES.items()},
    "precision": {"fp32": "", "bf16": "--precision bf16"},
    "optimizer": {name: f"--optimizer {name}" for name in ("sgd", "adam", "adamw")},
    "dropout": {"off": "", "on": "--dropout 0.2"},
    "clip": {"off": "", "on": "--clip-norm 0.5"},
    "ema": {"off": "", "on": "--ema 0.9"},
    "mixup": {"off": "", "on": "--mixup 0.2"},
    "sub_batch": {"off": "", "on": "--sub-batch 4"},
}
# Flags of what does not.
MEMORY = {
    "memory": {name: f"--memory {name}" for name in ("resident", "managed", "copy")},
    "state": {"near": "--state near", "far": "--state far"},
    "update": {"near": "--update near", "far": "--update far"},
    # vDNN's smallest budget is nearly all.
    "planner": {"joint": "", "capacity": "--planner capacity",
                "vdnn-all": "--planner vdnn-all --budget 100%"},
    "recompute": {"auto": "", "off": "--recompute off"},
    "graph": {"auto": "", "off": "--graph off"},
    "resume": {"off": "", "on": ""},
}
CARDS = {
    "order": {"eager": {"order": "eager"}, "late": {"order": "late"},
              "chance": {"order": "chance"}},
    "card": {"discrete": {}, "no-hints": {"kind": "no-hints"}, "old": {"driver": 12080}},
}
CHOICES = {name: list(values) for name, values in {**MEMORY, **BITS, **CARDS}.items()}
CHOICES["net"] = ["lenet", "wide", "resnet18", "gpt"]  # in pairs with everything else
# What is refused, and words of the sentence.
REFUSED = [
    *[({"net": name, "mixup": "on"}, "mixup and CutMix are of images")
      for name, family in FAMILIES.items() if family.is_text],
    *[({"net": name, "dropout": "on"}, "has no dropout")
      for name, family in FAMILIES.items() if not family.has_dropout],
    *[({"memory": "resident", "planner": name}, "--planner: does nothing with --memory resident")
      for name in ("capacity", "vdnn-all")],
    ({"memory": "resident", "state": "far"}, "--memory resident has no far memory"),
    ({"memory": "resident", "update": "far"}, "--memory resident has no far memory"),
    *[({"net": name, "update": "far"}, "no weights of this network are large enough")
      for name, family in FAMILIES.items() if not family.is_wide],
    ({"state": "near", "update": "far"}, "updates on the far side are of state that is far"),
    ({"planner": "vdnn-all", "state": "far"}, "leaves weights and optimizer state near"),
    ({"planner": "vdnn-all", "state": "far", "update": "far"}, "leaves weights and optimizer state near"),
    ({"sub_batch": "on", "state": "far"}, "go(es)? with whole batches only"),
    ({"sub_batch": "on", "update": "far"}, "go(es)? with whole batches only"),
    ({"memory": "managed", "card": "no-hints"}, "concurrentManagedAccess is 0"),
]
PLAIN = {name: values[0] for name, values in CHOICES.items()}


def is_refused(case):
    return any(parts.items() <= case.items() for parts, _ in REFUSED)


def cover(choices=None, seed=1):
    """Cases in which each two values of two choices meet, unless that is always refused."""
    choices = choices or CHOICES
    chance = random.Random(seed)

    def pairs_of(case):
        return set(itertools.combinations(case.items(), 2))

    pairs = {((one, x), (other, y)) for one, other in itertools.combinations(choices, 2)
             for x in choices[one] for y in choices[other]}
    cases = []
    while pairs:
        first = min(pairs)
        drawn = [{name: chance.choice(values) for name, values in choices.items()} | dict(first)
                 for _ in range(500)]
        allowed = [case for case in drawn if not is_refused(case)]
        if not allowed:
            pairs.discard(first)
            continue
        cases.append(max(allowed, key=lambda case: len(pairs & pairs_of(case))))
        pairs -= pairs_of(cases[-1])
    return cases


def flags_of(case, tables):
    values = [tables[name][case[name]] for name in tables if name in case]
    return words([value() if callable(value) else value for value in values])


def card_of(case):
    card = {}
    for name, table in CARDS.items():
        card |= table[case[name]]
    return card


def run(case, steps=STEPS):
    """The training of a case. One that is resumed ends in the middle and goes on."""
    flags = [flags_of(case, BITS), flags_of(case, MEMORY), "--lr 0.01"]
    if case["memory"] != "resident" and "--budget" not in words(flags):
        flags += ["--budget min+30%"]
    if case["resume"] == "off":
        return train(flags, "--steps", steps, card=card_of(case))
    with tempfile.TemporaryDirectory(dir=emulated_runs.folder.name) as folder:
        saved = ["--checkpoint", folder + "/saved", "--checkpoint-every 1"]
        first = train(flags, saved, "--steps", steps // 2, card=card_of(case))
        if first.status != 0:
            return first
        second = train(flags, saved, "--resume --steps", steps, card=card_of(case))
    return Run(**{**vars(second), "steps": first.steps + second.steps})


def twin(case):
    """The same training with everything resident, done at once, in the order of its calls."""
    return run({**case, **{name: PLAIN[name] for name in (*MEMORY, *CARDS)}})


def twin_key(case):
    return tuple(case[name] for name in BITS)
