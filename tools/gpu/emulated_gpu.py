"""--emulated: the emulated GPU of the tests in the place of a real one, to see that all stages work.

Networks are thin and machines slow, so batches are smaller and programs have longer to end.
"""

import os
import pathlib
import re

from gpu_bench import BUILD, ROOT, Failure, call

WORDS = "emulated GPU, a test double: no speed is measured"
PROGRAM = pathlib.Path(os.environ.get("SPILLWAY_EMULATED_PROGRAM",
                                      BUILD / "tests" / "emulated" / "spillway"))
BUILD_OF_PROGRAM = PROGRAM.parents[2]
TESTS = "^emulated_.*_tests"  # names in ctest of what has the label gpu elsewhere
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE", "SPILLWAY_MEASURING_TIME": "0.001"}
PATIENCE = 8  # times as long as on a GPU may all take
GPT = ["--net", "gpt:2,2,32,16", "--vocabulary", 64, "--batch", 2]
BATCHES = {"resnet18": 8, "resnet50": 64, "vgg16": 8}
BUDGET = "min+20%"  # a part of so small a need is less than the smallest budget
SIZES = ["--image-size", 32, "--classes", 10]
THINNER = 8  # a network's channels are divided by this


def find(results):
    """The program. Throws: Failure where it is not built, or where results must not lie."""
    if results and results.resolve().is_relative_to(ROOT / "tools"):
        raise Failure(f"{results} is for results of real GPUs, and an emulated one is a test double")
    if not PROGRAM.is_file():
        raise Failure(f"there is no {PROGRAM}; run 'cmake --build --preset release'")
    os.environ.update(ENVIRONMENT)
    return PROGRAM


def thin(network, folder):
    """A file of the network with all its layers, but only a part of its channels."""
    path = folder / f"thin-{network}.net"
    if not path.is_file():
        text = re.sub(r"\b(channels|features)=(\d+)",
                      lambda found: f"{found[1]}={max(1, int(found[2]) // THINNER)}",
                      call([PROGRAM, "nets", network, *SIZES, "--dump", "-"]))
        path.write_text(text, encoding="utf-8")
    return path
