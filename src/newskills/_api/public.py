# SPDX-License-Identifier: Apache-2.0
"""What scripts and plug-ins may import. All else is internal: it may move or change in any version."""

from __future__ import annotations

from msgspec import Struct


class PublicModule(Struct, frozen=True, kw_only=True):
    """`names`: what may be imported from a module; empty: it is run (`python -m`) or read by other programs."""

    purpose: str
    names: tuple[str, ...] = ()


HEAD = ("| module | for | names |", "|---|---|---|")
"""First lines of the table in docs/python.md."""

PUBLIC = {
    "newskills": PublicModule(purpose="scripts: the functions and objects of this page", names=("*",)),
    "newskills.base.errors": PublicModule(
        purpose="scripts, plug-ins: errors",
        names=(
            "NewskillsError",
            "UserError",
            "ConfigError",
            "UnknownNameError",
            "DataError",
            "LockedError",
            "HttpError",
            "ModelError",
            "ServerStartError",
            "GraderError",
            "SandboxError",
            "ToolError",
            "FatalToolError",
            "TrainingError",
            "RemoteError",
            "GateError",
            "StorageError",
        ),
    ),
    "newskills.base.records": PublicModule(
        purpose="scripts, plug-ins: requests, replies, scores, reports",
        names=(
            "Attempt",
            "Failure",
            "Inference",
            "Ledger",
            "Logprobs",
            "Message",
            "Number",
            "Reply",
            "Report",
            "Request",
            "Row",
            "Sample",
            "Score",
            "Usage",
        ),
    ),
    "newskills.base.protocols": PublicModule(
        purpose="plug-ins: what a grader, a metric, a model, a solver must have",
        names=(
            "ExecutingGrader",
            "Execution",
            "ExecutionResult",
            "Grader",
            "Kit",
            "Metric",
            "Model",
            "NeedsCheck",
            "Sandbox",
            "Solver",
            "Tokenizer",
            "Toolbox",
            "ToolSpec",
        ),
    ),
    "newskills.base.benchmark": PublicModule(
        purpose="benchmarks",
        names=("Asset", "Benchmark", "Drop", "Group", "Judge", "Option", "OTHER_SPLIT", "Source"),
    ),
    "newskills.benchmarks.agent_tasks": PublicModule(purpose="benchmarks", names=("task_set",)),
    "newskills.benchmarks.terminal_tasks": PublicModule(purpose="benchmarks", names=("terminal_task_set",)),
    "newskills.benchmarks.options": PublicModule(
        purpose="options of a benchmark",
        names=("field_set", "first_rows", "kept_if", "rows_changed", "rows_with", "sources_with"),
    ),
    "newskills.benchmarks.scores": PublicModule(
        purpose="scores of a group", names=("entries", "headline", "mean", "weighted")
    ),
    "newskills.benchmarks.text": PublicModule(
        purpose="rows of a benchmark", names=("choices", "number_text", "shuffled", "yes_no")
    ),
    "newskills.graders.code.harness": PublicModule(
        purpose="graders that run code", names=("Program", "Suite", "SuiteVerdict", "Time", "run_program")
    ),
    "newskills.metrics.counting.base": PublicModule(purpose="metrics", names=("ScoreMetric",)),
    "newskills.models.config": PublicModule(purpose="model backends", names=("ServerConfig",)),
    "newskills.models.errors": PublicModule(purpose="model backends", names=("EndpointIdentity",)),
    "newskills.models.kinds": PublicModule(
        purpose="model backends: what others know of them", names=("Dialect", "ModelProperties")
    ),
    "newskills.models.openai": PublicModule(
        purpose="model backends that speak OpenAI's wire", names=("OpenAIModel",)
    ),
    "newskills.models.wire": PublicModule(
        purpose="model backends", names=("base_url_of", "require_key", "require_model")
    ),
    "newskills.base.plan": PublicModule(
        purpose="executors: what they place",
        names=("Command", "CommandGroup", "HardwareConfig", "Job", "Ref", "Script"),
    ),
    "newskills.launch.registry": PublicModule(
        purpose="executors: what others know of them", names=("ExecutorProperties", "NodeSize")
    ),
    "newskills.launch.place": PublicModule(
        purpose="executors", names=("ExecutorScript", "JobFolder", "PendingJob", "Site", "Variable")
    ),
    "newskills.launch.executors.none": PublicModule(
        purpose="executors of processes of one machine", names=("Processes",)
    ),
    "newskills.environments.engines": PublicModule(
        purpose="container engines: what others know of them", names=("EngineProperties",)
    ),
    "newskills.environments.engines.engine": PublicModule(purpose="container engines", names=("EngineProgram",)),
    "newskills.environments.engines.docker": PublicModule(
        purpose="container engines that are like docker", names=("Docker", "Podman")
    ),
    "newskills.base.environment": PublicModule(
        purpose="agents: where they act", names=("AgentEnvironment", "EnvironmentSpec", "ExecutedCommand")
    ),
    "newskills.solve.agents.options": PublicModule(purpose="agents", names=("AgentOptions", "Trajectory")),
    "newskills.rewards": PublicModule(
        purpose="rewards in other trainers (`pkg://newskills.rewards`)",
        names=("ClientOptions", "RewardClient", "compute_score", "trl_reward"),
    ),
    "newskills.analysis": PublicModule(
        purpose="scripts, notebooks: results as tables (extra `newskills[analysis]`)",
        names=(
            "SCHEMA_VERSION",
            "comparisons",
            "messages",
            "query",
            "runs",
            "sample_batches",
            "samples",
            "scores",
        ),
    ),
    "newskills.view.scans.finding": PublicModule(purpose="scanners: what they return", names=("Finding",)),
    "newskills.view.scans.transcript": PublicModule(purpose="scanners: what they look at", names=("Transcript",)),
    "newskills.gateway.recording": PublicModule(
        purpose="scripts: the log of a gateway", names=("GatewayLog", "read_log")
    ),
    "newskills.gateway.segments": PublicModule(
        purpose="scripts: token sequences of a gateway's log", names=("TokenSegment", "token_segments")
    ),
    "newskills.solve.chat": PublicModule(purpose="solvers", names=("ChatSolver", "MAIN", "ask")),
    "newskills.solve.dialogue": PublicModule(
        purpose="solvers of several turns", names=("continued", "with_budget")
    ),
    "newskills.solve.parts": PublicModule(
        purpose="solvers", names=("SolverParts", "chat", "code_execution", "tools")
    ),
    "newskills.tools.provider": PublicModule(
        purpose="tools", names=("FunctionTool", "ToolContext", "ToolProvider")
    ),
    "newskills.train.trainers": PublicModule(
        purpose="scripts, trainers", names=("LoraSettings", "Trainer", "TrainerSettings", "make_trainer")
    ),
    "newskills.train.verbs": PublicModule(
        purpose="trainers that have the verbs of the Tinker API",
        names=(
            "AdamParams",
            "Datum",
            "LossConfig",
            "LossOutput",
            "ReferenceClient",
            "Sampled",
            "SamplingClient",
            "SamplingParams",
            "Saved",
            "TrainingClient",
        ),
    ),
    "newskills.train.loops.dpo": PublicModule(purpose="trainers", names=("DpoConfig", "Pair")),
    "newskills.train.loops.folder": PublicModule(purpose="trainers", names=("TrainingFolder",)),
    "newskills.train.loops.grpo": PublicModule(purpose="trainers", names=("GrpoConfig", "RewardedProblems")),
    "newskills.train.loops.method": PublicModule(
        purpose="ways to train, trainers", names=("Method", "MethodSettings")
    ),
    "newskills.train.loops.rloo": PublicModule(purpose="scripts", names=("RlooConfig",)),
    "newskills.train.loops.samples": PublicModule(purpose="trainers", names=("Problem", "Scorer")),
    "newskills.train.loops.sft": PublicModule(purpose="scripts, trainers", names=("SftConfig", "example")),
    "newskills.train.loops.stepping": PublicModule(purpose="trainers", names=("Hooks",)),
    "newskills.train.loops.trainer": PublicModule(purpose="trainers", names=("LoopTrainer",)),
    "newskills.aimo": PublicModule(
        purpose="scripts of the math recipe, under its own names",
        names=(
            "extract_answer_from_solution",
            "extract_boxed_answer",
            "extract_gsm8k_answer",
            "is_equivalent_answer",
            "normalize_answer",
            "verify_answer",
            "verify_answers",
        ),
    ),
    "newskills.aimo.evaluation.answer_extraction": PublicModule(
        purpose="the same",
        names=(
            "extract_answer_from_solution",
            "extract_boxed_answer",
            "extract_gsm8k_answer",
            "is_equivalent_answer",
            "normalize_answer",
            "verify_answer",
        ),
    ),
    "newskills.aimo.training.rl_math": PublicModule(
        purpose="the same",
        names=(
            "EvalCallback",
            "LLMJudgeRewardFunction",
            "MathRewardFunction",
            "RLMathConfig",
            "RLMathTrainer",
        ),
    ),
    "newskills.aimo.training.sft_cot": PublicModule(purpose="the same", names=("SFTCoTConfig", "SFTCoTTrainer")),
    "newskills.aimo.training.sft_tir": PublicModule(
        purpose="the same",
        names=("SFTTIRConfig", "SFTTIRTrainer", "extract_code_blocks", "format_code_output"),
    ),
    "newskills.aimo.training.tinker_rl_math": PublicModule(
        purpose="the same; `ns tinker rl`", names=("MathRLConfig", "compute_reward", "train_math_rl")
    ),
    "newskills.aimo.training.tinker_sft_math": PublicModule(
        purpose="the same; `ns tinker sft`", names=("MathSFTConfig", "train_full_pipeline", "train_math_sft")
    ),
    "newskills.aimo.evaluation.benchmarks": PublicModule(
        purpose="the same", names=("ALL_BENCHMARKS", "BenchmarkConfig", "get_benchmark", "load_benchmark")
    ),
    "newskills.aimo.inference.solution_selection": PublicModule(
        purpose="the same",
        names=("GenSelectSolver", "MajorityVoteSolver", "SolutionCandidate", "WeightedVoteSolver"),
    ),
    "newskills.aimo.inference.tir_executor": PublicModule(
        purpose="the same", names=("CodeExecutionResult", "TIRExecutor", "safe_execute_python")
    ),
    "newskills.aimo.training.train": PublicModule(purpose="`ns aimo train`"),
    "newskills.aimo.inference.generate": PublicModule(purpose="`ns aimo generate`"),
    "newskills.aimo.evaluation.evaluate": PublicModule(purpose="`ns aimo evaluate`"),
    "newskills.interop.harness": PublicModule(purpose="images for NeMo Evaluator", names=("target",)),
    "newskills.interop.nel_environments": PublicModule(purpose="benchmarks in nemo-evaluator"),
    "newskills.run": PublicModule(purpose="the run of a folder with run.json, again"),
    "newskills.sandbox.local_sandbox_server": PublicModule(purpose="`ns sandbox serve`"),
    "newskills.training.prepare_data": PublicModule(purpose="`ns prepare_training_data`"),
}


def table() -> str:
    """Return the rows of the table in docs/python.md, with a line break at their end."""
    rows = [
        f"| `{module}` | {public.purpose} | {', '.join(map(_shown, public.names)) or 'run it'} |"
        for module, public in PUBLIC.items()
    ]
    return "\n".join([*HEAD, *rows]) + "\n"


def _shown(name: str) -> str:
    if name == "*":
        return "all of `newskills.__all__`"
    return f"`{name}`"
