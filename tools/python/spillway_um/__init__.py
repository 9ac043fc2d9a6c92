"""The name of `spillway` before it could plan: `import spillway_um` goes on working.

Everything here is the package `spillway`; spillway_um.space is spillway.space, the same module.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

import spillway
from spillway import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import


class SameModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds spillway_um.NAME as spillway.NAME."""

    def find_spec(self, fullname, path=None, target=None):
        """Of a module that spillway has; None leaves it to others."""
        parent, _, name = fullname.partition(".")
        if parent != __name__ or importlib.util.find_spec(f"spillway.{name}") is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module):
        """Puts spillway's module in place of the empty one."""
        name = module.__spec__.name
        sys.modules[name] = importlib.import_module("spillway" + name[len(__name__):])


def __getattr__(name):
    return getattr(spillway, name)


sys.meta_path.append(SameModules())
