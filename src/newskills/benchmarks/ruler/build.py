# SPDX-License-Identifier: Apache-2.0
"""Tasks fitted to a length, written as benchmarks `ruler.<setup>.<task>` below the data directory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from newskills.base.benchmark import Option, Source
from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import atomic_write, write_json, write_rows
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.sources import open_source
from newskills.benchmarks.ruler.tasks import TASKS, Article, TaskMaterial, TaskSample, build_sample
from newskills.config.fields import leaves
from newskills.config.settings import read_config

VERSION = "1"
"""Of the generator: raised whenever the same options give other rows."""
_SQUAD = (
    Source(
        url="https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v2.0.json", format="json", records=("data",)
    ),
    Source(
        url="https://raw.githubusercontent.com/google-deepmind/xquad/master/xquad.en.json",
        format="json",
        records=("data",),
        revision="7d30520c717524000f0d9d2f9c10a069acd9d285",
        sha256="e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29",
    ),
)
_HOTPOT: tuple[Source, ...] = (Source(hf="hotpotqa/hotpot_qa", config="distractor", hf_split="validation"),)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NAME = re.compile(r"\w[\w-]*")
_COARSE = re.compile(r"[A-Za-z]{1,4}|[^\sA-Za-z]")
_MOST_SHRINKING = 200


class RulerOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of `ns prepare_data ruler` and `ruler2`."""

    setup: Annotated[str, Meta(description="name for this tokenizer and length")]
    max_seq_length: Annotated[int, Meta(ge=512, description="tokens of prompt and answer together")]
    tokenizer_path: Annotated[
        str,
        Meta(description="folder, tokenizer.json or name on the hub; none: tokens are estimated, rather too many"),
    ] = ""
    template_tokens: Annotated[int, Meta(ge=0, description="tokens kept free for the chat template")] = 50
    num_samples: Annotated[int, Meta(ge=1, description="samples of each task")] = 100
    random_seed: Annotated[int, Meta(description="other samples of the same kind")] = 42
    tasks: Annotated[list[str], Meta(description="only these tasks")] = []
    data_format: Annotated[
        Literal["default", "base", "chat"],
        Meta(description="default: the answer is begun; base: as one text to go on with; chat: neither"),
    ] = "default"
    haystack_file: Annotated[str, Meta(description="text for the tasks that hide in essays")] = ""


OPTIONS = {
    name: Option(
        meaning=leaf.description, usual="" if leaf.default in ("", []) or leaf.required else f"{leaf.default}"
    )
    for name, leaf in leaves(RulerOptions).items()
}
"""The same for the command line."""


class AnswerLimits(NamedTuple):
    """tokens kept for the answer, the metric's name (its grader is called the same), how its texts count."""

    tokens: int
    metric: str
    match: str = ""


class Family(NamedTuple):
    """Tasks that are made alike.

    material   (task, options, how to fetch) → (what it is made of, where that came from)
    build      (task, units of haystack, random, material, index) → sample
    """

    name: str
    tasks: Mapping[str, AnswerLimits]
    material: Callable[[str, RulerOptions, Fetcher], tuple[Any, Row]]
    build: Callable[[str, int, Random, Any, int], TaskSample]


def make_ruler(folder: Path, options_given: Row, fetch: FetchOptions) -> list[str]:
    """Write the benchmarks of a setup to `folder/<setup>`, and return the group's name.

    Raises ConfigError for options; DataError at the end, where documents for a task cannot be had: the others are
    there, and the group is of those.
    """
    return make_family(FIRST, folder, options_given, fetch)


def make_family(family: Family, folder: Path, options_given: Row, fetch: FetchOptions) -> list[str]:
    """Make the files, as `make_ruler` does, for any family of tasks.

    Raises DataError for tasks whose material is not there; the others are written.
    """
    if isinstance(options_given.get("tasks"), str):
        listed = {"tasks": options_given["tasks"].split(",")}
    else:
        listed = {}
    options = read_config(RulerOptions, {**options_given, **listed}, f"options of {family.name}")
    names = _checked_tasks(options, family)
    count = _token_counter(options.tokenizer_path)
    home = folder / options.setup
    fetcher = Fetcher(folder.parent / ".downloads", fetch)
    done, problems = [], []
    for name in names:
        try:
            material, origin = family.material(name, options, fetcher)
            rows = list(_sample_rows(family, name, options, material, count))
        except DataError as error:
            problems.append(f"{name}: {error.message}")
            continue
        _write_task(home / name, family, name, {"options": options, **origin}, rows)
        done.append(name)
    _write_group(home, f"{family.name}.{options.setup}", done)
    if problems:
        raise DataError(
            f"{len(problems)} of {len(names)} tasks are not there. {' '.join(problems)}",
            hint=f"The others are: ns eval --benchmarks={family.name}.{options.setup}",
        )
    return [f"{family.name}.{options.setup}"]


def _token_counter(tokenizer_path: str) -> Callable[[str], int]:
    """Return a function that counts tokens; without a tokenizer as many as a coarse one has: four letters, or one
    of any other sign."""
    if not tokenizer_path:
        return lambda text: len(_COARSE.findall(text))
    from newskills.models.tokenizer import HFTokenizer

    tokenizer = HFTokenizer(tokenizer_path)
    return lambda text: len(tokenizer.encode(text))


def _checked_tasks(options: RulerOptions, family: Family) -> list[str]:
    if not _NAME.fullmatch(options.setup):
        raise ConfigError(f"--setup is '{options.setup}'; letters, digits, _ and - are expected.")
    wanted = [name.strip() for listed in options.tasks for name in listed.split(",")]
    unknown = [name for name in wanted if name not in family.tasks]
    if unknown:
        raise ConfigError(f"There is no task {', '.join(unknown)}; there are {', '.join(family.tasks)}.")
    return wanted or list(family.tasks)


