"""Plays a case and says what of the promises was broken.

Whatever goes wrong below the program, a training ends with the bits of an undisturbed one, or stops
with one sentence; it keeps its budget and leaves nothing behind; and what it saved goes on to the
same weights.
"""

import dataclasses
import pathlib
import random
import shutil
import signal

import case as cases
import disk as disks
from program import name_of

EXIT_OF_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
PARTS_OF_BUGS = ("a bug in spillway", "terminate called", "runtime error", "Sanitizer")


@dataclasses.dataclass(frozen=True)
class Verdict:
    end: str  # how the disturbed run ended: "trained", "refused", "killed", "stopped"
    broken: str  # the promise that was broken, or ""
    errors: str  # what the run wrote, where one was
    struck: int = 0  # faults that met a call


class Broken(Exception):
    def __init__(self, promise, outcome=None):
        super().__init__(promise)
        self.errors = outcome.errors if outcome else ""


class World:
    """Plays cases with one program, in a folder that is emptied for each."""

    def __init__(self, program, files, folder):
        self.program = program
        self.files = files
        self.folder = pathlib.Path(folder)

    def play(self, case):
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("far", "counts"):
            (self.folder / name).mkdir(parents=True)
        try:
            return self.disturbed(case)
        except Broken as broken:
            return Verdict("", str(broken), broken.errors)

    def disturbed(self, case):
        reference = self.reference(case)
        folder = self.folder / "checkpoint"
        disk = disks.Disk(folder)
        outcome = self.train(case, case.faults, disk=folder)
        end = self.judge(case, outcome, reference)
        if case.checkpoint_every and end in ("killed", "stopped", "refused"):
            must_be_saved = False
            if end == "killed" and case.power_cut and folder.is_dir():
                disk.replay(self.folder / "counts" / "log")
                must_be_saved = disk.holds_surely("checkpoint.json")
                disk.cut(random.Random(case.seed))
            self.go_on(case, folder, reference, must_be_saved)
        self.expect_clean(case, folder)
        return Verdict(end, "", "", struck=sum(map(bool, outcome.fired)))

    def reference(self, case):
        """The weights that an undisturbed training ends with, all in near memory."""
        name = "-".join(map(str, case.training_key())) + ".weights"

        def train():
            words = [*cases.options(case, self.files), "--memory", "resident"]
            outcome = self.program.train(words, self.folder / "counts")
            if outcome.status != 0:
                raise Broken("an undisturbed training fails", outcome)
            return outcome.summary["weights_sha256"]
        return self.files.text(name, train)

    def train(self, case, faults=(), more=(), disk=None):
        words = [*cases.options(case, self.files),
                 *cases.memory_options(case, self.files, self.folder / "far"),
                 *cases.checkpoint_options(case, self.folder / "checkpoint"), *more]
        return self.program.train(words, self.folder / "counts", faults, disk)

    def judge(self, case, outcome, reference):
        """How the run ended. Throws: Broken when it may not end so."""
        struck = [one for one, count in zip(case.faults, outcome.fired) if count]
        signals = [one.signal() for one in struck if one.signal()]
        if outcome.status is None:
            raise Broken("a run must end", outcome)
        if outcome.status == -signal.SIGKILL and any(one.kills() for one in struck):
            return "killed"
        if outcome.status == 0:
            expect_result(outcome, reference)
            return "trained"
        expect_sentence(outcome)
        if outcome.status in [EXIT_OF_SIGNAL[number] for number in signals]:
            return "stopped"
        if all(one.is_harmless() for one in struck) and not self.has_no_plan(outcome):
            raise Broken(f"{name_of(outcome.status)} although every fault was harmless", outcome)
        return "refused"

    @staticmethod
    def has_no_plan(outcome):
        """Some planners have none in a small budget, and say so before anything is trained."""
        return "budget" in outcome.last_words() and "step 1" not in outcome.errors

    def go_on(self, case, folder, reference, must_be_saved):
        """What was saved goes on to the same weights, or there is nothing saved."""
        resume = ["--resume"] if self.is_saved(folder) else []
        if must_be_saved and not resume:
            raise Broken("a power cut took a checkpoint that had been flushed")
        outcome = self.train(case, more=resume)
        if self.has_no_plan(outcome) and outcome.status == 1:
            return
        if outcome.status != 0:
            raise Broken(f"what was saved does not go on: {name_of(outcome.status)}", outcome)
        expect_result(outcome, reference)

    @staticmethod
    def is_saved(folder):
        return folder.is_dir() and any(path.name == "checkpoint.json" or
                                       path.match("step-*.json") for path in folder.iterdir())

    def expect_clean(self, case, folder):
        left = [path.name for path in (self.folder / "far").iterdir()]
        if left:
            raise Broken(f"far memory is left behind: {left}")
        if folder.is_dir() and case.checkpoint_every:
            partial = [path.name for path in folder.iterdir() if path.match("*.partial")]
            if partial:
                raise Broken(f"partial files are left behind: {partial}")


def expect_result(outcome, reference):
    if outcome.summary is None:
        raise Broken("a training that ends well says what came of it", outcome)
    if outcome.summary["weights_sha256"] != reference:
        raise Broken("the weights differ from an undisturbed training's", outcome)
    if outcome.summary["near_peak_bytes"] > outcome.summary["budget_bytes"]:
        raise Broken("near memory exceeds the budget", outcome)


def expect_sentence(outcome):
    words = outcome.last_words()
    if not words.startswith("spillway: ") or any(part in words for part in PARTS_OF_BUGS):
        raise Broken(f"{name_of(outcome.status)} without a sentence that says why", outcome)
