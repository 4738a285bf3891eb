# SPDX-License-Identifier: Apache-2.0
"""Options that benchmarks have for `ns prepare_data`: what they change, and that every one of them can be used."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from newskills.base.benchmark import Benchmark, Source
from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import expand_benchmarks, get_benchmark
from newskills.benchmarks.data import PreparedSplit, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.benchmarks.general_knowledge.mmlu_pro import question_hash
from newskills.benchmarks.generate_catalog import built_in
from newskills.benchmarks.options import check_options, values_of, with_options

RAW = Path(__file__).with_name("raw")
HOST = "https://fixtures.invalid"
VALUES = {
    "random_seed": "7",
    "max_samples": "1",
    "max_context_window": "100000",
    "start_date": "2024-08",
    "end_date": "2025-05",
    "setup": "mine",
}
OPTIONS = sorted(
    (benchmark.name, name)
    for _, benchmark in built_in()
    if isinstance(benchmark, Benchmark)
    for name in benchmark.options
)


def made(name: str, folder: Path, **given: list[str]) -> list[PreparedSplit]:
    """The benchmark's invented rows, prepared with these options."""
    benchmark = with_options(get_benchmark(name), given)
    assert benchmark is not None
    file = next(RAW.glob(f"{name}.*"))
    form: Any = "csv" if file.suffix == ".csv" else "jsonl"
    mirror = folder / "mirror/fixtures.invalid"
    mirror.mkdir(parents=True, exist_ok=True)
    (mirror / "rows").write_bytes(file.read_bytes())
    sources = []
    for source in benchmark.sources:
        beside = f"{HOST}/beside" if source.beside else ""
        sources.append(
            Source(split=source.split, url=f"{HOST}/rows", format=form, beside=beside, span=source.span)
        )
    return prepare(
        structs.replace(benchmark, sources=tuple(sources)),
        data_dir=folder / "data",
        options=FetchOptions(mirror=str(folder / "mirror"), offline=True),
    ).splits


def rows_of(split: PreparedSplit) -> list[Row]:
    return list(read_rows(split.path))


def beside(folder: Path, content: str) -> None:
    (folder / "mirror/fixtures.invalid").mkdir(parents=True, exist_ok=True)
    (folder / "mirror/fixtures.invalid/beside").write_text(content)


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_can_be_used(name: str, option: str, tmp_path: Path) -> None:
    benchmark = get_benchmark(name)
    known = benchmark.options[option].known
    assert benchmark.options[option].meaning
    value = known[0] if known else VALUES.get(option, "x")
    changed = with_options(benchmark, {option: [] if option.startswith(("no_", "include_")) else [value]})
    assert changed is None or all(source.split in changed.splits() for source in changed.sources)


def test_values_come_by_words_and_commas() -> None:
    assert values_of(["de,fr", "es", "None", ""]) == ("de", "fr", "es")
    with pytest.raises(UnknownNameError, match="did you mean 'de'"):
        with_options(get_benchmark("mmlu-prox"), {"languages": ["dee"]})
    with pytest.raises(ConfigError, match="--languages needs a value"):
        with_options(get_benchmark("mmlu-prox"), {"languages": []})
    with pytest.raises(ConfigError, match="is not a whole number"):
        with_options(get_benchmark("supergpqa"), {"random_seed": ["x"]})
    with pytest.raises(UnknownNameError, match="did you mean '--languages'"):
        check_options([get_benchmark("mmlu-prox")], {"langages": ["de"]}, ())
    check_options([get_benchmark("mmlu-prox"), get_benchmark("gsm8k")], {"languages": ["de"]}, ())


def test_sources_follow_the_languages() -> None:
    changed = with_options(get_benchmark("wmt24pp"), {"target_languages": ["pl_PL", "zh_CN"]})
    assert changed is not None
    assert changed.sources[0].config == "{en-pl_PL,en-zh_CN}"
    assert (changed.items, changed.chosen) == ({}, {"target_languages": ("pl_PL", "zh_CN")})
    english = with_options(get_benchmark("mmmlu"), {"languages": ["DE-DE"], "include_english": []})
    assert english is not None
    assert english.sources[0].url.endswith("/simple-evals/{mmlu_DE-DE,mmlu}.csv")
    group = [with_options(one, {"languages": ["fr"]}) for one in expand_benchmarks("polymath")]
    assert [one.name for one in group if one] == ["polymath.fr"]
    window = with_options(
        get_benchmark("livecodebench"),
        {"release_version": ["release_v5"], "start_date": ["2024-01"], "end_date": ["2410"]},
    )
    assert window is not None
    assert (window.split, [source.split for source in window.sources]) == (
        "test_v5_2401_2410",
        ["test_v5_2401_2410"],
    )


def test_translations_between_chosen_languages(tmp_path: Path) -> None:
    (split,) = made("flores200", tmp_path, source_languages=["en"], target_languages=["de", "fr"])
    pairs = {(row["source_language"], row["target_language"]) for row in rows_of(split)}
    assert pairs <= {("en", "de"), ("en", "fr")}
    assert pairs
    assert any("--source_languages=en --target_languages=de,fr" in notice for notice in split.notices)
    assert split.provenance.options["source_languages"] == ("en",)


