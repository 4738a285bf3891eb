# SPDX-License-Identifier: Apache-2.0
"""Tasks of lm_eval's repository, evaluated by lm_eval itself and by `ns eval` on the same scripted endpoint: the same
figures, to the last digit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commands.running import ns, rows_of
from tests.harness.endpoint import ScriptedEndpoint, ScriptedModel, make_tokenizer
from tests.harness.local_tasks import CANDIDATES, TASKS, solved, write_group, write_task

lm_eval = pytest.importorskip("lm_eval", reason="no lm_eval here: pip install -e '.[lm-eval]'")
pytest.importorskip("transformers", reason="lm_eval's models need transformers")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of code of others, read by Python anew

GENERATED = (
    *("truthfulqa_gen", "gsm8k", "gsm8k_cot_self_consistency", "triviaqa", "nq_open", "drop"),
    *(
        "hendrycks_math_algebra",
        "babi",
        "random_insertion",
        "mgsm_direct_en",
        "bbh_cot_fewshot_boolean_expressions",
    ),
)
BY_DAY = ("arc_easy", "lambada_openai", "wikitext", "gsm8k_cot_self_consistency", "drop", "piqa")
"""Tasks of every run of the tests, one at least of each kind; the others are compared at night."""
AT_NIGHT = bool(os.environ.get("NEWSKILLS_NIGHTLY"))
COMPLETED = tuple(TASKS) if AT_NIGHT else BY_DAY
CHATTED = GENERATED if AT_NIGHT else ("gsm8k", "triviaqa")
WITHOUT_TOKENIZER = ("arc_easy", "piqa", "lambada_openai", "triviaqa")


class BothFigures(NamedTuple):
    """Task or group → `metric,filter` → figure; `folder`: results of `ns eval`; `asked`: requests of each."""

    theirs: dict[str, dict[str, float]]
    ours: dict[str, dict[str, float]]
    folder: Path
    asked: tuple[int, int]
    bodies: list[dict[str, Any]]


def figures(reported: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in reported.items() if "," in key and value != "N/A"}


def evaluated(
    folder: Path,
    files: Sequence[Path],
    words: Sequence[str],
    *,
    chat: bool,
    tokenizer: Path | None,
    names: Sequence[str] = (),
    **settings: Any,
) -> BothFigures:
    """Both, one after the other. `words`: of `ns eval`; `settings`: of `lm_eval.simple_evaluate`; `names`: what that
    calls what `files` describe, where paths will not do."""
    from lm_eval.tasks import TaskManager

    model = ScriptedModel(make_tokenizer(folder / "tokenizer"), CANDIDATES, solved=solved)
    arguments: dict[str, Any] = {"model": "scripted"}
    if not chat:
        arguments |= {"tokenizer": str(folder / "tokenizer"), "tokenizer_backend": "huggingface"}
    with ScriptedEndpoint(model) as endpoint:
        theirs = lm_eval.simple_evaluate(
            model="local-chat-completions" if chat else "local-completions",
            model_args={**arguments, "base_url": endpoint.url + ("/chat/completions" if chat else "/completions")},
            tasks=list(names) or [str(file) for file in files],
            task_manager=TaskManager(include_path=str(files[0].parent)),
            bootstrap_iters=2,
            log_samples=False,
            **settings,
        )["results"]
    count = len(model.bodies)
    model.seen.clear()
    with ScriptedEndpoint(model) as endpoint:
        done = ns(
            f"ns eval --server_type=generic --server_address={endpoint.url} --model=scripted --output_dir=out",
            f"--benchmarks={','.join(f'lm-eval:{file}' for file in files)}",
            *([f"++tokenizer={tokenizer}"] if tokenizer else []),
            *words,
            cwd=folder,
            env={"NEWSKILLS_DATA_DIR": str(folder / "data"), "HF_HOME": str(folder / "hub")},
            timeout=900,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    ours: dict[str, dict[str, float]] = {}
    for file in sorted((folder / "out" / "eval-results").rglob("metrics.json")):
        for name, modes in json.loads(file.read_text()).items():
            for mode, row in modes.items():
                if "lm_eval" in row:
                    short = name.rpartition(".")[2].removeprefix("lm-eval-")
                    ours[short if mode in ("pass@1", "score") else mode] = row["lm_eval"]["figures"]
    reported = {name: figures(row) for name, row in theirs.items()}
    return BothFigures(reported, ours, folder, (count, len(model.bodies) - count), model.bodies)


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No hub, and caches of our own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("DISABLE_MULTIPROC", "1")
        patch.setenv("NEWSKILLS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> BothFigures:
    folder = tmp_path_factory.mktemp("completions")
    files = [write_task(folder, name) for name in COMPLETED]
    words = ["++solver_config.max_length=2048"]  # as lm_eval cuts contexts without being told
    return evaluated(folder, files, words, chat=False, tokenizer=folder / "tokenizer")


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> BothFigures:
    """Messages, examples as turns, a system text."""
    folder = tmp_path_factory.mktemp("chats")
    files = [write_task(folder, name) for name in CHATTED]
    words = ["++apply_chat_template=true", "++system_instruction=Be brief.", "++num_fewshot=2"]
    settings = {"apply_chat_template": True, "fewshot_as_multiturn": True, "num_fewshot": 2}
    return evaluated(folder, files, words, chat=True, tokenizer=None, system_instruction="Be brief.", **settings)


def assert_equal(both: BothFigures, name: str) -> None:
    """Each figure of lm_eval, and each standard error that has a formula."""
    theirs, ours = both.theirs[name], both.ours[name]
    assert {key for key in theirs if "_stderr" not in key} == {key for key in ours if "_stderr" not in key}
    assert {key: theirs[key] for key in ours} == ours


@pytest.mark.parametrize("name", COMPLETED)
def test_completions(completions: BothFigures, name: str) -> None:
    assert_equal(completions, name)


def test_the_figures_say_something(completions: BothFigures) -> None:
    """Most tasks have a score that is neither none nor all, or equality would say little."""
    between = [name for name, row in completions.ours.items() if any(v not in (0, 1) for v in row.values())]
    assert len(between) > 0.8 * len(COMPLETED), sorted(set(COMPLETED) - set(between))
    assert len(TASKS) >= 40


@pytest.mark.parametrize("name", CHATTED)
def test_chats(chats: BothFigures, name: str) -> None:
    assert_equal(chats, name)


def halves(both: BothFigures) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return both.bodies[: both.asked[0]], both.bodies[both.asked[0] :]


def said(body: dict[str, Any]) -> str:
    """What decides on a reply."""
    stop, temperature = body.get("stop") or [], float(body["temperature"])
    return json.dumps([body["messages"], body["max_tokens"], stop, temperature, body["model"]])


def test_the_same_requests_are_sent(chats: BothFigures) -> None:
    """Messages, limits and stop strings; the order is ours, and either may have had to ask twice."""
    theirs, ours = (
        {
            said(body) for body in part if "messages" in body and body["max_tokens"] > 1
        }  # 1: is a slow server there?
        for part in halves(chats)
    )
    assert sorted(theirs - ours) == []
    assert sorted(ours - theirs) == []


@pytest.mark.nightly
def test_a_chat_template_on_the_text_endpoint(tmp_path: Path) -> None:
    """Likelihoods and generations after a conversation that the model's own template renders; examples in one turn."""
    files = [write_task(tmp_path, name) for name in ("arc_challenge", "winogrande", "triviaqa", "sciq")]
    words = ["++apply_chat_template=true", "++fewshot_as_multiturn=false", "++inference.endpoint_type=text"]
    settings = {"apply_chat_template": True, "fewshot_as_multiturn": False}
    both = evaluated(tmp_path, files, words, chat=False, tokenizer=tmp_path / "tokenizer", **settings)
    for name in ("arc_challenge", "winogrande", "triviaqa", "sciq"):
        assert_equal(both, name)
    record = rows_of(tmp_path / "out/eval-results/lm-eval-triviaqa/output.jsonl")[0]
    assert record["generation_end_time"] > record["generation_start_time"]


