# SPDX-License-Identifier: Apache-2.0
"""Memories that a model keeps by calling functions, in the three kinds of the Berkeley Function-Calling Leaderboard.

What they hold, how much of it, and what each function gives are those of `bfcl-eval`; only their messages are our own.
Similarity of keys is BM25+ (Lv and Zhai 2011), that of texts the cosine of their embeddings.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from inspect import signature
from typing import Any, Protocol

from newskills.base.errors import ConfigError, guard
from newskills.base.records import Failure, Row
from newskills.graders.tool_calls.calls import ParsedCall

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
"""Embeds the texts of the memory by vectors, on the leaderboard, too."""
INSTALL = "pip install 'newskills[embeddings]'"
_CORE, _ARCHIVE = (7, 300), (50, 2000)
_LONGEST_SUMMARY = 10_000
_LONGEST_REPLACED = 1_000_000
_KEY = re.compile(r"[a-z]+(_[a-z0-9]+)*\Z")
_K1, _B, _DELTA = 1.5, 0.75, 1.0

Encoder = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts → a vector of length 1 for each."""


class Memory(Protocol):
    """One person's memory. `call` never raises for what a model asks; `state` is what `make_memory` takes."""

    def call(self, called: ParsedCall) -> str: ...

    def visible_text(self) -> str:
        """Return the part that the model always sees."""
        ...

    def state(self) -> Row: ...


def make_memory(kind: str, state: Row, encoder: Encoder | None = None) -> Memory:
    """Return a memory (`kv`, `vector`, `rec_sum`) as it was; `{}` is an empty one. Raises ConfigError, KeyError."""
    if kind == "vector":
        return VectorMemory(state, encoder or load_encoder())
    makers: dict[str, Callable[[Row], Memory]] = {"kv": KeyMemory, "rec_sum": SummaryMemory}
    return makers[kind](state)


def check_encoder() -> None:
    """Raise ConfigError where the encoder's library is missing."""
    if find_spec("sentence_transformers") is None:
        raise ConfigError("A vector memory needs sentence-transformers.", hint=f"Type: {INSTALL}")


def load_encoder() -> Encoder:
    """Load the leaderboard's encoder. Raises ConfigError where its library is missing or its weights are not to be
    had."""
    check_encoder()
    from sentence_transformers import SentenceTransformer

    model: Any = guard(lambda: SentenceTransformer(ENCODER, device="cpu"))
    if isinstance(model, Failure):
        raise ConfigError(
            f"The weights of {ENCODER} cannot be loaded: {model.message[:200]}",
            hint="Download them on a machine with a network, and set HF_HOME to their folder.",
        )
    return lambda texts: [list(map(float, row)) for row in model.encode(list(texts), normalize_embeddings=True)]


class _Functions:
    """Functions by name; arguments that do not fit are told to the model."""

    def __init__(self, functions: dict[str, Callable[..., Row]]) -> None:
        self._functions = functions

    def call(self, called: ParsedCall) -> str:
        function = self._functions.get(called.name)
        if function is None:
            return f"Error during execution: there is no function {called.name}"
        try:
            signature(function).bind(*called.positional, **called.arguments)
        except TypeError as error:
            return f"Error during execution: {error}"
        return json.dumps(function(*called.positional, **called.arguments))


