# SPDX-License-Identifier: Apache-2.0
"""Which functions there are: name in Python → command, and what a call returns."""

from __future__ import annotations

from msgspec import Struct


class Function(Struct, frozen=True, kw_only=True):
    """`command` as `commands.table` has it.

    returns   type of the result where the work was done; empty: None
    meaning   what that holds
    always    each call returns it: there is no dry run and no cluster
    submits   on a cluster the result is the experiment that was submitted
    awaited   a coroutine function
    note      a further sentence of the docstring
    """

    command: str
    returns: str = ""
    meaning: str = ""
    always: bool = False
    submits: bool = False
    awaited: bool = False
    note: str = ""

    @property
    def annotation(self) -> str:
        """The type of the result where the work is done here, which is what a checker should hold a script to.

        A cluster gives an experiment instead, and a dry run None. Overloads would say so, but for one wrong argument of
        seventy they report no more than that no overload fits (decisions/0037).
        """
        if self.returns:
            return self.returns
        if self.submits:
            return "Experiment | None"
        return "None"


EVALUATION = (
    "`scores`, `samples()`, `table()`; `reports`, one for each benchmark, and `result`, the units of work."
)
GENERATION = "`outputs`, the files; `rows()`; `units` (one for each seed and chunk), `retries`, `ledger`."
ROBUSTNESS = "The spread of the scores over the prompts, for each benchmark."

MODEL_FOLDER = "The folder of the model that was written."
TRAINING = (
    "`model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out problems."
)
UNTIL_STOPPED = "The call lasts as long as the server, until Ctrl-C."

