# SPDX-License-Identifier: Apache-2.0
"""Every command with its one-line summary. A static table: it imports nothing before a command is known."""

from __future__ import annotations

from keyword import iskeyword

GROUPS: dict[str, dict[str, str]] = {
    "start": {
        "quickstart": "teach and measure a real model on this machine's CPU: no GPU, no account",
        "doctor": "check this machine: extras, keys, data, servers, and what to do about what is missing",
        "setup": "describe a cluster: asks, writes its config, tries it",
        "list": "list benchmarks, prompts, graders, metrics, server types",
    },
    "data": {
        "prepare_data": "fetch and normalise benchmark data",
        "mirror": "make or check a folder of benchmark data for machines without a network",
        "validate": "check benchmarks without a model: rows, prompts, replies of known worth",
        "generate": "run a model over a JSONL file",
        "retrieve_similar": "find similar problems, before a check for contamination",
        "prepare_training_data": "build training data: filter, deduplicate, decontaminate, sample",
        "merge_chunks": "join chunk files by hand",
    },
    "evaluate": {
        "eval": "evaluate a model on benchmarks",
        "evaluate": "evaluate with a config and a profile of env.toml, as NeMo Evaluator's launcher does",
        "nemo_evaluator": "tasks of NVIDIA's NeMo Evaluator as jobs, with their servers",
        "robust_eval": "evaluate a model with many wordings of the prompts",
        "grade": "verdicts for any JSONL file of answers",
        "critpt": "functions for the service of CritPt, and its verdict",
        "swe_bench": "patches for the harness of SWE-bench, and its verdicts",
    },
    "train": {
        "sft": "fine-tune a small model on this machine",
        "grpo": "reinforce a small model on this machine, rewarded by a grader",
        "sft_nemo_rl": "fine-tune with NeMo-RL on a cluster",
        "grpo_nemo_rl": "reinforce with NeMo-RL on a cluster",
        "ppo_verl": "reinforce with verl on a cluster",
        "train_megatron_lm": "train with Megatron-LM on a cluster",
        "aimo_train": "a model for competition mathematics, in three stages",
        "aimo_generate": "answers of such a model: greedy, by vote, with programs, by comparison",
        "aimo_evaluate": "such a model on a benchmark of mathematics",
        "aimo_evaluate_all": "the same on all of them",
        "aimo_evaluate_checkpoints": "every checkpoint of a training on benchmarks: table and curve",
        "aimo_regenerate_summary": "tables of such evaluations from their records",
        "tinker_rl": "reinforce a model at a Tinker service, on mathematics",
        "tinker_sft": "fine-tune a model at a Tinker service",
        "convert": "a model in another file format",
        "merge_lora": "an adapter multiplied into its base",
        "average_checkpoints": "the mean of some checkpoints",
    },
    "jobs": {
        "run_cmd": "run a command of your own, here or on a cluster",
        "plan": "show what a command would submit: jobs, scripts, settings",
        "rehearse": "run a command's whole pipeline here, small, before a cluster is touched",
        "status": "how submitted jobs are doing",
        "logs": "what submitted jobs have printed, with -f as they print it",
        "cancel": "stop submitted jobs",
        "resume": "submit again what of an invocation has not ended well",
        "experiments": "what was submitted from this machine",
    },
    "results": {
        "view": "look at results, samples, comparisons and trainings in a browser",
        "summarize_results": "tables and metrics.json of a results folder",
        "summarize_robustness": "how much the wording of prompts changes the scores",
        "compute_metrics": "metrics of single output files",
        "compare": "is one run better than another: paired by sample, with intervals",
        "regrade": "new verdicts without new generation, and the grader's share of a score",
        "report": "results as a page that stands alone, and as Markdown",
        "samples": "read samples in the terminal, by outcome, cause, text",
        "why": "why two scores differ: what each ingredient is worth in points",
        "info": "what an invocation of ns evaluate is, and its scores",
        "export": "results to W&B, MLflow, a file, or a log of Inspect",
        "import": "results of NeMo-Skills, lm-evaluation-harness and Inspect, as our own",
    },
    "serve": {
        "start_server": "serve a model in the foreground",
        "sandbox": "run code that a model wrote, kept apart from this machine",
        "serve_evals": "evaluate models for trainers, over HTTP",
        "serve_rewards": "reward samples of trainers by a grader, over HTTP",
        "serve_tinker": "the Tinker API on this machine's CPU",
    },
    "shell": {
        "completion": "print the completion script of bash, zsh or fish",
    },
}
"""Room of this folder → the commands in it, with their one-line summaries."""
SPELLINGS = {"summarise_results": "summarize_results", "skills_server": "serve_evals"}
FAMILIES: dict[str, dict[str, str]] = {
    "tinker": {"rl": "tinker_rl", "sft": "tinker_sft"},
    "nemo_rl": {"sft": "sft_nemo_rl", "grpo": "grpo_nemo_rl"},
    "verl": {"ppo": "ppo_verl"},
    "megatron_lm": {"train": "train_megatron_lm", "megatron-lm train": "train_megatron_lm"},
    "aimo": {
        "train": "aimo_train",
        "generate": "aimo_generate",
        "evaluate": "aimo_evaluate",
        "evaluate_all": "aimo_evaluate_all",
        "evaluate_checkpoints": "aimo_evaluate_checkpoints",
        "regenerate_summary": "aimo_regenerate_summary",
    },
}
"""Commands of two words → their name in Python, which is accepted as well."""


def command_names() -> list[str]:
    return [name for group in GROUPS.values() for name in group]


def canonical(name: str) -> str:
    """The name of a command in either spelling, as the table has it. Raises UnknownNameError."""
    folded = name.replace("-", "_")
    folded = SPELLINGS.get(folded, folded)
    if folded not in command_names():
        from newskills.base.errors import UnknownNameError

        raise UnknownNameError("command", name, command_names(), hint="See: ns --help")
    return folded


def module_of(name: str) -> str:
    """Where the command called `name` is: its room, and the words that are typed."""
    room = next(room for room, commands in GROUPS.items() if name in commands)
    words = shown(name).split()
    if iskeyword(words[-1]):
        words[-1] += "_"
    return ".".join(("newskills.commands", room, *words))


def one_name(words: list[str]) -> list[str]:
    """`words` with the two words of a command made one name. Raises UnknownNameError."""
    members = FAMILIES.get(words[0].replace("-", "_")) if words else None
    if members is None:
        return words
    if len(words) > 1 and words[1] in members:
        return [members[words[1]], *words[2:]]
    from newskills.base.errors import UnknownNameError

    raise UnknownNameError(f"command of ns {words[0]}", words[1] if len(words) > 1 else "", list(members))


def shown(name: str) -> str:
    """The words that name a command: two where it belongs to a family."""
    pairs = ((family, word) for family, members in FAMILIES.items() for word in members if members[word] == name)
    return " ".join(next(pairs, (name,)))


def overview() -> str:
    """The page of `ns --help`."""
    lines = ["usage: ns COMMAND [--options] [++key=value …]", ""]
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(f"  {shown(name) + ' ':<23}{summary}" for name, summary in commands.items()), ""]
    lines += ["ns COMMAND --help shows its options and all ++ keys; --explain shows where each value comes from."]
    return "\n".join(lines) + "\n"
