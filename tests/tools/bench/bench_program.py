"""Programs of tools/bench as modules, which their names without an ending do not make them."""

import importlib.machinery
import importlib.util
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[3] / "tools" / "bench"
sys.path.insert(0, str(BENCH))


def tool(name):
    """A program of tools/bench as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(BENCH / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
