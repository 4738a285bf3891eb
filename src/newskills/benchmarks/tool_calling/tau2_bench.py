# SPDX-License-Identifier: Apache-2.0
"""Conversations of a service agent with a simulated user (Barres et al. 2025, arXiv:2506.07982)."""

import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from newskills.base.benchmark import Asset, Benchmark, Group, Source
from newskills.base.records import Row

_COMMIT = "a2c024725189473d2d7cea3a5cfdbcc67478e41f"


def join_policies(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield tasks, each with the policy, and the data of the service; of several sets of tasks, the usual one."""
    files = {row["_file"].rpartition("/")[2]: row["text"] for row in raw}
    service = msgspec.json.encode({"data": _parse_data(files, "db"), "user_data": _parse_data(files, "user_db")})
    sets = msgspec.json.decode(files.get("split_tasks.json", "{}"))
    for task in msgspec.json.decode(files["tasks.json"]):
        if not sets or task["id"] in sets["base"]:
            yield {**task, "policy": _policy_text(files), "service": service}


def _parse_data(files: Row, name: str) -> Row:
    if f"{name}.toml" in files:
        return tomllib.loads(files[f"{name}.toml"])
    data: Row = msgspec.json.decode(files.get(f"{name}.json", "{}"))
    return data


def _policy_text(files: Row) -> str:
    if "policy.md" in files:
        return str(files["policy.md"])
    parts = (("main_policy", "main_policy.md"), ("tech_support_policy", "tech_support_manual.md"))
    return "\n".join(f"<{name}>\n{files[file]}\n</{name}>" for name, file in parts)


def _scenario_text(scenario: Row) -> str:
    """Return what the user knows, as text."""
    instructions = scenario["instructions"]
    if isinstance(instructions, dict):
        instructions = "\n\n".join(
            f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in instructions.items() if text
        )
    if scenario.get("persona"):
        return f"Persona: {scenario['persona']}\n\n{instructions}"
    return str(instructions)


def _row_mapper(domain: str) -> Any:
    def row(raw: Row, index: int) -> Row:
        return {
            "id": raw["id"],
            "question": raw.get("ticket") or _scenario_text(raw["user_scenario"]),
            "domain": domain,
            "policy": raw["policy"].strip(),
            "user_scenario": raw["user_scenario"],
            "scenario": _scenario_text(raw["user_scenario"]),
            "initial_state": raw.get("initial_state") or {},
            "evaluation_criteria": raw["evaluation_criteria"],
            "service": Asset(f"{domain}.json", raw["service"]),
        }

    return row


_IDLE = "Doing nothing is right in {:.0%} of the tasks: what was asked for had to be refused."


def _benchmark(
    domain: str,
    title: str,
    items: int,
    sha256: str,
    files: str,
    *traps: str,
    chance: float = 0.1,
    easy: str = _IDLE,
) -> Benchmark:
    return Benchmark(
        name=f"tau2-bench.{domain}",
        category="tool-calling",
        title=f"tau2-bench: {title}",
        sources=(
            Source(
                github="sierra-research/tau2-bench",
                ref="main",
                revision=_COMMIT,
                members=f"data/tau2/domains/{domain}/{{{files}}}",
                format="text",
                sha256=sha256,
            ),
        ),
        join=join_policies,
        row=_row_mapper(domain),
        prompt="tau2/agent",
        grader="tau2",
        grader_config={"data": "{folder}/assets/test"},
        metric="tau2",
        solver="tau2",
        defaults={"solver_config": {"data": "{folder}/assets/test", "user_prompt": "tau2/user"}},
        samples=4,
        chance=chance,
        items={"test": items},
        licence="MIT",
        homepage="https://github.com/sierra-research/tau2-bench",
        citation="arXiv:2506.07982",
        traps=(
            *traps,
            "A second model plays the user: ++models.user.model=NAME ++models.user.server_type=openai. It decides "
            "much: name it beside a score.",
            easy.format(chance),
            "A task counts where the service ends in the state that it should, and all else that the task names holds.",
        ),
    )


BENCHMARKS = (
    _benchmark(
        "airline",
        "customers of an airline",
        50,
        "50fee67373c3f3fab786e29aba83f64563ede260c17eafed3d51ca9893d552ca",
        "tasks.json,db.json,policy.md",
        "Its assertions in words do not count: tasks are judged by the state and by what is said.",
        "Its service and the words of its functions are ours, after its rules; rewards are those of the original.",
        chance=0.46,
    ),
    _benchmark(
        "retail",
        "customers of a shop",
        114,
        "f82aebfd7d18e834a153ebfcef02dd70a433ebbc8de9904a65ac486aea7878b5",
        "tasks.json,db.json,policy.md",
        "40 tasks have assertions in words, which the user's model judges (++solver_config.judge=ROLE: another).",
        "Its services and the words of its functions are ours, after its rules: scores may differ by a little.",
    ),
    _benchmark(
        "telecom",
        "customers of a telephone company, with a phone in hand",
        114,
        "671adea11181a8c72ca3a3ba3938eda6f19a842a84844ce6a2adb85d044e13ed",
        "tasks.json,split_tasks.json,db.toml,user_db.toml,main_policy.md,tech_support_manual.md",
        "The user has functions, too: the phone's. The user's model must be able to call functions.",
        "Its service and the words of its functions are ours, after its rules; rewards are those of the original.",
        "The 114 tasks of its set `base`, with the manual as policy; its 2,285 tasks and the workflow are not here.",
        chance=0.18,
        easy="Handing over to a person at once is right in {:.0%} of the tasks, doing nothing in none.",
    ),
    _benchmark(
        "mock",
        "a list of tasks, to try things out",
        10,
        "84ab22504b54d39673e58d423a8617307f9d9fe3f4d490e9745fd5c92edd03b8",
        "tasks.json,db.json,policy.md,user_db.json",
        "Ten tasks for trying things out; not part of the score.",
    ),
)

GROUP = Group(
    name="tau2-bench",
    category="tool-calling",
    title="tau2-bench: conversations of a service agent with a simulated user",
    members={"tau2-bench.airline": {}, "tau2-bench.retail": {}, "tau2-bench.telecom": {}},
    homepage="https://github.com/sierra-research/tau2-bench",
    citation="arXiv:2506.07982",
    traps=("The domain mock is for trying things out: it is not part of the group.",),
)
