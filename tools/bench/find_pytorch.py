"""The Python whose PyTorch is measured."""

import subprocess
import sys

from measured_run import ROOT, Failure, call

SYSTEM_PYTHON = "/usr/bin/python3"


def need_pytorch(python):
    """Its version. Installs what lacks; exits with a sentence when there is no PyTorch then."""
    if python == SYSTEM_PYTHON and subprocess.call([ROOT / "tools" / "setup", "--bench"]) != 0:
        sys.exit(f"{sys.argv[0]}: PyTorch is not installed, see above; or name another Python that "
                 "has it with --python")
    try:
        return call([python, "-c", "import torch; print(torch.__version__)"]).strip()
    except (Failure, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {python} has no PyTorch: {error}")
