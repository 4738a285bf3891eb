# SPDX-License-Identifier: Apache-2.0
"""A trainer made of the verbs: it runs every method whose verbs its weights have, whoever holds them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.method import D, Method
from newskills.train.loops.stepping import Hooks
from newskills.train.verbs import ReferenceClient, TrainingClient


class LoopTrainer:
    """Run the methods of a `newskills.train.trainers.Trainer`. Each run that is not finished makes one client and
    closes it at its end.

    serves  the protocols of weights that it can make
    """

    rolls_out = True
    serves: tuple[type, ...] = (TrainingClient, ReferenceClient)

    def __init__(self, client: Callable[[], AbstractContextManager[TrainingClient]]) -> None:
        self._client = client

    def client(self, method: type[Method[Any]]) -> AbstractContextManager[Any]:
        """Return the weights that `method` trains, to be closed at the end. A trainer that serves more makes them
        here."""
        return self._client()

    def runs(self, method: type[Method[Any]]) -> bool:
        """Return whether it has the verbs that the method needs."""
        return method.needs in self.serves

    def run(
        self,
        method: Method[D],
        data: D,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        """Train by `method`, as `newskills.train.trainers.Trainer.run`."""
        if folder.finished:
            return True
        with self.client(type(method)) as client:
            return method.train(client, data, folder, hooks)
