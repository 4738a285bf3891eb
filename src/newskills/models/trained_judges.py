# SPDX-License-Identifier: Apache-2.0
"""Trained models that measure answers in this process: COMET (Rei et al. 2020, arXiv:2009.09025), and embeddings.

Their libraries are heavy, bring PyTorch, and are loaded with the first answer. Weights are looked for on this machine
first, then on the Hugging Face hub.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.registry import load_attr
from newskills.models.batches import BatchModel
from newskills.models.config import ServerConfig
from newskills.models.embeddings import Embedder, load_local_model, require_library

BATCH = 32
_OPTION = "--judge_model"


def make_comet(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> BatchModel:
    """Make the model that turns `src`, `mt`, `ref` into the score as text. Raises ConfigError where the library is
    missing."""
    require_library("comet", "COMET", "newskills[comet]")
    name = _model_name(config)
    return BatchModel(name, _Comet(name), size=BATCH)


def make_nvembed(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> BatchModel:
    """Make the model that turns `answer`, `options` into similarities as a JSON list. Raises ConfigError where the
    library is missing."""
    name = _model_name(config)
    return BatchModel(name, _Embeddings(Embedder(name, option=_OPTION)), size=BATCH)


def make_step(config: ServerConfig, *, concurrency: int, environ: Mapping[str, str]) -> BatchModel:
    """Return a model that calls a function of the user's, `file.py::judge`: a list of rows → a text for each. Raises
    ConfigError."""
    name = _model_name(config)
    function: Callable[[list[Row]], Sequence[str]] = load_attr(name, "judge")
    parameters = signature(function).parameters.values() if callable(function) else ()
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_KEYWORD
    ]
    if len(needed) != 1:
        raise ConfigError(
            f"{name} is not a judge function: it must take one argument, a list of records, and return a text "
            "for each.",
            hint="Functions that make tasks for the NeMo-Skills pipeline cannot run here.",
        )
    return BatchModel(name, lambda rows: [str(text) for text in function(rows)], size=max(1, concurrency))


def _model_name(config: ServerConfig) -> str:
    if not config.model:
        raise ConfigError(f"server_type={config.server_type} needs a model: give server.model.")
    return config.model


class _Comet:
    def __init__(self, name: str) -> None:
        self._name = name
        self._model: Any = None

    def __call__(self, rows: list[Row]) -> list[str]:
        """Return a score for each row, as text. Raises ModelNotFoundError, and what the library raises."""
        import torch

        self._model = self._model or load_local_model(self._name, self._load, _OPTION)
        inputs = _moved_to_device(self._model.prepare_sample(rows, stage="predict"), self._model.device)
        with torch.no_grad():
            scores = self._model.predict_step(inputs)["scores"]
        return [repr(float(score)) for score in scores.reshape(-1)]

    def _load(self) -> Any:
        import comet
        import torch

        place = Path(self._name)
        if place.is_dir():
            place = place / "checkpoints" / "model.ckpt"
        path = str(place) if place.exists() else comet.download_model(self._name)
        model = comet.load_from_checkpoint(path)
        return model.eval().to("cuda" if torch.cuda.is_available() else "cpu")


class _Embeddings:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def __call__(self, rows: list[Row]) -> list[str]:
        """Return for each row its answer's similarities to the options, as JSON. Raises ModelNotFoundError, and what
        the library raises."""
        texts = list(dict.fromkeys(text for row in rows for text in (row["answer"], *row["options"])))
        vectors = dict(zip(texts, self._embedder(texts).tolist(), strict=True))
        return [
            json.dumps([_dot_product(vectors[row["answer"]], vectors[option]) for option in row["options"]])
            for row in rows
        ]


def _moved_to_device(inputs: Any, device: Any) -> Any:
    """Move tensors, in the mappings and tuples that the kinds of COMET take, to the model's device."""
    if isinstance(inputs, Mapping):
        return {key: _moved_to_device(value, device) for key, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        return type(inputs)(_moved_to_device(value, device) for value in inputs)
    if hasattr(inputs, "to"):
        return inputs.to(device)
    return inputs


def _dot_product(left: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, other, strict=True))
