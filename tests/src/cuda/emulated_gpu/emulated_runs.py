"""Trainings on the emulated GPU and on the host, and what came of them."""

import atexit
import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
PROGRAM = pathlib.Path(os.environ.get("SPILLWAY_EMULATED_PROGRAM",
                                      ROOT / "build/release/tests/emulated/spillway"))
PATIENCE = 300  # seconds; a run takes a few on an idle processor
# The same algorithms in each memory mode and on the host.
EXACT = ["--conv-algorithm", "direct", "--deterministic", "--threads", "1"]
SUMMARY = "summary"

folder = tempfile.TemporaryDirectory(prefix="emulated-gpu-")  # of this process
atexit.register(folder.cleanup)


@dataclasses.dataclass(frozen=True)
class Run:
    """One `spillway train`."""
    command: str  # for a shell, to repeat it
    status: int  # the exit status; None: it did not end
    errors: str  # what it wrote to standard error
    steps: tuple  # a line of JSON each
    summary: dict  # empty where it was not written
    report: dict  # the emulated GPU's; empty where it wrote none

    def losses(self):
        return [step["loss"] for step in self.steps]

    def bits(self):
        """What memory, planners and the order of work may not change."""
        return self.losses(), self.summary.get("weights_sha256")

    def sentences(self):
        """Why it failed, without the hint at --help that follows where the flags are wrong."""
        lines = self.errors.splitlines()
        if self.status == 2:
            return [line for line in lines if line != "Run with --help for more information."]
        return [line.removeprefix("spillway: ") for line in lines if line.startswith("spillway: ")]

    def story(self):
        """For the message of an assertion."""
        return f"{self.command}\nexit status {self.status}\n{self.errors[-1500:]}"


def words(*parts):
    """A flat list of the words of a command: texts are split, None is left out."""
    flat = []
    for part in parts:
        if isinstance(part, (list, tuple)):
            flat += words(*part)
        elif part is not None:
            flat += str(part).split()
    return flat


def call(command, card=None):
    """Runs a command with these settings of the emulated GPU: its result, and the report."""
    with tempfile.TemporaryDirectory(dir=folder.name) as own:
        report = pathlib.Path(own) / "report"
        settings = [f"{name}={value}" for name, value in {**(card or {}), "report": report}.items()]
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "SPILLWAY_MEASURING_TIME": "0.001",
                       "LD_LIBRARY_PATH": str(PROGRAM.parent),  # NCCL and CUPTI, emulated
                       "SPILLWAY_EMULATED_GPU": ",".join(settings)}
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env=environment, timeout=PATIENCE)
        except subprocess.TimeoutExpired as hung:
            done = subprocess.CompletedProcess(
                command, None, (hung.stdout or b"").decode(), (hung.stderr or b"").decode())
        reports = list(pathlib.Path(own).glob("report.*"))
        found = json.loads(reports[0].read_text(encoding="utf-8")) if reports else {}
    return done, found


def train(*flags, card=None, launcher=()):
    """Trains on the emulated GPU with these settings, a dictionary. Flags as words() takes them.
    `launcher` is what starts the program, as several ranks."""
    return start(words("--device cuda", EXACT, flags), card or {}, launcher)


def train_on_host(*flags):
    return start(words("--device host --memory resident", EXACT, flags))


def start(flags, card=None, launcher=()):
    command = [*launcher, str(PROGRAM), "train", *flags, "--json", "-"]
    done, report = call(command, card)
    lines = [json.loads(line) for line in whole_lines(done.stdout)]
    settings = ",".join(f"{name}={value}" for name, value in (card or {}).items())
    shown = shlex.join(["build/release/tests/emulated/spillway" if word == str(PROGRAM) else word
                        for word in command])
    return Run(command=f"SPILLWAY_EMULATED_GPU={settings} {shown}" if settings else shown,
               status=done.returncode, errors=done.stderr,
               steps=tuple(line for line in lines if "loss" in line),
               summary=next((line[SUMMARY] for line in lines if SUMMARY in line), {}),
               report=report)


def whole_lines(text):
    """Those that begin an object and end; a process that was killed may leave half a line."""
    return [line for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


@functools.cache
def profile(*flags):
    """The file of a profile of these flags, by the times of a machine: plans are always the same."""
    path = pathlib.Path(folder.name) / f"profile-{abs(hash(flags))}.json"
    done, _ = call(words(PROGRAM, "profile --device cuda --machine h100", EXACT, flags, "--out", path))
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(done.args)}\n{done.stderr}")
    return path


@functools.cache
def thin(network, divisor, sizes, layers=None):
    """The file of a network with a part of its channels, and of a transformer's layers the first
    ones. `sizes` are flags of `spillway nets`."""
    done, _ = call(words(PROGRAM, "nets", network, sizes, "--dump -"))
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(done.args)}\n{done.stderr}")

    def stays(line):
        found = re.search(r"\.layer\.(\d+)\.", line)
        return not found or layers is None or int(found[1]) < layers
    return network_file("\n".join(
        re.sub(r"\b(channels|features)=(\d+)",
               lambda found: f"{found[1]}={max(1, int(found[2]) // divisor)}", line)
        for line in done.stdout.splitlines() if stays(line)))


@functools.cache
def network_file(text):
    name = re.search(r"^name (\S+)", text, re.MULTILINE)[1]
    path = pathlib.Path(folder.name) / f"{name}-{abs(hash(text))}.net"
    path.write_text(text, encoding="utf-8")
    return path