def test_other_options_make_the_file_anew(tmp_path: Path) -> None:
    digits, thinking = {"categories": ["digit_expansion"]}, {"categories": ["critical_thinking"]}
    first, again, other, usual = (
        made("gsm-plus", tmp_path, **given)[0] for given in (digits, digits, thinking, {})
    )
    assert (first.fresh, again.fresh, other.fresh, usual.fresh) == (True, False, True, True)
    assert (first.provenance.rows, other.provenance.rows, usual.provenance.rows) == (1, 1, 4)
    assert not any("made with" in notice for notice in usual.notices)


def test_lists_of_sound_rows(tmp_path: Path) -> None:
    beside(tmp_path, json.dumps({"light": [0, 2, 3], "hard": [1]}))
    light = made("gsm-plus", tmp_path, cleaning=["light"])
    assert [split.split for split in light] == ["test", "test_rounded"]
    assert [row["perturbation_type"] for row in rows_of(light[0])] == [
        "numerical substitution",
        "critical thinking",
        "digit expansion",
    ]
    assert "_beside" not in rows_of(light[0])[0]
    assert any("9204 are known" in notice for notice in light[0].notices)
    (hard,) = made("gsm-plus", tmp_path, cleaning=["hard"], no_rounding_instructions=[])
    assert [row["expected_answer"] for row in rows_of(hard)] == ["1.25"]
    rounded = rows_of(made("gsm-plus", tmp_path)[1])
    assert rounded[0]["problem"].endswith("Give your answer as an integer.")
    assert rounded[1]["problem"].endswith("Round your answer to 2 decimal places.")
    assert rounded[2]["problem"].endswith("How many has she?")


@pytest.mark.mirror
def test_the_real_lists(mirror: Path) -> None:
    source = "raw.githubusercontent.com/NVIDIA-NeMo/Skills/main/nemo_skills/dataset/gsm-plus/cleaned_indexes.json"
    lists = json.loads((mirror / source).read_text())
    assert {name: len(numbers) for name, numbers in lists.items()} == {"light": 9204, "hard": 8616}
    assert all(numbers == sorted(set(numbers)) and numbers[-1] < 10552 for numbers in lists.values())


def test_a_tenth_by_hashes(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (RAW / "mmlu-pro.jsonl").read_text().splitlines()]
    text = "which ledger entry records a loan received? debit cash, credit loans debit loans, credit cash"
    assert question_hash(rows[1]) == hashlib.sha256(f"{text} credit cash only".encode()).hexdigest()
    beside(tmp_path, "".join(json.dumps({"id": one}) + "\n" for one in (question_hash(rows[1]), "00ff")))
    splits = {split.split: split for split in made("mmlu-pro", tmp_path)}
    assert [row["id"] for row in rows_of(splits["10pct_opt_v1"])] == ["mmlu-pro-71"]
    beside(tmp_path, "{broken")
    with pytest.raises(DataError, match="is not JSON"):
        prepare(
            structs.replace(
                get_benchmark("mmlu-pro"), sources=(Source(url=f"{HOST}/rows", beside=f"{HOST}/beside"),)
            ),
            data_dir=tmp_path / "other",
            options=FetchOptions(mirror=str(tmp_path / "mirror"), offline=True),
        )


def test_other_orders_of_options(tmp_path: Path) -> None:
    usual = rows_of(made("supergpqa", tmp_path)[0])
    other = rows_of(made("supergpqa", tmp_path, random_seed=["7"])[0])
    assert [row["option_order"] for row in usual] != [row["option_order"] for row in other]
    assert all(
        row[row["expected_answer"]] == again[again["expected_answer"]]
        for row, again in zip(usual, other, strict=True)
    )
    splits = {split.split: split.provenance.rows for split in made("supergpqa", tmp_path)}
    assert (splits["science"], splits["physics"]) == (7, 1)


def test_answers_of_a_baseline(tmp_path: Path) -> None:
    questions = [json.loads(line)["prompt"] for line in (RAW / "m-arena-hard.jsonl").read_text().splitlines()]
    file = tmp_path / "baseline.jsonl"
    file.write_text(
        "".join(
            json.dumps({"question": q, "generation": f"<think>x</think>\nA{n}"}) + "\n"
            for n, q in enumerate(questions)
        )
    )
    (split,) = made("m-arena-hard", tmp_path, baseline_file=[str(file)])
    assert [row["baseline_answer"] for row in rows_of(split)] == [f"A{n}" for n in range(len(questions))]
    (tmp_path / "few.jsonl").write_text("")
    with pytest.raises(DataError, match="has no answer to"):
        made("m-arena-hard", tmp_path, baseline_file=[str(tmp_path / "few.jsonl")])
    with pytest.raises(ConfigError, match="is not JSONL"):
        made("m-arena-hard", tmp_path, baseline_file=[str(tmp_path / "gone.jsonl")])


@pytest.mark.mirror
def test_fields_of_tasks(mirror: Path, tmp_path: Path) -> None:
    benchmark = with_options(get_benchmark("swe-bench"), {"container_formatter": ["/images/{instance_id}.sif"]})
    assert benchmark is not None
    done = prepare(benchmark, data_dir=tmp_path, options=FetchOptions(mirror=str(mirror), offline=True))
    assert {row["container_formatter"] for row in rows_of(done.splits[0])} == {"/images/{instance_id}.sif"}
