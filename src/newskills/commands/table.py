# SPDX-License-Identifier: Apache-2.0
"""Every command with its one-line summary. A static table: it imports nothing before a command is known."""

from __future__ import annotations

from keyword import iskeyword

GROUPS: dict[str, dict[str, str]] = {
    "start": {
        "quickstart": "train and evaluate a small model, with no GPU",
        "doctor": "check this machine; how to install what is missing",
        "setup": "describe a cluster: write its config and test it",
        "list": "list benchmarks, prompts, graders, metrics, servers",
        "agents": "list and install programs that work as agents",
        "environments": "list and remove containers and images of agents",
    },
    "data": {
        "prepare_data": "download and normalise benchmark data",
        "mirror": "make or check an offline folder of benchmark data",
        "validate": "check rows, prompts and grading of benchmarks",
        "generate": "run a model over a JSONL file",
        "nemo_gym_rollouts": "collect rollouts in NeMo Gym's environments",
        "retrieve_similar": "find similar problems, for a contamination check",
        "prepare_training_data": "filter, decontaminate and sample training data",
        "merge_chunks": "join chunk files by hand",
        "aggregate_answers": "write the majority answer of several runs",
    },
    "evaluate": {
        "eval": "evaluate a model on benchmarks (Python: evaluate)",
        "evaluate": "NeMo Evaluator configs (Python: profile_evaluate)",
        "nemo_evaluator": "run NeMo Evaluator tasks as jobs, with servers",
        "robust_eval": "evaluate a model with many wordings of the prompts",
        "plan_eval": "plan problems, samples and cost of an evaluation",
        "grade": "grade any JSONL file of answers",
        "critpt": "grade CritPt answers at the CritPt service",
        "swe_bench": "grade SWE-bench patches with the SWE-bench harness",
    },
    "train": {
        "sft": "fine-tune a model, here or as a cluster job (SFT)",
        "dpo": "train on preferred and rejected replies (DPO)",
        "kto": "train on good and bad replies (KTO)",
        "grpo": "reinforcement learning with graders (GRPO)",
        "distill": "train a small model on a larger one's knowledge",
        "reward_model": "train a model that scores replies (Bradley-Terry)",
        "improve": "train in rounds, each kept only if it is better",
        "sft_nemo_rl": "fine-tune with NeMo-RL on a cluster (SFT)",
        "grpo_nemo_rl": "reinforcement learning with NeMo-RL (GRPO)",
        "ppo_verl": "reinforcement learning with verl (PPO, GRPO)",
        "train_megatron_lm": "train with Megatron-LM on a cluster",
        "aimo_train": "train a model for competition math, in 3 stages",
        "aimo_generate": "answer problems with it: vote, code, ranking",
        "aimo_evaluate": "evaluate it on a mathematics benchmark",
        "aimo_evaluate_all": "evaluate it on all its mathematics benchmarks",
        "aimo_evaluate_checkpoints": "evaluate every checkpoint: table and curve",
        "aimo_regenerate_summary": "rebuild the tables of its evaluations from records",
        "tinker_rl": "reinforcement learning at a Tinker service, on math",
        "tinker_sft": "fine-tune a model at a Tinker service (SFT)",
        "convert": "convert models: Hugging Face, GGUF, Megatron, …",
        "merge_lora": "merge a LoRA adapter into its base model",
        "average_checkpoints": "average the weights of checkpoints",
    },
    "jobs": {
        "run_cmd": "run your own command, here or on a cluster",
        "plan": "show what a command would submit: jobs, scripts",
        "rehearse": "test a pipeline here before using the cluster",
        "status": "show the state of submitted jobs",
        "logs": "show the logs of submitted jobs; -f follows them",
        "cancel": "cancel submitted jobs",
        "resume": "resubmit the failed jobs of an ns evaluate run",
        "experiments": "list the experiments submitted from this machine",
        "kuberay": "print the manifest of a Ray cluster on Kubernetes",
    },
    "results": {
        "view": "look at results and samples in a browser",
        "summarize_results": "print tables of results, write metrics.json",
        "summarize_robustness": "show how much prompt wording changes the scores",
        "compute_metrics": "compute the metrics of graded output files",
        "compare": "test whether one run is better, paired by sample",
        "regrade": "grade again without generating again",
        "report": "write results as an HTML page and as Markdown",
        "samples": "read samples in the terminal, with filters",
        "scan": "ask questions of all transcripts: rules or a model",
        "diagnose": "report why a run fails: groups, points, samples",
        "query": "ask results in SQL: runs, scores, samples, messages",
        "why": "show why two scores differ, in points",
        "judge_agreement": "compare judges with labels of people",
        "info": "show an ns evaluate run, with its scores",
        "export": "export scores to W&B, MLflow, files, Inspect logs",
        "push": "send samples, scores or a model to the HF hub",
        "import": "import results of NeMo-Skills, lm-eval, Inspect, …",
    },
    "serve": {
        "start_server": "serve a model in the foreground",
        "load_test": "measure latency and throughput of an endpoint",
        "gateway": "put any program before any model, and record it",
        "sandbox": "run model-generated code in isolation",
        "serve_evals": "evaluate models during training, over HTTP",
        "serve_rewards": "compute rewards for trainers, over HTTP",
        "serve_gym": "serve benchmarks and graders to NeMo Gym",
        "serve_tinker": "serve the Tinker API on this machine's CPU",
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
APPLICATION_COMMANDS = {
    "aimo": "newskills_aimo",
    "evaluate": "newskills_evaluator",
    "info": "newskills_evaluator",
    "nemo_evaluator": "newskills_evaluator",
    "resume": "newskills_evaluator",
    "serve_tinker": "newskills_tinker",
    "tinker": "newskills_tinker",
}
"""First word of a command → the application that has it: the package of a distribution of its own."""


def command_names() -> list[str]:
    return [name for group in GROUPS.values() for name in group]


def canonical_name(name: str) -> str:
    """Return the name of a command in either spelling, as the table has it. Raises UnknownNameError."""
    folded = name.replace("-", "_")
    folded = SPELLINGS.get(folded, folded)
    if folded not in command_names():
        from newskills.base.errors import UnknownNameError

        raise UnknownNameError("command", name, command_names(), hint="See: ns --help")
    return folded


def module_of(name: str) -> str:
    """Return the module of the command called `name`: its room, and the words that are typed."""
    room = next(room for room, commands in GROUPS.items() if name in commands)
    words = typed_words(name).split()
    if words[0] in APPLICATION_COMMANDS:
        return f"{APPLICATION_COMMANDS[words[0]]}.commands.{words[-1]}"
    if iskeyword(words[-1]):
        words[-1] += "_"
    return ".".join(("newskills.commands", room, *words))


def one_name(words: list[str]) -> list[str]:
    """Return `words` with the two words of a command made one name. Raises UnknownNameError."""
    members = None
    if words:
        members = FAMILIES.get(words[0].replace("-", "_"))
    if members is None:
        return words
    if len(words) > 1 and words[1] in members:
        return [members[words[1]], *words[2:]]
    from newskills.base.errors import UnknownNameError

    raise UnknownNameError(f"command of ns {words[0]}", words[1] if len(words) > 1 else "", list(members))


def typed_words(name: str) -> str:
    """Return the words that name a command: two where it belongs to a family."""
    pairs = ((family, word) for family, members in FAMILIES.items() for word in members if members[word] == name)
    return " ".join(next(pairs, (name,)))


def help_page() -> str:
    """Return the page of `ns --help`."""
    lines = ["usage: ns COMMAND [--options] [++key=value …]", ""]
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(f"  {typed_words(name):<26} {summary}" for name, summary in commands.items()), ""]
    lines += [
        "ns COMMAND --help shows its options, --help=all also those that few people need;",
        "--explain shows where each value comes from.",
    ]
    return "\n".join(lines) + "\n"
