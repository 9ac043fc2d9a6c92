"""The Python whose PyTorch is measured."""

import os
import pathlib
import subprocess
import sys

from measured_run import ROOT, Failure, call

SYSTEM_PYTHON = "/usr/bin/python3"
# As the tree's tests find it.
PYTHON_OF_PYTORCH_2 = os.environ.get("SPILLWAY_TORCH_PYTHON") or str(
    pathlib.Path.home() / ".cache" / "spillway" / "torch" / "bin" / "python")


def need_pytorch(python):
    """Its version. Installs what lacks; exits with a sentence when there is no PyTorch then."""
    if python == SYSTEM_PYTHON and subprocess.call([ROOT / "tools" / "setup", "--bench"]) != 0:
        sys.exit(f"{sys.argv[0]}: PyTorch is not installed, see above; or name another Python that "
                 "has it with --python")
    try:
        return call([python, "-c", "import torch; print(torch.__version__)"]).strip()
    except (Failure, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {python} has no PyTorch: {error}")


def need_pytorch_2(python):
    """The versions of PyTorch and what models come from; exits with a sentence where one lacks."""
    names = "torch", "torchvision", "transformers"
    program = "\n".join(f"import {name}; print({name}.__version__)" for name in names)
    try:
        return dict(zip(names, call([python, "-c", program]).split()))
    except (Failure, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {python} does not load {', '.join(names)} ({error}); tools/setup "
                 "--torch installs them, or name a Python that has them with --python")
