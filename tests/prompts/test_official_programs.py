# SPDX-License-Identifier: Apache-2.0
"""Official prompts beside what the published programs make themselves, for those that the mirror has.

A function or constant is cut out of its file and run here, as in tests/agreement; newskills only reads it.
"""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from newskills.base.records import Row
from newskills.prompts.official.reading import official_source
from newskills.prompts.official.table import official_prompts
from newskills.prompts.renderer import Prompt, load_prompt

QUESTION, REPLY, RIGHT = "<q>{x}", "<r>{0}", "<a>}{"


class Published:
    """One published prompt as newskills reads it, and its files."""

    def __init__(self, mirror: Path, folder: Path, name: str, benchmark: str) -> None:
        self.entry = next(
            entry for entry in official_prompts() if entry.prompt == name and benchmark in entry.benchmarks
        )
        places = self.entry.places(folder)
        for path, place in places.items():
            source = mirror / self.entry.url(path).removeprefix("https://")
            if not source.is_file():
                pytest.skip(f"{path} is not in the mirror of published prompts")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes())
        self.texts = [place.read_text(encoding="utf-8") for place in places.values()]
        self.prompt: Prompt = load_prompt(msgspec.to_builtins(official_source(self.entry, folder).config))

    def made(self, row: Row) -> list[str]:
        """Return the texts that a model is shown, the system's first."""
        return [str(message.content) for message in self.prompt.messages(row)]

    def names(self, *names: str, file: int = 0) -> dict[str, Any]:
        """Return what these functions, classes and constants of a file are."""
        body: list[ast.stmt] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about backslashes in their texts
            nodes = ast.parse(self.texts[file]).body
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name in names:
                for argument in node.args.args:
                    argument.annotation = None
                node.returns = None
                body.append(node)
            elif (isinstance(node, ast.ClassDef) and node.name in names) or (
                isinstance(node, ast.Assign) and any(ast.unparse(target) in names for target in node.targets)
            ):
                body.append(node)
        values: dict[str, Any] = {}
        exec(compile(ast.Module(body, []), "published", "exec"), values)
        return values


@pytest.fixture
def published(prompt_mirror: Path, tmp_path: Path) -> Any:
    return lambda name, benchmark: Published(prompt_mirror, tmp_path / benchmark, name, benchmark)


def test_longmemeval(published: Any) -> None:
    judge = published("judge/longmemeval", "longmemeval")
    theirs = judge.names("get_anscheck_prompt")["get_anscheck_prompt"]
    for kind in judge.entry.cases:
        row = {"question": QUESTION, "expected_answer": RIGHT, "generation": REPLY, "judged_as": kind}
        abstains = kind == "abstention"
        asked = "multi-session" if abstains else kind
        assert judge.made(row) == [theirs(asked, QUESTION, RIGHT, REPLY, abstention=abstains)]


@pytest.mark.parametrize("starter", ["", "class Solution:\n    def f(self, x):\n"])
def test_livecodebench(published: Any, starter: str) -> None:
    read = published("eval/livecodebench/default_reasoning", "livecodebench")
    theirs = read.names("PromptConstants", "get_generic_question_template_answer")
    problem = SimpleNamespace(question_content=QUESTION, starter_code=starter)
    assert read.made({"question_content": QUESTION, "starter_code": starter}) == [
        theirs["PromptConstants"].SYSTEM_MESSAGE_GENERIC,
        theirs["get_generic_question_template_answer"](problem),
    ]


def test_hle(published: Any) -> None:
    judge = published("judge/hle", "hle")
    template = judge.names("JUDGE_PROMPT")["JUDGE_PROMPT"]
    row = {"problem": QUESTION, "generation": REPLY, "expected_answer": RIGHT}
    assert judge.made(row) == [template.format(question=QUESTION, response=REPLY, correct_answer=RIGHT)]
    asked = published("generic/hle", "hle")
    assert asked.made(row) == [asked.names("SYSTEM_PROMPT")["SYSTEM_PROMPT"], QUESTION]


def test_wildbench(published: Any) -> None:
    judge = published("judge/wildbench", "wildbench")
    text = judge.texts[0].replace("{$history}", "USER: Hi\n\n").replace("{$user_query}", QUESTION)
    text = text.replace("{$model_output}", REPLY).replace("{$checklist}", "- a\n- b\n")
    row = {"history": "USER: Hi\n\n", "user_query": QUESTION, "generation": REPLY, "checklist": "- a\n- b"}
    assert judge.made(row) == [text]


