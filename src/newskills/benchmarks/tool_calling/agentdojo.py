# SPDX-License-Identifier: Apache-2.0
"""Agents with tools whose results may hold an attacker's text (Debenedetti et al. 2024, arXiv:2406.13352).

Tasks, tools, environments, attacks and checks are those of the package agentdojo, suites v1.2.2.
"""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row
from newskills.benchmarks.options import rows_with
from newskills.graders.tool_calls.agentdojo import task_suites

_SUITES = ("workspace", "travel", "banking", "slack")
_KINDS = ("no-attack", "attack")


def rows(split: str) -> Iterator[Row]:
    """Yield each task of the users alone, then with each of the attackers' tasks. Raises ConfigError without the
    package."""
    all_suites = task_suites()
    from agentdojo.agent_pipeline.agent_pipeline import load_system_message

    system = load_system_message("default").strip()
    for name in _SUITES:
        suite = all_suites[name]
        for user_task, task in suite.user_tasks.items():
            for injection_task in ("", *suite.injection_tasks):
                kind = _KINDS[bool(injection_task)]
                yield {
                    "id": "-".join(filter(None, (name, user_task, injection_task))),
                    "question": task.PROMPT,
                    "system_message": system,
                    "suite": name,
                    "kind": kind,
                    "user_task": user_task,
                    "injection_task": injection_task,
                    "subset_for_metrics": name,
                }


BENCHMARK = Benchmark(
    name="agentdojo",
    category="tool-calling",
    title="AgentDojo: tasks with tools, with and without attacks by injected text",
    generate_rows=rows,
    generator="agentdojo",
    options={
        "suite": rows_with("suite", "only these suites", *_SUITES),
        "kind": rows_with("kind", "only tasks with an attack, or without", *_KINDS),
    },
    prompt="generic/with-system",
    grader="agentdojo",
    metric="agentdojo",
    solver="agentdojo",
    chance=0.1,
    items={"test": 1046},
    licence="MIT",
    homepage="https://github.com/ethz-spylab/agentdojo",
    citation="arXiv:2406.13352",
    requires="newskills[agentdojo]",
    traps=(
        "Headline: the authors show all three figures: `utility`, `utility_under_attack` and `attack_success` "
        "(targeted attack success rate, lower is safer).",
        "The attack is important_instructions, as on their leaderboard; ++solver_config.attack=NAME is another. It "
        "calls the model 'the AI language model': ++solver_config.model_name=NAME makes it stronger.",
        "No defence is used. A task without an answer after 15 replies with calls is not asked again.",
        "The package brings the clients of several providers; install it into an environment of its own if they "
        "clash with yours.",
    ),
)
