"""A callback for Lightning: Trainer(callbacks=[fairlease.lightning.callback("run.ckpt")])."""

import importlib
import os
from typing import Any, Optional

from . import _reports, _steps


def callback(path: str) -> Any:
    """A callback that reports steps and saves, and saves to path when the lease ends.

    Resume with trainer.fit(model, ckpt_path=path if os.path.exists(path) else None). It needs the package lightning or
    pytorch_lightning. Lightning's own SLURMEnvironment, which requeues the job itself, can stay: then that one handles
    the notice, and this one the reports.
    """
    try:
        base = importlib.import_module("lightning.pytorch").Callback
    except ImportError:
        base = importlib.import_module("pytorch_lightning").Callback
    return type("Fairlease", (_Hooks, base), {})(path)


class _Hooks:
    def __init__(self, path: str) -> None:
        self.path = path
        self.written: Optional[int] = None  # the step of a checkpoint that is being written

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        self.written = trainer.global_step

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
        step, total = trainer.global_step, trainer.max_steps if trainer.max_steps > 0 else None
        if self.written is not None:  # by now it is on the disk
            _reports.saved(self.written, total)
            self.written = None

        def save() -> None:
            beside = self.path + ".new"
            trainer.save_checkpoint(beside)
            self.written = None
            if trainer.is_global_zero:
                os.replace(beside, self.path)

        def agree(number: int) -> int:
            anybody = trainer.strategy.reduce_boolean_decision
            return 2 if anybody(number > 1, all=False) else int(anybody(number > 0, all=False))

        _steps.after(step, total, save, agree)