def _task_material(name: str, options: RulerOptions, fetcher: Fetcher) -> tuple[TaskMaterial, Row]:
    task = TASKS[name]
    if task.documents:
        articles, url = articles_of(task.documents, fetcher)
        return TaskMaterial(articles=articles), {"documents": url}
    if task.haystack == "essay" and options.haystack_file:
        try:
            text = Path(options.haystack_file).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--haystack_file {options.haystack_file} cannot be read: {error}.") from error
        if not (sentences := [" ".join(part.split()) for part in _SENTENCE.split(text) if part.strip()]):
            raise ConfigError(f"--haystack_file {options.haystack_file} is empty.")
        return TaskMaterial(sentences=sentences), {"haystack": options.haystack_file}
    return TaskMaterial(), {"haystack": "generated sentences" if task.haystack == "essay" else task.haystack}


def articles_of(documents: str, fetcher: Fetcher) -> tuple[list[Article], str]:
    """Return the questions of `squad` or `hotpotqa` with their texts, and where they came from. Raises DataError."""
    problems = []
    sources, read = _HOTPOT, _hotpotqa_articles
    if documents == "squad":
        sources, read = _SQUAD, _squad_articles
    for source in sources:
        try:
            with open_source(source, fetcher) as files:
                rows = [raw.row for raw in files.rows()]
        except DataError as error:
            problems.append(error.message)
            continue
        return list(read(rows)), source.url or source.hf
    raise DataError(" ".join(problems))


def _squad_articles(rows: list[Row]) -> Iterator[Article]:
    for article in rows:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                if golds := [answer["text"] for answer in question["answers"]]:
                    yield Article(question["question"], golds, [paragraph["context"]])


def _hotpotqa_articles(rows: list[Row]) -> Iterator[Article]:
    for row in rows:
        context = row["context"]
        texts = {
            title: f"{title}\n{''.join(parts)}"
            for title, parts in zip(context["title"], context["sentences"], strict=True)
        }
        supports = [texts[title] for title in dict.fromkeys(row["supporting_facts"]["title"]) if title in texts]
        yield Article(row["question"], [row["answer"]], list(texts.values()), supports)


def _sample_rows(
    family: Family, name: str, options: RulerOptions, material: Any, count: Callable[[str], int]
) -> Iterator[Row]:
    """Yield rows, each with as much haystack as fits; the first one finds out how much that is."""
    limits = family.tasks[name]
    room = options.max_seq_length - options.template_tokens - limits.tokens

    def sample(index: int, units: int) -> tuple[TaskSample, int]:
        random = Random(f"{VERSION}-{options.random_seed}-{name}-{index}")  # noqa: S311 - the same everywhere
        made = family.build(name, units, random, material, index)
        return made, count(f"{made.prompt}\n{made.prefix}")

    units = _most_units(lambda units: sample(0, units)[1], room)
    for index in range(options.num_samples):
        fitting = units
        made, length = sample(index, fitting)
        for _ in range(_MOST_SHRINKING):
            if length <= room:
                break
            fitting = min(fitting - 1, fitting * room // length)
            made, length = sample(index, max(fitting, 0))
        if length > room:
            raise DataError(f"{options.max_seq_length} tokens are too few for this task.")
        row: Row = {
            "id": f"{name}-{index}",
            "index": index,
            "question": made.prompt,
            "expected_answer": made.answers[0] if limits.metric == "multichoice" else made.answers,
            "length": length + limits.tokens,
        }
        if options.data_format == "base":
            row["question"] = f"{made.prompt}\n{made.prefix}"
        elif options.data_format == "default" and made.prefix:
            row["generation"] = made.prefix
        yield row


def _most_units(length: Callable[[int], int], room: int) -> int:
    """Return the largest number of units (to 1/200) whose sample fits into `room` tokens, or that there are documents
    for."""

    def fits(units: int) -> bool:
        try:
            return length(units) <= room
        except DataError:
            if units == 0:
                raise
            return False

    if not fits(0):
        raise DataError(f"{room} tokens are too few for this task.")
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _write_task(folder: Path, family: Family, name: str, origin: Row, rows: list[Row]) -> None:
    limits, form = family.tasks[name], origin["options"].data_format
    words = ["++prompt_config=generic/default", f"++eval_type={limits.metric}"]
    if limits.match:
        words.append(f"++eval_config.match_type={limits.match}")
    if form == "base":
        words.append("++inference.endpoint_type=text")
    elif "generation" in rows[0]:
        words.append("++start_assistant_response_key=generation")
    if form == "base" or "generation" in rows[0]:
        words.append(f"++inference.tokens_to_generate={limits.tokens}")
    _write_text(
        folder / "__init__.py",
        f"METRICS_TYPE = {limits.metric!r}\nDATASET_GROUP = 'long-context'\nGENERATION_ARGS = {' '.join(words)!r}\n",
    )
    write_rows(folder / "test.jsonl", rows)
    lengths = sorted(row["length"] for row in rows)
    record = {"generator": f"newskills {family.name} {VERSION}", **origin}
    write_json(folder / "test.provenance.json", {**record, "shortest": lengths[0], "longest": lengths[-1]})


def _write_group(home: Path, group: str, names: list[str]) -> None:
    members: Row = {f"{group}.{name}": {} for name in names}
    _write_text(home / "__init__.py", f"IS_BENCHMARK_GROUP = True\nBENCHMARKS = {members!r}\n")


FIRST = Family(
    "ruler",
    {name: AnswerLimits(task.tokens, "ruler", task.match) for name, task in TASKS.items()},
    _task_material,
    lambda name, units, random, material, index: build_sample(TASKS[name], units, random, material, index),
)


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
