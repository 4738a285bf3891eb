# SPDX-License-Identifier: Apache-2.0
"""The documentation of the benchmarks, made from their files by the docs build.

One page per benchmark, one for each family `<family>.<member>`, an index by category, and the list of headlines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Benchmark, Group, Judge, Source
from newskills.base.terminal import counted
from newskills.benchmarks import STATE_MEANING, STATES, State
from newskills.benchmarks.downloads.patterns import expand_braces
from newskills.benchmarks.evidence import evidence_of
from newskills.benchmarks.generate_catalog import built_in, built_in_groups
from newskills.benchmarks.headlines import headline_definition
from newskills.prompts.official.table import entries_for
from newskills.prompts.prompt_sets import USUAL_SET, PromptSet, load_prompt_set

_FEW_REASONS = 2
_AGREEMENT = Path(__file__).with_name("agreement.json")
_FEW = 4
_HEADLINES_HEAD = """# Headlines, sources and official scorers

Of every benchmark: its headline, how far its live source is proven ([states](benchmarks/index.md)), and, where the
official scorer was run beside ours, which part of it ([parts](agreement.md)), on how many attempts and how often both
say the same. Members of a family that share all of this have one line. [Agreement](agreement.md) explains
disagreements.

| benchmark | headline | live source | official scorer | compared | attempts | agreement |
|---|---|---|---|---|---|---|"""


def benchmark_pages() -> dict[str, str]:
    """Return file name → text of every page."""
    families: dict[str, list[Benchmark]] = {}
    for _, benchmark in built_in():
        families.setdefault(benchmark.name.partition(".")[0], []).append(benchmark)
    groups = {group.name: group for _, group in built_in_groups()}
    made = {}
    for name, members in families.items():
        if len(members) == 1 and members[0].name == name:
            made[f"{name}.md"] = _benchmark_page(members[0])
        else:
            made[f"{name}.md"] = _family_page(name, members, groups.get(name))
    made |= {f"{name}.md": _group_page(group) for name, group in groups.items() if name not in families}
    made["index.md"] = _index_page(families, groups)
    return made


def _index_page(families: dict[str, list[Benchmark]], groups: dict[str, Group]) -> str:
    rows = [
        (members[0].category, _family_row(name, members, groups.get(name))) for name, members in families.items()
    ]
    for name, group in groups.items():
        if name not in families:
            rows.append(
                (group.category, f"| [{name}]({name}.md) | {group.title} | {len(group.members)} benchmarks | |")
            )
    lines = [
        "# Benchmarks",
        "",
        "`ns list benchmarks` prints the same names. Rows are those of the default split.",
        "",
        "## Verification status of data sources",
        "",
        *(f"- **{state}**: {meaning}." for state, meaning in reversed(STATE_MEANING.items())),
        "",
        "`ns list benchmarks` shows the state of each. `ns prepare_data` checks what it downloads: rows, prompts, and "
        "replies with known scores to a sample; the outcome stands beside the rows, in `<split>.jsonl.check.json`.",
    ]
    for category, listed in groupby(sorted(rows), key=lambda pair: pair[0]):
        lines += ["", f"## {category}", "", "| name | what | rows | licence |", "|---|---|---|---|"]
        lines += [row for _, row in listed]
    return "\n".join(lines) + "\n"


def _family_row(name: str, members: list[Benchmark], group: Group | None) -> str:
    first = members[0]
    if first.name == name:
        return f"| [{name}]({name}.md) | {first.title} | {_row_count(first)} | {first.licence} |"
    what = group.title if group else f"{len(members)} tasks"
    return f"| [{name}]({name}.md) | {what} | per task | {first.licence} |"


def _benchmark_page(benchmark: Benchmark) -> str:
    lines = [
        f"# {benchmark.name}",
        "",
        f"{benchmark.title}.",
        "",
        *_facts_table(benchmark),
        "",
        *_usage_example(benchmark.name, benchmark.judge),
    ]
    lines += [*_options_section(benchmark), *_traps_section(benchmark)]
    return "\n".join(lines) + "\n"


def _family_page(name: str, members: list[Benchmark], group: Group | None) -> str:
    first = members[0]
    lines = [f"# {name}", ""]
    if group:
        lines += [f"{group.title}.", "", _score_of(group), ""]
    lines += [f"{len(members)} benchmarks, named `{name}.<task>`.", "", *_facts_table(first, members)]
    lines += [
        "",
        *_usage_example(name if group else members[-1].name),
        *_options_section(*members),
        *_traps_section(*members),
    ]
    lines += ["", "## Tasks", "", "| name | what | rows by split | grader | chance |", "|---|---|---|---|---|"]
    for member in members:
        splits = ", ".join(f"{split} {count}" for split, count in member.items.items())
        lines.append(
            f"| `{member.name}` | {member.title} | {splits} | {member.grader} | {_format_chance(member)} |"
        )
    return "\n".join(lines) + "\n"


def _group_page(group: Group) -> str:
    own = any("samples" in changes for changes in group.members.values())
    lines = [
        f"# {group.name}",
        "",
        f"{group.title}.",
        "",
        _score_of(group),
        "",
        *_usage_example(group.name, repeated=not own),
        "",
    ]
    lines += ["## Members", "", "| name | differs from the benchmark alone in |", "|---|---|"]
    for member, changes in group.members.items():
        differs = ", ".join(f"`{field}` = `{value}`" for field, value in changes.items())
        lines.append(f"| [{member}]({member.partition('.')[0]}.md) | {differs or 'nothing'} |")
    if group.traps:
        lines += ["", "## Good to know", "", *(f"- {trap}" for trap in group.traps)]
    return "\n".join(lines) + "\n"


def _score_of(group: Group) -> str:
    how = "the plain mean of its members"
    if group.score is not None:
        text = (group.score.__doc__ or "").strip().splitlines()
        how = text[0].rstrip(".") if text else "computed from those of its members"
    return f"A group of {len(group.members)}: `--benchmarks={group.name}` evaluates all of them. Its score: {how}."


def _facts_table(benchmark: Benchmark, family: Sequence[Benchmark] = ()) -> Iterator[str]:
    """Yield the table of facts; `family`: all members, where `benchmark` is the first of a family."""
    yield "| | |"
    yield "|---|---|"
    if benchmark.aliases:
        yield f"| also called | {', '.join(f'`{alias}`' for alias in benchmark.aliases)} |"
    yield f"| source | {_source_links(benchmark)} |"
    yield from _source_states(family or (benchmark,))
    if not family:
        for split in benchmark.splits():
            count = benchmark.items.get(split, "not counted")
            default = " (default)" if split == benchmark.split else ""
            yield f"| split `{split}` | {count} rows{default} |"
    yield f"| licence | {benchmark.licence} |"
    if figure := stored_agreements().get(benchmark.name.partition(".")[0]):
        yield f"| beside the official scorer | {_format_agreement(figure)} |"
    yield f"| home | <{benchmark.homepage}> |"
    if benchmark.citation:
        yield f"| paper | {benchmark.citation} |"
    yield f"| prompt | {_format_prompt(benchmark)} |"
    yield f"| other wordings | {_other_wordings(family or (benchmark,))} |"
    if not family:
        if benchmark.grader:
            yield f"| grader | `{benchmark.grader}` |"
        if benchmark.judge is not None:
            yield f"| judge | {_format_judge(benchmark.judge)}; {_wording_note(benchmark, benchmark.judge.prompt)} |"
        yield f"| metric | `{benchmark.metric}` |"
        yield f"| random guessing | {_format_chance(benchmark)} |"
    headlines = {headline_definition(member): None for member in family or (benchmark,)}
    if len(headlines) == 1:
        yield f"| headline | {next(iter(headlines))} |"
    if benchmark.needs_sandbox:
        yield "| runs code | in the sandbox, which starts by itself |"
    if benchmark.requires:
        yield f"| needs | `pip install '{benchmark.requires}'` |"


def _format_prompt(benchmark: Benchmark) -> str:
    if not benchmark.prompt:
        return "the messages of each row"
    return f"`{benchmark.prompt}`; {_wording_note(benchmark, benchmark.prompt)}"


def _wording_note(benchmark: Benchmark, prompt: str) -> str:
    """Return whose wording of a prompt is used."""
    for alternatives in entries_for(benchmark.name, [prompt]):
        if alternatives[0].prompt == prompt:
            sources = [
                f"[{entry.repository}]({entry.page}), {entry.licence}, {entry.sum_shown}" for entry in alternatives
            ]
            official = f"[official](../prompts.md#whose-wording) ({'; or '.join(sources)})"
            return f"wording: {official} where it is downloaded, else newskills"
    return "wording: newskills"


def _other_wordings(members: Sequence[Benchmark]) -> str:
    """Return what `ns robust_eval` has for the members, or why it has nothing; with the names where it differs among
    them."""
    names_by_text: dict[str, list[str]] = {}
    for member in members:
        names = (member.name, member.name.partition(".")[0], *member.aliases)
        variants, why = _usual_wordings().wordings(member, names)
        robust_eval = "[`ns robust_eval`](../robustness.md)"
        if variants:
            text = f"{len(variants)}, for {robust_eval}"
        else:
            text = f"none, as {why}; {robust_eval} takes yours"
        names_by_text.setdefault(text, []).append(f"`{member.name}`")
    if len(names_by_text) == 1:
        return next(iter(names_by_text))
    return "<br>".join(f"{', '.join(names)}: {text}" for text, names in names_by_text.items())


@cache
def _usual_wordings() -> PromptSet:
    return load_prompt_set(USUAL_SET)


def _source_states(members: Sequence[Benchmark]) -> Iterator[str]:
    """Yield one line for each state, with the names where it holds for some; then what was compared."""
    states = {member.name: source_state(member) for member in members}
    for state in reversed(STATES):
        if names := [f"`{name}`" for name, its in states.items() if its == state]:
            some = f": {', '.join(names)}" if len(names) < len(members) else ""
            yield f"| live source | [{state}](index.md#verification-status-of-data-sources){some} |"
    for proof in dict.fromkeys(proof for member in members for proof in evidence_of(member.name)):
        yield f"| source read | {proof.compared}: <{proof.url}> ({proof.date}) |"


def source_state(benchmark: Benchmark) -> State:
    """Return how far the live source is verified, as far as the code knows."""
    if not benchmark.unverified:
        return "verified"
    if evidence_of(benchmark.name):
        return "schema checked"
    return "not verified"


class Agreement(Struct):
    """What a comparison with an official scorer came to; `agreement` 0–1.

    compared  which part of the scorer: whole scorer, comparison of answers, reading of the judge's verdict, …
    reasons   why the others differ, each with how many: `60: …`, those of most first
    """

    scorer: str
    attempts: int
    agreement: float
    compared: str
    reasons: tuple[str, ...] = ()

    def percent(self) -> str:
        """Return the percentage, rounded down: 100 % means all."""
        return f"{int(self.agreement * 1000) / 10:.1f} %"


def _format_agreement(figure: Agreement) -> str:
    """Return what was compared, how often both say the same, and why not, where few reasons tell."""
    same = f"{figure.percent()} of {figure.attempts:,} made-up texts get the same score"
    text = f"{figure.compared} ({figure.scorer}): [{same}](../agreement.md)"
    if not figure.reasons:
        return text
    text += f". The others: {'; '.join(figure.reasons[:_FEW_REASONS])}"
    more = len(figure.reasons) - _FEW_REASONS
    if more > 0:
        text += f"; {counted(more, 'more reason')} there"
    return text


def stored_figures(file: Path) -> dict[str, Agreement]:
    """Read benchmark or family → comparison, of a JSON file."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Agreement])


