# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that a second model judges, on this machine: real servers, real processes."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands import judged
from tests.commands.clusters import SERVED
from tests.commands.judged import answering, judging, line, start
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, Fault, Latency, Script

REFUSED = Fault(kind="status", status=400, marker="Add 6 and")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return judged.prepare(tmp_path)


def metrics_of(folder: Path, name: str = "judged-sums") -> Any:
    return json.loads((folder / "out/metrics.json").read_text())[name]


def test_answers_are_judged_seed_by_seed(here: Path, fake_server: FakeServerFactory) -> None:
    model, judge = fake_server(answering()), fake_server(judging())
    words = line(model.url, judge.url, "--accept_lost=20", benchmarks="./sums.py:2")
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert (len(model.records), len(judge.records)) == (20, 20)
    answers, verdicts = here / "out/tmp-eval-results/judged-sums", here / "out/eval-results/judged-sums"
    for seed in range(2):
        before = rows_of(answers / f"output-rs{seed}.jsonl")
        after = rows_of(verdicts / f"output-rs{seed}.jsonl")
        assert (verdicts / f"output-rs{seed}.jsonl.done").exists()
        for one, other in zip(before, after, strict=True):
            kept = {k: v for k, v in one.items() if k not in ("outcome", "outcome_cause", "grader", "why")}
            assert {k: other[k] for k in kept} == kept
        outcomes = [(row["outcome"], row.get("outcome_cause")) for row in after]
        assert outcomes == [
            ("wrong", "model") if n == 4 else ("unscored", "judge") if n == 7 else ("correct", None)
            for n in range(10)
        ]
    record = after[4]
    assert record["judgement"] == "Reasoning: …\nJudgement: No"
    assert (record["judge_correct"], record["symbolic_correct"]) == (False, False)
    assert (record["judge_model"], record["judge_temperature"]) == ("judge", 0.0)
    assert record["judge_prompt"].startswith("judge/math ")
    about = json.loads((verdicts / "benchmark.json").read_text())
    assert (about["prompt"], about["judge"]["prompt"], about["judge"]["model"]) == (
        "generic/math",
        "judge/math",
        "judge",
    )
    numbers = metrics_of(here)["pass@1[avg-of-2]"]
    assert numbers["judge_correct"] == pytest.approx(100 * 8 / 9)
    assert numbers["unscored"] == 10.0
    assert {"symbolic_correct", "both_correct", "any_correct", "num_entries"} <= set(numbers)
    assert "judge_correct" in done.stdout
    assert "judge-judged-sums-rs1" in (here / "out/eval-logs/judge/run.log").read_text()
    again = ns(words, cwd=here)
    assert again.returncode == 0, again.stderr
    assert (len(model.records), len(judge.records)) == (20, 20)


def test_a_judge_that_fails_leaves_samples_unscored_and_is_asked_again(
    here: Path, fake_server: FakeServerFactory
) -> None:
    model, judge = fake_server(answering()), fake_server(judging(REFUSED))
    words = line(model.url, judge.url)
    done = ns(words, cwd=here)
    assert done.returncode == 1
    assert "20.0 % of the samples are unscored" in done.stderr
    assert "asks again where the judge gave no reply" in done.stderr
    assert "judge_correct" not in metrics_of(here)["pass@1"]
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    lost = records[6]
    assert (lost["judgement"], lost["outcome"], lost["outcome_cause"]) == ("", "unscored", "judge")
    assert lost["judge_error"] == "BadRequestError"
    assert lost["generation"] == r"The answer is \boxed{it is not 12}."
    assert "error" not in lost
    judge.script = judging()
    healed = ns(f"{words} --accept_lost=10", cwd=here)
    assert healed.returncode == 0, healed.stderr
    assert (len(model.records), len(judge.records)) == (10, 11)
    assert "Add 6 and" in judge.records[-1].prompt
    after = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert [row["id"] for row in after] == [row["id"] for row in records]
    assert (after[6]["outcome"], after[6]["judgement"]) == ("correct", "Judgement: Yes")
    assert "judge_error" not in after[6]
    assert metrics_of(here)["pass@1"]["judge_correct"] == pytest.approx(100 * 8 / 9)


