"""Runs of the program in the world, and what came of them."""

import bisect
import dataclasses
import functools
import json
import os
import pathlib
import re
import signal
import struct
import subprocess

import fault

CALLS = tuple(fault.REACH)  # in the order of Call in faults.h
COUNTS = struct.Struct(f"<{len(CALLS)}Q16Q")  # Counts there
PATIENCE = 60  # seconds; a run takes a tenth of one
FRAME = re.compile(r"world: at (.*) (0x[0-9a-f]+)\n?")


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: int  # the exit status, or minus the signal that ended it; None: it did not end
    errors: str  # what it wrote to standard error
    summary: dict  # of its last line of JSON, or None
    calls: dict  # how many of each kind
    fired: tuple  # how often each fault struck
    frames: tuple = ()  # where it aborted: functions of the program and files of libraries

    def last_words(self):
        lines = self.errors.strip().splitlines()
        return lines[-1] if lines else ""


class Program:
    def __init__(self, program, library):
        self.program = program
        self.library = library

    def train(self, words, folder, faults=(), disk=None):
        """One `spillway train`. Its files of counts and records go to `folder`; with `disk`, what
        it does to that folder is recorded in `folder`/log."""
        counts = pathlib.Path(folder) / "counts"
        counts.write_bytes(bytes(COUNTS.size))
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "SPILLWAY_CACHE": "off",
                       "SPILLWAY_WORLD_COUNTS": str(counts),
                       "SPILLWAY_WORLD_FAULTS": ",".join(one.text() for one in faults)}
        if disk:
            environment |= {"SPILLWAY_WORLD_DISK": str(disk),
                            "SPILLWAY_WORLD_LOG": str(pathlib.Path(folder) / "log")}
        try:
            done = subprocess.run([self.program, "train", *words, "--json", "-"],
                                  capture_output=True, text=True, env=environment,
                                  timeout=PATIENCE, check=False, preexec_fn=heed_interrupts)
        except subprocess.TimeoutExpired as hung:
            return Outcome(None, (hung.stderr or b"").decode(errors="replace"), None,
                           *read_counts(counts, faults))
        errors, frames = self.without_frames(done.stderr)
        outcome = Outcome(done.returncode, errors, summary_of(done.stdout),
                          *read_counts(counts, faults), frames)
        if outcome.status == 0 and not outcome.calls["open"]:
            raise RuntimeError(f"{self.library} is not loaded: no call was counted")
        return outcome

    def without_frames(self, errors):
        """What the program wrote, and the frames that aborts.cpp added."""
        lines, frames = [], []
        for line in errors.splitlines(keepends=True):
            at = FRAME.fullmatch(line)
            if not at:
                lines.append(line)
            elif pathlib.Path(at[1]).name == pathlib.Path(self.program).name:
                frames.append(self.function_at(int(at[2], 16) - 1))  # the call, not its return
            else:
                frames.append(at[1])
        return "".join(lines), tuple(frames)

    def function_at(self, offset):
        begins, names = self.functions
        index = bisect.bisect_right(begins, offset) - 1
        return names[index] if index >= 0 else ""

    @functools.cached_property
    def functions(self):
        """Where each function of the program begins, and its name."""
        lines = subprocess.run(["nm", "-C", "--defined-only", "--numeric-sort", self.program],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        found = [line.split(maxsplit=2) for line in lines]
        found = [words for words in found if words[1].lower() in "tw"]
        return [int(words[0], 16) for words in found], [words[2] for words in found]


def heed_interrupts():
    """SIGINT is ignored where a script started these tests with &."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def read_counts(path, faults):
    numbers = COUNTS.unpack(path.read_bytes())
    return dict(zip(CALLS, numbers)), numbers[len(CALLS):len(CALLS) + len(faults)]


def summary_of(output):
    for line in reversed(output.splitlines()):
        try:
            return json.loads(line).get("summary")
        except ValueError:
            return None  # the run ended within a line
    return None


def name_of(status):
    if status is None:
        return f"no end within {PATIENCE} s"
    return f"exit {status}" if status >= 0 else signal.Signals(-status).name
