# SPDX-License-Identifier: Apache-2.0
import contextlib
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.config.command_line import Parsed, check_keywords, parse
from newskills.config.help import command_help
from newskills.config.ids import parse_ids


class Options(Struct, frozen=True, kw_only=True):
    names: Annotated[list[str], Meta(description="what", extra={"positional": True})] = []
    output_dir: Annotated[str, Meta(description="results")]
    model: Annotated[list[str], Meta(description="models")] = []
    server_gpus: Annotated[list[int], Meta(description="GPUs")] = []
    server_args: Annotated[list[str], Meta(description="engine arguments")] = []
    num_chunks: Annotated[int | None, Meta(description="pieces")] = None
    rerun_done: Annotated[bool, Meta(description="again")] = False


class CommaOptions(Struct, frozen=True, kw_only=True):
    names: Annotated[str, Meta(description="only these, comma separated")] = ""
    other: Annotated[str, Meta(description="another")] = ""


def read(*argv: str) -> Parsed[Options]:
    return parse(Options, argv, command="test", keys=("inference.temperature", "max_samples"))


@pytest.mark.parametrize(
    "argv",
    [
        ["--output_dir=out", "--num_chunks=3", "--rerun_done"],
        ["--output-dir", "out", "--num-chunks", "3", "--rerun-done"],
        ["--num_chunks", "9", "--output-dir=out", "--num-chunks=3", "--no-rerun-done", "--rerun_done=true"],
    ],
)
def test_both_spellings_mean_one_thing(argv: list[str]) -> None:
    options = read(*argv).options
    assert (options.output_dir, options.num_chunks, options.rerun_done) == ("out", 3, True)


@pytest.mark.parametrize(
    "argv",
    [["--model", "a", "b"], ["--model=a", "--model", "b"], ["--model=[a,b]"], ["--model", "a", "--model=b"]],
)
def test_lists_take_words_repetitions_and_brackets(argv: list[str]) -> None:
    assert read("--output_dir=o", *argv).options.model == ["a", "b"]


def test_none_is_no_value_except_where_it_is_a_name() -> None:
    class Named(Struct, frozen=True, kw_only=True):
        cluster: Annotated[str | None, Meta(description="cluster", extra={"name": True})] = None
        other: Annotated[str | None, Meta(description="other")] = "x"

    options = parse(Named, ["--cluster=none", "--other=none"], command="test").options
    assert (options.cluster, options.other) == ("none", None)


def test_engine_arguments_may_begin_with_dashes() -> None:
    options = read("--output_dir", "o", "--server_args", "--max-model-len 8192 --x=1").options
    assert options.server_args == ["--max-model-len 8192 --x=1"]
    assert read("--output_dir=o", "--server_args=--max-model-len 8192").options.server_args == [
        "--max-model-len 8192"
    ]


def test_overrides_in_three_spellings_do_not_become_list_words() -> None:
    parsed = read(
        "--output_dir=o", "--model", "a", "++inference.temperature=0.6", "+prompt=x", "split=test", "gsm8k"
    )
    assert parsed.overrides == {"inference.temperature": "0.6", "prompt": "x", "split": "test"}
    assert parsed.options.model == ["a"]
    assert parsed.options.names == ["gsm8k"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--outptu_dir=o"], "did you mean '--output_dir'"),
        (["--output_dir=o", "--max_samples=5"], r"\+\+max_samples=VALUE"),
        (["--output_dir=o", "--temperature=5"], r"\+\+inference.temperature=VALUE"),
        (["--output_dir=o", "--num_chunks=three"], "num_chunks"),
        (["--output_dir"], "needs a value"),
        (["--output_dir", "--rerun_done"], "needs a value"),
        (["--output_dir=o", "++flag"], "has no value"),
        (["--rerun_done"], "--output_dir is missing"),
        (["--output_dir=o", "--config-name=x"], "Hydra"),
        (["--output_dir=o", "--server_gpus=two"], "server_gpus"),
    ],
)
def test_bad_words_are_refused_with_one_sentence(argv: list[str], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message) as caught:
        read(*argv)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [["--names", "a", "b"], ["--names=a", "b"]])
def test_a_word_behind_a_list_with_commas_says_comma(words: list[str]) -> None:
    with pytest.raises(ConfigError, match="separated by commas: --names=a,b"):
        parse(CommaOptions, words, command="test")
    with pytest.raises(ConfigError, match=r"unexpected word 'c'\. See: ns test --help"):
        parse(CommaOptions, [*words[:-1], "--other", "b", "c"], command="test")


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_words_parse_or_are_refused(words: list[str]) -> None:
    with contextlib.suppress(ConfigError, UnknownNameError):
        read("--output_dir=o", *words)


def test_help_names_every_option_and_key() -> None:
    page = command_help("test", "Summary.", Options, config=Options)
    for name in ("--output_dir", "--model", "--rerun_done", "NAMES", "++num_chunks", "(required)"):
        assert name in page


def test_python_keywords() -> None:
    with pytest.raises(TypeError, match="Missing required argument: 'output_dir'"):
        check_keywords(Options, ["model"], "generate")
    with pytest.raises(TypeError, match="did you mean 'output_dir'"):
        check_keywords(Options, ["outputdir"], "generate")


@pytest.mark.parametrize(("text", "ids"), [("1,2,5", [1, 2, 5]), ("0..4", [0, 1, 2, 3, 4]), (" 3 .. 4 ", [3, 4])])
def test_ids(text: str, ids: list[int]) -> None:
    assert parse_ids(text, "--chunk_ids") == ids


@pytest.mark.parametrize("text", ["1,2..4", "a", "", "4..1", "1,1", "-1"])
def test_bad_ids(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_ids(text, "--chunk_ids")
