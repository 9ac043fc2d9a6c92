"""Runs of pytorch_budgets_step.py, and the flags that the tools around it share."""

import json
import os
import pathlib
import tempfile

from flags import expect_folder, word_list
from measured_run import PYTHON_OF_PYTORCH_2, ROOT, call

MODELS = ("gpt2", "llama", "bert", "vit", "resnet50", "convnext_tiny", "swin_t", "efficientnet_b0")
# Freed memory goes back to the system at once, so that the resident set is what is in use. Costs
# time: such runs are not timed.
WITHOUT_HOLES = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536",
                 "MALLOC_TOP_PAD_": "0", "MALLOC_ARENA_MAX": "1"}
# Freed memory stays with the process, as people set it for speed: no page is taken twice.
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "20000000000"}


def add_flags(parser, steps):
    """Those of all tools here."""
    add = parser.add_argument
    add("--only", type=word_list, default=list(MODELS), metavar="MODEL,...",
        help=f"of {', '.join(MODELS)} (default: all)")
    add("--size", choices=["small", "real"], default="small",
        help="4 layers of width 256 and small images, or models as people train them "
        "(default: small)")
    add("--batch", type=int, help="in place of the model's own")
    add("--steps", type=int, default=steps,
        help=f"steps of each run, the first of which is not counted (default: {steps})")
    add("--threads", type=int, default=2, help="PyTorch's (default: 2)")
    add("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()),
        help="for files, on a disk (default: %(default)s)")
    add("--python", default=PYTHON_OF_PYTORCH_2,
        help="the Python that has PyTorch 2, torchvision and transformers (default: %(default)s)")
    add("--json", type=pathlib.Path, metavar="FILE", help="write all figures, raw too, here")


def check_flags(parser, options):
    """Ends with a sentence on what makes no sense."""
    for name in options.only:
        if name not in MODELS:
            parser.error(f"there is no model '{name}'; there are {', '.join(MODELS)}")
    if options.steps < 2 or options.threads < 1 or (options.batch or 1) < 1:
        parser.error("--steps must be at least 2 (the first is not counted), --batch and --threads "
                     "at least 1")
    expect_folder(parser, options.folder)
    options.folder = options.folder.resolve()


def run(options, model, way, far="file", memory=False, limit=None):
    """One process. `memory`: peaks in place of times. Throws: Failure."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        flags = ["--far", folder] if far == "file" or way.startswith("files") else []
        flags += ["--batch", options.batch] if options.batch else []
        flags += ["--limit", limit] if limit else []
        flags += ["--memory"] if memory else []
        command = [options.python, "-B", ROOT / "tools" / "bench" / "pytorch_budgets_step.py",
                   "--model", model, "--size", options.size, "--way", way, "--steps",
                   options.steps, "--threads", options.threads, *flags]
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith(("OMP_", "MALLOC_", "GLIBC_", "GOMP_"))}
        return json.loads(call(command, {
            **inherited, "OMP_NUM_THREADS": str(options.threads), "KINETO_LOG_LEVEL": "6",
            **(WITHOUT_HOLES if memory else KEPT)}).splitlines()[-1])