@cache
def stored_agreements() -> Mapping[str, Agreement]:
    """Return the comparisons that docs/agreement.md shows; `python -m tests.agreement --write` writes them."""
    return stored_figures(_AGREEMENT)


def _options_section(*members: Benchmark) -> list[str]:
    """Return the lines that say what `ns prepare_data` takes for the members."""
    options_by_name = {name: option for member in members for name, option in member.options.items()}
    if not options_by_name:
        return []
    lines = ["", "## Options of prepare_data", ""]
    for name, option in options_by_name.items():
        line = f"- `--{name}`: {option.meaning}"
        if 0 < len(option.known) <= 30:
            line += f"; {', '.join(f'`{value}`' for value in option.known)}"
        if option.usual:
            line += f" (default: {option.usual})"
        lines.append(line)
    return lines


def _format_judge(judge: Judge) -> str:
    if judge.model:
        usual = f"`{judge.model}` ({judge.server_type}) unless you name another"
    else:
        usual = "the model you name"
    return f"[{usual}](../judges.md), prompt `{judge.prompt}`"


def _usage_example(name: str, judge: Judge | None = None, *, repeated: bool = True) -> list[str]:
    times = ":4" if repeated else ""
    judged = " --judge_model=JUDGE --judge_server_type=openai" if judge and not judge.model else ""
    return [
        "```bash",
        f"ns prepare_data {name}",
        f"ns eval --benchmarks={name}{times} --model=MODEL --server_type=openai --output_dir=results{judged}",
        "```",
    ]


