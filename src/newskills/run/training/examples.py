# SPDX-License-Identifier: Apache-2.0
"""A trained model from a model folder and a trainer: checkpoints on the way, merged weights at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.terminal import counted
from newskills.models.hub import MODEL_FILES, hub_folder, is_hub_name
from newskills.models.serving.weights import resolve_weights
from newskills.prompts.code_tags import CodeTags
from newskills.run.training.rows import training_row
from newskills.run.training.skill import Skill
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.samples import Problem
from newskills.train.settings import TooLong
from newskills.train.trainers import Trainer
from newskills.train.verbs import Datum


def model_folder(model: str, made: Path, *, say: PrintLine) -> Path:
    """Return the Hugging Face folder of `model`, which may be on the hub; a .gguf file, or a name that is known, is
    converted into `made` once.

    Raises ConfigError, DataError, UnknownNameError where there is no such model.
    """
    from newskills.train.convert.from_gguf import gguf_to_hf

    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if not path.is_file() and path.suffix != ".gguf" and len(path.parts) > 1:
        if is_hub_name(model):
            return hub_folder(model, MODEL_FILES, "Give a Hugging Face folder, a .gguf file, or smollm2.")
        raise DataError(
            f"There is no folder {path.absolute()}.", hint="Give a Hugging Face folder, a .gguf file, or smollm2."
        )
    if not made.is_dir():
        weights = resolve_weights(model, say=say)
        say(f"converting {weights.name} to a Hugging Face folder")
        gguf_to_hf(weights, made)
    return made


@contextmanager
def tokenizer_folder(model: str, made: Path) -> Iterator[Path | None]:
    """Yield a folder with the tokenizer of `model`, without its weights; None where the model is not on this machine.

    Raises ConfigError, DataError for a .gguf file that cannot be converted.
    """
    from newskills.train.convert.from_gguf import gguf_tokenizer

    path = Path(model).expanduser()
    if path.is_dir() or made.is_dir():
        if path.is_dir():
            yield path
        else:
            yield made
    elif path.is_file() and find_spec("gguf") is not None:
        with TemporaryDirectory() as folder:
            gguf_tokenizer(path, Path(folder))
            yield Path(folder)
    else:
        yield None


def served_file(folder: Path, target: Path | None = None) -> Path:
    """Return the model in `folder` as an F16 file for llama.cpp, written once: `target`, or beside it.

    Raises ConfigError, StorageError.
    """
    from newskills.train.convert.to_gguf import hf_to_gguf

    target = target or folder.with_name(f"{folder.name}.F16.gguf")
    if not target.is_file():
        hf_to_gguf(folder, target)
    return target


def train_to_end(trainer: Trainer, folder: TrainingFolder, target: Path, learn: Callable[[Trainer], bool]) -> bool:
    """Train and write the model to `target`; return False where training was stopped. Closes `folder`."""
    try:
        if target.is_dir():
            return True
        if not learn(trainer):
            return False
        if folder.writes:
            trainer.finish(folder, target)
        return True
    finally:
        folder.close()


def context_of(folder: Path) -> int | None:
    """Return the tokens that the model in `folder` can see; None where it does not say. Raises DataError."""
    path = folder / "config.json"
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=Row)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    window = settings.get("text_config", settings).get("max_position_embeddings")
    if isinstance(window, int):
        return window
    return None


def fit_to_length(
    examples: Sequence[Datum], limit: int | None, too_long: TooLong, *, say: PrintLine
) -> list[Datum]:
    """Return the examples of at most `limit` tokens; longer ones are refused, left out, or truncated at the end.

    Raises DataError.
    """
    if limit is None:
        return list(examples)
    fitting_rows = []
    for datum in examples:
        if len(datum.tokens) < limit:
            fitting_rows.append(datum)
        elif too_long == "truncate" and any((datum.weights or ())[: limit - 1]):
            fitting_rows.append(_truncate_example(datum, limit - 1))
    longer = [len(datum.tokens) + 1 for datum in examples if len(datum.tokens) >= limit]
    remedy = None
    if too_long == "error":
        remedy = "Set ++too_long=drop or ++too_long=truncate."
    _tell_longer(longer, len(examples), limit, remedy, len(examples) - len(fitting_rows), say)
    return fitting_rows


def fitting_problems(
    problems: Sequence[Problem], limit: int | None, max_tokens: int, too_long: TooLong, *, say: PrintLine
) -> list[Problem]:
    """Return the problems whose prompt leaves room for `max_tokens`; a prompt is never cut. Raises DataError."""
    if limit is None:
        return list(problems)
    fitting_ones = [problem for problem in problems if len(problem.prompt) + max_tokens <= limit]
    longer = [len(problem.prompt) + max_tokens for problem in problems if len(problem.prompt) + max_tokens > limit]
    remedy = None
    if too_long == "error":
        remedy = "Lower ++max_tokens, or set ++too_long=drop."
    _tell_longer(longer, len(problems), limit, remedy, len(longer), say)
    return fitting_ones


def _tell_longer(
    longer: Sequence[int], count: int, limit: int, remedy: str | None, lost: int, say: PrintLine
) -> None:
    """Report how many sequences are longer than the limit. Raises DataError where there is a remedy to name."""
    if not longer:
        return
    what = (
        f"{len(longer)} of {count} sequences are longer than the limit of {limit} tokens (longest: {max(longer)})"
    )
    if remedy is not None:
        raise DataError(f"{what}.", hint=remedy)
    say(f"{what}; {lost} left out, {len(longer) - lost} truncated")


def _truncate_example(datum: Datum, length: int) -> Datum:
    return Datum(
        tokens=datum.tokens[:length], targets=datum.targets[:length], weights=(datum.weights or ())[:length]
    )


def examples_of(
    rows: Sequence[Row],
    skill: Skill,
    where: Path,
    tags: CodeTags | None = None,
    *,
    add_end: bool = True,
    say: PrintLine = print,
) -> list[Datum]:
    """Return training examples of rows in any form of `training_row`.

    `tags`: how code and its outputs are marked in texts; outputs have no loss. The last reply counts; where messages
    have a `weight`, all replies with 1 do. Texts get the end token, unless `add_end` is off. Says where the chat
    template drops reasoning, and to how many texts the end token was added. Raises DataError as `training_row`,
    ConfigError where the chat template cannot show what a row holds; both name the row.
    """
    written_out, ended = skill.written_out, skill.ended
    examples: list[Datum] = []
    for number, row in enumerate(rows, 1):
        place = f"{where}, row {number}"
        made = training_row(row, place)
        try:
            training = made if add_end else {**made, "unfinished": True}
            examples += _row_examples(training, skill, tags)
        except (ConfigError, DataError) as error:
            raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
    if count := skill.written_out - written_out:
        say(
            f"The model's chat template does not show the reasoning of {counted(count, 'reply')}; it is "
            "trained on as <think>…</think> before the reply."
        )
    if count := skill.ended - ended:
        end = skill.tokenizer.decode([skill.text_end])
        say(f"{counted(count, 'text')} had no end token: {end} was added, so that the model learns to stop.")
    return examples


def check_rows(rows: Sequence[Row], where: Path) -> list[Row]:
    """Return the rows as `training_row` reads them. Raises DataError for no rows, and as `training_row`."""
    if not rows:
        raise DataError(f"{where} has no rows to train on.")
    return [training_row(row, f"{where}, row {number}") for number, row in enumerate(rows, 1)]


def _row_examples(row: Row, skill: Skill, tags: CodeTags | None) -> list[Datum]:
    """Return the examples of one row, as `training_row` returns it."""
    unfinished = bool(row.get("unfinished"))
    if "text" in row:
        return [skill.continuation("", row["text"], tags, unfinished=unfinished)]
    if "messages" not in row:
        return [skill.continuation(row["input"], row["output"], tags, unfinished=unfinished)]
    messages, tools, template = row["messages"], row["tools"], row.get("chat_template_kwargs")
    if any("weight" in message for message in messages):
        return skill.replies(messages, tools, template)
    *before, last = messages
    return [skill.turn(before, last, tools, template)]
