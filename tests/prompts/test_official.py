# SPDX-License-Identifier: Apache-2.0
"""Published prompts: the table, and how files become prompts. The texts in here are of our own making."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.prompts.files import picture

from newskills.base.errors import ConfigError, DataError
from newskills.prompts.examples import ExampleProvider
from newskills.prompts.official.reading import needed_fields, official_source
from newskills.prompts.official.table import FOLDER, OfficialPrompt, entries_for, entries_of, official_prompts
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.prompts.schema import PromptConfig
from newskills.prompts.template import Template, TextPosition, rename_fields

PYTHON = r'''
"""A judge's program."""
import os

os.environ["RUN"] = "yes"
raise SystemExit("it was run")

SHARED = "Judge "
TEMPLATE = """
Question: {Question}
A fraction such as 10|\%| or {{x}} is fine.
Reply: {reply}
""".strip()
JOINED = SHARED + "this: {reply}"
SETTINGS = {"creative": {"system": "Like {stories}."}, "number": 3}
COMPUTED = TEMPLATE.format(Question=1, reply=2)
FORMATTED = f"{SHARED} x"


class Constants:
    HEAD = f"Be exact."
    SUM = HEAD + f"{SHARED}"
    NESTED = {"a": f"No places {{here}}."}


def positions(kind):
    if kind == "sum":
        return "Sum of {} and {}: {{x}}. Right: {}".format(1, 2, 3)
    return "Product of {} and {}. Right: {}".format(1, 2, 3)


def layout(row):
    text = "Frage:\n" + row["question"]
    return text + "Antwort:"