FUNCTIONS = {
    "aevaluate": Function(
        command="eval",
        returns="Evaluation",
        meaning=EVALUATION,
        submits=True,
        awaited=True,
        note="`evaluate`, awaited within a running event loop, on a thread of its own. Cancelling it stops the "
        "evaluation: what is done is on disk, and the same call goes on from there.",
    ),
    "agenerate": Function(
        command="generate",
        returns="RunResult",
        meaning=GENERATION,
        submits=True,
        awaited=True,
        note="`generate`, awaited within a running event loop, as `aevaluate`.",
    ),
    "aggregate_answers": Function(
        command="aggregate_answers",
        returns="AggregatedAnswers",
        meaning="`outputs`, the files; `problems` and `records`, how many were changed.",
    ),
    "aimo_evaluate": Function(
        command="aimo_evaluate",
        returns="dict[str, Number]",
        meaning="Benchmark → its headline score, with `low` and `high`.",
    ),
    "aimo_evaluate_all": Function(
        command="aimo_evaluate_all",
        returns="dict[str, Number]",
        meaning="Benchmark → its headline score, with `low` and `high`.",
    ),
    "aimo_evaluate_checkpoints": Function(
        command="aimo_evaluate_checkpoints",
        returns="dict[int, dict[str, Number]]",
        meaning="Step → benchmark → its headline score, with `low` and `high`.",
    ),
    "aimo_generate": Function(
        command="aimo_generate", returns="Path", meaning="The file with the answers, a line for each problem."
    ),
    "aimo_regenerate_summary": Function(
        command="aimo_regenerate_summary",
        returns="dict[Path, dict[str, Number]]",
        meaning="Folder of an evaluation → benchmark → its headline score.",
    ),
    "aimo_train": Function(command="aimo_train", returns="Path", meaning=MODEL_FOLDER),
    "average_checkpoints": Function(
        command="average_checkpoints", returns="Path", meaning=MODEL_FOLDER, submits=True
    ),
    "cancel": Function(
        command="cancel", returns="list[JobState]", meaning="The jobs that were cancelled, as they were before."
    ),
    "compare": Function(
        command="compare",
        returns="Comparison",
        meaning="Figures, flips and one sentence for each benchmark; where `fail_if` holds, GateError is raised.",
        always=True,
    ),
    "completion": Function(
        command="completion", returns="str", meaning="The script, or the candidates, a line for each.", always=True
    ),
    "compute_metrics": Function(
        command="compute_metrics", returns="list[Report]", meaning="One report for each table."
    ),
    "convert": Function(
        command="convert", returns="Path", meaning="The model that was written: a folder or a file.", submits=True
    ),
    "critpt": Function(
        command="critpt",
        returns="CritPtFile",
        meaning="`output`, the batch or the answer of the service; `problems`; `accuracy`, after `submit`.",
    ),
    "diagnose": Function(
        command="diagnose",
        returns="FailureReport",
        meaning="`run`, with its benchmarks and their groups of failures; `other` and `changes`; `files`.",
    ),
    "distill": Function(command="distill", returns="TrainingOutcome", meaning=TRAINING, submits=True),
    "doctor": Function(
        command="doctor",
        returns="list[DoctorFinding]",
        meaning="What was looked at, each with `state` and `text`; nothing that is wrong raises an error.",
        always=True,
    ),
    "dpo": Function(command="dpo", returns="TrainingOutcome", meaning=TRAINING, submits=True),
    "evaluate": Function(
        command="eval",
        returns="Evaluation",
        meaning=EVALUATION,
        submits=True,
        note="`ns evaluate` is another command: `profile_evaluate`.",
    ),
    "experiments": Function(
        command="experiments",
        returns="list[Experiment]",
        meaning="What was submitted from this machine, the latest first.",
        always=True,
    ),
    "export": Function(
        command="export",
        returns="list[Path]",
        meaning="What was written on this machine; what went to a service is not among it.",
    ),
    "generate": Function(
        command="generate",
        returns="RunResult",
        meaning=GENERATION,
        submits=True,
    ),
    "grade": Function(
        command="grade",
        returns="Graded",
        meaning="`ledger`, the counts of verdicts; `output_file`; `rows()`, the rows with their verdicts.",
    ),
    "grpo": Function(command="grpo", returns="TrainingOutcome", meaning=TRAINING, submits=True),
    "grpo_nemo_rl": Function(command="grpo_nemo_rl", submits=True),
    "import_results": Function(
        command="import",
        returns="list[Path]",
        meaning="The folders that were written, one for each benchmark.",
    ),
    "improve": Function(
        command="improve",
        returns="Improvement",
        meaning="`model` (its folder), `rounds`, `kept` (the rounds that were better), `why` it ended.",
        submits=True,
    ),
    "info": Function(
        command="info",
        returns="list[Invocation]",
        meaning="Each with its `id`, `config`, and `tasks` with their `state`, `folder` and `scores`.",
        always=True,
    ),
    "judge_agreement": Function(
        command="judge_agreement",
        returns="list[JudgeAgreement]",
        meaning="Each judge on each benchmark: agreement with labels, biases, corrected scores.",
        always=True,
    ),
    "kto": Function(command="kto", returns="TrainingOutcome", meaning=TRAINING, submits=True),
    "kuberay": Function(command="kuberay", returns="str", meaning="The manifest, for kubectl.", always=True),
    "list_agents": Function(
        command="agents",
        returns="list[ListedAgent]",
        meaning="The agents that there are, or those that were installed: `name`, `version`, `folder`, …",
    ),
    "list_environments": Function(
        command="environments",
        returns="list[ListedLeftover]",
        meaning="What environments of agents have made here: `kind`, `name`, `size`, `state`.",
        always=True,
    ),
    "list_names": Function(
        command="list",
        returns="list[ListedName]",
        meaning="Each with its `name`; of a benchmark also `category`, `title`, `rows`, `needs`, `state`, `prepared`.",
        always=True,
    ),
    "load_test": Function(
        command="load_test",
        returns="LoadTest",
        meaning="`levels` with the figures of each load, `highest` load within the limits, `records`, the file with "
        "a line for each request.",
    ),
    "logs": Function(
        command="logs",
        returns="list[str]",
        meaning="The lines, each with its job in front; with `follow` they are printed as they come, too.",
        always=True,
    ),
    "merge_chunks": Function(
        command="merge_chunks", returns="MergedChunks", meaning="`output`, the file, and its number of `rows`."
    ),
    "merge_lora": Function(command="merge_lora", returns="Path", meaning=MODEL_FOLDER),
    "mirror": Function(
        command="mirror",
        returns="MirrorFolder",
        meaning="`folder`, its `files` and their `size` in bytes; what is wrong with it is in `problems`.",
    ),
    "nemo_evaluator": Function(command="nemo_evaluator", submits=True),
    "nemo_gym_rollouts": Function(command="nemo_gym_rollouts", submits=True),
    "plan": Function(
        command="plan",
        returns="CommandPlan",
        meaning="`text`, what the dry run prints, and `jobs`, those of a cluster.",
        always=True,
    ),
    "plan_eval": Function(
        command="plan_eval", returns="list[EvalPlan]", meaning="A plan for each benchmark.", always=True
    ),
    "ppo_verl": Function(command="ppo_verl", submits=True),
    "prepare_data": Function(
        command="prepare_data",
        returns="list[PreparedData]",
        meaning="The benchmarks that are prepared, each with its `folder` and `splits`.",
        submits=True,
    ),
    "prepare_training_data": Function(
        command="prepare_training_data",
        returns="Card",
        meaning="The data card: `rows_read`, `steps`, `rows_written`, …",
    ),
    "profile_evaluate": Function(
        command="evaluate",
        returns="list[Invocation]",
        meaning="What was submitted: `id`, and `tasks` with their `state`, `folder` and `scores`.",
        note="`ns eval` is another command: `evaluate`.",
    ),
    "push": Function(
        command="push",
        returns="Push",
        meaning="`files`, the paths in the repository; `address`; `commit`, empty where nothing was sent.",
        always=True,
    ),
    "query": Function(
        command="query",
        returns="list[dict[str, Any]]",
        meaning="All rows of the query, or the first `rows`. `newskills.analysis.query` returns a table of Arrow.",
        always=True,
    ),
    "quickstart": Function(
        command="quickstart",
        returns="QuickstartOutcome",
        meaning="`page` (HTML), and `improvement` with its `model`, or `evaluation` where nothing was trained.",
    ),
    "regrade": Function(
        command="regrade", returns="list[Regraded]", meaning="What changed in each benchmark.", always=True
    ),
    "rehearse": Function(
        command="rehearse",
        returns="list[RehearsalCheck]",
        meaning="The checks, each with `what`, `state` and `text`; one that is wrong raises no error.",
        always=True,
    ),
    "report": Function(
        command="report", returns="list[Path]", meaning="The files that were written, HTML first.", always=True
    ),
    "resume": Function(
        command="resume",
        returns="Invocation",
        meaning="The invocation, with the `tasks` that were submitted again and their `state`.",
    ),
    "retrieve_similar": Function(
        command="retrieve_similar",
        returns="SimilarFile",
        meaning="`output`, the file, and `problems`, the number of its lines.",
    ),
    "reward_model": Function(command="reward_model", returns="TrainingOutcome", meaning=TRAINING, submits=True),
    "robust_eval": Function(command="robust_eval", returns="RobustnessSummary", meaning=ROBUSTNESS, submits=True),
    "run_cmd": Function(command="run_cmd", submits=True),
    "samples": Function(
        command="samples",
        returns="list[SelectedSample]",
        meaning="The samples that fit, `number` at most.",
        always=True,
    ),
    "scan": Function(
        command="scan",
        returns="Scan",
        meaning="`results`, one for each scanner and benchmark; `agreement` with labelled samples; `notes`.",
    ),
    "serve_evals": Function(
        command="serve_evals",
        returns="EndedService",
        meaning="The service that was stopped: its `address`.",
        note=UNTIL_STOPPED,
    ),
    "serve_gateway": Function(
        command="gateway",
        returns="EndedService",
        meaning="The service that was stopped: its `address`.",
        note=UNTIL_STOPPED,
    ),
    "serve_gym": Function(
        command="serve_gym",
        returns="EndedService",
        meaning="The service that was stopped: its `address`.",
        note=UNTIL_STOPPED,
    ),
    "serve_rewards": Function(
        command="serve_rewards",
        returns="EndedService",
        meaning="The service that was stopped: its `address`.",
        note=UNTIL_STOPPED,
    ),
    "serve_sandbox": Function(
        command="sandbox",
        returns="SandboxService",
        meaning="`isolation_level` and `missing` packages; after `serve` an `address`, which answers until `close()`.",
        note="The server runs beside your program; the function returns as soon as it answers.",
    ),
    "serve_tinker": Function(
        command="serve_tinker",
        returns="EndedService",
        meaning="The service that was stopped: its `address`.",
        note=UNTIL_STOPPED,
    ),
    "serve_view": Function(
        command="view",
        returns="RunningService",
        meaning="`address` of the page, which is served until `close()`; of an export the address of its file.",
        note="The server runs beside your program; the function returns as soon as it answers.",
    ),
    "setup": Function(command="setup", returns="Path", meaning="The config that was written."),
    "sft": Function(command="sft", returns="TrainingOutcome", meaning=TRAINING, submits=True),
    "sft_nemo_rl": Function(command="sft_nemo_rl", submits=True),
    "start_server": Function(
        command="start_server",
        returns="EndedServer",
        meaning="The server that has ended: its `model`, `address` and `log_file`.",
        submits=True,
        note=UNTIL_STOPPED,
    ),
    "status": Function(
        command="status",
        returns="list[JobState]",
        meaning="Each job with its `state`, `exit_code` and whether it has `ended`.",
        always=True,
    ),
    "summarize_results": Function(
        command="summarize_results",
        returns="Summary",
        meaning="`reports`, `notes`, and `path`, where metrics.json is.",
    ),
    "summarize_robustness": Function(
        command="summarize_robustness", returns="RobustnessSummary", meaning=ROBUSTNESS
    ),
    "swe_bench": Function(
        command="swe_bench",
        returns="SweBenchFile",
        meaning="`output`, its number of `records`, how many are `without_patch`, the `ledger` of the verdicts.",
    ),
    "tinker_rl": Function(
        command="tinker_rl",
        returns="ServiceTraining",
        meaning="`sampler_path` and `state_path` at the service, `metrics` of the last step, `checkpoints` (a file).",
    ),
    "tinker_sft": Function(
        command="tinker_sft",
        returns="ServiceTraining",
        meaning="`sampler_path` and `state_path` at the service, `metrics` of the last step, `checkpoints` (a file).",
    ),
    "train_megatron_lm": Function(command="train_megatron_lm", submits=True),
    "validate": Function(
        command="validate",
        returns="list[Validation]",
        meaning="A validation of each benchmark; what is wrong with it is in `problems`.",
    ),
    "why": Function(
        command="why",
        returns="list[Explanation]",
        meaning="What differs in each benchmark, and by how many points.",
        always=True,
    ),
}

SPELLINGS = {"eval": "evaluate", "evaluate_async": "aevaluate"}
"""Another name → the name of the same function."""


def results_table() -> str:
    """Return the table of docs/python.md: what each function returns; those that return the same share a row."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, function in FUNCTIONS.items():
        meaning = function.meaning or "What was submitted to the cluster."
        names.setdefault((function.annotation.replace(" | ", "` or `"), meaning), []).append(f"`{name}`")
    rows = [f"| {', '.join(each)} | `{kind}` | {meaning} |" for (kind, meaning), each in names.items()]
    return "\n".join(["| function | returns | which holds |", "|---|---|---|", *rows]) + "\n"
