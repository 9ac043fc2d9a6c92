"""Plays a case and says what of the promises was broken.

Whatever goes wrong below the program, a training ends with the bits of an undisturbed one, or stops
with one sentence; it keeps its budget and leaves nothing behind; and what it saved goes on to the
same weights.
"""

import dataclasses
import json
import pathlib
import random
import re
import shutil
import signal

import case as cases
import disk as disks
from program import name_of

EXIT_OF_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
CRASHES = (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE)
FATAL = "a page fault cannot be resolved"  # where nobody could catch anything
NEWEST = "checkpoint.json"
MANIFEST = re.compile(r"checkpoint\.json|step-\d+\.json")
WHERE_IT_GOES_ON = re.compile(r"(?:going on after step|is of step) (\d+)")
THAT_ABORT = ("::json_value::destroy(", "/libdnnl.so")  # where an allocation of theirs fails
# How: by an exception that nobody may catch, or as a thread of oneDNN's goes out of scope.
WORDS_OF_ABORTS = ("'std::bad_alloc'", "terminate called without an active exception")
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
            disk.replay(self.folder / "counts" / "log")
            saved = step_of(disk.content(NEWEST))
            if end == "stopped":
                expect_saved_by_signal(outcome, saved)
            if end == "killed" and case.power_cut and folder.is_dir():
                saved = step_of(disk.sure_content(NEWEST))
                disk.cut(random.Random(case.seed))
            self.go_on(case, folder, reference, saved)
        lost = [one for one, count in zip(case.faults, outcome.fired)
                if count and one.call == "unlink"]  # its file stays until the next start
        if not lost or end != "trained":
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
        signals = [one.signal() for one, count in zip(case.faults, outcome.fired)
                   for _ in range(count) if one.signal()]
        if outcome.status is None:
            raise Broken("a run must end", outcome)
        if outcome.status == -signal.SIGKILL and any(one.kills() for one in struck):
            return "killed"
        if outcome.status == -signal.SIGABRT and is_of_library(outcome) and any(
                one.call == "new" for one in struck):
            return "killed"
        # A second signal ends the run at once, and so does one before anything is trained.
        if -outcome.status in signals and (len(signals) > 1 or "step 1 " not in outcome.errors):
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
        words = outcome.last_words()
        return (outcome.status == 1 and "budget" in words and "near memory is full" not in words
                and "step 1" not in outcome.errors)

    def go_on(self, case, folder, reference, saved):
        """What was saved goes on to the same weights, from step `saved` or a later one; nothing
        is saved where that is None."""
        if saved is not None and not self.is_saved(folder):
            raise Broken("a checkpoint that had been saved is gone")
        outcome = self.train(case, more=["--resume", "auto"])
        if self.has_no_plan(outcome):
            if saved is not None:
                raise Broken("what was saved has no plan any more", outcome)
            return
        if outcome.status != 0:
            raise Broken(f"what was saved does not go on: {name_of(outcome.status)}", outcome)
        begun = WHERE_IT_GOES_ON.search(outcome.errors)
        if saved is not None and (not begun or int(begun[1]) < saved):
            raise Broken("a training goes on from an older checkpoint than the last", outcome)
        expect_result(outcome, reference)

    @staticmethod
    def is_saved(folder):
        return folder.is_dir() and any(MANIFEST.fullmatch(path.name) for path in folder.iterdir())

    def expect_clean(self, case, folder):
        left = [path.name for path in (self.folder / "far").iterdir()]
        if left:
            raise Broken(f"far memory is left behind: {left}")
        if folder.is_dir() and case.checkpoint_every:
            partial = [path.name for path in folder.iterdir() if path.match("*.partial")]
            if partial:
                raise Broken("partial files are left behind")


def is_of_library(outcome):
    """Whether a library that allocates where nothing may be thrown ended the process: the innermost
    frame that is neither an allocation nor the C++ library's is one of its functions."""
    if not any(words in outcome.errors for words in WORDS_OF_ABORTS):
        return False
    for frame in outcome.frames:
        if any(name in frame for name in THAT_ABORT):
            return True
        if "spillway::" in frame and "nlohmann::" not in frame:
            return False
    return False


def step_of(manifest):
    """The step of a manifest's text, or None where there is none."""
    try:
        return None if manifest is None else json.loads(manifest)["step"]
    except ValueError:
        raise Broken("a checkpoint has its name on the disk before its content") from None


def expect_saved_by_signal(outcome, saved):
    """A signal in a training that is saved ends the step under way and saves it."""
    told = WHERE_IT_GOES_ON.search(outcome.last_words())
    if "step 1 " in outcome.errors and (not told or saved is None or int(told[1]) != saved):
        raise Broken("a signal stops a training that is not saved then", outcome)


def expect_result(outcome, reference):
    if outcome.summary is None:
        raise Broken("a training that ends well says what came of it", outcome)
    if outcome.summary["weights_sha256"] != reference:
        raise Broken("the weights differ from an undisturbed training's", outcome)
    if not outcome.summary["steps_run"]:
        return  # nothing was left to train, and nothing was allocated
    if outcome.summary["near_peak_bytes"] > outcome.summary["budget_bytes"]:
        raise Broken("near memory exceeds the budget", outcome)


def expect_sentence(outcome):
    words = outcome.last_words()
    if outcome.status == -signal.SIGABRT and FATAL not in words or outcome.status in CRASHES:
        raise Broken(f"{name_of(outcome.status)} is no way to end", outcome)
    if not words.startswith("spillway: ") or any(part in words for part in PARTS_OF_BUGS):
        raise Broken(f"{name_of(outcome.status)} without a sentence that says why", outcome)
