# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts by a trained model (Reimers and Gurevych 2019, arXiv:1908.10084), in this process.

The library is heavy, brings PyTorch, and is loaded with the first text. Weights are looked for on this machine first,
then on the Hugging Face hub.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from newskills.base.errors import ConfigError, guard
from newskills.base.records import Failure
from newskills.models.errors import ModelNotFoundError

if TYPE_CHECKING:
    import numpy as np


def require_library(library: str, what: str, extra: str) -> None:
    """Raise ConfigError where `library`, which is part of `extra`, is not installed."""
    if find_spec(library) is None:
        raise ConfigError(
            f"{what} models run in this process, but their library is not installed.",
            hint=f"Run: pip install '{extra}' (it installs PyTorch)",
        )


def load_local_model(name: str, load: Callable[[], Any], option: str) -> Any:
    """Load the encoder. Raises ModelNotFoundError, which names the `option` that gives the model: then every text would
    fail alike."""
    encoder = guard(load)
    if isinstance(encoder, Failure):
        raise ModelNotFoundError(
            f"{name} cannot be loaded: {encoder.message[:300]}",
            hint=f"Give a folder with the weights ({option}), or download them on a machine with a network.",
        )
    return encoder


class Embedder:
    """A model of sentence-transformers, by name or folder."""

    def __init__(self, name: str, *, option: str) -> None:
        """Create an embedder without loading its model. Raises ConfigError where the library is missing."""
        require_library("sentence_transformers", "Embedding", "newskills[embeddings]")
        self._name, self._option = name, option
        self._model: Any = None

    def __call__(self, texts: Sequence[str], *, batch: int = 32) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return embeddings as [texts, dimensions], each of length 1. Raises ModelNotFoundError, and what the
        library raises."""
        self._model = self._model or load_local_model(self._name, self._load, self._option)
        vectors: np.ndarray[Any, np.dtype[np.float32]] = self._model.encode(
            list(texts), batch_size=batch, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer

        # NV-Embed is code beside its weights; no other model's code is run.
        return SentenceTransformer(self._name, trust_remote_code=self._name.startswith("nvidia/NV-Embed"))
