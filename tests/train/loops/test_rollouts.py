# SPDX-License-Identifier: Apache-2.0
"""GRPO on rollouts of several turns: what is learnt, what is corrected, what is left out, what survives a kill."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train.loops.test_loops import GRPO, PROBLEMS, SMALL, decode, dict_of, metrics, one_in_two, sevens
from tests.train.tiny import tiny_folder

from newskills.base.errors import TrainingError
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.train.backends.cpu.trainer import CpuTrainer
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.groups import advantages_of, grouped
from newskills.train.loops.grpo import GrpoConfig, grpo
from newskills.train.loops.samples import Judged, MixedScorer, Problem, Rollout, SampledTurn, Scorer
from newskills.train.loops.stepping import Hooks
from newskills.train.loops.traces import policy_metrics, sampler_gap, traces
from newskills.train.verbs import LossConfig, LossName, LossOutput, Sampled, SamplingClient, SamplingParams

SHOWN = [30, 31, 32]
"""What the environment says between two turns."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("model") / "tiny")


def two_turns(
    client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
) -> list[list[Rollout]]:
    """The model writes, is shown something, and writes again; every fourth attempt is lost."""
    prompts = [problem.prompt for problem in problems for _ in range(count)]
    first = [sample for (sample,) in client.sample(prompts, 1, params)]
    longer = [[*prompt, *sample.tokens, *SHOWN] for prompt, sample in zip(prompts, first, strict=True)]
    second = [sample for (sample,) in client.sample(longer, 1, params)]
    rows = [problem.row for problem in problems for _ in range(count)]
    rollouts = [
        Rollout(
            turns=[SampledTurn(prompt, before), SampledTurn(following, after)],
            row=row,
            text=decode(after.tokens),
            finish_reason=after.stop_reason,
            lost="sandbox: it died" if number % 4 == 3 else "",
        )
        for number, (prompt, before, following, after, row) in enumerate(
            zip(prompts, first, longer, second, rows, strict=True)
        )
    ]
    return [rollouts[at : at + count] for at in range(0, len(rollouts), count)]


def learn(model: Path, path: Path, config: GrpoConfig = GRPO, scorer: Scorer | None = None, **more: Any) -> bool:
    folder = TrainingFolder(path, {"steps": config.steps})
    try:
        made = scorer or Scorer(sevens, decode, [0], two_turns)
        return grpo(CpuTrainer(model, SMALL), PROBLEMS, config, folder, made, Hooks(**more))
    finally:
        folder.close()


def test_several_turns_are_learnt_from_and_the_samplers_probabilities_are_the_trainers(
    model: Path, tmp_path: Path
) -> None:
    assert learn(model, tmp_path)
    rows = metrics(tmp_path)
    assert rows[-1]["reward"] > rows[0]["reward"] + 0.3
    assert {row["turns"] for row in rows} == {2.0}
    assert {row["lost"] for row in rows} == {row["unscored"] for row in rows} == {6.0}
    assert all(0 <= row["sampler_kl"] < 1e-6 and row["importance_cut"] == 0 for row in rows if row["tokens"])
    responses = [one for row in read_rows(tmp_path / "samples.jsonl") for one in row["responses"]]
    lost = [one for one in responses if one.get("why")]
    assert len(lost) == 12 * 6
    assert {(one["reward"], one["advantage"]) for one in lost} == {(None, 0.0)}


class Stale(CpuTrainer):
    """A sampler whose log-probabilities are by `shift` lower than the trainer's."""

    shift = 0.0

    def sample(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
    ) -> list[list[Sampled]]:
        return [
            [
                Sampled(
                    tokens=one.tokens,
                    logprobs=[value - self.shift for value in one.logprobs],
                    stop_reason=one.stop_reason,
                )
                for one in group
            ]
            for group in super().sample(prompts, num_samples, params)
        ]


