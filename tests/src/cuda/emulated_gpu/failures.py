"""Trainings on the emulated GPU of which one call fails, and what must be true of them then."""

import pathlib
import re
import tempfile

import emulated_runs
from emulated_runs import PROGRAM, call, profile, train, words

NET = "--net lenet --batch 128"
FLAGS = {
    "managed": "--memory managed --budget min+30% --discard on",
    "copy": "--memory copy --budget min+30%",
}
STEPS = 3
# A driver may let any call fail; what it is told to release it keeps, and the process goes on.
PATIENT = {"go-on": "off"}
FAILED = "calls that failed by request"
# Functions that have places which a training reaches or not, and why. A capture has one thread.
BY_CHANCE = {
    "cudaEventDestroy": "an event ends in the thread that is the last to use it",
    "cudaEventCreateWithFlags": "an event is made where no earlier one is free yet",
    "cudaStreamWaitEvent": "launches wait only for moves that have not ended",
    "cudaGetDevice": "each of these asks for the current device before",
}
WORST = 150  # calls after the device was lost: each stream and event of a training is drained


def run(memory, card, folder=None):
    """Trains and keeps a checkpoint of each step."""
    with tempfile.TemporaryDirectory(dir=emulated_runs.folder.name) as own:
        saved = pathlib.Path(folder or own) / "saved"
        training = train(NET, FLAGS[memory], "--steps", STEPS, "--checkpoint", saved,
                         "--checkpoint-every 1 --lr 0.01 --profile", profile(*words(NET)),
                         card={**PATIENT, **card})
        return training, wrong_in(saved)


def wrong_in(saved):
    """What `spillway checkpoint verify` says of a folder; nothing if all is well or none is there."""
    if not saved.is_dir():
        return ""
    done, _ = call([str(PROGRAM), "checkpoint", "verify", str(saved)])
    empty = done.returncode == 1 and "there is no checkpoint in" in done.stderr
    return "" if done.returncode == 0 or empty else done.stdout + done.stderr


def cards_of(training):
    """The calls that may fail: each place of the plug-in that calls CUDA, on a device that goes on
    and on one that is lost. A driver that has not lost its device releases what it is told to. It
    may or may not invalidate the capture that the call belongs to."""
    cards = []
    for site in sorted(training.report["sites"]):
        if not re.match("cudaFree|cuda.*Destroy", site):
            cards.append({"fail": site, "lost": "off"})
            if is_captured(site):
                cards.append({"fail": site, "lost": "off", "invalidates": "on"})
        cards.append({"fail": site, "lost": "on"})
    return cards


def is_captured(site):
    return site.endswith("+captured")


def function_of(site):
    return site.partition("@")[0]


def is_reached_by_chance(site):
    """Whether threads may run so that a training never gets to a place."""
    return function_of(site) in BY_CHANCE and not is_captured(site)


def verdict(training, wrong, twin, is_lost):
    """What is wrong with a training of which a call failed; empty if it kept what is promised."""
    if training.status is None:
        return "it hangs"
    if training.status not in (0, 1):
        return f"it ends with {training.status}"
    if training.report.get("mistakes") != 0:
        return f"a mistake: {training.report.get('first_mistake')}"
    if wrong:
        return f"its checkpoint does not verify: {wrong}"
    if training.status == 0 and training.bits() != twin.bits():
        return "it ends with other bits"
    if training.status == 1 and len(training.sentences()) != 1:
        return f"it ends with {len(training.sentences())} sentences"
    if training.status == 1 and re.search("bug in spillway|terminate", training.errors):
        return "its sentence is that of a bug"
    if is_lost and training.report["calls_after_loss"] > WORST:
        return f"{training.report['calls_after_loss']} calls follow the loss of the device"
    return ""