def _traps_section(*members: Benchmark) -> list[str]:
    """Return the lines of the traps; what holds for few of several members is told with their names."""
    named: dict[str, list[str]] = {}
    for member in members:
        texts = list(member.traps)
        if member.hedgeable:
            texts.append(
                f"A reply that names many answers may count as right: {member.hedgeable}. As a reward it is warned of."
            )
        texts += [f"`{row}` can never be right: {why}." for row, why in member.misprints.items()]
        for text in texts:
            named.setdefault(text, []).append(f"`{member.name}`")
    if not named:
        return []
    lines = ["", "## Good to know", ""]
    for text, names in named.items():
        if len(members) > len(names) <= _FEW:
            lines.append(f"- {', '.join(names)}: {text}")
        else:
            lines.append(f"- {text}")
    return lines


def _source_links(benchmark: Benchmark) -> str:
    if benchmark.generate_rows is not None:
        return f"generated by {benchmark.generator or 'newskills'}"
    if not benchmark.sources:
        return "a file of yours"
    return ", ".join(dict.fromkeys(map(_format_source, benchmark.sources)))


def _format_source(source: Source) -> str:
    if source.hf:
        names = [name.partition(":")[0] for name in expand_braces(source.hf)]
        return ", ".join(f"[{name}](https://huggingface.co/datasets/{name})" for name in names)
    if source.github:
        place = f"https://github.com/{source.github}/tree/{source.revision or source.ref}"
        return f"[github.com/{source.github}]({place}): `{source.members}`"
    gated = " (gated)" if source.gated else ""
    first, *more = expand_braces(source.url)
    shown = f"[{urlsplit(source.url).netloc}{urlsplit(source.url).path}]({first}){gated}"
    if more:
        return f"{shown} ({len(more) + 1} files)"
    return shown