def test_importance_weights_are_truncated_and_the_divergence_is_recorded(model: Path, tmp_path: Path) -> None:
    config = GrpoConfig(**dict_of(GRPO, steps=1, max_grad_norm=0.0, importance_cap=2.0))
    norms = {}
    for shift in (0.0, math.log(1.5), math.log(8)):
        client = Stale(model, SMALL)
        client.shift = shift
        folder = TrainingFolder(tmp_path / str(shift), {})
        grpo(client, PROBLEMS, config, folder, Scorer(one_in_two, decode, [0], two_turns))
        folder.close()
        (row,) = metrics(tmp_path / str(shift))
        norms[shift] = row["grad_norm"]
        assert row["sampler_kl"] == pytest.approx(math.exp(shift) - 1 - shift, abs=1e-4)
        assert row["importance_cut"] == (1.0 if shift > math.log(2) else 0.0)
    first, corrected, cut = norms.values()
    assert corrected == pytest.approx(1.5 * first, rel=1e-3)
    assert cut == pytest.approx(2.0 * first, rel=1e-3)


def test_a_group_whose_rollouts_are_all_lost_stops_nothing_unless_all_are(model: Path, tmp_path: Path) -> None:
    def lost(
        client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        return [
            [Rollout(turns=[], row=problem.row, text="", finish_reason="error", lost="sandbox: gone")] * count
            for problem in problems
        ]

    def some(
        client: SamplingClient, problems: Sequence[Problem], count: int, params: SamplingParams
    ) -> list[list[Rollout]]:
        return [*two_turns(client, problems[1:], count, params), *lost(client, problems[:1], count, params)]

    config = GrpoConfig(**dict_of(GRPO, steps=2))
    assert learn(model, tmp_path / "some", config, Scorer(sevens, decode, [0], some))
    with pytest.raises(TrainingError, match=r"None of the samples could be graded.*sandbox: gone"):
        learn(model, tmp_path / "all", config, Scorer(sevens, decode, [0], lost))


def test_twenty_steps_without_spread_say_what_to_change(model: Path, tmp_path: Path) -> None:
    remarks: list[str] = []
    config = GrpoConfig(**dict_of(GRPO, steps=42, batch_size=1, group_size=2, max_tokens=1))
    scorer = Scorer(lambda samples: [Judged(0.0, correct=False)] * len(samples), decode, [0])
    assert learn(model, tmp_path, config, scorer, remark=remarks.append)
    assert len(remarks) == 2
    assert "all rewards of each group were equal (0% correct)" in remarks[0]
    assert "easier problems" in remarks[0]


def plain_advantages(rewards: Sequence[float | None], _: Sequence[Rollout]) -> list[float]:
    return advantages_of(rewards, by_std=False)


def test_rewards_of_turns_have_advantages_of_their_own() -> None:
    problem = Problem([1], {})
    turn = SampledTurn([1], Sampled(tokens=[2], logprobs=[-1.0], stop_reason="stop"))

    def rollout(*rewards: float) -> Rollout:
        return Rollout(turns=[turn] * len(rewards), row={}, text="", finish_reason="stop", rewards=rewards)

    rollouts = [rollout(1.0, 0.0), rollout(0.0, 2.0), rollout(0.5)]
    judged = [Judged(1.0, correct=True), Judged(0.0, correct=False), Judged(None, correct=False)]
    plain = grouped(problem, rollouts, judged, plain_advantages)
    assert plain.advantages == [[0.5, 0.5], [-0.5, -0.5], [0.0]]
    weighted = grouped(problem, rollouts, judged, plain_advantages, turn_weight=2.0)
    assert weighted.advantages == [[1.5, -1.5], [-1.5, 1.5], [0.0]]
    equal = grouped(problem, rollouts[:2], [judged[0]] * 2, plain_advantages, turn_weight=1.0)
    assert equal.teaches
    assert not grouped(problem, rollouts[:2], [judged[0]] * 2, plain_advantages).teaches


def test_the_divergence_is_measured_over_what_the_model_wrote() -> None:
    turn = SampledTurn([1, 2], Sampled(tokens=[3], logprobs=[-1.0], stop_reason="stop"))
    after = SampledTurn([1, 2, 3, 9, 9], Sampled(tokens=[4], logprobs=[-2.0], stop_reason="stop"))
    learnt = traces(Rollout(turns=[turn, after], row={}, text="", finish_reason="stop"), [1.0, 1.0])
    output = LossOutput(loss=0.0, logprobs=[[-50.0, -1.0, -50.0, -50.0, -2.0]])
    assert sampler_gap(learnt, output, 2.0) == {"sampler_kl": 0.0, "importance_cut": 0.0}
    assert policy_metrics(learnt, output, "importance_sampling", LossConfig()) == {"entropy": 1.5, "ratio": 1.0}


@pytest.mark.parametrize(("loss", "clipped"), [("ppo", 0.5), ("gspo", 1.0)])
def test_what_a_clipped_loss_learns_nothing_from_is_counted(loss: LossName, clipped: float) -> None:
    """Ratios of 2 and 1/4, then of 1/2 and 4: ppo clips the first of each; gspo clips their geometric means."""
    ends = Sampled(tokens=[3, 4], logprobs=[-1.0, -2.0], stop_reason="stop")
    learnt = [
        traces(Rollout(turns=[SampledTurn([1], ends)], row={}, text="", finish_reason="stop"), [advantage])[0]
        for advantage in ((1.0, -1.0) if loss == "ppo" else (-1.0, 1.0))
    ]
    two, four = math.log(2), math.log(4)
    output = LossOutput(loss=0.0, logprobs=[[-1 + two, -2 - four], [-1 - two, -2 + four]])
    bounds = LossConfig(clip_low_threshold=0.8, clip_high_threshold=1.2)
    measured = policy_metrics(learnt, output, loss, bounds)
    assert measured["clip_ratio/region_mean"] == clipped
    assert measured["entropy"] == pytest.approx(1.5)
    ratios = (2, 0.25, 0.5, 4) if loss == "ppo" else (0.5**0.5, 0.5**0.5, 2**0.5, 2**0.5)
    assert measured["ratio"] == pytest.approx(sum(ratios) / 4)


def test_a_sampler_that_is_another_model_ends_the_run_in_a_sentence(model: Path, tmp_path: Path) -> None:
    client = Stale(model, SMALL)
    client.shift = 5.0
    folder = TrainingFolder(tmp_path, {})
    with pytest.raises(TrainingError, match=r"differ by 5.0 per token: they are not the same model"):
        grpo(client, PROBLEMS, GRPO, folder, Scorer(one_in_two, decode, [0], two_turns))
    folder.close()
    assert not list(read_rows(tmp_path / "metrics.jsonl"))


def by_question(samples: Sequence[tuple[Row, str, str]]) -> list[Judged]:
    """All samples of a third of the problems are right, all of another third wrong, of the others it depends."""
    kinds = [int(row["question"]) % 3 for row, *_ in samples]
    return [
        Judged(float(right), correct=right)
        for right in (
            kind == 0 or (kind == 1 and text.count(" ") % 2 == 0)
            for kind, (_, text, _) in zip(kinds, samples, strict=True)
        )
    ]


def test_problems_that_all_or_none_solve_rest_and_a_run_that_goes_on_reaches_the_same_numbers(
    model: Path, tmp_path: Path
) -> None:
    config = GrpoConfig(**dict_of(GRPO, steps=9, save_every=4, put_aside=2, resample=1))
    scorer = Scorer(by_question, decode, [0])
    assert learn(model, tmp_path / "whole", config, scorer)
    assert not learn(model, tmp_path / "stopped", config, scorer, stop=lambda: True)
    while not learn(model, tmp_path / "stopped", config, scorer, stop=iter([False, False, True]).__next__):
        pass
    rows = metrics(tmp_path / "whole")
    assert metrics(tmp_path / "stopped") == rows
    texts = [(tmp_path / name / "samples.jsonl").read_text() for name in ("whole", "stopped")]
    assert texts[0] == texts[1]
    assert max(row["put_aside"] for row in rows) > 2
    assert any(row["came_back"] for row in rows)
    groups = [
        list(rows) for _, rows in groupby(read_rows(tmp_path / "whole/samples.jsonl"), lambda row: row["step"])
    ]
    for row, drawn in zip(rows, groups, strict=True):
        assert row["groups_drawn"] == len(drawn) > 3 or row["groups_used"] == 3
        assert row["groups_rejected"] == sum(bool(one.get("rejected")) for one in drawn)
        assert len(drawn) - row["groups_rejected"] == 3
        shares = [response["reward"] for one in drawn for response in one["responses"]]
        assert row["drawn_correct"] == pytest.approx(sum(shares) / len(shares))


def test_problems_of_several_benchmarks_are_solved_and_judged_as_their_own(model: Path, tmp_path: Path) -> None:
    problems = [msgspec.structs.replace(one, source="ab"[number % 2]) for number, one in enumerate(PROBLEMS)]
    scorers = {"a": Scorer(sevens, decode, [0], two_turns), "b": Scorer(one_in_two, decode, [0])}
    scorer = MixedScorer(reward=sevens, decode=decode, stops=[0], scorers=scorers)
    config = GrpoConfig(**dict_of(GRPO, steps=4, weights={"a": 2.0, "b": 1.0}))
    folder = TrainingFolder(tmp_path, {})
    assert grpo(CpuTrainer(model, SMALL), problems, config, folder, scorer)
    folder.close()
    for row in metrics(tmp_path):
        assert row["reward/benchmark=b"] == 0.5
        assert row["lost"] == 4.0  # of eight in each of two groups of a, every fourth
        assert row["turns"] == pytest.approx(5 / 3)
        assert row["sampler_kl"] < 1e-6
    samples = list(read_rows(tmp_path / "samples.jsonl"))
    assert [row["benchmark"] for row in samples].count("a") == 8
    assert {row["responses"][0].get("turns") for row in samples if row["benchmark"] == "b"} == {None}
    with pytest.raises(TrainingError, match="None of the samples could be graded"):
        scorer.judge([Rollout(turns=[], row={}, text="", finish_reason="error", lost="tool: gone", source="a")])


def test_lost_rollouts_are_told_once_with_their_cause(model: Path, tmp_path: Path) -> None:
    remarks: list[str] = []
    assert learn(model, tmp_path, GrpoConfig(**dict_of(GRPO, steps=2)), remark=remarks.append)
    assert remarks == [
        "6 of 24 rollouts were lost and are left out (sandbox: it died); `lost` in metrics.jsonl counts them."
    ]


KILLED = """
import sys
from pathlib import Path
from tests.train.loops import test_rollouts as here
from newskills.train.loops.samples import Scorer
calls = []

def announced(client, problems, count, params):
    calls.append(1)
    if len(calls) == 8:
        class Between:
            def sample(self, prompts, number, params):
                samples = client.sample(prompts, number, params)
                print("between two turns", flush=True)
                sys.stdin.read()
                return samples
        return here.two_turns(Between(), problems, count, params)
    return here.two_turns(client, problems, count, params)

here.learn(Path(sys.argv[1]), Path(sys.argv[2]), scorer=Scorer(here.sevens, here.decode, [0], announced))
"""


def test_kill_nine_in_the_middle_of_rollouts_changes_nothing(model: Path, tmp_path: Path) -> None:
    assert learn(model, tmp_path / "whole")
    argv = [sys.executable, "-c", KILLED, str(model), str(tmp_path / "killed")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "between two turns\n"
        os.kill(process.pid, signal.SIGKILL)
    assert [row["step"] for row in read_rows(tmp_path / "killed/metrics.jsonl")] == list(range(1, 8))
    assert learn(model, tmp_path / "killed")
    assert metrics(tmp_path / "killed") == metrics(tmp_path / "whole")
    texts = [(tmp_path / name / "samples.jsonl").read_text() for name in ("whole", "killed")]
    assert texts[0] == texts[1]