class _Keys:
    """Entries under names in snake_case."""

    def __init__(self, entries: Row, room: tuple[int, int]) -> None:
        self.entries: dict[str, str] = dict(entries)
        self._most, self._longest = room

    def functions(self, prefix: str) -> dict[str, Callable[..., Row]]:
        own = (self.add, self.remove, self.replace, self.clear, self.retrieve, self.list_keys, self.key_search)
        return {f"{prefix}_memory_{function.__name__}": function for function in own}

    def add(self, key: Any, value: Any) -> Row:
        key, value = str(key), str(value)
        if len(self.entries) >= self._most:
            return {"error": f"The memory is full ({self._most} entries); remove some first."}
        if len(value) > self._longest:
            return self._too_long()
        if not _KEY.match(key):
            return {"error": "A key has to be in snake_case, without spaces."}
        if key in self.entries:
            return {"error": "There is an entry with that key already."}
        self.entries[key] = value
        return {"status": "The entry was added."}

    def remove(self, key: Any) -> Row:
        if self.entries.pop(str(key), None) is None:
            return {"error": "There is no such key."}
        return _DONE

    def replace(self, key: Any, value: Any) -> Row:
        key, value = str(key), str(value)
        if key not in self.entries:
            return {"error": "There is no such key."}
        if len(value) > self._longest:
            return self._too_long()
        self.entries[key] = value
        return _DONE

    def clear(self) -> Row:
        self.entries.clear()
        return _DONE

    def retrieve(self, key: Any) -> Row:
        value = self.entries.get(str(key))
        if value is None:
            return {"error": "There is no such key."}
        return {"value": value}

    def list_keys(self) -> Row:
        return {"keys": list(self.entries)}

    def key_search(self, query: Any, k: Any = 5) -> Row:
        return {"ranked_results": similar_keys(str(query), list(self.entries))[: _result_count(k)]}

    def retrieve_all(self) -> Row:
        return dict(self.entries)

    def _too_long(self) -> Row:
        return {"error": f"An entry may have at most {self._longest} characters."}


_EMPTY = "(nothing yet)"
_DONE: Row = {"status": "Done."}


def _entries_text(entries: Mapping[Any, str]) -> str:
    """Return the entries that the model sees without asking."""
    if not entries:
        return _EMPTY
    return json.dumps(entries, indent=1)


class KeyMemory(_Functions):
    """Texts under keys: few that are always seen, and many that have to be looked up."""

    def __init__(self, state: Row) -> None:
        self._core = _Keys(state.get("core", {}), _CORE)
        self._archive = _Keys(state.get("archive", {}), _ARCHIVE)
        everything = {"core_memory_retrieve_all": self._core.retrieve_all}
        super().__init__(self._core.functions("core") | self._archive.functions("archival") | everything)

    def visible_text(self) -> str:
        return _entries_text(self._core.entries)

    def state(self) -> Row:
        return {"core": dict(self._core.entries), "archive": dict(self._archive.entries)}


class _Vectors:
    """Numbered texts that are found by what they mean."""

    def __init__(self, state: Row, room: tuple[int, int], encoder: Encoder) -> None:
        self.entries: dict[int, str] = {int(number): text for number, text in state.get("entries", {}).items()}
        self.next = int(state.get("next", 0))
        self._most, self._longest = room
        self._encoder = encoder
        self._vectors = dict(zip(self.entries, encoder(list(self.entries.values())), strict=True))

    def functions(self, prefix: str) -> dict[str, Callable[..., Row]]:
        own = (self.add, self.remove, self.update, self.clear, self.retrieve, self.retrieve_all)
        return {f"{prefix}_memory_{function.__name__}": function for function in own}

    def add(self, text: Any) -> Row:
        text = str(text)
        if len(text) > self._longest:
            return self._too_long()
        if len(self.entries) >= self._most:
            return {"error": f"The memory is full ({self._most} entries); remove some first."}
        number, self.next = self.next, self.next + 1
        self._put(number, text)
        return {"id": number}

    def remove(self, vec_id: Any) -> Row:
        if not self._is_known(vec_id):
            return {"error": f"There is no entry {vec_id}."}
        del self.entries[vec_id], self._vectors[vec_id]
        return _DONE

    def update(self, vec_id: Any, new_text: Any) -> Row:
        text = str(new_text)
        if not self._is_known(vec_id):
            return {"error": f"There is no entry {vec_id}."}
        if len(text) > self._longest:
            return self._too_long()
        self._put(vec_id, text)
        return _DONE

    def clear(self) -> Row:
        self.entries.clear()
        self._vectors.clear()
        self.next = 0
        return _DONE

    def retrieve(self, query: Any, top_k: Any = 5) -> Row:
        if not self.entries:
            return {"result": []}
        query_vector = self._encoder([str(query)])[0]
        scores = {
            number: math.fsum(a * b for a, b in zip(query_vector, vector, strict=True))
            for number, vector in self._vectors.items()
        }
        best = sorted(scores, key=lambda number: -scores[number])[: _result_count(top_k)]
        return {
            "result": [
                {"id": number, "similarity_score": scores[number], "text": self.entries[number]} for number in best
            ]
        }

    def retrieve_all(self) -> Row:
        return {"result": [{"id": number, "text": text} for number, text in self.entries.items()]}

    def state(self) -> Row:
        return {"next": self.next, "entries": {str(number): text for number, text in self.entries.items()}}

    def _put(self, number: int, text: str) -> None:
        self.entries[number] = text
        self._vectors[number] = self._encoder([text])[0]

    def _is_known(self, number: Any) -> bool:
        return isinstance(number, int) and number in self.entries

    def _too_long(self) -> Row:
        return {"error": f"An entry may have at most {self._longest} characters."}


