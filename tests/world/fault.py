"""What a seed makes go wrong in one run: which calls of the program, and how.

The names are those of faults.cpp, which a run preloads.
"""

import dataclasses
import signal

# How many calls of each kind a run makes about, for numbers that are likely to be reached.
REACH = {"open": 60, "read": 60, "write": 60, "far-read": 400, "far-write": 400, "sync": 24,
         "rename": 12, "unlink": 12, "allocate": 4, "map": 60, "advise": 60, "move-page": 3000,
         "new": 100_000}

# Kind of call, effect, and how many calls in a row at most. The program goes on as if nothing was.
HARMLESS = (
    ("read", "short", 3), ("write", "short", 3), ("far-read", "short", 3),
    ("far-write", "short", 3), ("read", "EINTR", 3), ("write", "EINTR", 3),
    ("far-read", "EINTR", 3), ("far-write", "EINTR", 3), ("allocate", "EINTR", 2),
    ("far-read", "rot", 1), ("far-read", "EIO", 2), ("far-write", "EIO", 2),
    ("move-page", "EAGAIN", 200),
    ("move-page", "EBUSY", 200), ("advise", "ENOMEM", 20), ("far-read", "delay=3000", 3),
    ("far-write", "delay=3000", 3), ("move-page", "delay=2000", 3), ("sync", "delay=3000", 2),
    ("map", "delay=500", 2), ("write", "delay=1000", 3))

# The program may refuse to start, or stop with a sentence; it may also go on.
HARMFUL = (
    ("open", "EMFILE", 1), ("open", "EACCES", 1), ("read", "EIO", 1), ("write", "EIO", 1),
    ("write", "ENOSPC", 1000), ("sync", "EIO", 1), ("sync", "ENOSPC", 1000), ("rename", "EACCES", 1),
    ("rename", "ENOSPC", 1000), ("unlink", "EACCES", 1), ("allocate", "ENOSPC", 1),
    ("map", "ENOMEM", 1), ("map", "ENOMEM", 1000), ("far-read", "EIO", 100_000),
    ("far-write", "EIO", 100_000), ("far-write", "ENOSPC", 100_000),
    ("far-read", "rot", 100_000), ("new", "ENOMEM", 1), ("new", "ENOMEM", 1000))

# What --each-call makes each call meet, one after the other.
EACH = ("open:EMFILE", "read:EIO", "write:ENOSPC", "write:kill", "sync:EIO", "sync:kill",
        "rename:EACCES", "rename:kill", "unlink:EACCES", "allocate:ENOSPC", "allocate:EINTR",
        "map:ENOMEM", "advise:ENOMEM", "far-read:EIO", "far-read:rot", "far-write:ENOSPC",
        "far-write:kill", "move-page:EAGAIN", "move-page:kill", "new:ENOMEM")
KILL = "kill"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class Fault:
    call: str
    first: int  # of the calls of this kind, counted from 1
    times: int
    effect: str

    def text(self):
        return f"{self.call}:{self.first}:{self.times}:{self.effect}"

    def is_harmless(self):
        """Whether the run must end as if it had not been."""
        return any(self.call == call and self.effect == effect and self.times <= most
                   for call, effect, most in HARMLESS)

    def kills(self):
        return self.effect == KILL

    def signal(self):
        """The signal's number, or None."""
        name, _, number = self.effect.partition("=")
        return int(number) if name == "signal" else None


def draw(random):
    """One to three faults; at most one of them ends the run."""
    faults = []
    for _ in range(random.choice((1, 1, 2, 3))):
        call, effect, most = random.choice(HARMLESS)
        faults.append(Fault(call, draw_number(random, call), random.randint(1, most), effect))
    kind = random.random()
    if kind < 0.35:
        call, effect, times = random.choice(HARMFUL)
        faults[0] = Fault(call, draw_number(random, call), times, effect)
    elif kind < 0.75:
        call = random.choice(tuple(REACH))
        faults[0] = Fault(call, draw_number(random, call), 1, KILL)
    elif kind < 0.85:
        call = random.choice(tuple(REACH))
        number = random.choice(SIGNALS)
        faults[0] = Fault(call, draw_number(random, call), random.choice((1, 1, 2)),
                          f"signal={int(number)}")
    return faults


def draw_number(random, call):
    """The number of a call; small ones are as likely as large ones."""
    return int(REACH[call] ** random.random())
