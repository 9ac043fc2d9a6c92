"""Builds the image of the Dockerfile, and trains in it: by docker or podman, or where neither runs, by
following the file in bare Debian systems. There the program is configured, but not compiled: its packages
are those of a build (the folder SPILLWAY_BUILD).

With SPILLWAY_IMAGE=whole it is compiled, which takes long; docker and podman are asked for that alone. In
bare systems a cache in ~/.cache/spillway/image helps.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

import bare_debian
from bare_debian import skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["SPILLWAY_BUILD"])
CACHE = pathlib.Path.home() / ".cache/spillway/image"
IS_WHOLE = os.environ.get("SPILLWAY_IMAGE") == "whole"
TRAINS = "spillway train --net lenet --batch 8 --steps 2 --budget min+50% --data synthetic"
RANKS = f"mpirun -n 2 --oversubscribe --bind-to none {TRAINS} --conv-algorithm direct --ranks auto"


def expanded(text, variables):
    """`text` with $NAME, ${NAME}, ${NAME:-WORD} and ${NAME:+WORD}, as sh has them and docker, too."""
    return subprocess.run(["sh", "-c", f'printf %s "{text}"'], env=variables, check=True,
                          capture_output=True, text=True).stdout


def instructions(text):
    """Pairs of a word and the rest of an instruction, whose lines are joined."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        if line.strip():
            word, rest = line.strip().split(None, 1)
            yield word, rest


class Follower:
    """Follows a Dockerfile over bare Debian systems; each stage is one."""

    def __init__(self, systems):
        self.systems, self.arguments, self.stages = systems, {}, {}
        self.debian = self.folder = self.variables = None

    def follow(self, text):
        for word, rest in instructions(text):
            getattr(self, "follow_" + word.lower())(rest)

    def follow_arg(self, rest):
        name, _, value = rest.partition("=")
        if self.debian is None:
            self.arguments[name] = expanded(value, self.arguments)
        else:
            self.variables[name] = self.arguments.get(name, value)

    def follow_from(self, rest):
        image, _, name = rest.partition(" AS ")
        if expanded(image, self.arguments) != "debian:12":
            raise AssertionError(f"this test has no system {image}")
        self.debian = self.systems.enter_context(bare_debian.enter())
        self.debian.run("rm -rf /var/lib/apt/lists/*")  # which an image lacks
        self.folder, self.variables = "/", {}
        self.stages[name or len(self.stages)] = self.debian

    def follow_workdir(self, rest):
        self.folder = rest

    def follow_env(self, rest):
        self.variables.update(pair.split("=", 1) for pair in shlex.split(rest))

    def follow_cmd(self, rest):
        self.command = json.loads(rest)

    def follow_copy(self, rest):
        *options, source, target = shlex.split(rest)
        into = self.debian.root / target.lstrip("/")
        into.mkdir(parents=True, exist_ok=True)
        if options:
            stage = self.stages[options[0].removeprefix("--from=")]
            shutil.copytree(stage.root / source.lstrip("/"), into, dirs_exist_ok=True)
            return
        if source != ".":
            raise AssertionError(f"this test cannot copy {source}")
        # What git knows or would add stands for all but what .dockerignore names.
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                (into / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, into / name)

    def follow_run(self, rest):
        mounts = {}
        while rest.startswith("--"):
            option, rest = rest.split(None, 1)
            mounts[re.fullmatch("--mount=type=cache,target=(.*)", option)[1]] = CACHE
        configures, _, builds = rest.partition("&& cmake --build")
        if not builds or IS_WHOLE:
            self.debian.run(rest, self.folder, self.variables, mounts)
            return
        self.debian.run(configures, self.folder, self.variables, mounts)
        into = self.debian.root / "spillway/build/release/packages"
        made = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", into],
                              capture_output=True)
        if made.returncode != 0:
            raise AssertionError(made.stderr)
        for package in into.glob("spillway-cuda_*"):  # of CUDA, which this image is without
            package.unlink()


class Image(unittest.TestCase):
    def test_builds_and_trains(self):
        for engine in ("docker", "podman"):
            if subprocess.run(f"{engine} info", shell=True, capture_output=True).returncode == 0:
                if not IS_WHOLE:
                    skip(f"SPILLWAY_IMAGE=whole compiles the program by {engine}")
                self.by(engine)
                return
        if not IS_WHOLE and not (bare_debian.is_debian12() and shutil.which("cpack")):
            skip("no docker, no podman, and no packages for Debian 12")
        with contextlib.ExitStack() as systems:
            follower = Follower(systems)
            follower.follow((ROOT / "Dockerfile").read_text())
            environment = follower.variables
            said = follower.debian.run(shlex.join(follower.command), "/", environment)
            self.assertIn("train", said)
            for command in (TRAINS, RANKS):
                follower.debian.run(command, "/", environment)

    def by(self, engine):
        built = subprocess.run([engine, "build", "-t", "spillway-test", ROOT], capture_output=True, text=True)
        if built.returncode != 0:
            bare_debian.skip_unreachable(built.stdout + built.stderr)
            self.fail((built.stdout + built.stderr)[-3000:])
        self.addCleanup(subprocess.run, [engine, "rmi", "spillway-test"], capture_output=True)
        for command in (TRAINS, RANKS):
            subprocess.run([engine, "run", "--rm", "spillway-test", *command.split()], check=True)


if __name__ == "__main__":
    unittest.main()