def _row_count(benchmark: Benchmark) -> int | str:
    return benchmark.items.get(benchmark.split, "?")


def _format_chance(benchmark: Benchmark) -> str:
    return f"{benchmark.chance:.0%}"


def standing_page(others: Mapping[str, Agreement]) -> str:
    """Render the page; `others`: comparisons that docs/agreement.md does not show."""
    figures = {**others, **stored_agreements()}
    lines: dict[tuple[str, ...], list[str]] = {}
    for _, benchmark in built_in():
        family = benchmark.name.partition(".")[0]
        figure = figures.get(benchmark.name) or figures.get(family)
        shown: tuple[str, ...] = ("", "", "", "")
        if figure is not None:
            shown = (figure.scorer, figure.compared, f"{figure.attempts:,}", figure.percent())
        key = (family, headline_definition(benchmark), source_state(benchmark), *shown)
        lines.setdefault(key, []).append(benchmark.name)
    return "\n".join([_HEADLINES_HEAD, *(_headline_line(key, names) for key, names in sorted(lines.items())), ""])


def _headline_line(key: tuple[str, ...], names: list[str]) -> str:
    family, *cells = key
    name = names[0] if len(names) == 1 else f"{family} ({len(names)} tasks)"
    return f"| [{name}](benchmarks/{family}.md) | {' | '.join(cells)} |"