'''


def entry(folder: Path, name: str, text: str, **more: Any) -> OfficialPrompt:
    """An entry whose file lies in `folder`."""
    values = {"prompt": "judge/toy", "repository": "us/toys", "revision": "0" * 40, "licence": "MIT", **more}
    made = OfficialPrompt(files={f"a/{name}": hashlib.sha256(text.encode()).hexdigest()}, **values)
    for place in made.places(folder).values():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return made


def config_of(folder: Path, name: str, text: str, **more: Any) -> PromptConfig:
    return official_source(entry(folder, name, text, **more), folder).config


def test_every_entry_of_the_table_is_pinned() -> None:
    prompts = official_prompts()
    assert len(prompts) > 100
    for official in prompts:
        assert len(official.revision) == 40
        assert all(len(sha256) == 64 for sha256 in official.files.values())
        assert official.licence in ("Apache-2.0", "MIT", "CC-BY-4.0")
    usual = Counter(official.prompt for official in prompts if not official.benchmarks)
    assert set(usual.values()) == {1}
    single = Counter((entry.prompt, entry.repository, name) for entry in prompts for name in entry.benchmarks)
    assert set(single.values()) == {1}


def test_the_table_holds_no_published_text() -> None:
    """Parts that are not read from a file are fields, line ends and labels."""
    for official in official_prompts():
        cases = [part for case in official.cases.values() for part in ([] if isinstance(case, str) else case)]
        for part in (*official.user, *official.system, *official.example, *official.fields.values(), *cases):
            if not part.startswith(("@", "=@")):
                literal = "".join(Template(part, TextPosition("x"))._parts)
                assert len(literal.split()) <= 2, (official.prompt, part)


def test_what_is_published_for_a_benchmark_goes_before_what_is_published_for_all() -> None:
    ((own, usual),) = entries_for("mmlu-pro", ["eval/aai/mcq-10choices"])
    assert (own.benchmarks, usual.benchmarks) == (("mmlu-pro",), ())
    assert entries_for("gpqa", ["eval/aai/mcq-10choices"]) == [[usual]]
    assert entries_of("EVAL/aai/mcq_10choices") == [own, usual]


def test_a_constant_of_a_program_is_read_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUN", raising=False)
    fields = {"Question": "problem", "reply": "generation"}
    config = config_of(tmp_path, "eval.py", PYTHON, user=("@eval.py:TEMPLATE",), fields=fields)
    text = Template(config.user, TextPosition("x")).fill({"problem": "1+1?", "generation": "{2}"})
    assert text == "Question: 1+1?\nA fraction such as 10|\\%| or {x} is fine.\nReply: {2}"
    assert needed_fields(config) == {"problem", "generation"}
    config = config_of(
        tmp_path,
        "eval.py",
        PYTHON,
        system=("=@eval.py:SETTINGS/creative/system",),
        user=("@eval.py:JOINED",),
        fields={"reply": "generation"},
    )
    assert (config.system, config.user) == ("Like {{stories}}.", "Judge this: {generation}")
    config = config_of(
        tmp_path, "eval.py", PYTHON, user=("@eval.py:layout[0]", "{question}\n", "@eval.py:layout[2]")
    )
    assert config.user == "Frage:\n{question}\nAntwort:"


def test_constants_of_a_class_and_texts_without_places(tmp_path: Path) -> None:
    config = config_of(
        tmp_path, "eval.py", PYTHON, user=("@eval.py:Constants/HEAD", " ", "=@eval.py:Constants/NESTED/a")
    )
    assert config.user == "Be exact. No places {{here}}."
    with pytest.raises(ConfigError, match="Constants/SUM is not a text"):
        config_of(tmp_path, "eval.py", PYTHON, user=("@eval.py:Constants/SUM",))


def test_numbered_places_by_the_kind_of_a_row(tmp_path: Path) -> None:
    """As LongMemEval's judge: a text for each kind of question, with places that have no names."""
    official = entry(
        tmp_path,
        "eval.py",
        PYTHON,
        style="positions",
        fields={"0": "left", "1": "right", "2": "expected_answer"},
        case="kind",
        cases={"sum": "1", "product": "2"},
        user=("@eval.py:positions[<case>]",),
    )
    config = official_source(official, tmp_path).config
    assert needed_fields(config) == {"kind", "left", "right", "expected_answer"}
    prompt = load_prompt(msgspec.to_builtins(config))
    row = {"kind": "sum", "left": "{1}", "right": 2, "expected_answer": 3}
    assert prompt.messages(row)[0].content == "Sum of {1} and 2: {x}. Right: 3"
    assert prompt.messages({**row, "kind": "product"})[0].content == "Product of {1} and 2. Right: 3"
    with pytest.raises(
        DataError, match=r"has 'quotient' as 'kind', for which .* no text; it has texts for sum, product"
    ):
        prompt.messages({**row, "kind": "quotient"})
    with pytest.raises(ConfigError, match="nothing says what its place 2"):
        config_of(
            tmp_path,
            "eval.py",
            PYTHON,
            style="positions",
            fields={"0": "left", "1": "right"},
            user=("@eval.py:positions[2]",),
        )


def test_texts_of_several_files_by_a_field(tmp_path: Path) -> None:
    """As BIG-Bench Hard: a file for each task, whose head is left out, and whose questions show how one is asked."""
    files = {
        name: f"head {{x}}\n-----\n{name}!\n\nF: {{1}}?\nA: Let us {name}. {{2}}\n" for name in ("add", "take")
    }
    sums = {f"a/{name}.txt": hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    official = OfficialPrompt(
        prompt="judge/toy",
        repository="us/toys",
        revision="0" * 40,
        licence="MIT",
        files=sums,
        case="task",
        cases={name: name for name in files},
        user=(r"=@<case>.txt:~(?s)(?<=-----\n).*\S", "\n\nF: {problem}\n", r"=@<case>.txt:~(?m)^A: [^.\n]*\."),
    )
    for path, place in official.places(tmp_path).items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(files[Path(path).stem])
    config = official_source(official, tmp_path).config
    prompt = load_prompt(msgspec.to_builtins(config))
    text = prompt.messages({"task": "take", "problem": "2-1"})[0].content
    assert text == "take!\n\nF: {1}?\nA: Let us take. {2}\n\nF: 2-1\nA: Let us take."
    with pytest.raises(ConfigError, match="has nothing of that form"):
        official_source(msgspec.structs.replace(official, user=("=@<case>.txt:~Q: .*",)), tmp_path)


def test_parts_of_their_own_for_rows_without_a_text(tmp_path: Path) -> None:
    """As LiveCodeBench: with code to start from, or without."""
    config = config_of(
        tmp_path,
        "eval.py",
        PYTHON,
        case="starter_code",
        cases={"": ("=@eval.py:SHARED", "{question}"), "*": ("=@eval.py:SHARED", "{question} {starter_code}")},
    )
    prompt = load_prompt(msgspec.to_builtins(config))
    assert prompt.messages({"question": "Q", "starter_code": ""})[0].content == "Judge Q"
    assert prompt.messages({"question": "Q", "starter_code": "def f():"})[0].content == "Judge Q def f():"
    assert prompt.fields == ("starter_code", "question")


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("COMPUTED", "COMPUTED is not a text"),
        ("FORMATTED", "FORMATTED is not a text"),
        ("SETTINGS/number", "SETTINGS/number is not a text"),
        ("NOBODY", "NOBODY is not a text"),
        ("layout[9]", "no text number 9"),
        ("TEMPLATE", "nothing says which field of the rows is {Question}"),
    ],
)
def test_what_is_no_plain_text_is_refused(tmp_path: Path, where: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault.replace("[", r"\[").replace("{", r"\{")):
        config_of(tmp_path, "eval.py", PYTHON, user=(f"@eval.py:{where}",))


def test_a_placeholder_that_the_text_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no place for reference"):
        config_of(
            tmp_path,
            "eval.py",
            PYTHON,
            user=("@eval.py:JOINED",),
            fields={"reply": "generation", "reference": "expected_answer"},
        )


def test_marks_become_fields_and_braces_stay(tmp_path: Path) -> None:
    config = config_of(
        tmp_path,
        "judge.txt",
        'Conversation: <<talk>>\nReply with {"met": true}.',
        style="marks",
        fields={"<<talk>>": "{before}\n\nassistant: {answer}"},
        user=("@judge.txt",),
    )
    text = Template(config.user, TextPosition("x")).fill({"before": "Hi {you}", "answer": "Ho"})
    assert text == 'Conversation: Hi {you}\n\nassistant: Ho\nReply with {"met": true}.'


def test_texts_in_json_lines_json_and_yaml(tmp_path: Path) -> None:
    rows = [{"name": "one", "text": "1"}, {"name": "two", "text": "Say {q}"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    fields = {"q": "question"}
    config = config_of(tmp_path, "all.jsonl", lines, user=("@all.jsonl:name=two/text",), fields=fields)
    assert config.user == "Say {question}"
    config = config_of(tmp_path, "all.json", json.dumps({"a": rows[1]}), user=("@all.json:a/text",), fields=fields)
    assert config.user == "Say {question}"
    config = config_of(tmp_path, "all.yaml", "a:\n  text: 'Say {q}'\n", user=("@all.yaml:a/text",), fields=fields)
    assert config.user == "Say {question}"
    with pytest.raises(ConfigError, match="there is no text"):
        config_of(tmp_path, "all.json", json.dumps({"a": rows[1]}), user=("@all.json:a/b/c",))


def test_a_file_that_is_a_prompt_itself(tmp_path: Path) -> None:
    text = 'system: "Be brief."\nuser: "{examples}{q} {{}}"\nfew_shot_examples:\n  template: "{q}! "\n'
    config = config_of(tmp_path, "toy.yaml", text, fields={"q": "question"})
    assert (config.system, config.user) == ("Be brief.", "{examples}{question} {{}}")
    assert config.few_shot_examples.template == "{question}! "


def test_images_of_rows_are_shown(tmp_path: Path) -> None:
    config = config_of(tmp_path, "toy.txt", "Look.", user=("@toy.txt",), image_field="picture")
    (tmp_path / "red.png").write_bytes(picture())
    prompt = load_prompt(msgspec.to_builtins(config), PromptOverrides(data_dir=str(tmp_path)))
    content = prompt.messages({"picture": "red.png"})[0].content
    assert isinstance(content, list)
    assert [part["type"] for part in content] == ["image_url", "text"]


def test_few_shots_are_those_that_the_row_names(tmp_path: Path) -> None:
    """As MMLU-Pro's: five examples of the row's field, from other rows, in the layout of the published program."""
    official = entry(
        tmp_path,
        "eval.py",
        PYTHON,
        user=("Task: {field}\n{examples}", "@eval.py:layout[0]", "{question}\n", "@eval.py:layout[2]"),
        example=("@eval.py:layout[0]", "{question}\n", "@eval.py:layout[2]", " {worked_answer}\n"),
        examples_type="{examples_type}",
    )
    config = official_source(official, tmp_path).config
    provider: ExampleProvider = lambda name: [  # noqa: E731
        {"question": f"{name} {n}", "worked_answer": str(n)} for n in range(9)
    ]
    spec = {
        "user": config.user,
        "few_shot_examples": {
            "template": config.few_shot_examples.template,
            "examples_type": config.few_shot_examples.examples_type,
        },
    }
    prompt = load_prompt(spec, examples=provider)
    (message,) = prompt.messages({"field": "law", "question": "Which?", "examples_type": "law_set"})
    shots = "".join(f"Frage:\nlaw_set {n}\nAntwort: {n}\n" for n in range(5))
    assert message.content == f"Task: law\n{shots}Frage:\nWhich?\nAntwort:"


@given(
    parts=st.lists(
        st.one_of(st.text(max_size=5), st.sampled_from(["{a}", "{b c}", "{{", "}}", "\\"])), max_size=8
    ),
    value=st.text(max_size=5),
)
def test_renamed_templates_give_the_same_texts(parts: list[str], value: str) -> None:
    try:
        template = Template("".join(parts), TextPosition("x"))
    except ConfigError:
        return
    other = Template(rename_fields(template.source, TextPosition("x"), {"a": "z"}), TextPosition("x"))
    row = {"a": value, "b c": "2", "z": value}
    for name in template.fields:
        row.setdefault(name, "3")
    assert other.fill(row) == template.fill(row)


def test_a_changed_file_is_refused_and_an_absent_one_is_not_missed(tmp_path: Path) -> None:
    folders = (str(tmp_path / FOLDER),)
    usual = load_prompt("generic/math", PromptOverrides(official_folders=folders))
    assert (usual.source, usual.hash) == ("newskills", load_prompt("generic/math").hash)
    official = entries_of("generic/math")[-1]
    (place,) = official.places(tmp_path / FOLDER).values()
    place.parent.mkdir(parents=True)
    place.write_text("user: '{problem} Ignore the box.'\n")
    with pytest.raises(DataError, match="is not the published file"):
        load_prompt("generic/math", PromptOverrides(official_folders=folders))
    assert load_prompt("generic/math").source == "newskills"


def test_what_is_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    folders = (str(tmp_path),)
    with pytest.raises(ConfigError, match="official wording of the prompt generic/math is not here"):
        load_prompt("math", PromptOverrides(official_folders=folders, official_required=True))
    own = load_prompt("generic/short-answer", PromptOverrides(official_folders=folders, official_required=True))
    assert own.source == "newskills"
    with pytest.raises(ConfigError, match="prepare_data prompts"):
        load_prompt("eval/livecodebench/python_codegen", PromptOverrides(official_folders=folders))


def test_sources_of_other_prompts(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("user: '{problem}'\n")
    assert load_prompt(str(own)).source == "of the user"
    assert load_prompt({"user": "{problem}"}).source == "of the user"
    assert load_prompt(None, PromptOverrides(prompt_format="openai")).source == "of the user"


def one_example(fields: Sequence[str]) -> ExampleProvider:
    """Every few-shot set has one example with these fields."""
    return lambda name: [dict.fromkeys(fields, name)]


def test_all_mirrored_prompts_are_read(prompt_mirror: Path, tmp_path: Path) -> None:
    """Those that the mirror has; each has the sum that the table promises, and renders."""
    read = 0
    for number, official in enumerate(official_prompts()):
        sources = {path: prompt_mirror / official.url(path).removeprefix("https://") for path in official.files}
        if not all(source.is_file() for source in sources.values()):
            continue
        folder = tmp_path / str(number)
        for path, place in official.places(folder).items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(sources[path].read_bytes())
        overrides = PromptOverrides(official_folders=(str(folder),))
        shot = Template(official_source(official, folder).config.few_shot_examples.template, TextPosition("x"))
        prompt = load_prompt(official.prompt, overrides, one_example(shot.fields))
        assert prompt.source == official.label
        for case in official.cases or ("",):
            row = {name: f"<{name}>" for name in prompt.fields} | {official.case: case}
            text = "".join(str(message.content) for message in prompt.messages(row))
            left_out = {official.case, "examples_type"}
            assert all(f"<{name}>" in text for name in prompt.fields if name not in left_out), official.prompt
        if official.same:
            assert prompt.template == load_prompt(official.prompt).template
        if official.prompt == "generic/math" and not official.benchmarks:
            changed = msgspec.structs.replace(overrides, system_message="Be brief.")
            assert load_prompt("generic/math", changed).source.endswith(", changed by system_message")
        read += 1
    assert read >= 90


@pytest.mark.parametrize("words", [[], ["--help"], ["eval", "--help"], ["list", "benchmarks"]])
def test_help_and_lists_do_not_read_the_table(words: list[str]) -> None:
    program = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "from newskills.cli import main\n"
        "try:\n"
        f"    main({words!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "assert not [path for path in opened if path.endswith('sources.jsonl')], opened\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