class VectorMemory(_Functions):
    """Texts without keys: few that are always seen, and many that have to be searched for."""

    def __init__(self, state: Row, encoder: Encoder) -> None:
        self._core = _Vectors(state.get("core", {}), _CORE, encoder)
        self._archive = _Vectors(state.get("archive", {}), _ARCHIVE, encoder)
        super().__init__(self._core.functions("core") | self._archive.functions("archival"))

    def visible_text(self) -> str:
        return _entries_text(self._core.entries)

    def state(self) -> Row:
        return {"core": self._core.state(), "archive": self._archive.state()}


class SummaryMemory(_Functions):
    """One text that the model rewrites."""

    def __init__(self, state: Row) -> None:
        self._text = str(state.get("text", ""))
        own = (
            self.memory_append,
            self.memory_update,
            self.memory_replace,
            self.memory_clear,
            self.memory_retrieve,
        )
        super().__init__({function.__name__: function for function in own})

    def memory_append(self, text: Any) -> Row:
        return self._rewrite(self._text + str(text))

    def memory_update(self, text: Any) -> Row:
        return self._rewrite(str(text))

    def memory_replace(self, old_text: Any, new_text: Any) -> Row:
        """Replace text in the memory; as on the leaderboard, only the new part is limited, and the rest of the
        limit keeps the machine alive."""
        old, new = str(old_text), str(new_text)
        if old not in self._text:
            return {"error": "That text is not in the memory."}
        size = len(self._text) + self._text.count(old) * (len(new) - len(old))
        if len(new) > _LONGEST_SUMMARY or size > _LONGEST_REPLACED:
            return {"error": f"The new text may have at most {_LONGEST_SUMMARY} characters."}
        self._text = self._text.replace(old, new)
        return _DONE

    def memory_clear(self) -> Row:
        self._text = ""
        return _DONE

    def memory_retrieve(self) -> Row:
        if self._text:
            return {"memory_content": self._text}
        return {"error": "The memory is empty."}

    def visible_text(self) -> str:
        return self._text or _EMPTY

    def state(self) -> Row:
        return {"text": self._text}

    def _rewrite(self, text: str) -> Row:
        if len(text) > _LONGEST_SUMMARY:
            return {"error": f"The memory may have at most {_LONGEST_SUMMARY} characters."}
        self._text = text
        return _DONE


def similar_keys(query: str, keys: Sequence[str]) -> list[tuple[float, str]]:
    """Return (score, key) of each key, best first; ties in the order of `keys`."""
    documents = [_split_words(key) for key in keys]
    if not documents:
        return []
    average = sum(map(len, documents)) / len(documents) or 1.0
    holding = Counter(word for document in documents for word in set(document))
    scored = []
    for key, document in zip(keys, documents, strict=True):
        counts, score = Counter(document), 0.0
        for word in _split_words(query):
            if holding[word]:
                rarity = math.log((len(documents) + 1) / holding[word])
                damped = counts[word] + _K1 * (1 - _B + _B * len(document) / average)
                score += rarity * (_DELTA + counts[word] * (_K1 + 1) / damped)
        scored.append((score, key))
    return sorted(scored, key=lambda pair: -pair[0])


def _split_words(text: str) -> list[str]:
    return text.replace("_", " ").lower().split()


def _result_count(number: Any) -> int:
    if isinstance(number, int):
        return max(0, number)
    return 5
