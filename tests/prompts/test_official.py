# SPDX-License-Identifier: Apache-2.0
"""Published prompts: the table, and how files become prompts. The texts in here are of our own making."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError, DataError
from newskills.prompts.examples import ExampleProvider
from newskills.prompts.official.reading import find_official, needed_fields, official_source
from newskills.prompts.official.table import FOLDER, OfficialPrompt, entries_for, entries_of, official_prompts
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.prompts.schema import PromptConfig
from newskills.prompts.template import Template, TextPosition, renamed

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
        assert official.licence in ("Apache-2.0", "MIT")
    usual = Counter(official.prompt for official in prompts if not official.benchmarks)
    assert set(usual.values()) == {1}
    single = Counter((entry.prompt, entry.repository, name) for entry in prompts for name in entry.benchmarks)
    assert set(single.values()) == {1}


def test_the_table_holds_no_published_text() -> None:
    """Parts that are not read from a file are fields, line ends and labels."""
    for official in official_prompts():
        for part in (*official.user, *official.system, *official.example, *official.fields.values()):
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
    other = Template(renamed(template.source, TextPosition("x"), {"a": "z"}), TextPosition("x"))
    row = {"a": value, "b c": "2", "z": value}
    for name in template.fields:
        row.setdefault(name, "3")
    assert other.fill(row) == template.fill(row)


def test_a_changed_file_is_refused_and_an_absent_one_is_not_missed(tmp_path: Path) -> None:
    folders = (str(tmp_path / FOLDER),)
    usual = load_prompt("generic/math", PromptOverrides(official_folders=folders))
    assert (usual.source, usual.hash) == ("newskills", load_prompt("generic/math").hash)
    (official,) = entries_of("generic/math")
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


def test_all_mirrored_prompts_are_read(prompt_mirror: Path, tmp_path: Path) -> None:
    """Those that the mirror has; each has the sum that the table promises, and renders."""
    read = 0
    for official in official_prompts():
        sources = {path: prompt_mirror / official.url(path).removeprefix("https://") for path in official.files}
        if not all(source.is_file() for source in sources.values()):
            continue
        for path, place in official.places(tmp_path).items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(sources[path].read_bytes())
        prompt = load_prompt(official.prompt, PromptOverrides(official_folders=(str(tmp_path),)))
        assert prompt.source == official.label
        row = {name: f"<{name}>" for name in prompt.fields}
        text = "".join(str(message.content) for message in prompt.messages(row))
        assert all(f"<{name}>" in text for name in prompt.fields)
        if official.same:
            assert prompt.template == load_prompt(official.prompt).template
        read += 1
    assert read >= 90
    changed = load_prompt(
        "generic/math", PromptOverrides(official_folders=(str(tmp_path),), system_message="Be brief.")
    )
    assert changed.source.endswith(", changed by system_message")
    assert find_official("generic/math", [str(tmp_path)]) is not None


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
