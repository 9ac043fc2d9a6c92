"""Builds cuda_processor_kernel_tests of the release preset again, with other kernels or flags."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
TARGET = "tests/cuda_processor_kernel_tests"
PRECISIONS = ["fp32", "bf16"]


def build_release():
    """The program itself, which the others are made from."""
    subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", TARGET.split("/")[1]],
                   cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def kernel_commands():
    """By the path of each kernel's file: the arguments of its compilation."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    commands = {}
    for entry in entries:
        arguments = shlex.split(entry["command"])
        if "cuda_processor_kernels.dir" in arguments[arguments.index("-o") + 1]:
            commands[pathlib.Path(entry["file"]).relative_to(ROOT)] = arguments
    return commands


def compile_kernel(arguments, source, output, first=(), last=()):
    """Compiles `source` as `arguments` does its own, with more flags before and behind."""
    arguments = list(arguments)
    arguments[arguments.index("-o") + 1] = str(output)
    arguments[arguments.index("-c") + 1] = str(source)
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [arguments[0], *first, *arguments[1:], *last]
    return subprocess.run(command, cwd=BUILD, capture_output=True, text=True)


def link(objects, output, last=()):
    """Links the tests with `objects` (by path of the kernel's file) in the place of their own."""
    listed = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", TARGET], check=True,
                            capture_output=True, text=True).stdout.splitlines()[-1]
    for path, own in objects.items():
        pattern = r"\S*cuda_processor_kernels\.dir/\S*/" + re.escape(path.name) + r"\.o"
        listed, count = re.subn(pattern, str(own), listed)
        if count != 1:
            sys.exit(f"{path} is not linked once")
    listed = listed.replace(f"-o {TARGET}", f"-o {output} " + " ".join(last))
    subprocess.run(listed, shell=True, cwd=BUILD, check=True)


def run_tests(program, precision, *options):
    """Its exit status and output; None and what it printed where it hangs."""
    environment = {**os.environ, "SPILLWAY_TEST_PRECISION": precision}
    try:
        done = subprocess.run([program, "--gtest_brief=1", *options], env=environment, timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace")
