# SPDX-License-Identifier: Apache-2.0
"""The thread that computes: which sequences come into a batch, when, and what leaves it.

Sequences that wait are taken by their age, together with those of about the same work. What has ended leaves its
batch at once, and what waits joins it, so that nobody waits for the longest reply of a batch. Where the memory does
not suffice, half as many are computed at once from then on; what they have so far is kept.

A model whose joined batches are not exact (`check_joining`), and requests with images, go through transformers' own
`generate`, a batch at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

from newskills.base.callbacks import PrintLine
from newskills.base.errors import NewskillsError, guard
from newskills.models.serving.hf.batch import Batch, Forward, check_joining, measure_prompts
from newskills.models.serving.hf.generating import continue_sequences
from newskills.models.serving.hf.loading import LoadedModel
from newskills.models.serving.hf.prefixes import PrefixCache
from newskills.models.serving.hf.sequences import TokenSequence

SHARE_FREE = 0.25
"""Sequences are let in when so large a part of a batch is free …"""
MOST_STEPS_WAITING = 8
"""… or after so many steps, whatever is free."""
ALIKE = 0.75
"""Prompts shorter than this part of the longest in their batch wait for others: what fills them up costs time."""
TURNS_OF_THE_OLDEST = 4
"""Each so many batches of measured prompts begin with the one that waits longest, the others with the least work."""
STOP_TAIL = 8
"""Tokens before a stop text that are decoded with it, since a token may be part of a sign."""


class MemoryExhaustedError(NewskillsError):
    """One request alone needs more memory than there is."""


class EngineLimits:
    """How much is computed at once.

    sequences  in a batch
    tokens     of prompts in one pass, with what fills them up; a longer prompt goes alone
    bytes      for keys and values
    """

    def __init__(self, sequences: int, tokens: int, cache_bytes: int) -> None:
        self.sequences, self.tokens, self.cache_bytes = sequences, tokens, cache_bytes


class BatchEngine:
    """Computes sequences in a thread of its own, from `submit` to the `on_end` of each."""

    def __init__(self, loaded: LoadedModel, limits: EngineLimits, say: PrintLine) -> None:
        self._loaded, self._limits, self._say = loaded, limits, say
        self._forward = Forward(loaded.model)
        self._wake = threading.Condition()
        self._arrived: list[TokenSequence] = []
        self._waiting: list[TokenSequence] = []
        self._batch: Batch | None = None
        self._steps = self._turns = 0
        self._closed = False
        with torch.inference_mode():
            # the model's own code may refuse the cache in many ways
            bytes_held = guard(lambda: check_joining(self._forward, loaded.vocabulary))
        self._token_bytes = bytes_held if isinstance(bytes_held, int) else 0
        self._kept = PrefixCache(limits.cache_bytes // 2, self._token_bytes) if self._token_bytes else None
        if not self._token_bytes:
            say("This model's batches cannot be joined exactly: a batch is generated to its end before the next.")
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def submit(self, sequence: TokenSequence) -> None:
        """Queue a sequence."""
        with self._wake:
            self._arrived.append(sequence)
            self._wake.notify()

    def close(self) -> None:
        """Stop after the pass in work; sequences that have not ended are left as they are."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        with torch.inference_mode():
            while True:
                try:
                    if not self._take_arrived():
                        return
                    self._turn()
                except Exception as error:  # noqa: BLE001 - no error may end the thread that all requests wait for
                    self._abandon(error)

    def _abandon(self, error: Exception) -> None:
        """Give up the batch, whose state nobody knows: its sequences are read again. Without one, all have failed."""
        batch, self._batch = self._batch, None
        if batch is not None:
            self._handle_failure(
                batch.sequences, [len(each.generated) for each in batch.sequences], error, len(batch.sequences)
            )
            return
        for sequence in self._waiting:
            sequence.end(error)
        self._waiting = []

    def _take_arrived(self) -> bool:
        """Wait until there is something to do. Returns whether the engine goes on."""
        with self._wake:
            while not (self._arrived or self._waiting or self._batch or self._closed):
                self._wake.wait()
            arrived, self._arrived = self._arrived, []
            closed = self._closed
        for sequence in arrived:
            if self._kept is not None and not sequence.inputs:
                sequence.shared = self._kept.find_shared(sequence)[1]
        self._waiting += arrived
        self._waiting = [sequence for sequence in self._waiting if not sequence.cancelled]
        if self._batch is not None:
            self._keep([sequence for sequence in self._batch.sequences if not sequence.cancelled])
        return not closed

    def _turn(self) -> None:
        measured = [each for each in self._waiting if each.measured]
        if measured:
            self._turns += 1
            if self._turns % TURNS_OF_THE_OLDEST:
                # what is nearly known goes first, while its beginning is kept; the sort keeps the order of age
                measured.sort(key=lambda each: each.work)
            self._attempt(self._next_together(measured), self._measure)
        batch = self._batch
        if batch is not None:
            self._step(batch)
        plain = [each for each in self._waiting if not each.measured]
        if not plain:
            return
        oldest = plain[0]
        if self._joins(oldest):
            if self._lets_in(oldest):
                joinable = [each for each in plain if self._joins(each)]
                self._attempt(self._next_together(joinable, self._room()), self._begin)
        elif self._batch is None:
            alike = [each for each in plain if not self._joins(each) and bool(each.inputs) == bool(oldest.inputs)]
            self._attempt(self._next_together(alike), self._generate)

    def _joins(self, sequence: TokenSequence) -> bool:
        """Return whether the sequence may join a batch of others."""
        return self._token_bytes > 0 and not sequence.inputs

    def _next_together(self, candidates: list[TokenSequence], room: int | None = None) -> list[TokenSequence]:
        """Return the first one, and others with about as much work, as many as are computed at once."""
        if not candidates:
            return []
        first = candidates[0]
        others = [] if first.alone else [each for each in candidates[1:] if not each.alone]
        others.sort(key=lambda each: abs(each.work - first.work))
        together, longest, shortest = [first], first.work, first.work
        for each in others:
            longest_now, shortest_now = max(longest, each.work), min(shortest, each.work)
            too_large = (len(together) + 1) * longest_now > self._limits.tokens
            if (
                too_large
                or shortest_now < ALIKE * longest_now
                or len(together) >= (room or self._limits.sequences)
            ):
                break
            longest, shortest = longest_now, shortest_now
            together.append(each)
        return together

    def _lets_in(self, oldest: TokenSequence) -> bool:
        if self._batch is None:
            return True
        if oldest.alone or self._batch.sequences[0].alone:
            return False
        room = self._room()
        return room > 0 and (room >= SHARE_FREE * self._limits.sequences or self._steps >= MOST_STEPS_WAITING)

    def _room(self) -> int:
        """Return how many sequences may join the batch, by number and by memory."""
        if self._batch is None:
            return self._limits.sequences
        held = len(self._batch.sequences)
        fitting = self._limits.cache_bytes // ((self._batch.width + MOST_STEPS_WAITING) * self._token_bytes)
        return min(self._limits.sequences, fitting) - held

    def _attempt(self, sequences: list[TokenSequence], work: Callable[[list[TokenSequence]], None]) -> None:
        """Do `work` with sequences that wait. Where that takes too much memory, they wait again, for a smaller batch;
        one that is alone has failed."""
        taken = {id(sequence) for sequence in sequences}
        self._waiting = [sequence for sequence in self._waiting if id(sequence) not in taken]
        lengths = [len(sequence.generated) for sequence in sequences]
        together = len(sequences) + (len(self._batch.sequences) if self._batch is not None else 0)
        try:
            work(sequences)
        except Exception as error:  # noqa: BLE001 - whatever the model's own code raises answers these requests
            self._handle_failure(sequences, lengths, error, together)

    def _handle_failure(
        self, sequences: list[TokenSequence], lengths: list[int], error: Exception, together: int
    ) -> None:
        """Let the sequences wait again, with as many new tokens as `lengths` say, or tell those who wait for them;
        `together`: how many were in memory at once."""
        for sequence, length in zip(sequences, lengths, strict=True):
            if not sequence.finish:
                del sequence.generated[length:], sequence.values[length:]
        sequences = [sequence for sequence in sequences if not sequence.finish]
        if not sequences:
            return
        if not is_out_of_memory(error):
            if together == 1 or sequences[0].alone:
                sequences[0].end(error)
                return
            for sequence in sequences:
                sequence.alone = True  # one of them must not make the others fail
            self._waiting = [*sequences, *self._waiting]
            return
        if self._kept is not None:
            self._kept.clear()
        free_memory()
        if together > 1:
            self._limits.sequences = max(1, min(self._limits.sequences, together) // 2)
            self._limits.tokens = max(1, self._limits.tokens // 2)
            self._say(
                f"Out of memory: at most {self._limits.sequences} of {together} requests at once from now on."
            )
            self._waiting = [*sequences, *self._waiting]
            return
        for sequence in sequences:
            sequence.end(
                MemoryExhaustedError(
                    f"A request of {sequence.length} tokens alone needs more memory than there is.",
                    hint="Use more GPUs, --dtype=bfloat16, or a shorter prompt.",
                )
            )

    def _measure(self, sequences: list[TokenSequence]) -> None:
        measure_prompts(self._forward, sequences, self._kept)
        for sequence in sequences:
            if not self._has_ended(sequence):
                sequence.measured = False
                self._waiting.insert(0, sequence)

    def _begin(self, sequences: list[TokenSequence]) -> None:
        batch = Batch(self._forward, sequences, self._kept)
        self._steps = 0
        before, self._batch = self._batch, batch
        if before is not None:
            try:
                before.join(batch)
            except Exception:
                self._batch = None  # half joined: all of them are read again
                self._waiting = [*before.sequences, *self._waiting]
                raise
            self._batch = before
        self._drop_ended()

    def _generate(self, sequences: list[TokenSequence]) -> None:
        continue_sequences(self._loaded.model, sequences, self._has_ended)

    def _step(self, batch: Batch) -> None:
        if (batch.width + 1) * len(batch.sequences) * self._token_bytes > self._limits.cache_bytes:
            self._make_room(batch)
        lengths = [len(sequence.generated) for sequence in batch.sequences]
        try:
            batch.step()
        except Exception as error:  # noqa: BLE001 - as in `_attempt`
            self._batch = None
            self._handle_failure(batch.sequences, lengths, error, len(lengths))
            return
        self._steps += 1
        self._drop_ended()

    def _make_room(self, batch: Batch) -> None:
        """Let the sequences that came last wait, with what they have so far; one that is alone goes on."""
        stay = max(1, len(batch.sequences) // 2)
        self._waiting = [*batch.sequences[stay:], *self._waiting]
        self._keep(batch.sequences[:stay])
        self._steps = 0

    def _drop_ended(self) -> None:
        if self._batch is not None:
            self._keep([sequence for sequence in self._batch.sequences if not self._has_ended(sequence)])

    def _keep(self, sequences: list[TokenSequence]) -> None:
        if self._batch is None:
            return
        if sequences:
            self._batch.keep(sequences)
        else:
            self._batch = None

    def _has_ended(self, sequence: TokenSequence) -> bool:
        """Return whether the sequence has ended; who waits for it is told."""
        if sequence.generated[-1] in self._loaded.ends:
            sequence.finish = "stop"
        elif stop := self._stop_reached(sequence):
            sequence.finish, sequence.stopped_by = "stop", stop
        elif len(sequence.generated) >= sequence.limit:
            sequence.finish = "length"
        else:
            return False
        sequence.end()
        return True

    def _stop_reached(self, sequence: TokenSequence) -> str:
        if not sequence.stop:
            return ""
        tail = max(map(len, sequence.stop)) + STOP_TAIL
        text = self._loaded.decode(sequence.generated[-tail:])
        places = [(text.find(stop), stop) for stop in sequence.stop if stop in text]
        return min(places)[1] if places else ""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether PyTorch says that there is too little memory: of its own kind on GPUs, a plain one on CPUs."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def free_memory() -> None:
    """Give back what PyTorch holds of a pass that failed."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
