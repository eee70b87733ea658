"""A callback for the Trainer of Hugging Face's transformers: Trainer(callbacks=[fairlease.hf.callback()])."""

import importlib
from typing import Any

from . import _iterate, _leases, _reports


def callback() -> Any:
    """A callback that reports steps and saves, and has the Trainer save when the lease ends.

    Resume with trainer.train(resume_from_checkpoint=True) if the output folder has a checkpoint. It needs transformers.
    """
    base = importlib.import_module("transformers").TrainerCallback
    return type("Fairlease", (_Hooks, base), {})()


class _Hooks:
    def __init__(self) -> None:
        self.stops = False

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        _reports.progress(state.global_step, state.max_steps if state.max_steps > 0 else None)
        if _iterate.agreement()(int(_leases.should_stop())):
            self.stops = control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        _reports.saved(state.global_step, state.max_steps if state.max_steps > 0 else None)
        if self.stops:
            self.stops = False
            _iterate.hold()
        return control
