"""One training of the world, drawn from a seed: what is trained, how, and what goes wrong."""

import dataclasses
import random

import fault

NETWORKS = 60
PLANNERS = ("joint", "joint", "joint", "capacity", "on-demand", "fractional", "vdnn-all", "vdnn-dyn",
            "superneurons", "ibm-ooc", "modnn", "autoswap", "largest-first", "tflms", "recompute")
MOVE_STATE = ("joint", "capacity", "on-demand", "fractional")
BUDGETS = ("min", "min", "min+10%", "min+30%", "min+60%", "100%", "auto")


@dataclasses.dataclass(frozen=True)
class Case:
    seed: int
    network: int  # of NETWORKS
    batch: int
    steps: int
    optimizer: str
    data: str  # synthetic or idx
    threads: int
    micro_batch_size: int  # 0: the batch is not cut
    algorithm: str
    memory: str
    planner: str
    budget: str
    paging: str
    far: str  # ram or file
    recompute: str
    checkpoint_every: int  # 0: no checkpoint
    power_cut: bool  # a kill takes what was not flushed with it
    faults: tuple
    state: str = "auto"  # where weights and the optimizer's numbers may be

    def training_key(self):
        """What the weights at the end depend on."""
        return (self.network, self.batch, self.steps, self.optimizer, self.data, self.threads,
                self.micro_batch_size, self.algorithm)

    def profile_key(self):
        """What a profile depends on."""
        return (self.network, self.batch, self.optimizer, self.threads, self.algorithm)


def draw(seed):
    """The case of a seed, always the same."""
    choice = random.Random(seed)
    network = choice.randrange(NETWORKS)
    usual = random.Random(f"network {network}")  # as much variety with fewer undisturbed trainings
    batch = usual.choice((2, 4, 8, 16))
    memory = choice.choice(("managed", "managed", "managed", "copy", "copy", "resident"))
    may_cut = choice.random() < 0.04
    drawn = Case(
        seed=seed, network=network, batch=batch, steps=choice.randint(1, 5),
        optimizer=usual.choice(("sgd", "sgd", "adam")),
        data=choice.choice(("synthetic", "synthetic", "idx")), threads=choice.choice((1, 1, 2)),
        micro_batch_size=batch // 2 if may_cut else 0, algorithm=usual.choice(("direct", "winograd")),
        memory=memory, planner=choice.choice(PLANNERS), budget=choice.choice(BUDGETS),
        paging=choice.choice(("auto", "uffd", "memfd")), far=choice.choice(("ram", "file", "file")),
        recompute=choice.choice(("auto", "auto", "off")),
        checkpoint_every=choice.choice((0, 1, 1, 1, 2, 3)), power_cut=choice.random() < 0.5,
        faults=tuple(fault.draw(choice)))
    may_move = drawn.planner in MOVE_STATE and drawn.memory != "resident"
    states = ("auto", "near", "far", "far") if may_move else ("auto", "near")
    return dataclasses.replace(drawn, state=choice.choice(states))


def with_fault(seed, call, effect, number):
    """A seed's case, in which nothing goes wrong but one call."""
    base = dataclasses.replace(draw(seed), memory="managed" if seed % 2 else "copy", budget="min",
                               planner="joint", far="file", steps=3, micro_batch_size=0, threads=1,
                               checkpoint_every=1, power_cut=seed % 4 < 2, state="auto")
    return dataclasses.replace(base, faults=(fault.Fault(call, number, 1, effect),))


# Where a training is when it is killed: what it keeps far, and the calls that a kill may meet.
KILLED = {
    "managed, far file": ({"memory": "managed"}, ("far-read", "far-write", "move-page", "advise")),
    "copy, far file": ({"memory": "copy"}, ("far-read", "far-write", "write")),
    "state far, managed": ({"memory": "managed", "state": "far"},
                           ("far-read", "far-write", "move-page", "advise", "write")),
    "state far, copy": ({"memory": "copy", "state": "far"}, ("far-read", "far-write", "write")),
    "micro-batches": ({"memory": "managed", "cut": True, "state": "far"},
                      ("far-read", "far-write", "move-page")),
    "checkpoint writes": ({"memory": "managed"}, ("write", "sync", "rename", "unlink"))}


def killed(where, seed):
    """A seed's case, in which nothing goes wrong but a kill in one of KILLED."""
    changes, calls = KILLED[where]
    changes = dict(changes)
    base = draw(seed)
    if changes.pop("cut", False):
        changes["micro_batch_size"] = base.batch // 2
    choice = random.Random(f"kill {seed}")
    call = choice.choice(calls)
    kill = fault.Fault(call, fault.draw_number(choice, call), 1, fault.KILL)
    return dataclasses.replace(base, budget="min", planner="joint", recompute="off", far="file",
                               steps=4, checkpoint_every=1, power_cut=False, faults=(kill,),
                               **{"micro_batch_size": 0, "state": "auto", **changes})


def options(case, files):
    """The words after `spillway train` of a case, but for its memory and checkpoint. `files` makes
    networks and data sets."""
    words = ["--net", files.network(case.network), "--batch", case.batch, "--steps", case.steps,
             "--optimizer", case.optimizer, "--threads", case.threads, "--device", "host",
             "--conv-algorithm", case.algorithm,
             "--data", "synthetic" if case.data == "synthetic" else f"idx:{files.images()}"]
    words += ["--micro-batch-size", case.micro_batch_size] if case.micro_batch_size else [
        "--profile", files.profile(case)]
    return [str(word) for word in words]


def memory_options(case, files, folder):
    """Budget, planner and far memory of a case; its far file is put into `folder`."""
    words = ["--memory", case.memory]
    if case.memory != "resident":
        words += ["--planner", case.planner, "--budget", case.budget, "--recompute", case.recompute,
                  "--state", case.state,
                  "--far", "ram" if case.far == "ram" else f"file:{folder}"]
    if case.memory == "managed":
        words += ["--paging", case.paging]
    return [str(word) for word in words]


def checkpoint_options(case, folder):
    if not case.checkpoint_every:
        return []
    return ["--checkpoint", str(folder), "--checkpoint-every", str(case.checkpoint_every)]
