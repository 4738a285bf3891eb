# SPDX-License-Identifier: Apache-2.0
"""Few-shot sets: those that come with newskills, and those that a provider builds at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.prompts.code_tags import CodeTags
from newskills.prompts.schema import FewShotConfig, read_yaml
from newskills.prompts.template import MissingField, NullField, Template, TextPosition

FEW_SHOTS = Path(__file__).parent / "few_shot"
DEFAULT_FEW_SHOTS = 5
"""Examples of a set that a provider builds, where `num_few_shots` says nothing."""

ExampleProvider = Callable[[str], Sequence[Row] | None]
"""Name of a few-shot set → its examples, or None where the provider does not know the name."""


def few_shot_names() -> list[str]:
    """Return the names of the sets that come with newskills, sorted."""
    return sorted(path.stem for path in FEW_SHOTS.glob("*.yaml"))


@cache
def built_in_examples(name: str) -> list[Row] | None:
    """Return the examples of a set that comes with newskills; None where there is none of that name."""
    for set_name in few_shot_names():
        if fold(set_name) == fold(name):
            rows, _ = read_yaml(FEW_SHOTS / f"{set_name}.yaml")
            return list(rows)
    return None


def fill_examples(template: Template, rows: Sequence[Row], owner: str, what: str) -> list[str]:
    """Fill the template of `owner` (a key of a prompt) for each example of `what`. Raises ConfigError for a field that
    they lack."""
    try:
        return [template.fill(row) for row in rows]
    except MissingField as error:
        lack = "no field"
        if isinstance(error, NullField):
            lack = "null as"
        raise ConfigError(f"{owner}: the examples of {what} have {lack} '{error.name}'.") from error


class ExampleSets:
    """Few-shot text by name of a set, each made once."""

    def __init__(
        self, config: FewShotConfig, place: TextPosition, tags: CodeTags, provider: ExampleProvider | None
    ) -> None:
        self._config = config
        self._what = place.what
        self._tags = tags
        self._provider = provider
        self._template = Template(config.template, place)
        self._texts: dict[str, str] = {}

    def text(self, name: str) -> str:
        """Return the few-shot text of a set: prefix + examples + suffix. Raises UnknownNameError, ConfigError."""
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self.render(self.rows(name), f"few-shot set {name}")
        return text

    def render(self, rows: Sequence[Row], what: str) -> str:
        """Return the examples as the prompt shows them; `what` names them.

        Raises ConfigError for a field that they lack.
        """
        if not rows:
            return ""
        return (
            self._config.prefix
            + "".join(fill_examples(self._template, rows, self._what, what))
            + self._config.suffix
        )

    def rows(self, name: str) -> Sequence[Row]:
        """Return as many examples of a set as are asked for. Raises UnknownNameError, ConfigError."""
        rows: Sequence[Row] | None = built_in_examples(name)
        count = self._config.num_few_shots
        if rows is not None:
            rows = [self._with_tags(row) for row in rows]
        elif self._provider is not None and (rows := self._provider(name)) is not None and count is None:
            rows = rows[:DEFAULT_FEW_SHOTS]
        if rows is None:
            raise UnknownNameError(
                "few-shot set",
                name,
                few_shot_names(),
                hint="Other splits of the benchmark are few-shot sets, too.",
            )
        if count is None:
            return rows
        if count > len(rows):
            raise ConfigError(f"few-shot set {name} has {len(rows)} examples, but num_few_shots={count}.")
        return rows[:count]

    def _with_tags(self, row: Row) -> Row:
        texts = {key: self._tags.expand(value) for key, value in row.items() if isinstance(value, str)}
        return row | texts