def test_mgsm(published: Any) -> None:
    read = published("generic/math", "mgsm")
    sets = read.names("MGSM_EXEMPLARS")["MGSM_EXEMPLARS"]
    assert list(read.entry.cases) == list(sets)
    for language, examples in sets.items():
        shots = "".join(f"{example['q']}\n{example['a']}\n\n" for example in examples.values())
        labels = [re.split("[:：]", examples["1"][side])[0] for side in "qa"]
        (text,) = read.made({"problem": QUESTION, "target_language": language})
        assert text.startswith(shots)
        lines = text.removeprefix(shots).splitlines()
        assert [re.split("[:：]", line)[0] for line in lines] == labels
        assert lines[0].endswith(QUESTION)


def test_big_bench_hard(published: Any) -> None:
    read = published("generic/general-boxed", "bbh")
    assert len(read.texts) == 27
    for path, text in zip(read.entry.files, read.texts, strict=True):
        (made,) = read.made({"problem": QUESTION, "subset_for_metrics": Path(path).stem})
        first = text.split("\nA: ")[1].split(".")[0]
        assert made == f"{text.split('-----', 1)[1].strip()}\n\nQ: {QUESTION}\nA: {first}."


@pytest.mark.parametrize(("benchmark", "letters"), [("rewardbench", "AB"), ("rewardbench2.choices", "ABCD")])
def test_rewardbench(published: Any, benchmark: str, letters: str) -> None:
    read = published("judge/better-answer", benchmark)
    theirs = read.names("prompt_v2", "MTBENCH_V2")["MTBENCH_V2"]
    answers = {f"answer_{letter.lower()}": f"{letter} {{}}" for letter in letters}
    made = read.made({"question": QUESTION, **{letter: f"{letter} {{}}" for letter in letters}})
    assert made == [theirs["system_prompt"], theirs["prompt_template"].format(question=QUESTION, **answers)]


@pytest.mark.parametrize(
    ("name", "benchmark", "constant", "fields"),
    [
        (
            "judge/answer-mark",
            "rewardbench2.ties",
            "ratings_prompt_ties",
            {"prompt": "question", "completion": "answer"},
        ),
        (
            "judge/simpleqa",
            "simpleqa",
            "GRADER_TEMPLATE",
            {"question": "problem", "target": "expected_answer", "predicted_answer": "predicted_answer"},
        ),
    ],
)
def test_templates(published: Any, name: str, benchmark: str, constant: str, fields: dict[str, str]) -> None:
    read = published(name, benchmark)
    template = read.names(constant)[constant]
    values = {place: f"<{place}>{{x}}" for place in fields}
    assert read.made({fields[place]: value for place, value in values.items()}) == [template.format(**values)]


def test_tau2_bench(published: Any) -> None:
    agent = published("tau2/agent", "tau2-bench.retail")
    theirs = agent.names("AGENT_INSTRUCTION", "SYSTEM_PROMPT")
    whole = theirs["SYSTEM_PROMPT"].format(agent_instruction=theirs["AGENT_INSTRUCTION"], domain_policy=QUESTION)
    assert agent.made({"policy": QUESTION}) == [whole]
    for domain in ("retail", "telecom"):
        user = published("tau2/user", f"tau2-bench.{domain}")
        template = user.names("SYSTEM_PROMPT", file=1)["SYSTEM_PROMPT"]
        known = {"global_user_sim_guidelines_with_persona": user.texts[0], "instructions": QUESTION}
        assert user.made({"scenario": QUESTION}) == [template.format(**known)]


def test_all_that_is_put_together_from_programs_is_tried() -> None:
    """What is one text of a file renders in test_official.py."""
    put_together = {
        entry.prompt
        for entry in official_prompts()
        if len({*entry.user, *entry.system}) > 2 and any(path.endswith(".py") for path in entry.files)
    }
    here = {"eval/livecodebench/default_reasoning", "generic/math", "tau2/agent", "tau2/user"}
    in_test_official = {"eval/aai/mcq-10choices"}
    assert put_together <= here | in_test_official