def test_kill_in_the_middle_of_judging_costs_nothing_twice(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(answering())
    judge = fake_server(judging(latency=Latency(fixed=0.4)))
    words = line(model.url, judge.url, "--accept_lost=20 --extra_judge_args=++max_concurrent_requests=1")
    run = start(words, here)
    deadline = time.monotonic() + 300
    while len(judge.records) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # half-way through a reply
    run.send_signal(signal.SIGKILL)
    run.wait()
    asked = len(judge.records)
    assert 5 <= asked < 9
    judge.script = judging()
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(model.records) == 10
    assert len(judge.records) == 10 + 1, "only the judgement that was under way is asked for again"
    assert len(rows_of(here / "out/eval-results/judged-sums/output.jsonl")) == 10


def test_a_judge_that_is_down_stops_the_run_and_the_same_command_goes_on(
    here: Path, fake_server: FakeServerFactory
) -> None:
    model = fake_server(answering())
    judge = fake_server(judging(Fault(kind="reset", after=4)))
    words = line(model.url, judge.url, "--accept_lost=20")
    patience = "--extra_judge_args='++endpoint_patience=1 ++max_concurrent_requests=1'"
    stopped = ns(f"{words} {patience}", cwd=here)
    assert stopped.returncode == 1
    assert "has not answered" in stopped.stderr
    assert not (here / "out/metrics.json").exists()
    judge.script = judging()
    before = len(judge.records)
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(judge.records) - before == 6
    assert len(model.records) == 10


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "judged-sums: a model judges the answers, but no judge is named. Give --judge_model and"),
        ("--judge_model=x", "no judge is named"),
        (
            "--judge_type=comet --judge_model=None",
            "judged-sums is not judged by comet: it has no translations",
        ),
        ("--judge_type=nvembed", "judged-sums is not judged by nvembed: it has no choices"),
        ("--judge_type=nvembed --metric_type=mathh", "did you mean 'math'"),
        ("--judge_step_fn=nemo_skills.pipeline.judges.other::create", "only comet and nvembed exist here"),
        ("--judge_step_fn=./sums.py", "Write FILE.py::FUNCTION"),
        ("--judge_step_fn=./sums.py::rowz", "did you mean 'rows'"),
        ("--judge_step_fn=./sums.py::rows --judge_model=x", "leave out --judge_model"),
        (
            "--judge_step_fn=./sums.py::make_tasks",
            "is not a judge function: it must take one argument, a list of records",
        ),
        ("--judge_generation_module=./sums.py --judge_type=llm", "leave out the other options"),
        ("--judge_generation_module=./gone.py --judge_model=x --judge_server_type=vllm", "There is no file"),
        ("--judge_type=arena", "only benchmarks that ask for it"),
        ("--judge_type=arenas", "did you mean 'arena'"),
        ("--judge_pipeline_kwargs='{\"modell\": 1}'", "did you mean 'model'"),
        ("--judge_pipeline_kwargs={", "--judge_pipeline_kwargs: expected a JSON object"),
        ("--judge_model=x --judge_server_type=vlm", "vlm"),
        ("--judge_model=x --judge_server_type=openai", "OPENAI_API_KEY"),
        ("--judge_model=x --judge_server_type=vllm --extra_judge_args=--x", "--x"),
        ("--judge_model=x --judge_server_type=vllm --extra_judge_args=++temprature=1", "temperature"),
        ("--judge_model=x --judge_server_type=vllm --extra_judge_args=++prompt_config=judge/maths", "judge/math"),
        (
            "--judge_model=x --judge_server_type=vllm --judge_server_address=http://h --judge_server_gpus=1",
            "The judge: --judge_server_gpus starts a server, --judge_server_address uses a running one",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_starts(
    here: Path, fake_server: FakeServerFactory, options: str, said: str
) -> None:
    model = fake_server(answering())
    done = ns(
        f"ns eval --server_type=vllm --model=fake --server_address={model.url} --output_dir=out --data_dir=data "
        f"--benchmarks=./sums.py {options}",
        cwd=here,
    )
    assert done.returncode == (1 if "KEY" in said else 2), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not model.records
    assert not (here / "out").exists()


def test_equal_texts_and_missing_answers_need_no_judge(here: Path, fake_server: FakeServerFactory) -> None:
    table = {**judged.WORDS, "Add 1 and 1.": "2", "Add 2 and 2.": " 4 "}
    del table["Add 9 and 9."]
    answers = Script(answer=Answer(kind="table", table=table, text="I give up."))
    model, judge = fake_server(answers), fake_server(judging())
    done = ns(line(model.url, judge.url, "--judge_generation_type=math_judge --accept_lost=20"), cwd=here)
    assert done.returncode == 0, done.stderr
    asked = sorted(n for n in range(10) for record in judge.records if f"Add {n} and" in record.prompt)
    assert asked == [0, 3, 4, 5, 6, 7, 8]
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert [records[n]["judge_prefilled"] for n in (1, 2, 9)] == [True, True, True]
    assert (records[1]["outcome"], records[9]["outcome"]) == ("correct", "no_answer")
    assert records[9]["judgement"].endswith("Judgement: No")
    assert metrics_of(here)["pass@1"]["no_answer"] == 10.0


def test_an_answer_that_was_lost_is_not_judged(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(answering(faults=(Fault(kind="status", status=400, marker="Add 3 and"),)))
    judge = fake_server(judging())
    done = ns(line(model.url, judge.url, "++server.enable_soft_fail=true --accept_lost=20"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(judge.records) == 9
    record = rows_of(here / "out/eval-results/judged-sums/output.jsonl")[3]
    assert (record["outcome"], record["outcome_cause"], record["judgement"]) == ("unscored", "provider", None)
    assert "provider 1" in done.stdout


def test_benchmarks_without_need_of_a_judge_are_judged_on_demand(
    here: Path, fake_server: FakeServerFactory
) -> None:
    (here / "plain.py").write_text(
        judged.BENCHMARK.replace("judged-sums", "plain-sums").replace(", judge=Judge()", "")
    )
    assert ns("ns prepare_data ./plain.py --data_dir=data", cwd=here).returncode == 0
    model, judge = fake_server(answering()), fake_server(judging())
    words = line(model.url, judge.url, "--accept_lost=20", benchmarks="./plain.py")
    idle = ns(words, cwd=here)
    assert idle.returncode == 0, idle.stderr
    assert "--judge_model, --judge_server_type, --judge_server_address: no effect" in idle.stderr
    assert not judge.records
    assert not (here / "out/tmp-eval-results").exists()
    done = ns(f"{words} --judge_all".replace("=out", "=judged"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(judge.records) == 10
    numbers = json.loads((here / "judged/metrics.json").read_text())["plain-sums"]["pass@1"]
    assert numbers["symbolic_correct"] == 0.0
    assert numbers["judge_correct"] == pytest.approx(100 * 8 / 9)


def test_a_judge_is_served_by_the_run(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(answering())
    script = json.dumps({"answer": {"text": "Judgement: Yes"}})
    words = [
        *f"ns eval --server_type=vllm --model=fake --server_address={model.url} --output_dir=out".split(),
        *f"--data_dir=data --benchmarks=./sums.py --judge_model=fake --judge_server_entrypoint={SERVED}".split(),
        "--judge_server_type=generic",
        "--judge_server_gpus=0",
        f"--judge_server_args=--script '{script}'",
    ]
    done = ns("ns", *words[1:], cwd=here)
    assert done.returncode == 0, done.stderr
    assert metrics_of(here)["pass@1"]["judge_correct"] == 100.0
    assert "serves on" in (here / "out/eval-logs/judge/server.log").read_text()


def test_other_settings_are_refused_before_the_first_answer_and_judge_anew_on_demand(
    here: Path, fake_server: FakeServerFactory
) -> None:
    model, judge = fake_server(answering()), fake_server(judging())
    words = line(model.url, judge.url, "--accept_lost=20")
    assert ns(words, cwd=here).returncode == 0
    (here / "out/tmp-eval-results/judged-sums/output.jsonl.done").unlink()
    refused = ns(f"{words} --extra_judge_args=++inference.temperature=0.5", cwd=here)
    assert refused.returncode == 2
    assert "inference.temperature (0.0 → 0.5)" in refused.stderr
    assert "--extra_judge_args='++skip_filled=false'" in refused.stderr
    assert (len(model.records), len(judge.records)) == (10, 10)
    anew = ns(f"{words} --extra_judge_args='++inference.temperature=0.5 ++skip_filled=false'", cwd=here)
    assert anew.returncode == 0, anew.stderr
    assert (len(model.records), len(judge.records)) == (10, 20)
    assert judge.records[-1].body["temperature"] == 0.5


@pytest.mark.parametrize("finished", [True, False])
def test_judgements_outlive_another_grading_of_the_answers(
    here: Path, fake_server: FakeServerFactory, finished: bool
) -> None:
    model, judge = (
        fake_server(answering()),
        fake_server(judging(*([] if finished else [Fault(kind="reset", after=8)]))),
    )
    patient = "--extra_judge_args='++endpoint_patience=1 ++max_concurrent_requests=1'"
    words = line(model.url, judge.url, "--accept_lost=20", patient)
    assert ns(words, cwd=here).returncode == (0 if finished else 1)
    path = here / "out/tmp-eval-results/judged-sums/output.jsonl"
    rows = rows_of(path)
    for row in rows:  # as a later version of the grader might have it
        row |= {"symbolic_correct": True, "grader": "math@99"}
    rows[5]["predicted_answer"] = "ten"
    write(path, rows)
    judge.script = judging()
    before = len(judge.records)
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    asked = [record.prompt for record in judge.records[before:]]
    assert len(asked) == (1 if finished else 3)
    assert "Answer to be judged: ten" in asked[0]
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert all(record["symbolic_correct"] for record in records)
    assert (records[4]["outcome"], records[5]["predicted_answer"]) == ("wrong", "ten")
    assert (here / "out/eval-results/judged-sums/output.jsonl.done").exists()
    assert len(model.records) == 10
    assert ns(words, cwd=here).returncode == 0
    assert len(judge.records) == before + len(asked)


def test_the_usual_judge_of_a_benchmark_and_its_options(here: Path, fake_server: FakeServerFactory) -> None:
    model, judge, other = (fake_server(script) for script in (answering(), judging(), judging()))
    usual = (
        f'judge=Judge(model="usual", server_type="vllm", server_address="{judge.url}", '
        'model_defaults={"inference.temperature": 0.9}, defaults={"inference.top_p": 0.8})'
    )
    (here / "sums.py").write_text(judged.BENCHMARK.replace("judge=Judge()", usual))
    base = f"ns eval --server_type=vllm --model=fake --server_address={model.url} --data_dir=data --accept_lost=20"
    done = ns(f"{base} --benchmarks=./sums.py --output_dir=out", cwd=here)
    assert done.returncode == 0, done.stderr
    body = judge.records[0].body
    assert (body["model"], body["temperature"], body["top_p"]) == ("usual", 0.9, 0.8)
    another = f"--judge_model=mine --judge_server_address={other.url}"
    done = ns(f"{base} --benchmarks=./sums.py --output_dir=out2 {another}", cwd=here)
    assert done.returncode == 0, done.stderr
    body = other.records[0].body
    assert (body["model"], body["temperature"], body["top_p"]) == ("mine", 0.0, 0.8)
    assert len(judge.records) == 10


def test_options_as_other_programs_write_them(
    here: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "secret-of-the-judge")
    monkeypatch.setenv("MODEL_KEY", "secret-of-the-model")
    model = fake_server(answering(api_key="secret-of-the-model"))
    judge = fake_server(judging(api_key="secret-of-the-judge"))
    done = ns(
        f"ns eval --server_type=openai --model=fake --server_address={model.url} --benchmarks=./sums.py "
        "--output_dir=out --data_dir=data ++server.api_key_env_var=MODEL_KEY ++max_samples=8 --accept_lost=20 "
        f"--judge_model=gpt-4.1 --judge_server_address={judge.url} --judge_server_type=openai "
        '--judge_generation_type=math_judge --extra_judge_args=" ++server.api_key_env_var=JUDGE_API_KEY '
        '++inference.tokens_to_generate=4096 ++max_concurrent_requests=16 "',
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    assert len(judge.records) == 8
    assert judge.records[0].body["model"] == "gpt-4.1"
    assert 4096 in judge.records[0].body.values()
    written = "".join(path.read_text() for path in (here / "out").rglob("*") if path.is_file())
    assert "secret-of" not in written


def test_kwargs_name_the_judge_and_options_win_over_them(here: Path, fake_server: FakeServerFactory) -> None:
    model, judge = fake_server(answering()), fake_server(judging())
    kwargs = json.dumps(
        {
            "model": "theirs",
            "server_type": "vllm",
            "server_address": judge.url,
            "generation_type": "math_judge",
            "sbatch_kwargs": {"nice": 5},
        }
    )
    base = f"ns eval --server_type=vllm --model=fake --server_address={model.url} --output_dir=out --data_dir=data"
    words = (
        "--benchmarks=./sums.py",
        "--accept_lost=20",
        f"--judge_pipeline_kwargs={kwargs}",
        "--judge_model=mine",
    )
    done = ns(base, *words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert {record.body["model"] for record in judge.records} == {"mine"}


def test_a_dry_run_shows_who_will_judge(here: Path, fake_server: FakeServerFactory) -> None:
    model, judge = fake_server(answering()), fake_server(judging())
    words = line(model.url, judge.url)
    shown = ns(f"{words} --dry_run", cwd=here)
    assert shown.returncode == 0, shown.stderr
    assert "judge-judged-sums  out/tmp-eval-results/judged-sums/output.jsonl" in shown.stdout
    assert "judge-judged-sums will ask judge about these answers." in shown.stdout
    explained = ns(f"{words} --explain --extra_judge_args=++top_p=0.5", cwd=here)
    assert "--extra_judge_args" in explained.stdout
    assert not model.records


def test_the_limit_of_requests_holds_for_the_judge_as_well(here: Path, fake_server: FakeServerFactory) -> None:
    model, judge = fake_server(answering()), fake_server(judging())
    words = f"{line(model.url, judge.url)} ++max_concurrent_requests=3 --explain"
    limits = [said for said in ns(words, cwd=here).stdout.splitlines() if "max_concurrent_requests" in said]
    assert len(limits) == 2
    assert all("3" in said for said in limits)
    own = ns(f"{words} --extra_judge_args=++max_concurrent_requests=5", cwd=here).stdout
    assert sum("max_concurrent_requests" in said and "5" in said for said in own.splitlines()) == 1


def test_generate_judges_any_file(here: Path, fake_server: FakeServerFactory) -> None:
    judge = fake_server(judging())
    rows = [
        {"problem": f"Add {n} and {n}.", "expected_answer": str(2 * n), "predicted_answer": answer}
        for n, answer in enumerate(["zero", "2", None])
    ]
    write(here / "in.jsonl", rows)
    done = ns(
        f"ns generate --generation_type=math_judge --server_type=vllm --model=fake --server_address={judge.url} "
        "--input_file=in.jsonl --output_dir=gen",
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    assert len(judge.records) == 1
    assert [row["outcome"] for row in rows_of(here / "gen/output.jsonl")] == ["correct", "correct", "no_answer"]
    assert not any("generation_time" in key for row in rows_of(here / "gen/output.jsonl") for key in row)


OWN_JUDGE = '''
from newskills.base.records import Attempt, Message, Request
from newskills.solve.chat import ask

class Twice:
    """Asks for reasons first, then for a verdict."""

    def __init__(self, parts):
        self.key = parts.chat.generation_key

    def request(self, sample):
        text = f"Give reasons: {sample.row['problem']} {sample.row['generation']}"
        return Request(messages=[Message(role="user", content=text)])

    async def solve(self, sample, request, kit):
        reasons = await ask(kit.models["main"], request)
        said = [*request.messages, Message(role="assistant", content=reasons.text), Message(role="user", content="So?")]
        verdict = await ask(kit.models["main"], Request(messages=said))
        return Attempt(sample_id=sample.id, key=request.key(), fields={self.key: verdict.text, "judge_steps": 2})

SOLVER = Twice

def by_rule(records):
    return ["Judgement: " + ("Yes" if r["expected_answer"] in r["generation"] else "No") for r in records]

def broken(records):
    assert not any(r["problem"] == "Add 4 and 4." for r in records), "the judge fell over"
    return by_rule(records)
'''


def test_a_judge_of_the_users_own(here: Path, fake_server: FakeServerFactory) -> None:
    (here / "mine.py").write_text(OWN_JUDGE)
    model = fake_server(answering(faults=(Fault(kind="status", status=400, marker="Add 3 and"),)))
    judge = fake_server(Script(answer=Answer(text="Judgement: Yes")))
    words = line(
        model.url,
        judge.url,
        "--judge_generation_module=./mine.py ++server.enable_soft_fail=true --accept_lost=20",
    )
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert len(judge.records) == 18, "the lost answer is not judged"
    records = rows_of(here / "out/eval-results/judged-sums/output.jsonl")
    assert (records[0]["judge_steps"], records[0]["judge_correct"]) == (2, True)
    assert records[3]["outcome"] == "unscored"
    again = ns(words, cwd=here)
    assert again.returncode == 0, again.stderr
    assert len(judge.records) == 18


def test_a_function_judges(here: Path, fake_server: FakeServerFactory) -> None:
    (here / "mine.py").write_text(OWN_JUDGE)
    model = fake_server(answering())
    words = (
        f"ns eval --server_type=vllm --model=fake --server_address={model.url} --output_dir=out --data_dir=data "
        "--benchmarks=./sums.py --judge_step_fn=./mine.py::by_rule"
    )
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert metrics_of(here)["pass@1"]["judge_correct"] == 100.0
    broken = ns(words.replace("by_rule", "broken").replace("=out", "=other") + " --accept_lost=20", cwd=here)
    assert broken.returncode == 0, broken.stderr
    records = rows_of(here / "other/eval-results/judged-sums/output.jsonl")
    outcomes = [(row["outcome"], row.get("outcome_cause")) for row in records]
    assert outcomes == [("unscored", "judge") if n == 4 else ("correct", None) for n in range(10)]
    assert "the judge fell over" in json.dumps(records[4])


def test_verdicts_as_json_objects(here: Path, fake_server: FakeServerFactory) -> None:
    model = fake_server(answering())
    verdict = '{"extracted_final_answer": "x", "reasoning": "Judgement: No", "correct": "%s", "confidence": 80}'
    judge = fake_server(
        Script(
            answer=Answer(
                kind="table",
                table={"Add 4 and": "no", "Add 7 and": "perhaps"},
                template=verdict,
                text=verdict % "yes",
            )
        )
    )
    words = line(
        model.url,
        judge.url,
        "--extra_judge_args=++structured_output=HLE_JUDGE_AA --metric_type=hle-aa --accept_lost=20",
    )
    done = ns(words, cwd=here)
    assert done.returncode == 0, done.stderr
    assert judge.records[0].body["response_format"]["json_schema"]["schema"]["required"][2] == "correct"
    numbers = metrics_of(here)["pass@1"]
    assert numbers["judge_correct"] == pytest.approx(100 * 8 / 9)
    assert "symbolic_correct" not in numbers


def test_a_function_needs_no_server(here: Path, fake_server: FakeServerFactory) -> None:
    (here / "mine.py").write_text(OWN_JUDGE)
    model = fake_server(answering())
    done = ns(
        f"ns eval --server_type=vllm --model=fake --server_address={model.url} --output_dir=out --data_dir=data "
        "--benchmarks=./sums.py --judge_step_fn=./mine.py::by_rule --judge_server_type=vllm --judge_server_gpus=1",
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    assert metrics_of(here)["pass@1"]["judge_correct"] == 100.0