@pytest.mark.nightly
def test_without_a_tokenizer_texts_are_sent(tmp_path: Path) -> None:
    files = [write_task(tmp_path, name) for name in WITHOUT_TOKENIZER]
    both = evaluated(tmp_path, files, ["++num_fewshot=1"], chat=False, tokenizer=None, num_fewshot=1)
    for name in WITHOUT_TOKENIZER:
        assert_equal(both, name)
    assert all(isinstance(body["prompt"], str) for body in both.bodies[both.asked[0] :] if "prompt" in body)


@pytest.mark.nightly
def test_a_group_and_the_groups_in_it(tmp_path: Path) -> None:
    """Weighted by size and not, members with what the group says otherwise, and intervals of our own."""
    file = write_group(tmp_path)
    both = evaluated(tmp_path, [file], [], chat=False, tokenizer=tmp_path / "tokenizer", names=["places"])
    assert {name for name in both.theirs if both.theirs[name]} == set(both.ours)
    for name in ("places", "places::inner"):
        assert both.theirs[name] == both.ours[name]
    row = json.loads((tmp_path / "out/eval-results/lm-eval-places/metrics.json").read_text())["lm-eval-places"][
        "score"
    ]
    assert row["acc"] == pytest.approx(100 * both.theirs["places"]["acc,none"])
    extended = tmp_path / "out/eval-results/lm-eval-places/metrics_extended.json"
    number = json.loads(extended.read_text())["lm-eval-places"]["numbers"]["score"]["acc"]
    assert number["low"] < row["acc"] < number["high"]


def test_what_is_done_is_not_asked_again(completions: BothFigures) -> None:
    folder = completions.folder
    rows = rows_of(folder / "out/eval-results/lm-eval-arc_easy/output.jsonl")
    assert len([body for body in completions.bodies[completions.asked[0] :] if "prompt" in body]) > 4 * len(rows)
    model = ScriptedModel(folder / "tokenizer", CANDIDATES, solved=solved)
    with ScriptedEndpoint(model) as endpoint:
        done = ns(
            f"ns eval --server_type=generic --server_address={endpoint.url} --model=scripted --output_dir=out",
            f"--benchmarks=lm-eval:{folder / 'arc_easy.yaml'}",
            f"++tokenizer={folder / 'tokenizer'}",
            "++solver_config.max_length=2048",
            cwd=folder,
            env={"NEWSKILLS_DATA_DIR": str(folder / "data"), "HF_HOME": str(folder / "hub")},
        )
    assert done.returncode == 0, done.stderr
    assert [body for body in model.bodies if "prompt" in body] == []
