"""Counts the steps of a PyTorch script that does not report by itself: fairlease run puts this folder on PYTHONPATH.

Python imports sitecustomize when it starts. This one first imports the site's own, which it hides. When the script
imports PyTorch's optimizers it adds a hook after all optimizers' steps (PyTorch 2 has it). A script that imports
fairlease reports by itself: then the hook does nothing. No error of this file reaches the script.
"""

import importlib
import importlib.machinery
import os
import sys
from typing import Any, Callable, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
OPTIMIZERS = "torch.optim.optimizer"


def own() -> None:
    """Import the site's own sitecustomize, if it has one."""
    this = sys.modules.pop("sitecustomize")
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as e:
        if e.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


class Hook:
    """A hook after every optimizer's step, which decides at the first one whether it counts."""

    count: Optional[Callable[..., None]] = None

    def __call__(self, optimizer: Any, *_: Any) -> None:
        try:
            if self.count is None:
                self.count = self.counter()
            self.count(optimizer)
        except Exception:
            self.count = nothing

    def counter(self) -> Callable[..., None]:
        if "fairlease" in sys.modules:
            return nothing
        sys.path.append(os.path.dirname(os.path.dirname(HERE)))
        try:
            return importlib.import_module("fairlease.torch").counter()  # type: ignore[no-any-return]
        finally:
            sys.path.pop()


def nothing(optimizer: Any) -> None:
    """Count nothing."""


class Watch:
    """Finds PyTorch's optimizers as Python does, and adds the hook when they have been loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name != OPTIMIZERS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                register = getattr(module, "register_optimizer_step_post_hook", None)
                if register is not None:
                    register(Hook())

            setattr(spec.loader, "exec_module", exec_module)
        return spec


sys.meta_path.insert(0, Watch())
own()
