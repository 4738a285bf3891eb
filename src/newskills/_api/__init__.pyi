# SPDX-License-Identifier: Apache-2.0
# Made from the options of the commands: python docs/generate.py

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from newskills._api.calls import Arguments as Arguments, wrap_arguments as wrap_arguments
from newskills._api.objects import Model
from newskills.base.benchmark import Benchmark
from newskills.base.benchmark import Group
from newskills.base.records import Number
from newskills.base.records import Report
from newskills.benchmarks.data import PreparedData
from newskills.launch.experiments import Experiment
from newskills.launch.states import JobState
from newskills.pipelines.data.aggregate_answers import AggregatedAnswers
from newskills.pipelines.data.merge_chunks import MergedChunks
from newskills.pipelines.data.mirror import MirrorFolder
from newskills.pipelines.data.retrieve_similar import SimilarFile
from newskills.pipelines.evaluation.critpt import CritPtFile
from newskills.pipelines.evaluation.evaluation import Evaluation
from newskills.pipelines.evaluation.swe_bench import SweBenchFile
from newskills.pipelines.grading.work import Graded
from newskills.pipelines.invocations import Invocation
from newskills.pipelines.rehearsal.rehearse import RehearsalCheck
from newskills.pipelines.results.diagnose import FailureReport
from newskills.pipelines.results.push import Push
from newskills.pipelines.results.scan import Scan
from newskills.pipelines.serving.ended import EndedService
from newskills.pipelines.serving.ended import RunningService
from newskills.pipelines.serving.sandbox import SandboxService
from newskills.pipelines.start.agents import ListedAgent
from newskills.pipelines.start.benchmark_list import ListedName
from newskills.pipelines.start.doctor import DoctorFinding
from newskills.pipelines.start.quickstart import QuickstartOutcome
from newskills.pipelines.submission.plan import CommandPlan
from newskills.pipelines.training.methods.running import TrainingOutcome
from newskills.pipelines.training.service import ServiceTraining
from newskills.recipes.improve.loop import Improvement
from newskills.run.hosting.servers import EndedServer
from newskills.run.load_testing.result import LoadTest
from newskills.run.planning.spec import RunResult
from newskills.run.reporting.robustness import RobustnessSummary
from newskills.run.reporting.summarize import Summary
from newskills.run.validation.checks import Validation
from newskills.train.data.card import Card
from newskills.view.comparison.paired_runs import Comparison
from newskills.view.comparison.planning import EvalPlan
from newskills.view.comparison.regrade import Regraded
from newskills.view.comparison.why import Explanation
from newskills.view.judge_agreement import JudgeAgreement
from newskills.view.samples import SelectedSample

class Generation:
    """How answers are generated: the `++` keys as typed keywords; what is not set is left to the benchmark.

    Groups of keys are mappings: `Generation(temperature=0.7, sandbox={"host": "node1"})`.

    Raises:
        TypeError: there is no such key; the nearest one is named
        ConfigError: a value is not of the key's type
    """

    @property
    def values(self) -> dict[str, Any]: ...
    def __init__(
        self,
        *,
        endpoint_type: Literal['chat', 'text', 'responses'] = ...,
        temperature: float | None = ...,
        top_p: float | None = ...,
        top_k: int | None = ...,
        min_p: float | None = ...,
        random_seed: int | None = ...,
        tokens_to_generate: int | None = ...,
        repetition_penalty: float | None = ...,
        top_logprobs: int | None = ...,
        reasoning_effort: str | None = ...,
        thinking_budget: int | Literal['none'] | None = ...,
        extra_body: Mapping[str, Any] = ...,
        input_file: str = ...,
        output_file: str = ...,
        prompt_config: str | Mapping[str, Any] | None = ...,
        prompt_format: Literal['ns', 'openai'] = ...,
        prompt_source: Literal['official', 'newskills'] | None = ...,
        official_prompts: str = ...,
        prompt_suffix: str = ...,
        system_message: str | None = ...,
        user_message: str | None = ...,
        examples_type: str | None = ...,
        few_shot_examples: Mapping[str, Any] = ...,
        code_tags: str | None = ...,
        start_assistant_response_key: str | None = ...,
        tokenizer: str | None = ...,
        chat_template_kwargs: Mapping[str, Any] = ...,
        models: Mapping[str, Any] = ...,
        max_samples: int = ...,
        skip_filled: bool = ...,
        max_concurrent_requests: int = ...,
        most_concurrent_requests: int = ...,
        context_overflow: Literal['unscored', 'wrong'] = ...,
        num_chunks: int | None = ...,
        chunk_id: int | None = ...,
        add_generation_stats: bool = ...,
        count_prompt_tokens: bool = ...,
        generation_key: str = ...,
        async_position_key: str = ...,
        dry_run: bool = ...,
        solver: str = ...,
        solver_config: Mapping[str, Any] = ...,
        code_execution: bool = ...,
        total_code_executions_in_prompt: int | Sequence[int] | None = ...,
        override_max_code_executions: bool = ...,
        use_client_parsing: bool = ...,
        tool_modules: Sequence[str] | None = ...,
        tool_overrides: Mapping[str, Any] = ...,
        schema_overrides: Mapping[str, Any] = ...,
        max_tool_calls: int = ...,
        agent: str | None = ...,
        agent_config: Mapping[str, Any] = ...,
        agent_max_turns: int = ...,
        wait_for_sandbox: bool = ...,
        stop_phrase: str | None = ...,
        remove_stop_phrases: bool = ...,
        parse_reasoning: bool = ...,
        end_reasoning_string: str = ...,
        eval_type: str | None = ...,
        eval_config: Mapping[str, Any] = ...,
        structured_output: Literal['HLE_JUDGE_AA'] | None = ...,
        enable_audio: bool = ...,
        enable_audio_chunking: bool = ...,
        audio_chunk_task_types: Sequence[str] | None = ...,
        chunk_audio_threshold_sec: float = ...,
        drop_content_types: Sequence[str] = ...,
        enable_litellm_cache: bool = ...,
        max_total_tokens: int | None = ...,
        max_cost: float | None = ...,
        endpoint_patience: float | None = ...,
        log_level: Literal['debug', 'info', 'warning', 'error'] = ...,
        budget_forcing: Mapping[str, Any] = ...,
        environment: Mapping[str, Any] = ...,
        inference: Mapping[str, Any] = ...,
        parallel_thinking: Mapping[str, Any] = ...,
        sandbox: Mapping[str, Any] = ...,
        server: Mapping[str, Any] = ...,
    ) -> None: ...

async def aevaluate(
    ctx: Arguments | None = None,
    *,
    benchmarks: str | Benchmark | Group | Sequence[str | Benchmark | Group],
    settings: Generation | None = None,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | Path | None = None,
    generation_type: Literal['generate', 'majority', 'weighted_vote', 'best_of_n', 'genselect', 'gensynthesis'] | None = None,
    generation_module: str | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    extra_benchmark_map: str | None = None,
    prompt_source: Literal['official', 'newskills'] | None = None,
    auto_summarize_results: bool = True,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    accept_lost: float = 1.0,
    plan_cost: bool = False,
    json: bool = False,
    until: str | None = None,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    batch_api: bool = False,
    num_servers: int = 1,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    num_jobs: int | None = None,
    work_queue: bool = False,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    judge_model: str | Model | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_server_gpus: int | None = None,
    judge_server_nodes: int | None = None,
    judge_server_args: str | None = None,
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
    judge_batch_api: bool = False,
    judge_container: str | None = None,
    judge_type: Literal['llm', 'math_judge', 'comet', 'nvembed', 'arena'] | None = None,
    judge_generation_type: Literal['generate', 'math_judge'] | None = None,
    judge_generation_module: str | None = None,
    judge_step_fn: str | None = None,
    extra_judge_args: str = '',
    judge_pipeline_kwargs: str | dict[str, Any] = '',
    judge_sbatch_kwargs: str | dict[str, Any] = '',
    judge_all: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    summarize_sbatch_kwargs: str | dict[str, Any] = '',
) -> Evaluation:
    """Evaluate a model on benchmarks: generate, grade while generating, and print tables with intervals.
    An interrupted run resumes where it stopped. A failed request is unscored, never a wrong answer. In
    Python: newskills.evaluate. (ns evaluate is another command: it runs NeMo Evaluator configs.)

    `ns eval` as a function. `evaluate`, awaited within a running event loop, on a thread of its own.
    Cancelling it stops the evaluation: what is done is on disk, and the same call goes on from there.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns eval --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        benchmarks: name[:samples],… or files (./mine.yaml, ./questions.csv ++columns={question: q});
            samples ≥ 1: that many seeds at temperature 0.7; without samples: greedy (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        single_node_mode: run the units of one process in parallel or one after the other (default
            'parallel')
        output_dir: folder for the results (default: results/<expname>)
        generation_type: how all benchmarks are answered, instead of in their own ways: generate: one
            answer to one request; the others combine several samples into one answer
        generation_module: the same by a solver of your own, module::maker or file.py::maker (without
            ::, its SOLVER), or a NeMo-Skills module by name, nemo_skills.inference.NAME
        data_dir: folder of prepared data
        split: data split to evaluate (default: the benchmark's own)
        extra_benchmark_map: JSON file that maps names to folders with more benchmarks
        prompt_source: wording of prompts that are published: official, newskills (default: official
            where ns prepare_data has downloaded it)
        auto_summarize_results: print tables and write metrics.json after the run (default True)
        metric_type: another metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for the metrics class
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        plan_cost: print tokens, time and cost of what is left (usual, in batches, prompts cached), and
            ask nothing but 20 problems of each benchmark that has no answers yet, and its judge about
            20 answers
        json: with `plan_cost`: print everything as JSON
        until: stop each benchmark early: 'ci<1.0' (score known to ±1.0 points, at 95 %), 'decided vs
            RUN' (better or worse than the results in RUN), 'rows=20' (20 random problems); without it,
            the same command continues
        model: name or path of the model (ns generate with `generation_module`: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        batch_api: ask in batches, for half the price and within a day: openai, azureopenai, anthropic,
            gemini; vllm: on this machine, without a server. The same command collects what a stopped
            one has submitted
        num_servers: servers of the model to start; prompts that begin alike go to the same one (default
            1)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one job each (default: 1; on slurm -1)
        work_queue: jobs of `num_jobs` take chunks from a queue instead of a fixed share each
        starting_seed: first seed (default 0)
        num_chunks: split the input into this many chunks
        chunk_ids: only these chunks: 1,2,5 or 0..4
        rerun_done: ignore .done markers and run again
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        judge_model: name or path of the judge model (default: the benchmark's own)
        judge_server_type: server type of the judge, as in `server_type`
        judge_server_address: address of a running judge
        judge_server_gpus: host the judge on this many GPUs per node
        judge_server_nodes: nodes for the judge's server
        judge_server_args: more arguments for the judge's engine, passed on unchanged
        judge_server_entrypoint: another start command for the judge's engine
        judge_server_container: container image of the judge's server (clusters)
        judge_batch_api: ask the judge in batches, as `batch_api` does the model
        judge_container: container image of the judge's client (clusters)
        judge_type: llm: one question per answer; math_judge: the same, but no question where the
            answers are equal as text; comet, nvembed: a trained model instead of questions
            (translation; multiple choice); arena: pairwise comparison
        judge_generation_type: older form of `judge_type`
        judge_generation_module: your own judge: FILE.py or MODULE, with SOLVER or ::MAKER
        judge_step_fn: your own function, FILE.py::NAME: takes records, returns a text with a verdict
            for each
        extra_judge_args: ++ options for the judge, as one text
        judge_pipeline_kwargs: JSON of options for the judge's jobs: model, server_*, partition,
            num_jobs, …
        judge_sbatch_kwargs: JSON of sbatch settings for the judge's jobs
        judge_all: also judge benchmarks that need no judge
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        summarize_sbatch_kwargs: JSON of sbatch settings for the summary job

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `scores`, `samples()`, `table()`; `reports`, one for each benchmark, and `result`, the units of
        work. On a cluster: the experiment that was submitted, None where nothing was left to do. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

async def agenerate(
    ctx: Arguments | None = None,
    *,
    settings: Generation | None = None,
    rows: Iterable[Mapping[str, Any]] | None = None,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | Path | None = None,
    input_file: str | Path | None = None,
    input_dir: str | Path | None = None,
    generation_type: Literal['generate', 'math_judge', 'check_contamination', 'autoformalize', 'prover', 'majority', 'weighted_vote', 'best_of_n', 'genselect', 'gensynthesis'] | None = None,
    prompt_source: Literal['official', 'newskills'] | None = None,
    generation_module: str | None = None,
    preprocess_cmd: str | None = None,
    postprocess_cmd: str | None = None,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    batch_api: bool = False,
    num_servers: int = 1,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    num_jobs: int | None = None,
    work_queue: bool = False,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    num_random_seeds: int | None = None,
    random_seeds: str | Sequence[int] | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> RunResult:
    """Run a model over a JSONL file: fill the prompt for each row, send it, and write each row with its
    answer, in input order. An interrupted run resumes where it stopped.

    `ns generate` as a function. `generate`, awaited within a running event loop, as `aevaluate`.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns generate --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        rows: rows as objects, instead of files
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        single_node_mode: run the units of one process in parallel or one after the other (default
            'parallel')
        output_dir: folder for the results (default: results/<expname>)
        input_file: file of rows: JSONL, JSON array, CSV, TSV, Parquet; also .gz, .zst
        input_dir: folder whose output-rs{seed}.jsonl files are the inputs, one per seed
        generation_type: math_judge: ask whether predicted_answer and expected_answer are the same;
            check_contamination: ask whether a problem is the same as one of its similar_items;
            autoformalize: translate problems into Lean 4 statements; prover: prove Lean 4 statements,
            with repair after Lean's errors; majority, weighted_vote, best_of_n, genselect,
            gensynthesis: combine several samples into one answer
        prompt_source: wording of prompts that are published: official, newskills (default: official
            where ns prepare_data has downloaded it)
        generation_module: your own generation task: module::maker or file.py::maker of a solver
            (without ::, its SOLVER); or a NeMo-Skills module by name, nemo_skills.inference.NAME
        preprocess_cmd: your shell command to run before the generation
        postprocess_cmd: your shell command to run after each finished (and merged) seed
        model: name or path of the model (ns generate with `generation_module`: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        batch_api: ask in batches, for half the price and within a day: openai, azureopenai, anthropic,
            gemini; vllm: on this machine, without a server. The same command collects what a stopped
            one has submitted
        num_servers: servers of the model to start; prompts that begin alike go to the same one (default
            1)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one job each (default: 1; on slurm -1)
        work_queue: jobs of `num_jobs` take chunks from a queue instead of a fixed share each
        starting_seed: first seed (default 0)
        num_chunks: split the input into this many chunks
        chunk_ids: only these chunks: 1,2,5 or 0..4
        rerun_done: ignore .done markers and run again
        num_random_seeds: samples per row, at temperature 0.7 unless set
        random_seeds: these seeds: 1,2,5 or 0..4
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `outputs`, the files; `rows()`; `units` (one for each seed and chunk), `retries`, `ledger`. On a
        cluster: the experiment that was submitted, None where nothing was left to do. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aggregate_answers(
    ctx: Arguments | None = None,
    *,
    input_dir: str | Path,
    mode: Literal['fill', 'extract'] = 'fill',
    input_files: str | Path | Sequence[str | Path] = (),
    output_dir: str | Path | None = None,
    fill_key: str | None = None,
    ignore_if_not_none: bool = False,
    fill_symbolic_correct: bool = True,
    use_majority_rm_score: bool = False,
    use_highest_rm_score: bool = False,
    require_num_files: int | None = None,
    dry_run: bool = False,
) -> AggregatedAnswers:
    """Find the common answer of several runs to each problem, by votes or by the scores of a reward model,
    and write it as the expected answer of all records (fill), or write one record per problem that
    gives it (extract). Answers of the same value vote together. A problem without any answer gets null.

    `ns aggregate_answers` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        input_dir: folder of the runs (required)
        mode: fill: write all records again, with the common answer as expected_answer; extract: write
            one record per problem, which gives that answer, to output-agg.jsonl (default 'fill')
        input_files: files of the runs in that folder, as names or patterns (default: output-rs*.jsonl)
        output_dir: folder to write to (extract: default is the folder of the runs)
        fill_key: field that gets the answer (default: expected_answer; extract: predicted_answer)
        ignore_if_not_none: leave records alone whose field has a value already
        fill_symbolic_correct: set symbolic_correct to whether a record gives the common answer;
            otherwise it is removed (default True)
        use_majority_rm_score: each vote counts as much as its reward_model_score
        use_highest_rm_score: the answer with the highest reward_model_score wins
        require_num_files: number of files that must be found, for pipelines in which one may be missing
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `outputs`, the files; `problems` and `records`, how many were changed. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aimo_evaluate(
    ctx: Arguments | None = None,
    *,
    model: str,
    settings: Generation | None = None,
    server_address: str | None = None,
    output_dir: str | Path | None = None,
    dry_run: bool = False,
    max_samples: int | None = None,
    num_samples: int = 1,
    use_tir: bool = False,
    data_dir: str | Path | None = None,
    benchmark: str = 'math',
    use_vllm: bool = False,
) -> dict[str, Number]:
    """Evaluate a model of the aimo recipe: it is served here, prompted as in training, and graded by the
    grader that gave the reward. ++ keys are those of ns eval.

    `ns aimo evaluate` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns aimo evaluate --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        model: training folder, Hugging Face folder or name, .gguf file, or smollm2 (required)
        server_address: address of a running OpenAI-compatible server
        output_dir: folder for records and tables (default: results/aimo/<model>)
        dry_run: check everything and show what would be done; run nothing
        max_samples: problems per benchmark (default: all)
        num_samples: answers per problem; 1 = greedy (default 1)
        use_tir: the model writes code, which the sandbox runs
        data_dir: folder of prepared data
        benchmark: math, math_level1, math_level5, math500, aime, amc, gsm8k, or any other; several
            separated by commas (default 'math')
        use_vllm: serve with vLLM on the GPUs of this machine; otherwise llama.cpp on the CPU

    Returns:
        Benchmark → its headline score, with `low` and `high`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aimo_evaluate_all(
    ctx: Arguments | None = None,
    *,
    model: str,
    settings: Generation | None = None,
    server_address: str | None = None,
    output_dir: str | Path | None = None,
    dry_run: bool = False,
    max_samples: int | None = None,
    num_samples: int = 1,
    use_tir: bool = False,
    data_dir: str | Path | None = None,
    benchmarks: str | Sequence[str] = (),
    merge_output: bool = False,
    vllm: bool = True,
) -> dict[str, Number]:
    """Evaluate a model of the aimo recipe on all its benchmarks with one server. Without a GPU, llama.cpp
    serves it, as with --no-vllm. ++ keys are those of ns eval.

    `ns aimo evaluate_all` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns aimo evaluate_all --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        model: training folder, Hugging Face folder or name, .gguf file, or smollm2 (required)
        server_address: address of a running OpenAI-compatible server
        output_dir: folder for records and tables (default: results/aimo/<model>)
        dry_run: check everything and show what would be done; run nothing
        max_samples: problems per benchmark (default: all)
        num_samples: answers per problem; 1 = greedy (default 1)
        use_tir: the model writes code, which the sandbox runs
        data_dir: folder of prepared data
        benchmarks: names of benchmarks (default: math math500 aime amc gsm8k)
        merge_output: also write all scores into one file, all_results.json
        vllm: serve with vLLM on the GPUs of this machine; otherwise llama.cpp on the CPU (default True)

    Older names of arguments work, too: `use_vllm` for `vllm`.

    Returns:
        Benchmark → its headline score, with `low` and `high`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aimo_evaluate_checkpoints(
    ctx: Arguments | None = None,
    *,
    model: str,
    settings: Generation | None = None,
    server_address: str | None = None,
    output_dir: str | Path | None = None,
    dry_run: bool = False,
    max_samples: int | None = None,
    num_samples: int = 1,
    use_tir: bool = False,
    data_dir: str | Path | None = None,
    benchmark: str = 'math500',
    base_model: str | None = None,
    use_vllm: bool = False,
) -> dict[int, dict[str, Number]]:
    """Evaluate every checkpoint of a training folder (`model`) and show the scores by step, with
    intervals. Checkpoints that are already evaluated are skipped. ++ keys are those of ns eval.

    `ns aimo evaluate_checkpoints` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns aimo evaluate_checkpoints --help`
            lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        model: training folder, Hugging Face folder or name, .gguf file, or smollm2 (required)
        server_address: address of a running OpenAI-compatible server
        output_dir: folder for records and tables (default: results/aimo/<model>)
        dry_run: check everything and show what would be done; run nothing
        max_samples: problems per benchmark (default: all)
        num_samples: answers per problem; 1 = greedy (default 1)
        use_tir: the model writes code, which the sandbox runs
        data_dir: folder of prepared data
        benchmark: names as in ns aimo evaluate; several separated by commas (default 'math500')
        base_model: base model of LoRA checkpoints, if the checkpoints do not name it
        use_vllm: serve with vLLM on the GPUs of this machine; otherwise llama.cpp on the CPU

    Older names of arguments work, too: `checkpoints_dir` for `model`, `checkpoint_dir` for `model`.

    Returns:
        Step → benchmark → its headline score, with `low` and `high`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aimo_generate(
    ctx: Arguments | None = None,
    *,
    model: str,
    settings: Generation | None = None,
    server_address: str | None = None,
    output_dir: str | Path | None = None,
    dry_run: bool = False,
    strategy: Literal['greedy', 'majority_vote', 'weighted_vote', 'genselect', 'tir'] = 'greedy',
    problem: str | None = None,
    input_file: str | Path | None = None,
    num_samples: int | None = None,
    use_vllm: bool = False,
) -> Path:
    """Answer problems with a model of the aimo recipe. ++ keys are those of ns generate.

    `ns aimo generate` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns aimo generate --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        model: training folder, Hugging Face folder or name, .gguf file, or smollm2 (required)
        server_address: address of a running OpenAI-compatible server
        output_dir: folder for records and tables (default: results/aimo/<model>)
        dry_run: check everything and show what would be done; run nothing
        strategy: how the answer is chosen: one sample; majority vote; weighted vote; the sample that
            the model itself ranks best (genselect); with code run in the sandbox (tir) (default
            'greedy')
        problem: a problem
        input_file: JSONL file with `problem`, instead
        num_samples: answers to choose from (default 16); with tir, several vote (default: one)
        use_vllm: serve with vLLM on the GPUs of this machine; otherwise llama.cpp on the CPU

    Returns:
        The file with the answers, a line for each problem. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aimo_regenerate_summary(
    ctx: Arguments | None = None,
    *,
    output_dir: str | Path,
    dry_run: bool = False,
) -> dict[Path, dict[str, Number]]:
    """Rebuild the tables of ns aimo evaluate, evaluate_all and evaluate_checkpoints from the records.

    `ns aimo regenerate_summary` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        output_dir: folder of an evaluation of the aimo recipe (required)
        dry_run: check everything and show what would be done; run nothing

    Older names of arguments work, too: `results_dir` for `output_dir`.

    Returns:
        Folder of an evaluation → benchmark → its headline score. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def aimo_train(
    ctx: Arguments | None = None,
    *,
    stage: Literal['cot', 'tir', 'rl', 'full'] = 'full',
    base_model: str | None = None,
    output_dir: str | Path | None = None,
    config: str | None = None,
    max_samples: int | None = None,
    learning_rate: float | None = None,
    num_epochs: float | None = None,
    save_steps: int | None = None,
    logging_steps: int | None = None,
    eval_steps: int | None = None,
    resume_from_checkpoint: str | None = None,
    force_cpu: bool = False,
    backend: Literal['auto', 'cpu', 'trl'] = 'auto',
    flash_attn: bool = True,
    dry_run: bool = False,
    data_dir: str | Path | None = None,
    mirror: str | None = None,
    offline: bool | None = None,
    save_samples: bool = False,
    sample_save_rate: float = 0.01,
    samples_filename: str = 'samples.jsonl',
    report_to: Literal['tensorboard', 'wandb', 'none'] | None = None,
    run_name: str | None = None,
    num_generations: int | None = None,
    vllm: bool = True,
    eval_samples: int | None = None,
    eval_batch_size: int | None = None,
    use_llm_judge: bool = False,
    llm_judge_model: str | None = None,
    llm_judge_weight: float | None = None,
) -> Path:
    """Train a model for competition mathematics in three stages: SFT on chains of thought, SFT on
    solutions with code (run in the sandbox), reinforcement learning. Each stage is a few ns commands;
    `dry_run` shows them. A killed run resumes with the same command.

    `ns aimo train` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns aimo train --help` lists them
        stage: stage to run; full = all three, one after the other (default 'full')
        base_model: base model of the (first) stage, instead of the stage's default
        output_dir: folder of the stage; with `stage` full: parent folder of all stages
        config: YAML file of settings; options and ++ keys override it
        max_samples: largest number of training problems in each stage
        learning_rate: peak learning rate
        num_epochs: passes over the data
        save_steps: steps between checkpoints
        logging_steps: accepted for compatibility; every step is logged
        eval_steps: steps between evaluations on held-out rows
        resume_from_checkpoint: resume from the last checkpoint (the default), or from the checkpoint
            given here
        force_cpu: train on the CPU even if there is a GPU
        backend: trainer; auto = cpu for small Llama models if there is no GPU, otherwise trl (default
            'auto')
        flash_attn: use FlashAttention on a GPU that supports it (default True)
        dry_run: check everything and show what would be done; run nothing
        data_dir: folder of prepared data
        mirror: folder of an offline mirror (default: NEWSKILLS_MIRROR)
        offline: never use the network
        save_samples: keep only a share of the samples of stage rl
        sample_save_rate: share to keep (default 0.01)
        samples_filename: file for these samples, in the output folder (default 'samples.jsonl')
        report_to: where to log metrics, in addition to metrics.jsonl (default: tensorboard, if it is
            installed)
        run_name: run name there (default: name of the stage)
        num_generations: samples per problem (group size)
        vllm: sample with vLLM, on the GPU of the training (default True)
        eval_samples: number of held-out problems for evaluation
        eval_batch_size: held-out problems per batch
        use_llm_judge: a judge model also rates the samples
        llm_judge_model: judge model
        llm_judge_weight: weight of the judge's rating in the reward

    Returns:
        The folder of the model that was written. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def average_checkpoints(
    ctx: Arguments | None = None,
    *,
    checkpoints: str | Sequence[str],
    output_model: str,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    steps: str | Sequence[int] | None = None,
    remove: str | Sequence[str] = (),
    remove_checkpoints_after_average: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Path:
    """Average the weights of checkpoints of one run, tensor by tensor, here or as a cluster job. The
    checkpoints are kept unless you ask to remove them afterwards.

    `ns average_checkpoints` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        checkpoints: Hugging Face folders of the same model (several words); with `steps`: the folder
            that contains them (required)
        output_model: folder to write; must not exist yet (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        steps: step numbers N of the folders step_N in `checkpoints`, comma separated
        remove: folders to remove after the average is written
        remove_checkpoints_after_average: remove the averaged checkpoints after the average is written
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Returns:
        The folder of the model that was written. On a cluster: the experiment that was submitted, None
        where nothing was left to do. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def cancel(
    ctx: Arguments | None = None,
    *,
    name: str | Experiment,
    job: str | None = None,
    dry_run: bool = False,
) -> list[JobState]:
    """Cancel submitted jobs, waiting and running. Running clients save what they have. Files stay, and the
    same command line, submitted again, resumes from there.

    `ns cancel` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        name: experiment: its name (the latest one of that name), the beginning of a name, or
            NAME/STAMP; or an invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX
            (required)
        job: only this job
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The jobs that were cancelled, as they were before. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def compare(
    ctx: Arguments | None = None,
    *,
    runs: str | Sequence[str],
    benchmarks: str | Sequence[str] | None = None,
    allow: str | Sequence[str] | None = None,
    margin: float = 1.0,
    fail_if: str | Sequence[str] = (),
    flips: int = 5,
    json: bool = False,
    html: str | None = None,
) -> Comparison:
    """Compare runs sample by sample: difference with a 95 % interval and a p-value for each benchmark,
    what changed from right to wrong and from wrong to right, and which differences are too small to be
    detected. Runs that differ in data, prompt or grader are refused unless `allow` names it. Exit
    codes: 0; 2 where nothing can be compared; 3 where a condition of `fail_if` holds.

    `ns compare` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        runs: folders of results; the first is what the others are compared with (required)
        benchmarks: only these, comma separated (default: all that both have)
        allow: compare although the runs differ in it: data, prompt, grader, comma separated
        margin: points that a run may lose and still count as not worse (non-inferiority) (default 1.0)
        fail_if: exit with code 3 where this holds: worse, or 'gsm8k < -1.0' (a difference in points);
            repeatable
        flips: how many problems that changed are listed for each benchmark (default 5)
        json: print everything as JSON, with all problems that changed
        html: also write a self-contained page to this file

    Returns:
        Figures, flips and one sentence for each benchmark; where `fail_if` holds, GateError is raised.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def completion(
    ctx: Arguments | None = None,
    *,
    shell: Literal['bash', 'zsh', 'fish', 'words'],
    words: str | Sequence[str] = (),
) -> str:
    """Print the completion script of a shell, to source or to save.

    `ns completion` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        shell: bash, zsh or fish; words: print candidates for the last word given (required)
        words: words after `ns`; the last one is completed

    Returns:
        The script, or the candidates, a line for each. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def compute_metrics(
    ctx: Arguments | None = None,
    *,
    prediction_jsonl_files: str | Path | Sequence[str | Path],
    benchmark: str,
    max_samples: int = -1,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    save_metrics_path: str | Path | None = None,
    accept_lost: float = 1.0,
    dry_run: bool = False,
) -> list[Report]:
    """Compute the metrics of graded output files, without a results folder. If the files are not graded:
    run ns grade first.

    `ns compute_metrics` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        prediction_jsonl_files: graded output files of one benchmark; several files = several seeds
            (required)
        benchmark: name of the benchmark (decides which metrics are computed) (required)
        max_samples: only the first n problems; -1 = all (default -1)
        metric_type: another metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for the metrics class
        save_metrics_path: folder to write metrics.json to (default: print only)
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        One report for each table. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def convert(
    ctx: Arguments | None = None,
    *,
    input_model: str,
    output_model: str,
    convert_from: Literal['hf', 'nemo', 'dcp', 'megatron', 'gguf'],
    convert_to: Literal['hf', 'trtllm', 'megatron', 'nemo', 'gguf'],
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    arguments: str | Sequence[str] = (),
    model_type: Literal['llama', 'qwen', 'deepseek_v3'] | None = None,
    num_gpus: int = 1,
    num_nodes: int = 1,
    hf_model_name: str | None = None,
    dtype: Literal['bf16', 'fp16', 'fp32', 'fp8'] = 'bf16',
    max_position_embeddings: int | None = None,
    container: str | None = None,
    calib_dataset: str | None = None,
    calib_size: int = 4096,
    trt_prepare_args: str = '',
    trt_reuse_tmp_engine: bool = True,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Path:
    """Convert a model. On this machine: Llama models between a Hugging Face folder (float16, with
    tokenizer and chat template) and a GGUF file that the embedded server runs. In the containers of
    their own programs: NeMo-RL checkpoints to Hugging Face, Hugging Face from and to Megatron-LM by
    Megatron-Bridge, and Hugging Face to an fp8 engine of TensorRT-LLM.

    `ns convert` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        input_model: Hugging Face folder, checkpoint (of NeMo-RL: step_N), .gguf file, or smollm2
            (required)
        output_model: folder to write (gguf: file) (required)
        convert_from: format of the input; dcp: NeMo-RL checkpoint; megatron: one of NeMo-RL or of
            Megatron-LM (required)
        convert_to: format of the output; gguf: matrices in F16 (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        arguments: more arguments for the converter, after --
        model_type: model family, if the converter needs it
        num_gpus: GPUs per node; trtllm splits the model over them (tensor parallel) (default 1)
        num_nodes: pipeline parallel size (trtllm) (default 1)
        hf_model_name: Hugging Face folder or name of the same model, for its tokenizer and
            configuration
        dtype: number format of the output; fp8 only for trtllm (default 'bf16')
        max_position_embeddings: value to write into config.json (hf)
        container: container image of the converter
        calib_dataset: data set to calibrate the fp8 scales
        calib_size: number of its rows to use (default 4096)
        trt_prepare_args: more arguments for the calibration step
        trt_reuse_tmp_engine: reuse an existing calibrated checkpoint (default True)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Returns:
        The model that was written: a folder or a file. On a cluster: the experiment that was submitted,
        None where nothing was left to do. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def critpt(
    ctx: Arguments | None = None,
    *,
    action: Literal['export', 'submit'],
    input_file: str | Path,
    output_file: str | Path,
    model_name: str = 'newskills',
    generation_config: str = '',
    api_url: str = 'https://artificialanalysis.ai/api/v2/critpt/evaluate',
    request_timeout: float = 600.0,
    dry_run: bool = False,
) -> CritPtFile:
    """Send the code that a model wrote for CritPt to the CritPt grading service, and read its scores. Only
    this service can grade it. It needs a key (ARTIFICIAL_ANALYSIS_API_KEY), and accepts ten batches of
    all problems a day.

    `ns critpt` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        action: export: write the batch that the service accepts; submit: write it and send it
            (required)
        input_file: graded JSONL of one seed, with all problems (required)
        output_file: export: file for the batch; submit: file for the service's answer (required)
        model_name: name of the model (default 'newskills')
        generation_config: JSON of settings to send with the batch (temperature, …)
        api_url: address of the service (default 'https://artificialanalysis.ai/api/v2/critpt/evaluate')
        request_timeout: seconds to wait for the answer (default 600.0)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `output`, the batch or the answer of the service; `problems`; `accuracy`, after `submit`. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def diagnose(
    ctx: Arguments | None = None,
    *,
    results_dirs: str | Sequence[str],
    dry_run: bool = False,
    benchmarks: str | Sequence[str] | None = None,
    output: str | None = None,
    json: bool = False,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
) -> FailureReport:
    """Report why a run fails: truncation, extraction, tools, environment, knowledge, arithmetic,
    instructions, suspected faults of the grader or of expected answers, each with its count, its points
    of the loss, samples, and what would change it. With a second folder, the difference. Rules alone,
    and claims of `model` whose ids and quotes hold. Writes HTML, Markdown and JSON.

    `ns diagnose` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns diagnose --help` lists them
        results_dirs: folder of results, and another one to compare with (required)
        dry_run: check everything and show what would be done; run nothing
        benchmarks: only these, comma separated (default: all)
        output: where the report goes, without an ending (default: diagnosis in the first folder)
        json: print the diagnosis as JSON
        model: model that reads transcripts; of several, all must agree
        server_type: openai, vllm, llamacpp, … (one, or one for each model)
        server_address: address of a running server (one, or one for each model)
        server_gpus: start a server for the model, on this many GPUs
        server_args: more arguments for a started server, passed on unchanged
        server_timeout: seconds to wait for a started server (default 1800.0)

    Returns:
        `run`, with its benchmarks and their groups of failures; `other` and `changes`; `files`. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def distill(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    teacher: str,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    backend: str = 'cpu',
    data_dir: str | Path | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    teacher_address: str | None = None,
    teacher_type: str = 'vllm',
    by: Literal['logprobs', 'texts'] = 'logprobs',
    benchmark: str | None = None,
    split: str = 'train',
    training_data: str | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
) -> TrainingOutcome:
    """Train a small model (the student) on a larger one (the teacher), here or as a cluster job. On-
    policy: the student samples, and the teacher's log-probabilities of its tokens say what to change
    (reverse KL divergence per token). By texts: the teacher answers, and its correct answers are
    trained on. A killed or stopped run resumes with the same command. Needs newskills[train,local].

    `ns distill` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns distill --help` lists them
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (required)
        output_dir: folder for checkpoints and metrics; a run in the same folder resumes where it
            stopped (required)
        teacher: Hugging Face folder, .gguf file or smollm2; with `teacher_address`, the model's name
            there (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        backend: cpu: LoRA, small Llama, Qwen; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        data_dir: folder of prepared data
        eval_benchmark: benchmark to evaluate on during training (++eval.*), with its prompt and grader
        eval_split: split of that benchmark (default 'test')
        allow_overlap: allow training on problems that are also evaluated on
        teacher_address: address of a server that has the teacher, such as http://gpu:8000/v1
        teacher_type: kind of that server: vllm, sglang, openai, … (default 'vllm')
        by: logprobs: the student samples, the teacher scores its tokens (on-policy); texts: the teacher
            answers, correct answers are trained on (SFT) (default 'logprobs')
        benchmark: benchmark whose problems are asked: its prompt, grader and split
        split: split of the benchmark (default 'train')
        training_data: JSONL file of problems instead of the benchmark's, with the fields that the
            prompt needs
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs per node of the job; with `backend`=trl each gets a process (default: none)
        num_nodes: nodes of the job, which train together (`backend`=trl) (default 1)

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out
        problems. On a cluster: the experiment that was submitted, None where nothing was left to do.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def doctor(
    ctx: Arguments | None = None,
    *,
    server_address: str | None = None,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
) -> list[DoctorFinding]:
    """Check this machine: extras, API keys (names only), data, servers, and how to install what is
    missing.

    `ns doctor` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        server_address: also ask this endpoint which models it serves
        cluster: also test this cluster: ssh, scheduler or containers, folders, images
        config_dir: folder of cluster configs

    Returns:
        What was looked at, each with `state` and `text`; nothing that is wrong raises an error. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def dpo(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    backend: str = 'cpu',
    data_dir: str | Path | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    training_data: str | None = None,
    input_files: str | Path | Sequence[str | Path] = (),
    benchmark: str | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
) -> TrainingOutcome:
    """Train a small model on preferred and rejected replies (DPO; LoRA on a CPU), here or as a cluster
    job. Pairs come from a file, or from graded outputs: correct replies beside wrong ones to the same
    problem. A killed or stopped run resumes with the same command and reaches the same numbers. Needs
    newskills[train,local].

    `ns dpo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns dpo --help` lists them
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (required)
        output_dir: folder for checkpoints and metrics; a run in the same folder resumes where it
            stopped (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        backend: cpu: LoRA, small Llama, Qwen; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        data_dir: folder of prepared data
        eval_benchmark: benchmark to evaluate on during training (++eval.*), with its prompt and grader
        eval_split: split of that benchmark (default 'test')
        allow_overlap: allow training on problems that are also evaluated on
        training_data: JSONL file of {prompt, chosen, rejected}: texts used unchanged, or conversations
        input_files: instead: graded output files of several seeds; correct replies are paired with
            wrong ones
        benchmark: benchmark of `input_files`: its prompt (or ++prompt_config)
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs per node of the job; with `backend`=trl each gets a process (default: none)
        num_nodes: nodes of the job, which train together (`backend`=trl) (default 1)

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out
        problems. On a cluster: the experiment that was submitted, None where nothing was left to do.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def evaluate(
    ctx: Arguments | None = None,
    *,
    benchmarks: str | Benchmark | Group | Sequence[str | Benchmark | Group],
    settings: Generation | None = None,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | Path | None = None,
    generation_type: Literal['generate', 'majority', 'weighted_vote', 'best_of_n', 'genselect', 'gensynthesis'] | None = None,
    generation_module: str | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    extra_benchmark_map: str | None = None,
    prompt_source: Literal['official', 'newskills'] | None = None,
    auto_summarize_results: bool = True,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    accept_lost: float = 1.0,
    plan_cost: bool = False,
    json: bool = False,
    until: str | None = None,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    batch_api: bool = False,
    num_servers: int = 1,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    num_jobs: int | None = None,
    work_queue: bool = False,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    judge_model: str | Model | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_server_gpus: int | None = None,
    judge_server_nodes: int | None = None,
    judge_server_args: str | None = None,
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
    judge_batch_api: bool = False,
    judge_container: str | None = None,
    judge_type: Literal['llm', 'math_judge', 'comet', 'nvembed', 'arena'] | None = None,
    judge_generation_type: Literal['generate', 'math_judge'] | None = None,
    judge_generation_module: str | None = None,
    judge_step_fn: str | None = None,
    extra_judge_args: str = '',
    judge_pipeline_kwargs: str | dict[str, Any] = '',
    judge_sbatch_kwargs: str | dict[str, Any] = '',
    judge_all: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    summarize_sbatch_kwargs: str | dict[str, Any] = '',
) -> Evaluation:
    """Evaluate a model on benchmarks: generate, grade while generating, and print tables with intervals.
    An interrupted run resumes where it stopped. A failed request is unscored, never a wrong answer. In
    Python: newskills.evaluate. (ns evaluate is another command: it runs NeMo Evaluator configs.)

    `ns eval` as a function. `ns evaluate` is another command: `profile_evaluate`.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns eval --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        benchmarks: name[:samples],… or files (./mine.yaml, ./questions.csv ++columns={question: q});
            samples ≥ 1: that many seeds at temperature 0.7; without samples: greedy (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        single_node_mode: run the units of one process in parallel or one after the other (default
            'parallel')
        output_dir: folder for the results (default: results/<expname>)
        generation_type: how all benchmarks are answered, instead of in their own ways: generate: one
            answer to one request; the others combine several samples into one answer
        generation_module: the same by a solver of your own, module::maker or file.py::maker (without
            ::, its SOLVER), or a NeMo-Skills module by name, nemo_skills.inference.NAME
        data_dir: folder of prepared data
        split: data split to evaluate (default: the benchmark's own)
        extra_benchmark_map: JSON file that maps names to folders with more benchmarks
        prompt_source: wording of prompts that are published: official, newskills (default: official
            where ns prepare_data has downloaded it)
        auto_summarize_results: print tables and write metrics.json after the run (default True)
        metric_type: another metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for the metrics class
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        plan_cost: print tokens, time and cost of what is left (usual, in batches, prompts cached), and
            ask nothing but 20 problems of each benchmark that has no answers yet, and its judge about
            20 answers
        json: with `plan_cost`: print everything as JSON
        until: stop each benchmark early: 'ci<1.0' (score known to ±1.0 points, at 95 %), 'decided vs
            RUN' (better or worse than the results in RUN), 'rows=20' (20 random problems); without it,
            the same command continues
        model: name or path of the model (ns generate with `generation_module`: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        batch_api: ask in batches, for half the price and within a day: openai, azureopenai, anthropic,
            gemini; vllm: on this machine, without a server. The same command collects what a stopped
            one has submitted
        num_servers: servers of the model to start; prompts that begin alike go to the same one (default
            1)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one job each (default: 1; on slurm -1)
        work_queue: jobs of `num_jobs` take chunks from a queue instead of a fixed share each
        starting_seed: first seed (default 0)
        num_chunks: split the input into this many chunks
        chunk_ids: only these chunks: 1,2,5 or 0..4
        rerun_done: ignore .done markers and run again
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        judge_model: name or path of the judge model (default: the benchmark's own)
        judge_server_type: server type of the judge, as in `server_type`
        judge_server_address: address of a running judge
        judge_server_gpus: host the judge on this many GPUs per node
        judge_server_nodes: nodes for the judge's server
        judge_server_args: more arguments for the judge's engine, passed on unchanged
        judge_server_entrypoint: another start command for the judge's engine
        judge_server_container: container image of the judge's server (clusters)
        judge_batch_api: ask the judge in batches, as `batch_api` does the model
        judge_container: container image of the judge's client (clusters)
        judge_type: llm: one question per answer; math_judge: the same, but no question where the
            answers are equal as text; comet, nvembed: a trained model instead of questions
            (translation; multiple choice); arena: pairwise comparison
        judge_generation_type: older form of `judge_type`
        judge_generation_module: your own judge: FILE.py or MODULE, with SOLVER or ::MAKER
        judge_step_fn: your own function, FILE.py::NAME: takes records, returns a text with a verdict
            for each
        extra_judge_args: ++ options for the judge, as one text
        judge_pipeline_kwargs: JSON of options for the judge's jobs: model, server_*, partition,
            num_jobs, …
        judge_sbatch_kwargs: JSON of sbatch settings for the judge's jobs
        judge_all: also judge benchmarks that need no judge
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        summarize_sbatch_kwargs: JSON of sbatch settings for the summary job

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `scores`, `samples()`, `table()`; `reports`, one for each benchmark, and `result`, the units of
        work. On a cluster: the experiment that was submitted, None where nothing was left to do. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def experiments(
    ctx: Arguments | None = None,
    *,
    name: str | None = None,
    last: int = 50,
) -> list[Experiment]:
    """List the experiments submitted from this machine, latest first. This reads local records only; ns
    status asks the cluster.

    `ns experiments` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        name: only experiments of this name
        last: largest number of experiments to show (default 50)

    Returns:
        What was submitted from this machine, the latest first. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def export(
    ctx: Arguments | None = None,
    *,
    id: str | Sequence[str],
    to: Literal['parquet', 'csv', 'duckdb'] | None = None,
    dest: str | Sequence[str] = (),
    format: str | None = None,
    output_dir: str | Path | None = None,
    output_filename: str | None = None,
    copy_logs: bool = False,
    log_metrics: str | Sequence[str] = (),
    dry_run: bool = False,
) -> list[Path]:
    """Export results of ns evaluate to Weights & Biases or MLflow, or to one JSON or CSV file. The
    `export` section of the invocation's own config applies unless an option overrides it. `format`
    inspect writes logs that Inspect and its viewer read; `to` parquet, csv or duckdb writes tables of
    runs, scores, samples and messages. Both also take any results folder.

    `ns export` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns export --help` lists them
        id: invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job; with
            `format` inspect and atif, and with `to`, also results folders (required)
        to: tables of runs, scores, samples and messages as files: parquet, csv, or one database of
            DuckDB
        dest: destination: local (the default), wandb, mlflow, or one of your own
        format: json or csv (for local): one file with all scores; inspect: one log per benchmark; atif:
            one trajectory per sample
        output_dir: for local, inspect, atif and `to`: folder to write to
        output_filename: for local: name of the file
        copy_logs: for local: also copy the logs
        log_metrics: only scores whose name contains one of these texts
        dry_run: check everything and show what would be done; run nothing

    Returns:
        What was written on this machine; what went to a service is not among it. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def generate(
    ctx: Arguments | None = None,
    *,
    settings: Generation | None = None,
    rows: Iterable[Mapping[str, Any]] | None = None,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | Path | None = None,
    input_file: str | Path | None = None,
    input_dir: str | Path | None = None,
    generation_type: Literal['generate', 'math_judge', 'check_contamination', 'autoformalize', 'prover', 'majority', 'weighted_vote', 'best_of_n', 'genselect', 'gensynthesis'] | None = None,
    prompt_source: Literal['official', 'newskills'] | None = None,
    generation_module: str | None = None,
    preprocess_cmd: str | None = None,
    postprocess_cmd: str | None = None,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    batch_api: bool = False,
    num_servers: int = 1,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    num_jobs: int | None = None,
    work_queue: bool = False,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    num_random_seeds: int | None = None,
    random_seeds: str | Sequence[int] | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> RunResult:
    """Run a model over a JSONL file: fill the prompt for each row, send it, and write each row with its
    answer, in input order. An interrupted run resumes where it stopped.

    `ns generate` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns generate --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        rows: rows as objects, instead of files
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        single_node_mode: run the units of one process in parallel or one after the other (default
            'parallel')
        output_dir: folder for the results (default: results/<expname>)
        input_file: file of rows: JSONL, JSON array, CSV, TSV, Parquet; also .gz, .zst
        input_dir: folder whose output-rs{seed}.jsonl files are the inputs, one per seed
        generation_type: math_judge: ask whether predicted_answer and expected_answer are the same;
            check_contamination: ask whether a problem is the same as one of its similar_items;
            autoformalize: translate problems into Lean 4 statements; prover: prove Lean 4 statements,
            with repair after Lean's errors; majority, weighted_vote, best_of_n, genselect,
            gensynthesis: combine several samples into one answer
        prompt_source: wording of prompts that are published: official, newskills (default: official
            where ns prepare_data has downloaded it)
        generation_module: your own generation task: module::maker or file.py::maker of a solver
            (without ::, its SOLVER); or a NeMo-Skills module by name, nemo_skills.inference.NAME
        preprocess_cmd: your shell command to run before the generation
        postprocess_cmd: your shell command to run after each finished (and merged) seed
        model: name or path of the model (ns generate with `generation_module`: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        batch_api: ask in batches, for half the price and within a day: openai, azureopenai, anthropic,
            gemini; vllm: on this machine, without a server. The same command collects what a stopped
            one has submitted
        num_servers: servers of the model to start; prompts that begin alike go to the same one (default
            1)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one job each (default: 1; on slurm -1)
        work_queue: jobs of `num_jobs` take chunks from a queue instead of a fixed share each
        starting_seed: first seed (default 0)
        num_chunks: split the input into this many chunks
        chunk_ids: only these chunks: 1,2,5 or 0..4
        rerun_done: ignore .done markers and run again
        num_random_seeds: samples per row, at temperature 0.7 unless set
        random_seeds: these seeds: 1,2,5 or 0..4
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `outputs`, the files; `rows()`; `units` (one for each seed and chunk), `retries`, `ledger`. On a
        cluster: the experiment that was submitted, None where nothing was left to do. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def grade(
    ctx: Arguments | None = None,
    *,
    rows: Iterable[Mapping[str, Any]] | None = None,
    grader: str = 'math',
    input_files: str | Path | Sequence[str | Path] = (),
    output_file: str | Path | None = None,
    executor: Literal['none', 'ray'] = 'none',
    accept_lost: float = 1.0,
    dry_run: bool = False,
) -> Graded:
    """Grade any JSONL file of answers: adds predicted_answer, symbolic_correct (true, false or null =
    undecided), outcome, grader and why to each row. ++key=value sets options of the grader,
    ++sandbox.key=value options of the sandbox for graders that run code, ++end_reasoning_string=TEXT
    what ends the reasoning of these models.

    `ns grade` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns grade --help` lists them
        rows: rows as objects, instead of files
        grader: name, module::Class or file.py::Class (default 'math')
        input_files: files of rows (as in ns generate); none or - = standard input
        output_file: JSONL file to write (default: standard output)
        executor: ray: many files on the nodes of RAY_ADDRESS, or of this machine, by Ray Data; rows
            stay the same (default 'none')
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `ledger`, the counts of verdicts; `output_file`; `rows()`, the rows with their verdicts. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def grpo(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    backend: str = 'cpu',
    data_dir: str | Path | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    benchmark: str | None = None,
    split: str = 'train',
    training_data: str | None = None,
    eval_data: str | None = None,
    explain_batch: int | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
) -> TrainingOutcome:
    """Train a small model with reinforcement learning (GRPO, LoRA on a CPU), here or as a cluster job: the
    grader that evaluates gives the reward. A killed or stopped run resumes with the same command and
    reaches the same numbers. Needs newskills[train,local].

    `ns grpo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns grpo --help` lists them
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (required)
        output_dir: folder for checkpoints and metrics; a run in the same folder resumes where it
            stopped (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        backend: cpu: LoRA, small Llama, Qwen; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        data_dir: folder of prepared data
        eval_benchmark: benchmark to evaluate on during training (++eval.*), with its prompt and grader
        eval_split: split of that benchmark (default 'test')
        allow_overlap: allow training on problems that are also evaluated on
        benchmark: benchmark to train on: its prompt, solver, grader and split; several with weights:
            a:2,b:1
        split: split of the benchmark (default 'train')
        training_data: JSONL file of problems instead of a benchmark, with the fields that prompt and
            grader need
        eval_data: JSONL file of held-out problems, with the prompt and grader of the training (or
            `eval_benchmark`)
        explain_batch: step of the training in output_dir to explain instead of training: groups,
            rewards, advantages, and how far it pushed each token
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs per node of the job; with `backend`=trl each gets a process (default: none)
        num_nodes: nodes of the job, which train together (`backend`=trl) (default 1)

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out
        problems. On a cluster: the experiment that was submitted, None where nothing was left to do.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def grpo_nemo_rl(
    ctx: Arguments | None = None,
    *,
    model: str,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    container: str | None = None,
    training_data: str | None = None,
    validation_data: str | None = None,
    output_dir: str | Path | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    backend: Literal['fsdp', 'megatron'] | None = None,
    max_length: int | None = None,
    lora_rank: int | None = None,
    ray_template: str | None = None,
    data_format: str | None = None,
    config: str | None = None,
    nemo_rl_path: str | Path = '/opt/nemo-rl',
    profile_step_range: str | None = None,
    prompt_config: str = 'generic/math',
    loss: Literal['grpo', 'dr_grpo', 'dapo', 'gspo', 'cispo', 'sapo', 'masked'] | None = None,
    entropy_bonus: float = 0.0,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    final_hf_path: str | Path | None = None,
    conversion_step: str = 'last',
    average_steps: str | Sequence[int] | None = None,
    remove_checkpoints_after_average: bool = False,
    run_conversion_only: bool = False,
    max_position_embeddings: int | None = None,
    server_model: str | None = None,
    server_address: str | None = None,
    server_type: str | None = None,
    server_gpus: int | None = None,
    server_nodes: int = 1,
    n_servers: int = 1,
    server_args: str = '',
    server_entrypoint: str | None = None,
    server_container: str | None = None,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Train a model with reinforcement learning (GRPO) in NVIDIA's NeMo-RL on a cluster. Rows of {problem,
    expected_answer} are rewarded by the math grader of evaluations; rows of NeMo Gym by the
    environments of their YAML. ++key=value sets NeMo-RL's own keys.

    `ns nemo_rl grpo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns nemo_rl grpo --help` lists them
        model: model to start from: a Hugging Face folder or name (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        container: container image of the trainer: a name of the cluster config or an image reference
        training_data: JSONL file to train on
        validation_data: JSONL file of the same format to validate on
        output_dir: folder for checkpoints, logs and final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all GPUs of the cluster's nodes)
        backend: training backend that splits the model (default: fsdp; megatron above 20 billion
            parameters)
        max_length: longest sequence in tokens, prompt and answer (default: the model's context, at most
            4096)
        lora_rank: train LoRA pairs of this rank instead of all weights (fsdp); they are merged at the
            end
        ray_template: program that starts Ray around a command, with the arguments of
            newskills.launch.ray_node
        data_format: format of the rows, if the file does not exist yet (default: read from its first
            line)
        config: another NeMo-RL YAML to start from
        nemo_rl_path: folder of NeMo-RL in the container (default '/opt/nemo-rl')
        profile_step_range: steps A:B to profile with nsys, from 1, B excluded
        prompt_config: prompt for rows {problem, expected_answer}: the same as in evaluations (default
            'generic/math')
        loss: loss by name, with the values of its paper; ++ keys win (default: the trainer's
            configuration)
        entropy_bonus: weight of the mean entropy of a token, which is rewarded (verl) (default 0.0)
        with_sandbox: run a sandbox beside the trainer
        sandbox_env_overrides: KEY=VALUE settings of the sandbox
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: do not log to Weights & Biases (also the case without WANDB_API_KEY)
        final_hf_path: folder for the final model (default: OUTPUT_DIR/final_hf_model)
        conversion_step: step that becomes the final model: last, or a number (default 'last')
        average_steps: steps to average into the final model, comma separated
        remove_checkpoints_after_average: remove the checkpoints of these steps after averaging
        run_conversion_only: no training: only convert the checkpoints to the final model
        max_position_embeddings: value to write into the model's config.json
        server_model: name or path of the judge
        server_address: address of a running judge
        server_type: engine of the judge: vllm, sglang, trtllm, …
        server_gpus: GPUs per node of each server
        server_nodes: nodes of each server (default 1)
        n_servers: number of independent servers (default 1)
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the servers
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def import_results(
    ctx: Arguments | None = None,
    *,
    path: str,
    output_dir: str | Path = 'imported',
    format: Literal['atif', 'evalscope', 'inspect', 'lm-eval', 'nemo-evaluator', 'nemo-gym', 'nemo-skills'] | None = None,
    score: str | None = None,
    benchmark: str | None = None,
    dry_run: bool = False,
) -> list[Path]:
    """Convert results of other systems into newskills records, so that ns summarize_results shows them
    with intervals and with their unscored samples: output folders of NeMo-Skills, samples of lm-
    evaluation-harness, logs of Inspect, outputs of EvalScope, bundles of nemo-evaluator. A sample
    without a verdict is unscored, not wrong.

    `ns import` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        path: file or folder with the results (required)
        output_dir: folder to write the records to; then run: ns summarize_results OUTPUT_DIR (default
            'imported')
        format: system that wrote the results (default: detected)
        score: score to read as the verdict: metric of lm-eval, score of EvalScope, scorer of nemo-
            evaluator, SCORER or SCORER.KEY of Inspect (default: the first)
        benchmark: benchmark name to write, if there is only one (default: its name in the results)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The folders that were written, one for each benchmark. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def improve(
    ctx: Arguments | None = None,
    *,
    benchmark: str,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    model: str = 'smollm2',
    rounds: int = 5,
    patience: int = 2,
    method: Literal['sft', 'grpo'] = 'sft',
    config: str | None = None,
    split: str = 'train',
    training_data: str | None = None,
    solutions: str | Sequence[str] = (),
    guard: str | None = None,
    margin: float = 2.0,
    backend: str = 'cpu',
    server_type: str = 'llamacpp',
    server_gpus: int = 0,
    data_dir: str | Path | None = None,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Improvement:
    """Improve a model in rounds, here or as a cluster job: sample replies to training problems, grade
    them, train on the correct ones (or by GRPO), evaluate on held-out problems, and keep the round only
    if a paired test shows that it is better; else go back to the last kept model and change the
    mixture. A killed or stopped run resumes with the same command. Needs newskills[train,local].

    `ns improve` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns improve --help` lists them
        benchmark: benchmark to get better at; evaluated on its own split, which is never trained on
            (required)
        output_dir: folder for everything; a run in the same folder resumes where it stopped (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (default 'smollm2')
        rounds: largest number of rounds; raise it to continue a run that has ended (default 5)
        patience: end after this many rounds in a row that were not kept (default 2)
        method: sft: on correct replies (rejection sampling); grpo: on problems that are sometimes
            correct (default 'sft')
        config: YAML file of ++ keys, and of stages: the first rounds, each with settings of its own
        split: split of the benchmark to train on (default 'train')
        training_data: JSONL file of problems to train on instead, with the fields of the benchmark's
        solutions: JSONL files {id, generation}: replies of others to training problems, which are
            graded and used, too
        guard: benchmarks, separated by commas, that must not get worse than with the initial model
            (non-inferiority)
        margin: points that a guard may lose: less than this (default 2.0)
        backend: cpu: LoRA, small Llama models; trl: any model, GPUs (newskills[trl]) (default 'cpu')
        server_type: what serves the models on this machine: llamacpp, vllm, sglang, … (default
            'llamacpp')
        server_gpus: GPUs of the server (default 0)
        data_dir: folder of prepared data
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `rounds`, `kept` (the rounds that were better), `why` it ended. On a
        cluster: the experiment that was submitted, None where nothing was left to do. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def info(
    ctx: Arguments | None = None,
    *,
    id: str | None = None,
    config: bool = False,
    last: int = 20,
) -> list[Invocation]:
    """Show an invocation of ns evaluate: its jobs, the folders of their files, and their scores.

    `ns info` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        id: invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job; without:
            the latest invocations
        config: show the configuration instead
        last: number of invocations to show if none is named (default 20)

    Returns:
        Each with its `id`, `config`, and `tasks` with their `state`, `folder` and `scores`. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def judge_agreement(
    ctx: Arguments | None = None,
    *,
    results_dirs: str | Sequence[str],
    labels: str,
    json: bool = False,
) -> list[JudgeAgreement]:
    """Compare judges with labels of people: accuracy, Cohen's kappa, bias for long replies and for a
    model's own answers, and scores with the judge's errors taken out. Nothing is generated.

    `ns judge_agreement` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dirs: folders of judged results, also of several models (required)
        labels: JSON Lines of labels: {"id": …, "label": "yes" or "no"}; also benchmark, model, seed
            (required)
        json: print everything as JSON

    Returns:
        Each judge on each benchmark: agreement with labels, biases, corrected scores. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def kto(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    backend: str = 'trl',
    data_dir: str | Path | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    training_data: str | None = None,
    input_files: str | Path | Sequence[str | Path] = (),
    benchmark: str | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
) -> TrainingOutcome:
    """Train on replies that are good or bad, each on its own (KTO): no two replies to one prompt are
    needed. Here or as a cluster job. Replies come from a file, or from graded outputs, where correct
    ones are good. A killed or stopped run resumes with the same command. Needs newskills[trl].

    `ns kto` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns kto --help` lists them
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (required)
        output_dir: folder for checkpoints and metrics; a run in the same folder resumes where it
            stopped (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        backend: trl: any model, GPUs or a CPU (newskills[trl]); cpu: LoRA, small Llama, Qwen; tinker:
            at a service (default 'trl')
        data_dir: folder of prepared data
        eval_benchmark: benchmark to evaluate on during training (++eval.*), with its prompt and grader
        eval_split: split of that benchmark (default 'test')
        allow_overlap: allow training on problems that are also evaluated on
        training_data: JSONL file of {prompt, completion, label}: label true for a good reply
        input_files: instead: graded output files of several seeds; correct replies are good, wrong ones
            bad
        benchmark: benchmark of `input_files`: its prompt (or ++prompt_config)
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs per node of the job; with `backend`=trl each gets a process (default: none)
        num_nodes: nodes of the job, which train together (`backend`=trl) (default 1)

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out
        problems. On a cluster: the experiment that was submitted, None where nothing was left to do.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def kuberay(
    ctx: Arguments | None = None,
    *,
    cluster: str | dict[str, Any],
    image: str,
    claim: str,
    config_dir: str | Path | None = None,
    name: str = 'newskills',
    mount: str | None = None,
    ray_version: str = '2.52.0',
    workers: int = 1,
    max_workers: int | None = None,
    cpus: int = 8,
    gpus: int = 0,
    memory: str = '32Gi',
) -> str:
    """Print the manifest of a Ray cluster for KubeRay (kind RayCluster) that fits a cluster config with
    executor ray: a head that runs no jobs, workers, and a shared volume at job_dir.

    `ns kuberay` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        cluster: cluster config with executor ray; its job_dir must be on the volume (required)
        image: image of all pods, with Ray, Python 3.11 or later and what newskills needs (required)
        claim: persistent volume claim (ReadWriteMany) that all pods mount (required)
        config_dir: folder of cluster configs
        name: name of the Ray cluster (default 'newskills')
        mount: path of the volume in the pods (default: job_dir)
        ray_version: version of Ray in the image; 2.52 or later supports tokens (default '2.52.0')
        workers: worker pods (default 1)
        max_workers: more than `workers`: pods are added while jobs wait, and removed when idle
        cpus: CPUs of a worker (default 8)
        gpus: GPUs of a worker (default 0)
        memory: memory of a worker, as Kubernetes writes it (default '32Gi')

    Returns:
        The manifest, for kubectl. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def list_agents(
    ctx: Arguments | None = None,
    *,
    action: Literal['list', 'install'] = 'list',
    names: str | Sequence[str] = (),
    folder: str | Path | None = None,
    mirror: str | None = None,
    offline: bool = False,
    dry_run: bool = False,
) -> list[ListedAgent]:
    """Show the agents that are programs of others (++agent=NAME of ns eval and ns generate), and install
    them: each once, with its version pinned, into a folder that the environments of tasks see read-
    only. A file ./agent.yaml describes another one.

    `ns agents` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        action: list: what there is (default); install NAME…: install programs, once (default 'list')
        names: install: names of agents, data files (./agent.yaml), or `all`
        folder: folder in which agents are installed (default: NEWSKILLS_AGENTS, or one in the cache)
        mirror: install: folder that keeps the packages, and is searched first
        offline: install: use the mirror alone, never the network
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The agents that there are, or those that were installed: `name`, `version`, `folder`, … None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def list_names(
    ctx: Arguments | None = None,
    *,
    kind: Literal['benchmarks', 'prompts', 'graders', 'metrics', 'models', 'servers', 'solvers', 'code_tags', 'tools'] = 'benchmarks',
    category: str | None = None,
    search: str | None = None,
    prepared: bool = False,
) -> list[ListedName]:
    """List names that options accept: benchmarks (default), prompts, graders, metrics, models (protocols
    of endpoints), servers (engines to host), solvers, code tags and tools.

    `ns list` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        kind: benchmarks, prompts, graders, metrics, models, servers, solvers, code_tags or tools
            (default 'benchmarks')
        category: only benchmarks of this category, for example code or science
        search: only benchmarks with these words in name, category or description; other kinds: in the
            name
        prepared: only benchmarks whose rows are prepared on this machine

    Returns:
        Each with its `name`; of a benchmark also `category`, `title`, `rows`, `needs`, `state`,
        `prepared`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def load_test(
    ctx: Arguments | None = None,
    *,
    output_dir: str | Path = 'load-test',
    rerun_done: bool = False,
    json: bool = False,
    dry_run: bool = False,
    model: str | None = None,
    server_type: str | None = None,
    server_address: str | None = None,
    server_gpus: int | None = None,
    server_args: str = '',
    server_timeout: float = 1800.0,
    benchmarks: str | Sequence[str] | None = None,
    input_file: str | Path | None = None,
    input_tokens: int = 512,
    output_tokens: int | None = None,
    prefix_tokens: int = 0,
    prefixes: int = 1,
    length_spread: float = 0.0,
    ignore_eos: bool | None = None,
    concurrency: str | Sequence[int] | None = None,
    rate: str | Sequence[float] | None = None,
    burstiness: float = 1.0,
    burst: int = 1,
    num_requests: int | None = None,
    seconds: float | None = None,
    warmup: int = 0,
    seed: int = 0,
    limits: str | None = None,
    find: Literal['concurrency', 'rate'] | None = None,
    share: float = 0.95,
) -> LoadTest:
    """Measure an endpoint under load: time to first token, time per output token, inter-token and end-to-
    end latency, throughput, errors, goodput under limits, as vllm bench serve defines them. Requests
    are kept in flight (`concurrency`) or sent at a rate (`rate`); several values make a sweep, `find`
    finds the highest one within `limits`. ++inference.*, ++prompt_config and ++server.* are those of ns
    eval.

    `ns load_test` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns load_test --help` lists them
        output_dir: folder for the records; levels that it has are not measured again (default 'load-
            test')
        rerun_done: measure levels again that have been measured
        json: print the result as JSON
        dry_run: check everything and show what would be done; run nothing
        model: name or path of the model
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: address of a running server, with or without /v1 (default: one is started, where
            that is possible)
        server_gpus: start a server for the model, on this many GPUs
        server_args: more arguments for the engine, passed on unchanged
        server_timeout: seconds to wait for a started server (default 1800.0)
        benchmarks: send the prompts of these benchmarks, as ns eval would
        input_file: send the prompts of this file: rows with messages, prompt, question or
            ++prompt_config
        input_tokens: without those: prompts of so many tokens, as the server counts them (default 512)
        output_tokens: tokens of each reply at most (default: 128, or as the benchmark says)
        prefix_tokens: tokens at the beginning of prompts that they share (default 0)
        prefixes: number of different shared beginnings (default 1)
        length_spread: draw lengths between (1 - this) and (1 + this) times theirs (default 0.0)
        ignore_eos: generate all `output_tokens`, where the server can (default: for prompts of given
            lengths)
        concurrency: requests in flight: 1,8,64 (default: 1,4,16,64); with `rate`: the most in flight
        rate: requests per second, however fast answers come: 1,2,4; inf: all at once
        burstiness: gaps between requests: 1 = Poisson, below 1: burstier, above: evener, 0: even
            (default 1.0)
        burst: requests that arrive together (default 1)
        num_requests: requests of each level (default: 200; with `concurrency` ten times that, at least
            20)
        seconds: send requests for that long; without `num_requests` as many as fit
        warmup: requests before the first level, which are not counted (default 0)
        seed: of prompts and arrivals (default 0)
        limits: largest ttft, tpot, e2el of a request in milliseconds, for goodput: ttft:500,tpot:50
        find: find the highest one at which `share` is within `limits`
        share: share of requests that must be within all `limits` (default 0.95)

    Returns:
        `levels` with the figures of each load, `highest` load within the limits, `records`, the file
        with a line for each request. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def logs(
    ctx: Arguments | None = None,
    *,
    name: str | Experiment,
    job: str | None = None,
    command: str | None = None,
    follow: bool = False,
) -> list[str]:
    """Show the logs of submitted jobs, wherever they run; -f follows them until the jobs end.

    `ns logs` as a function.

    Args:
        ctx: the command from `wrap_arguments('my command')`, instead of `command`
        name: experiment: its name (the latest one of that name), the beginning of a name, or
            NAME/STAMP; or an invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX
            (required)
        job: only this job
        command: only this command of the jobs; job = the log of the job script
        follow: follow: continue until the jobs have ended, and exit with their exit code

    Returns:
        The lines, each with its job in front; with `follow` they are printed as they come, too. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def merge_chunks(
    ctx: Arguments | None = None,
    *,
    merged: str,
    chunks: str | Sequence[str] = (),
    expected: int | None = None,
    dry_run: bool = False,
) -> MergedChunks:
    """Join chunk files by hand, in the order given. Runs merge their own chunks; use this for chunks that
    were computed in different places.

    `ns merge_chunks` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        merged: file to write (required)
        chunks: chunk files, in order; deleted once the merged file is complete (default: the files
            beside MERGED, _chunk_0, _chunk_1, … or -chunk0, -chunk1, …)
        expected: number of rows that the merged file must have
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `output`, the file, and its number of `rows`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def merge_lora(
    ctx: Arguments | None = None,
    *,
    base_model: str,
    adapter: str,
    output_model: str,
    dry_run: bool = False,
) -> Path:
    """Merge a LoRA adapter into its base model: writes a Hugging Face folder that any server can load.

    `ns merge_lora` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        base_model: Hugging Face folder of the base model (required)
        adapter: folder with adapter_model.safetensors (PEFT format), for example a checkpoint of ns sft
            (required)
        output_model: folder to write; must not exist yet (required)
        dry_run: check everything and show what would be done; run nothing

    Older names of arguments work, too: `input_model` for `base_model`, `adapter_path` for `adapter`.

    Returns:
        The folder of the model that was written. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def mirror(
    ctx: Arguments | None = None,
    *,
    action: Literal['build', 'check'],
    words: str | Sequence[str] = (),
    mirror: str | None = None,
    offline: bool | None = None,
    extra_benchmark_map: str | None = None,
    parallelism: int = 20,
    retries: int = 3,
    dry_run: bool = False,
) -> MirrorFolder:
    """Make a folder of benchmark data for machines without a network, or check one. Commands use it with
    `mirror` DIR or NEWSKILLS_MIRROR. An interrupted build resumes where it stopped.

    `ns mirror` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        action: build NAME… DIR: download the files of benchmarks (or groups, or `all`) into DIR; check
            [DIR]: compare every file with the manifest (default: NEWSKILLS_MIRROR) (required)
        words: names of benchmarks, then the folder
        mirror: build: another mirror to copy from (default: NEWSKILLS_MIRROR)
        offline: build: never use the network
        extra_benchmark_map: JSON file that maps names to folders with more benchmarks
        parallelism: benchmarks fetched at the same time (default 20)
        retries: retries after a failed download (default 3)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `folder`, its `files` and their `size` in bytes; what is wrong with it is in `problems`. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def nemo_evaluator(
    ctx: Arguments | None = None,
    *,
    nemo_evaluator_config: str,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    job_gpus: int = 0,
    job_nodes: int = 1,
    server_type: str | None = None,
    server_model: str | None = None,
    server_gpus: int = 0,
    server_nodes: int = 1,
    server_port: int | None = None,
    server_args: str = '',
    server_entrypoint: str | None = None,
    server_container: str | None = None,
    server_base_url: str | None = None,
    server_api_path: str | Path = '/v1/chat/completions',
    server_health_path: str | Path = '/health',
    judge_server_type: str | None = None,
    judge_server_model: str | None = None,
    judge_server_gpus: int = 0,
    judge_server_nodes: int = 1,
    judge_server_port: int | None = None,
    judge_server_args: str = '',
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
    judge_server_base_url: str | None = None,
    judge_server_api_path: str | Path = '/v1/chat/completions',
    judge_server_health_path: str | Path = '/health',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Run tasks of NVIDIA's NeMo Evaluator, each in its own container and job. The model and the judge can
    be served on nodes of their own. ++key=value changes the configuration.

    `ns nemo_evaluator` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns nemo_evaluator --help` lists them
        nemo_evaluator_config: YAML with evaluation.tasks, as for NeMo Evaluator's launcher (required)
        output_dir: folder for the results, one folder per task (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        job_gpus: GPUs per node for the evaluation itself (default 0)
        job_nodes: nodes for the evaluation itself (default 1)
        server_type: engine that serves the model: vllm, sglang, trtllm, …
        server_model: name or path of the model
        server_gpus: serve the model on this many GPUs per node; 0 = do not serve it here (default 0)
        server_nodes: nodes for the model's server (default 1)
        server_port: port of the server (default: a free one)
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server
        server_base_url: base URL of a running server
        server_api_path: path of the API on the server (default '/v1/chat/completions')
        server_health_path: health path of the server: answers 200 once it is ready (default '/health')
        judge_server_type: engine that serves the judge: vllm, sglang, trtllm, …
        judge_server_model: name or path of the judge
        judge_server_gpus: serve the judge on this many GPUs per node (default 0)
        judge_server_nodes: nodes for the judge's server (default 1)
        judge_server_port: port of the server (default: a free one)
        judge_server_args: more arguments for the engine, passed on unchanged
        judge_server_entrypoint: another start command for the engine
        judge_server_container: container image of the server
        judge_server_base_url: base URL of a running judge
        judge_server_api_path: path of the API on the server (default '/v1/chat/completions')
        judge_server_health_path: health path of the server: answers 200 once it is ready (default
            '/health')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def nemo_gym_rollouts(
    ctx: Arguments | None = None,
    *,
    config_paths: str | Sequence[str],
    input_file: str | Path,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    policy_model_name: str | None = None,
    policy_api_key: str = 'dummy',
    gym_path: str | Path | None = None,
    gym_container: str | None = None,
    use_mounted_nemo_skills: bool = True,
    num_random_seeds: int | None = None,
    random_seeds: str | Sequence[int] | None = None,
    starting_seed: int = 0,
    rerun_done: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Collect rollouts in the environments of NVIDIA's NeMo Gym: start its servers, serve the model beside
    them (or ask one at `server_address`), and write what the model does. +key=value goes to NeMo Gym:
    +agent_name, +limit, +num_samples_in_parallel, +num_repeats. Rollouts whose file exists are not
    collected again.

    `ns nemo_gym_rollouts` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns nemo_gym_rollouts --help` lists them
        config_paths: configs of NeMo Gym's servers, relative to its folder, comma separated (required)
        input_file: JSONL file with the tasks, in NeMo Gym's form (required)
        output_dir: folder for rollouts.jsonl, or rollouts-rsN.jsonl for each seed (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        model: name or path of the model (ns generate with --generation_module: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        policy_model_name: name of the model at its server (default: `model`)
        policy_api_key: key of the server at `server_address`; jobs show it, so only for servers of your
            own (default 'dummy')
        gym_path: folder of NeMo Gym in its container, or here (default: that of NeMo-RL's images)
        gym_container: container image of NeMo Gym (default: the cluster's nemo-gym, else nemo-rl)
        use_mounted_nemo_skills: start in the packaged code; otherwise in the container's own folder
            (default True)
        num_random_seeds: jobs, each with its own rollouts-rsN.jsonl
        random_seeds: these seeds: 1,2,5 or 0..4
        starting_seed: first seed (default 0)
        rerun_done: also collect rollouts whose file already exists
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def plan(
    ctx: Arguments | None = None,
    *,
    command: str,
    words: str | Sequence[str] = (),
) -> CommandPlan:
    """Show what a command would do, without doing it: for a cluster, the tree of jobs with what each of
    them runs, the settings and where they come from, and with --show_scripts the scripts of all jobs.

    `ns plan` as a function.

    Args:
        ctx: the command from `wrap_arguments('my command')`, instead of `command`
        command: a command that runs or submits work (required)
        words: its options

    Returns:
        `text`, what the dry run prints, and `jobs`, those of a cluster. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def plan_eval(
    ctx: Arguments | None = None,
    *,
    delta: float,
    runs: str | Sequence[str] = (),
    benchmarks: str | Sequence[str] | None = None,
    power: float = 0.8,
    paired: bool = True,
    seeds: str | Sequence[int] = '1,2,4,8,16',
    accuracy: float | None = None,
    problems: int | None = None,
    prices: str | None = None,
    json: bool = False,
    probe: int = 20,
    model: str | None = None,
    server_type: str | None = None,
    server_address: str | None = None,
    server_gpus: int | None = None,
    with_sandbox: bool = False,
    data_dir: str | Path | None = None,
    output_dir: str | Path = 'results/probe',
) -> list[EvalPlan]:
    """Plan an evaluation: how many problems, and samples of each, it takes to detect a difference between
    two models, and what that costs in tokens, time and money, estimated from existing runs, or from a
    probe of 20 random problems that it runs itself.

    `ns plan_eval` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns plan_eval --help` lists them
        delta: difference to detect, in points (required)
        runs: folder of results to plan from, or two that differ about as much as the models that will
            be compared
        benchmarks: only these, comma separated (default: all); for a probe name[:samples],…, as in ns
            eval
        power: share of comparisons that detect the difference (power) (default 0.8)
        paired: both models answer the same problems; --no_paired: each has its own (default True)
        seeds: samples of each problem to plan for, comma separated (default '1,2,4,8,16')
        accuracy: without a run: expected accuracy in percent
        problems: without a run: how many problems there are
        prices: price of a million tokens of input and of output, INPUT,OUTPUT (default: what past runs
            cost)
        json: print everything as JSON
        probe: number of random problems to ask (default 20)
        model: name or path of the model, as in ns eval
        server_type: as in ns eval
        server_address: address of a running server
        server_gpus: start a server for the model, on this many GPUs
        with_sandbox: run a sandbox for the model's code
        data_dir: folder of prepared data
        output_dir: folder for its results; ns eval with the same folder resumes from it (default
            'results/probe')

    Returns:
        A plan for each benchmark. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def ppo_verl(
    ctx: Arguments | None = None,
    *,
    model: str,
    prompt_data: str,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    container: str | None = None,
    eval_data: str | None = None,
    output_dir: str | Path | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    backend: Literal['fsdp', 'megatron'] | None = None,
    max_length: int | None = None,
    lora_rank: int | None = None,
    ray_template: str | None = None,
    data_format: str | None = None,
    prompt_config: str = 'generic/math',
    loss: Literal['grpo', 'dr_grpo', 'dapo', 'gspo', 'cispo', 'sapo', 'masked'] | None = None,
    entropy_bonus: float = 0.0,
    tools: str | None = None,
    staleness: float | None = None,
    rollout_gpus: int = 1,
    script_module: str = 'verl.trainer.main_ppo',
    verl_config_dir: str | Path | None = None,
    verl_config_name: str | None = None,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    final_ckpt_path: str | Path | None = None,
    convert_last_ckpt_to_hf: bool = True,
    server_model: str | None = None,
    server_address: str | None = None,
    server_type: str | None = None,
    server_gpus: int | None = None,
    server_nodes: int = 1,
    n_servers: int = 1,
    server_args: str = '',
    server_entrypoint: str | None = None,
    server_container: str | None = None,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Train a model with reinforcement learning (PPO, GRPO, …) in verl on a cluster. Rows of {problem,
    expected_answer} are converted to verl's format and rewarded by the math grader of evaluations.
    ++key=value sets verl's own keys.

    `ns verl ppo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns verl ppo --help` lists them
        model: model to start from: a Hugging Face folder or name (required)
        prompt_data: rows in verl's format (Parquet, JSONL), or JSONL of {problem, expected_answer}
            (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        container: container image of the trainer: a name of the cluster config or an image reference
        eval_data: validation rows, in the same format
        output_dir: folder for checkpoints, logs and final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all GPUs of the cluster's nodes)
        backend: training backend that splits the model (default: fsdp; megatron above 20 billion
            parameters)
        max_length: longest sequence in tokens, prompt and answer (default: the model's context, at most
            4096)
        lora_rank: train LoRA pairs of this rank instead of all weights (fsdp); they are merged at the
            end
        ray_template: program that starts Ray around a command, with the arguments of
            newskills.launch.ray_node
        data_format: verl or plain, if the file does not exist yet (default: read from its first line)
        prompt_config: prompt for rows {problem, expected_answer}: the same as in evaluations (default
            'generic/math')
        loss: loss by name, with the values of its paper; ++ keys win (default: the trainer's
            configuration)
        entropy_bonus: weight of the mean entropy of a token, which is rewarded (verl) (default 0.0)
        tools: tools that the model may call: verl's YAML of tools, or a Python file with its functions
        staleness: asynchronous rollouts: largest share of samples that an older model may have made,
            such as 0.1
        rollout_gpus: GPUs of each node that sample, with `staleness`; the others learn (default 1)
        script_module: training module (default 'verl.trainer.main_ppo')
        verl_config_dir: folder with another Hydra configuration
        verl_config_name: name of that configuration
        with_sandbox: run a sandbox beside the trainer
        sandbox_env_overrides: KEY=VALUE settings of the sandbox
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: do not log to Weights & Biases (also the case without WANDB_API_KEY)
        final_ckpt_path: folder for the final model (default: OUTPUT_DIR/final_hf_model)
        convert_last_ckpt_to_hf: convert the last checkpoint to a Hugging Face folder (default True)
        server_model: name or path of the judge
        server_address: address of a running judge
        server_type: engine of the judge: vllm, sglang, trtllm, …
        server_gpus: GPUs per node of each server
        server_nodes: nodes of each server (default 1)
        n_servers: number of independent servers (default 1)
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the servers
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `hf_model` for `model`, `training_data` for `prompt_data`,
    `validation_data` for `eval_data`.

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def prepare_data(
    ctx: Arguments | None = None,
    *,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    benchmarks: str | Benchmark | Group | Sequence[str | Benchmark | Group] = (),
    dataset: str | None = None,
    data_dir: str | Path | None = None,
    split: str | Sequence[str] = (),
    mirror: str | None = None,
    force: bool = False,
    offline: bool | None = None,
    extra_benchmark_map: str | None = None,
    parallelism: int = 20,
    retries: int = 3,
    skip_data_dir_check: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
    **further_options: object,
) -> list[PreparedData]:
    """Download benchmark data, check it, and write it as <data_dir>/<name>/<split>.jsonl with a record of
    where it came from. Needs no other set-up. With `cluster`, a job does it there. Some benchmarks have
    options of their own: ns prepare_data NAME --help shows them.

    `ns prepare_data` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        benchmarks: names or groups of benchmarks; `all` = every benchmark of the catalog; `prompts` =
            official prompts
        dataset: one name (older spelling); also a published training set: openmathinstruct-2, …
        data_dir: folder for <name>/<split>.jsonl (default: NEMO_SKILLS_DATA_DIR, or the user's cache)
        split: only these splits (default: all)
        mirror: folder of an offline mirror (default: NEWSKILLS_MIRROR)
        force: prepare again what is there and unchanged
        offline: never use the network
        extra_benchmark_map: JSON file that maps names to folders with more benchmarks
        parallelism: benchmarks prepared at the same time (default 20)
        retries: retries after a failed download (default 3)
        skip_data_dir_check: accepted for compatibility with NeMo-Skills; data sets of any size go to
            the user's cache
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs of the job
        num_nodes: nodes of the job; the first one prepares (default 1)
        **further_options: options of the benchmarks themselves

    Returns:
        The benchmarks that are prepared, each with its `folder` and `splits`. On a cluster: the
        experiment that was submitted, None where nothing was left to do. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def prepare_training_data(
    ctx: Arguments | None = None,
    *,
    config_name: Literal['math_sft', 'stem_sft', 'agent_sft', 'code_sft', 'math_rl'] = 'math_sft',
    dataset: str | None = None,
    benchmark: str | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    mirror: str | None = None,
    offline: bool | None = None,
    workers: int = 0,
    executor: Literal['none', 'ray'] = 'none',
    dry_run: bool = False,
    decontaminate: str | Sequence[str] = (),
    decontaminate_ngram: int = 5,
    decontaminate_share: float = 0.5,
) -> Card:
    """Build training data: filter generations or a published set, remove duplicates and benchmark problems
    (decontamination), sample, shuffle, and write SFT, conversation or RL rows with a data card that
    says what each step removed. Keys marked code_sft and math_rl belong to these recipes; the defaults
    shown are those of math_sft.

    `ns prepare_training_data` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns prepare_training_data --help` lists
            them
        config_name: recipe: solutions, conversations, what agents did, code, or problems for
            reinforcement learning (default 'math_sft')
        dataset: published training set: downloaded, or read from ++input_files (JSONL, JSON, Parquet,
            also gzipped)
        benchmark: benchmark whose prompt wraps the problems, as in its evaluation (needs ++tokenizer;
            more ++ keys change it)
        split: split of the published set (default: its first split)
        data_dir: folder of prepared data (default: NEMO_SKILLS_DATA_DIR, or the user's cache)
        mirror: folder of an offline mirror (default: NEWSKILLS_MIRROR)
        offline: never use the network
        workers: worker processes; 0 = one per CPU. The result does not depend on it (default 0)
        executor: ray: on the nodes of RAY_ADDRESS, or of this machine, by Ray Data. The result stays
            the same (default 'none')
        dry_run: check everything and show what would be done; run nothing
        decontaminate: benchmarks (or JSONL files with `problem`) whose problems are removed from the
            training data, by shared words (n-grams)
        decontaminate_ngram: words per n-gram (default 5)
        decontaminate_share: share of the shorter text's n-grams that must be in both texts (default
            0.5)

    Returns:
        The data card: `rows_read`, `steps`, `rows_written`, … None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def profile_evaluate(
    ctx: Arguments | None = None,
    *,
    config: str | None = None,
    run: str | None = None,
    batch: str | None = None,
    dry_run: bool = False,
    task: str | Sequence[str] = (),
    force_squash: bool = False,
) -> list[Invocation]:
    """Run a config of NeMo Evaluator's launcher: merge its defaults, resolve it with a profile of
    env.toml, show it, and run its tasks on this machine or on the profile's cluster. key.sub=value
    changes the config. In Python: newskills.profile_evaluate. (To evaluate without such a config, use
    ns eval; that is newskills.evaluate in Python.)

    `ns evaluate` as a function. `ns eval` is another command: `evaluate`.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns evaluate --help` lists them
        config: config: a path, or the name of one in evaluate_configs/ or of one that ships with
            newskills
        run: profile of env.toml: submit there, show the logs, and exit with the exit code of the jobs
        batch: profile of env.toml: submit there, and print the invocation id
        dry_run: check everything and show what would be done; run nothing
        task: run only this task: every task of that name; or name.1 = the second task of the config, if
            its name is `name`
        force_squash: import the container images again

    Returns:
        What was submitted: `id`, and `tasks` with their `state`, `folder` and `scores`. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def push(
    ctx: Arguments | None = None,
    *,
    folder: str | Path,
    to: str,
    results: str | None = None,
    hub_dataset: str | Sequence[str] = (),
    send: bool = False,
    public: bool = False,
    allow_secrets: bool = False,
    message: str = 'Upload with newskills',
) -> Push:
    """Send samples as a data set with a card, the scores of a model, or a model or adapter after training
    to the Hugging Face hub. Without `send` it shows what would be sent. A new repository is private
    unless `public` is given; files with texts that look like secrets are refused. Needs newskills[hf];
    for samples and scores also newskills[analysis].

    `ns push` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        folder: folder of results, of a training, or of a model (required)
        to: hf://datasets/OWNER/NAME: samples as a data set; hf://OWNER/NAME: a model, or the scores of
            a model (required)
        results: with a model: folder of its results, whose scores are sent along
        hub_dataset: what the hub calls a benchmark, for scores: gsm8k=openai/gsm8k:main; repeatable
        send: send it; without this option nothing leaves this machine
        public: make a new repository public, and write to one that is public
        allow_secrets: send although texts look like secrets
        message: message of the commit (default 'Upload with newskills')

    Returns:
        `files`, the paths in the repository; `address`; `commit`, empty where nothing was sent. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def query(
    ctx: Arguments | None = None,
    *,
    sql: str,
    results: str | Sequence[str],
    json: bool = False,
    csv: bool = False,
    rows: int = 50,
    time_limit: float = 60.0,
    memory_limit: int = 2000,
) -> list[dict[str, Any]]:
    """Ask results in SQL (of DuckDB): tables runs, scores, samples and messages of all runs below the
    folders. DESCRIBE samples names the columns. A query only reads, has no access to files or network,
    and is stopped at its limit of time or memory. Needs newskills[analysis].

    `ns query` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        sql: one SELECT over the tables runs, scores, samples and messages, as one quoted word
            (required)
        results: folders of results, at any depth (required)
        json: print all rows as JSON lines
        csv: print all rows as CSV
        rows: how many rows the table has at most (default 50)
        time_limit: seconds that the query may take, once the results are read (default 60.0)
        memory_limit: megabytes that the query may hold; beyond it sorts and joins use the disk (default
            2000)

    Returns:
        All rows of the query, or the first `rows`. `newskills.analysis.query` returns a table of Arrow.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def quickstart(
    ctx: Arguments | None = None,
    *,
    output_dir: str | Path = 'results/quickstart',
    model: str = 'smollm2',
    data_dir: str | Path | None = None,
    share: float = 1.0,
    train: bool = True,
    dry_run: bool = False,
) -> QuickstartOutcome:
    """Train a real 135M model to sort numbers on this machine's CPU: evaluate it, generate data, fine-tune
    (SFT), train with reinforcement learning (GRPO), evaluate again on the same held-out problems, and
    print the comparison with its interval. Needs newskills[local,train]; no GPU, no account.
    --no_train: only evaluate it on two benchmarks with several seeds.

    `ns quickstart` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        output_dir: folder for the results; a run in the same folder resumes where it stopped (default
            'results/quickstart')
        model: smollm2, or the path of another .gguf file (default 'smollm2')
        data_dir: folder of prepared data
        share: share of the usual problems, to evaluate and to train on, and of the training steps; more
            than 1 only with --no_train (default 1.0)
        train: train the model on a skill; --no_train: only evaluate it on two benchmarks, without
            newskills[train] (default True)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `page` (HTML), and `improvement` with its `model`, or `evaluation` where nothing was trained.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def regrade(
    ctx: Arguments | None = None,
    *,
    results_dir: str | Path,
    benchmarks: str | Sequence[str] | None = None,
    grader: str | None = None,
    strict: bool = False,
    lenient: bool = False,
    spread: bool = True,
    output_dir: str | Path | None = None,
    flips: int = 10,
    json: bool = False,
) -> list[Regraded]:
    """Grade finished records again, without any generation: which verdicts change, and how much the score
    depends on the grader (strict, usual and lenient extraction). The records themselves are never
    changed; `output_dir` keeps the new ones. ++key=value sets the grader's options, ++sandbox.key=value
    those of the sandbox.

    `ns regrade` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns regrade --help` lists them
        results_dir: folder of results (required)
        benchmarks: only these, comma separated (default: all)
        grader: grader to use, NAME or NAME@VERSION (default: the grader of the records, in its present
            version)
        strict: an answer counts only in the form that was asked for
        lenient: an answer counts in whatever form it is found
        spread: show the scores of strict, usual and lenient extraction (if the grader has them)
            (default True)
        output_dir: write the records with their new verdicts there (default: show, and keep nothing)
        flips: how many samples with another verdict are listed for each benchmark (default 10)
        json: print everything as JSON, with all samples whose verdict changed

    Returns:
        What changed in each benchmark. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def rehearse(
    ctx: Arguments | None = None,
    *,
    command: str,
    words: str | Sequence[str] = (),
) -> list[RehearsalCheck]:
    """Run the whole pipeline of a command on this machine, with two rows of each input, without scheduler
    and containers, and with a stub in place of the models that the jobs would serve. This tests jobs,
    ports, waiting, merging and summaries. The cluster is only asked three things: does it have what the
    jobs need (variables, mounts, images); does its scheduler accept them (sbatch --test-only:
    partitions, GPUs, limits); does it know the jobs they wait for. Results go to a temporary folder;
    your own commands are not run.

    `ns rehearse` as a function.

    Args:
        ctx: the command from `wrap_arguments('my command')`, instead of `command`
        command: generate, eval or run_cmd (required)
        words: its options

    Returns:
        The checks, each with `what`, `state` and `text`; one that is wrong raises no error. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def report(
    ctx: Arguments | None = None,
    *,
    results_dirs: str | Sequence[str],
    output: str | None = None,
    title: str = 'Evaluation report',
    contamination_file: str | Path | None = None,
    spread: bool = True,
) -> list[Path]:
    """Write a report of results, as one HTML file that needs nothing else and as Markdown: comparisons,
    scores with intervals, grader sensitivity, trainings, settings, prompts, versions, hashes, licences
    of the data, cost, and the command that reproduces it.

    `ns report` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dirs: folders of results; with several, each is compared with the first (required)
        output: where the report goes, without an ending (default: report in the first folder)
        title: heading of the report (default 'Evaluation report')
        contamination_file: what check_contamination wrote about the test problems: adds the score of
            the clean ones
        spread: grade by strict and lenient extraction, too (if the grader has them) (default True)

    Returns:
        The files that were written, HTML first. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def resume(
    ctx: Arguments | None = None,
    *,
    id: str,
    follow: bool = False,
    dry_run: bool = False,
) -> Invocation:
    """Resubmit the jobs of an invocation that failed or were cancelled. They resume where they stopped:
    finished replies are kept.

    `ns resume` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        id: invocation of ns evaluate: its id, the beginning of an id, or ID.INDEX for one job
            (required)
        follow: follow the logs until the jobs have ended, and exit with their exit code
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The invocation, with the `tasks` that were submitted again and their `state`. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def retrieve_similar(
    ctx: Arguments | None = None,
    *,
    retrieve_from: str | Sequence[str],
    compare_to: str | Sequence[str],
    output_file: str | Path,
    retrieve_key: str = 'problem',
    top_k: int = 3,
    model: str | None = None,
    batch_size: int = 32,
    dry_run: bool = False,
) -> SimilarFile:
    """For each problem of one data set, find the most similar problems of another, by shared words (TF-
    IDF) or, with `model`, by meaning (embeddings). A model then decides which are the same: ns generate
    --generation_type=check_contamination.

    `ns retrieve_similar` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        retrieve_from: JSONL files to search for similar problems (separated by commas or blanks)
            (required)
        compare_to: JSONL files with the problems to look up (required)
        output_file: JSONL file to write: problem, similar_items, similarities (required)
        retrieve_key: field that holds the problem, in all files (default 'problem')
        top_k: similar problems to find for each problem (default 3)
        model: sentence-transformers model (name or folder), to compare by meaning; without it: by
            shared words (TF-IDF)
        batch_size: texts per batch of the model (default 32)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `output`, the file, and `problems`, the number of its lines. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def reward_model(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    backend: str = 'cpu',
    data_dir: str | Path | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    training_data: str | None = None,
    input_files: str | Path | Sequence[str | Path] = (),
    benchmark: str | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
) -> TrainingOutcome:
    """Train a reward model, here or as a cluster job: of two replies to one prompt, it gives the preferred
    one the higher score (Bradley–Terry). Pairs come from a file, or from graded outputs. The accuracy
    on held-out pairs is printed with its interval; ns serve_rewards --reward_model serves the model.
    Needs newskills[train,local].

    `ns reward_model` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns reward_model --help` lists them
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (required)
        output_dir: folder for checkpoints and metrics; a run in the same folder resumes where it
            stopped (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        backend: cpu: LoRA, small Llama, Qwen; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        data_dir: folder of prepared data
        eval_benchmark: benchmark to evaluate on during training (++eval.*), with its prompt and grader
        eval_split: split of that benchmark (default 'test')
        allow_overlap: allow training on problems that are also evaluated on
        training_data: JSONL file of {prompt, chosen, rejected}: texts used unchanged, or conversations
        input_files: instead: graded output files of several seeds; correct replies are paired with
            wrong ones
        benchmark: benchmark of `input_files`: its prompt (or ++prompt_config)
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs per node of the job; with `backend`=trl each gets a process (default: none)
        num_nodes: nodes of the job, which train together (`backend`=trl) (default 1)

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out
        problems. On a cluster: the experiment that was submitted, None where nothing was left to do.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def robust_eval(
    ctx: Arguments | None = None,
    *,
    benchmarks: str | Benchmark | Group | Sequence[str | Benchmark | Group],
    settings: Generation | None = None,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | Path | None = None,
    generation_type: Literal['generate', 'majority', 'weighted_vote', 'best_of_n', 'genselect', 'gensynthesis'] | None = None,
    generation_module: str | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    extra_benchmark_map: str | None = None,
    prompt_source: Literal['official', 'newskills'] | None = None,
    auto_summarize_results: bool = True,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    accept_lost: float = 1.0,
    plan_cost: bool = False,
    json: bool = False,
    until: str | None = None,
    prompt_set_config: str = 'robustness/prompt_set_config',
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    batch_api: bool = False,
    num_servers: int = 1,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    num_jobs: int | None = None,
    work_queue: bool = False,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    judge_model: str | Model | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_server_gpus: int | None = None,
    judge_server_nodes: int | None = None,
    judge_server_args: str | None = None,
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
    judge_batch_api: bool = False,
    judge_container: str | None = None,
    judge_type: Literal['llm', 'math_judge', 'comet', 'nvembed', 'arena'] | None = None,
    judge_generation_type: Literal['generate', 'math_judge'] | None = None,
    judge_generation_module: str | None = None,
    judge_step_fn: str | None = None,
    extra_judge_args: str = '',
    judge_pipeline_kwargs: str | dict[str, Any] = '',
    judge_sbatch_kwargs: str | dict[str, Any] = '',
    judge_all: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    summarize_sbatch_kwargs: str | dict[str, Any] = '',
) -> RobustnessSummary:
    """Evaluate a model on benchmarks with many wordings of the prompt, one `ns eval` per wording, and
    print how much the wording changes the scores: mean, spread, sensitivity, consistency. An
    interrupted run resumes where it stopped.

    `ns robust_eval` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns robust_eval --help` lists them
        settings: how answers are generated, such as `Generation(temperature=0.7)`
        benchmarks: name[:samples],… or files (./mine.yaml, ./questions.csv ++columns={question: q});
            samples ≥ 1: that many seeds at temperature 0.7; without samples: greedy (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        single_node_mode: run the units of one process in parallel or one after the other (default
            'parallel')
        output_dir: folder for the results (default: results/<expname>)
        generation_type: how all benchmarks are answered, instead of in their own ways: generate: one
            answer to one request; the others combine several samples into one answer
        generation_module: the same by a solver of your own, module::maker or file.py::maker (without
            ::, its SOLVER), or a NeMo-Skills module by name, nemo_skills.inference.NAME
        data_dir: folder of prepared data
        split: data split to evaluate (default: the benchmark's own)
        extra_benchmark_map: JSON file that maps names to folders with more benchmarks
        prompt_source: wording of prompts that are published: official, newskills (default: official
            where ns prepare_data has downloaded it)
        auto_summarize_results: print tables and write metrics.json after the run (default True)
        metric_type: another metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for the metrics class
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        plan_cost: print tokens, time and cost of what is left (usual, in batches, prompts cached), and
            ask nothing but 20 problems of each benchmark that has no answers yet, and its judge about
            20 answers
        json: with `plan_cost`: print everything as JSON
        until: stop each benchmark early: 'ci<1.0' (score known to ±1.0 points, at 95 %), 'decided vs
            RUN' (better or worse than the results in RUN), 'rows=20' (20 random problems); without it,
            the same command continues
        prompt_set_config: prompts of each benchmark: name of a prompt set, or YAML of benchmark or its
            usual prompt: [{prompt_config, extract_regex}, …] (default 'robustness/prompt_set_config')
        model: name or path of the model (ns generate with `generation_module`: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        batch_api: ask in batches, for half the price and within a day: openai, azureopenai, anthropic,
            gemini; vllm: on this machine, without a server. The same command collects what a stopped
            one has submitted
        num_servers: servers of the model to start; prompts that begin alike go to the same one (default
            1)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one job each (default: 1; on slurm -1)
        work_queue: jobs of `num_jobs` take chunks from a queue instead of a fixed share each
        starting_seed: first seed (default 0)
        num_chunks: split the input into this many chunks
        chunk_ids: only these chunks: 1,2,5 or 0..4
        rerun_done: ignore .done markers and run again
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        judge_model: name or path of the judge model (default: the benchmark's own)
        judge_server_type: server type of the judge, as in `server_type`
        judge_server_address: address of a running judge
        judge_server_gpus: host the judge on this many GPUs per node
        judge_server_nodes: nodes for the judge's server
        judge_server_args: more arguments for the judge's engine, passed on unchanged
        judge_server_entrypoint: another start command for the judge's engine
        judge_server_container: container image of the judge's server (clusters)
        judge_batch_api: ask the judge in batches, as `batch_api` does the model
        judge_container: container image of the judge's client (clusters)
        judge_type: llm: one question per answer; math_judge: the same, but no question where the
            answers are equal as text; comet, nvembed: a trained model instead of questions
            (translation; multiple choice); arena: pairwise comparison
        judge_generation_type: older form of `judge_type`
        judge_generation_module: your own judge: FILE.py or MODULE, with SOLVER or ::MAKER
        judge_step_fn: your own function, FILE.py::NAME: takes records, returns a text with a verdict
            for each
        extra_judge_args: ++ options for the judge, as one text
        judge_pipeline_kwargs: JSON of options for the judge's jobs: model, server_*, partition,
            num_jobs, …
        judge_sbatch_kwargs: JSON of sbatch settings for the judge's jobs
        judge_all: also judge benchmarks that need no judge
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        summarize_sbatch_kwargs: JSON of sbatch settings for the summary job

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        The spread of the scores over the prompts, for each benchmark. On a cluster: the experiment that
        was submitted, None where nothing was left to do. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def run_cmd(
    ctx: Arguments | None = None,
    *,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    words: str | Sequence[str] = (),
    command: str | None = None,
    container: str = 'nemo-skills',
    num_gpus: int | None = None,
    num_nodes: int = 1,
    num_tasks: int = 1,
    get_random_port: bool = False,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Run your own command as a job: here in the foreground, on a cluster in the queue. If you ask for
    them, a model server (`model`, `server_type`, `server_gpus`) and a sandbox (`with_sandbox`) run
    beside it; the command finds them in NEMO_SKILLS_SERVER_ADDRESS, NEMO_SKILLS_OPENAI_BASE_URL,
    NEMO_SKILLS_OPENAI_MODEL, NEMO_SKILLS_SANDBOX_HOST and NEMO_SKILLS_SANDBOX_PORT.

    `ns run_cmd` as a function.

    Args:
        ctx: the command from `wrap_arguments('my command')`, instead of `command`
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        words: the command, after all options: word by word, or one quoted text for bash
        command: the command as one text for bash (also --cmd)
        container: container to run it in (default 'nemo-skills')
        num_gpus: GPUs per node (default: those of the server)
        num_nodes: nodes; the command runs on each of them (default 1)
        num_tasks: processes of the command per node (default 1)
        get_random_port: use any free port for the server (the default)
        model: name or path of the model (ns generate with --generation_module: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `cmd` for `command`.

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def samples(
    ctx: Arguments | None = None,
    *,
    results_dir: str | Path,
    benchmarks: str | Sequence[str] | None = None,
    outcome: Literal['correct', 'wrong', 'no_answer', 'unscored'] | None = None,
    cause: Literal['model', 'truncation', 'provider', 'context', 'content_filter', 'sandbox', 'environment', 'tool', 'judge', 'timeout', 'grader', 'harness', 'data'] | None = None,
    seed: int | None = None,
    subset: str | None = None,
    id: str | None = None,
    search: str | None = None,
    where: str | None = None,
    number: int = 5,
    full: bool = False,
    json: bool = False,
) -> list[SelectedSample]:
    """Read samples of a run in the terminal: the question, the reply, the expected and the extracted
    answer, and why the grader decided so. Shown in a pager on a terminal; control characters in a text
    are shown as escapes.

    `ns samples` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dir: folder of results (required)
        benchmarks: only these, comma separated (default: all)
        outcome: only samples with this outcome
        cause: only wrong or unscored samples with this cause
        seed: only samples of this seed
        subset: only samples of this subset of the benchmark
        id: only the samples of this problem
        search: only samples with this text in the question, the reply or an answer
        where: only samples for which this filter holds: 'outcome = wrong and tokens > 2000'
        number: how many samples are shown at most (default 5)
        full: show long texts to their end
        json: print the records as JSON lines

    Returns:
        The samples that fit, `number` at most. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def scan(
    ctx: Arguments | None = None,
    *,
    results_dir: str | Path,
    dry_run: bool = False,
    scanners: str | Sequence[str] = (),
    benchmarks: str | Sequence[str] | None = None,
    labels: str | None = None,
    time_limit: float = 10.0,
    json: bool = False,
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
) -> Scan:
    """Ask questions of all transcripts: by rule (refusals, loops, ignored errors of tools, …), or by a
    model, as a YAML file says. Labels and quotes are kept beside the records: ns view and ns samples
    --where know them. A quote that does not stand in the transcript makes the result invalid.

    `ns scan` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns scan --help` lists them
        results_dir: folder of results (required)
        dry_run: check everything and show what would be done; run nothing
        scanners: refusal, loop, language_switch, truncated, empty_tool_output, tool_error_ignored,
            special_cased_tests, reads_gold, answer_in_prompt, not_extracted, format_lost,
            FILE.py::FUNCTION, or FILE.yaml with a question to `model` (default: all by rule)
        benchmarks: only these, comma separated (default: all)
        labels: file of labelled samples (JSONL: id, label): adds precision, recall and kappa
        time_limit: seconds of CPU that a scanner by rule has for one sample (default 10.0)
        json: print the results as JSON
        model: model that reads transcripts; of several, all must agree
        server_type: openai, vllm, llamacpp, … (one, or one for each model)
        server_address: address of a running server (one, or one for each model)
        server_gpus: start a server for the model, on this many GPUs
        server_args: more arguments for a started server, passed on unchanged
        server_timeout: seconds to wait for a started server (default 1800.0)

    Returns:
        `results`, one for each scanner and benchmark; `agreement` with labelled samples; `notes`. None
        with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_evals(
    ctx: Arguments | None = None,
    *,
    host: str = '127.0.0.1',
    port: int = 9050,
    output_root: str = './skills-eval-output',
    openai_model_name: str = 'slime-openai-model',
    max_concurrent_requests: int = 512,
    attach_seconds: float = 300.0,
    token_env: str = 'NEWSKILLS_EVALS_TOKEN',
    token_file: str | Path | None = None,
    open: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    data_dir: str | Path | None = None,
    eval_args: str = '',
    dry_run: bool = False,
    judge_model: str | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_api_key_env_var: str | None = None,
    extra_judge_args: str = '',
) -> EndedService:
    """Evaluate models during training: slime and similar trainers POST /evaluate, the benchmarks of a
    request run in parallel against the trainer's router, and the metrics are returned. A repeated
    request joins the job that already runs.

    `ns serve_evals` as a function. The call lasts as long as the server, until Ctrl-C.

    Args:
        ctx: nothing: this function has no `++` keys
        host: address to listen on; 0.0.0.0 = all of this machine (default '127.0.0.1')
        port: port to listen on; 0 = a free one (default 9050)
        output_root: folder for the results; each request gets a folder in it (default './skills-eval-
            output')
        openai_model_name: model name in the requests to the trainer's router (default 'slime-openai-
            model')
        max_concurrent_requests: requests in flight, over all benchmarks and all trainers (default 512)
        attach_seconds: seconds after a client has left during which the same request joins the same job
            instead of starting a new one (default 300.0)
        token_env: environment variable with the token that clients must send, if it is set (default
            'NEWSKILLS_EVALS_TOKEN')
        token_file: file with the token that clients must send
        open: accept clients from other machines although no token is set
        cluster: cluster config to run the evaluations on; none = this process
        config_dir: folder of cluster configs
        data_dir: folder of prepared data
        eval_args: extra arguments for each ns eval, as one text: ++max_samples=50
        dry_run: check everything and show what would be done; run nothing
        judge_model: name of the judge (default: the benchmark's own)
        judge_server_type: server type of the judge (default with an address: openai, which most servers
            speak)
        judge_server_address: address of the judge, with or without /v1
        judge_api_key_env_var: environment variable with the judge's API key
        extra_judge_args: ++ options for the judge, as one text

    Returns:
        The service that was stopped: its `address`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_gateway(
    ctx: Arguments | None = None,
    *,
    output_dir: str | Path = 'gateway',
    host: str = '127.0.0.1',
    port: int = 9080,
    socket: str | None = None,
    token_env: str = 'NEWSKILLS_GATEWAY_TOKEN',
    token_file: str | Path | None = None,
    open: bool = False,
    logprobs: bool = False,
    whole_replies: bool = False,
    dry_run: bool = False,
    model: str | None = None,
    server_type: str | None = None,
    server_address: str | None = None,
    server_gpus: int | None = None,
    server_args: str = '',
    server_timeout: float = 1800.0,
    max_requests: int = 0,
    max_tokens: int = 0,
    max_cost: float = 0.0,
    max_seconds: float = 0.0,
) -> EndedService:
    """Put any program before any model, and record what it does: the gateway speaks OpenAI Chat
    Completions and Responses, Anthropic Messages and Gemini generateContent, streamed or not, so that
    Claude Code or Codex work with a model that only chats. What is set by ++inference.* holds whatever
    programs say. ns view and ns samples show the records.

    `ns gateway` as a function. The call lasts as long as the server, until Ctrl-C.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns gateway --help` lists them
        output_dir: folder for the records; an earlier gateway's are continued (default 'gateway')
        host: address to listen on; 0.0.0.0 = all of this machine (default '127.0.0.1')
        port: port to listen on; 0 = a free one (default 9080)
        socket: also listen at this unix socket, for containers without a network
        token_env: environment variable with the token that clients must send, if it is set (default
            'NEWSKILLS_GATEWAY_TOKEN')
        token_file: file with the token that clients must send
        open: accept clients from other machines although no token is set
        logprobs: also record token ids and log-probabilities, where the server gives them, to train on
        whole_replies: ask for whole replies: programs that stream wait, and a failure in the middle is
            tried again
        dry_run: check everything and show what would be done; run nothing
        model: name or path of the model
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: address of a running server, with or without /v1 (default: one is started, where
            that is possible)
        server_gpus: start a server for the model, on this many GPUs
        server_args: more arguments for the engine, passed on unchanged
        server_timeout: seconds to wait for a started server (default 1800.0)
        max_requests: requests; 0 = no limit (default 0)
        max_tokens: generated tokens; 0 = no limit (default 0)
        max_cost: cost, by ++server.price_per_million_*_tokens and in their currency; 0 = no limit
            (default 0.0)
        max_seconds: seconds from the first request; 0 = no limit (default 0.0)

    Returns:
        The service that was stopped: its `address`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_gym(
    ctx: Arguments | None = None,
    *,
    benchmark: str | None = None,
    grader: str | None = None,
    folder: str | Path | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    host: str = '127.0.0.1',
    port: int = 9070,
    gym_address: bool = False,
    max_concurrent: int = 64,
    workers: int = 0,
    open: bool = False,
    dry_run: bool = False,
) -> EndedService:
    """Serve a benchmark or a grader as a resources server of NeMo Gym, so that gym eval run, NeMo-RL and
    verl use it. `folder` writes the folder that Gym starts it from, with the benchmark's rows. An
    answer that could not be graded is masked; it never gets reward 0.

    `ns serve_gym` as a function. The call lasts as long as the server, until Ctrl-C.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns serve_gym --help` lists them
        benchmark: benchmark whose rows are asked and whose grader gives the reward
        grader: grader for rows of your own, by name; settings: ++eval_config.KEY
        folder: write the server as a folder of NeMo Gym, FOLDER/resources_servers/NAME, instead of
            serving
        split: rows to write with `folder` (default: the benchmark's own)
        data_dir: folder of prepared data
        host: address to listen on; 0.0.0.0 = all of this machine (default '127.0.0.1')
        port: port to listen on; 0 = a free one (default 9070)
        gym_address: listen where NeMo Gym says, as the folder's app.py does
        max_concurrent: answers at once for a grader that runs code (default 64)
        workers: worker processes for a grader that computes; 0 = one per CPU of this process (default
            0)
        open: accept clients from other machines although no token is set
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The service that was stopped: its `address`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_rewards(
    ctx: Arguments | None = None,
    *,
    benchmark: str | None = None,
    grader: str | None = None,
    reward_model: str | None = None,
    data_dir: str | Path | None = None,
    host: str = '127.0.0.1',
    port: int = 9060,
    max_waiting: int = 16384,
    max_concurrent: int = 64,
    workers: int = 0,
    tokenizer: str | None = None,
    token_env: str = 'NEWSKILLS_REWARDS_TOKEN',
    token_file: str | Path | None = None,
    open: bool = False,
    dry_run: bool = False,
) -> EndedService:
    """Compute rewards for the samples of any trainer over HTTP, with the same graders as evaluation or
    with a reward model of ns reward_model. It answers newskills batches (/v1/rewards), OpenRLHF
    (/get_reward) and slime (/slime). A sample that could not be graded never gets reward 0.

    `ns serve_rewards` as a function. The call lasts as long as the server, until Ctrl-C.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns serve_rewards --help` lists them
        benchmark: benchmark whose grader gives the reward, with the benchmark's settings
        grader: grader, by name; settings: ++eval_config.KEY
        reward_model: folder of a reward model of ns reward_model, instead of a grader; `benchmark` then
            gives the prompt
        data_dir: folder of prepared data, for graders that read files in it
        host: address to listen on; 0.0.0.0 = all of this machine (default '127.0.0.1')
        port: port to listen on; 0 = a free one (default 9060)
        max_waiting: samples in the server at once; above that, clients get status 429 (default 16384)
        max_concurrent: samples at once for a grader that runs code (default 64)
        workers: worker processes for a grader that computes; 0 = one per CPU of this process (default
            0)
        tokenizer: tokenizer that counts tokens, if the reward needs them and clients do not send them
        token_env: environment variable with the token that clients must send, if it is set (default
            'NEWSKILLS_REWARDS_TOKEN')
        token_file: file with the token that clients must send
        open: accept clients from other machines although no token is set
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The service that was stopped: its `address`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_sandbox(
    ctx: Arguments | None = None,
    *,
    action: Literal['serve', 'doctor'],
    dry_run: bool = False,
    token_file: str | Path | None = None,
    open: bool = False,
    host: str = '127.0.0.1',
    port: int | None = None,
    token_env: str = 'NEWSKILLS_SANDBOX_TOKEN',
    max_sessions: int = 1000,
    session_timeout: float = 0.0,
    concurrency: int = 0,
    max_timeout: float = 600.0,
    sandbox: Literal['auto', 'a', 'b', 'none'] = 'auto',
    network: bool = False,
    python: str = '',
    preload: str | Sequence[str] = ('numpy', 'sympy'),
    packages: str | Sequence[str] | None = None,
    data_dir: str | Path = '',
    memory_mb: int = 2048,
    disk_mb: int = 256,
    files: int = 8192,
    processes: int = 64,
) -> SandboxService:
    """Run model-generated code in isolation: `serve` answers POST /execute until Ctrl-C, `doctor` shows
    what isolates code on this machine.

    `ns sandbox` as a function. The server runs beside your program; the function returns as soon as it
    answers.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns sandbox --help` lists them
        action: serve: run the server until Ctrl-C; doctor: show what isolates code on this machine
            (required)
        dry_run: check everything and show what would be done; run nothing
        token_file: file with the token that clients must send
        open: accept clients from other machines although no token is set
        host: address to listen on (default '127.0.0.1')
        port: port to listen on; 0 = a free one (default: NEMO_SKILLS_SANDBOX_PORT, or 6000)
        token_env: environment variable with the token that clients must send, if it is set (default
            'NEWSKILLS_SANDBOX_TOKEN')
        max_sessions: largest number of open sessions (default 1000)
        session_timeout: idle seconds after which a session ends; 0 = never (default 0.0)
        concurrency: cells that run at once; 0 = two per core, plus more while those sleep (default 0)
        max_timeout: largest timeout that a request may ask for, in seconds (default 600.0)
        sandbox: isolation; auto: the strongest that this machine offers; none: no isolation, at your
            own risk (default 'auto')
        network: let the code use the network
        python: interpreter whose packages the code may use (default: this one)
        preload: modules imported once and shared by all sessions (default ('numpy', 'sympy'))
        packages: Python packages that the code may import, with their dependencies (default: all)
        data_dir: folder that the code can read, at /data
        memory_mb: memory limit of a session (default 2048)
        disk_mb: disk limit of a session (default 256)
        files: limit on the number of files of a session (default 8192)
        processes: limit on processes and threads of a session (default 64)

    Returns:
        `isolation_level` and `missing` packages; after `serve` an `address`, which answers until
        `close()`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_tinker(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    model_name: str | None = None,
    host: str = '127.0.0.1',
    port: int = 9070,
    dtype: str = 'auto',
    threads: int = 0,
    token_env: str = 'NEWSKILLS_TINKER_TOKEN',
    token_file: str | Path | None = None,
    open: bool = False,
    dry_run: bool = False,
) -> EndedService:
    """Serve the Tinker API on this machine: the public `tinker` client trains and samples small Llama
    models on a CPU (LoRA), without costs or an account. Saved states survive a restart. Needs
    newskills[train] and protobuf.

    `ns serve_tinker` as a function. The call lasts as long as the server, until Ctrl-C.

    Args:
        ctx: nothing: this function has no `++` keys
        model: Hugging Face folder, .gguf file, or smollm2; several separated by commas (required)
        output_dir: folder for the states that clients save; another service on the same folder has the
            same states (required)
        model_name: names of the models for clients, separated by commas (default: names of their
            folders)
        host: address to listen on (default '127.0.0.1')
        port: port to listen on; 0 = a free one (default 9070)
        dtype: number format of the frozen weights: auto, bfloat16, float32 (default 'auto')
        threads: threads of the trainer; 0 = one per core (default 0)
        token_env: environment variable with the key that clients must send, if it is set (default
            'NEWSKILLS_TINKER_TOKEN')
        token_file: file with the token that clients must send
        open: accept clients from other machines although no token is set
        dry_run: check everything and show what would be done; run nothing

    Returns:
        The service that was stopped: its `address`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def serve_view(
    ctx: Arguments | None = None,
    *,
    folders: str | Path | Sequence[str | Path] = (),
    export: str | None = None,
    export_samples: int = 1000,
    port: int = 0,
    host: str = '127.0.0.1',
    new_token: bool = False,
    open: bool = False,
    dry_run: bool = False,
) -> RunningService:
    """Look at results in a browser: scores with intervals, samples with filters and search, why the grader
    decided so, comparisons of runs, trainings, jobs. Read-only, for this machine, behind a random
    token; it follows runs that are still writing. Needs newskills[view].

    `ns view` as a function. The server runs beside your program; the function returns as soon as it
    answers.

    Args:
        ctx: nothing: this function has no `++` keys
        folders: folders with results or trainings, at any depth (default: this one)
        export: write a folder that opens from a file, without this program, instead of serving
        export_samples: samples of each benchmark and run that an export holds; the page says what is
            left out (default 1000)
        port: port to listen on; 0 = any free port (default 0)
        host: address to listen on; with any other than this machine's own, everybody who knows the
            token gets in (default '127.0.0.1')
        new_token: make a new token for the address: earlier addresses and bookmarks stop working
        open: also open the page in this machine's browser
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `address` of the page, which is served until `close()`; of an export the address of its file.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def setup(
    ctx: Arguments | None = None,
    *,
    non_interactive: bool = False,
    test: bool = True,
    dry_run: bool = False,
    pull_images: bool = False,
    executor: Literal['none', 'local', 'slurm', 'ray'] | None = None,
    name: str | None = None,
    config_dir: str | Path | None = None,
    overwrite: bool = False,
    ssh_host: str | None = None,
    ssh_user: str | None = None,
    ssh_identity: str | None = None,
    ssh_port: int | None = None,
    account: str | None = None,
    partition: str | None = None,
    cpu_partition: str | None = None,
    qos: str | None = None,
    time_limit: str | None = None,
    ray_address: str | None = None,
    job_dir: str | Path | None = None,
    engine: Literal['podman', 'docker'] | None = None,
    containers: str | Sequence[str] = (),
    mounts: str | Sequence[str] = (),
    hf_home: str | None = None,
    env_vars: str | Sequence[str] = (),
) -> Path:
    """Describe a cluster: asks questions, writes <config_dir>/<name>.yaml, and tests it. Each answer can
    also be given as an option.

    `ns setup` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        non_interactive: ask nothing: use options and defaults
        test: test the cluster after writing: ssh, sbatch or container engine, folders (default True)
        dry_run: ask, check and show the file; write and test nothing
        pull_images: pull the images now (executor local)
        executor: none: processes of this machine; local: containers of this machine; slurm; ray
        name: name of the cluster, for --cluster (default: the executor)
        config_dir: folder for the file (default: NEMO_SKILLS_CONFIG_DIR, or ./cluster_configs)
        overwrite: replace an existing file of that name
        ssh_host: machine to submit from, or a Host of ~/.ssh/config (default: this machine)
        ssh_user: user name there (default: as in ~/.ssh/config)
        ssh_identity: key file (default: as in ~/.ssh/config)
        ssh_port: port there (default: as in ~/.ssh/config)
        account: account to charge
        partition: partition (default: the cluster's default)
        cpu_partition: partition for jobs without GPUs
        qos: quality of service
        time_limit: time limit in that partition, HH:MM:SS or D-HH:MM:SS
        ray_address: address of Ray's dashboard, http://HOST:8265
        job_dir: folder for jobs, on a shared filesystem
        engine: container engine (default: the one installed)
        containers: NAME=IMAGE: nemo-skills, vllm, sglang, sandbox, …
        mounts: src:dst[:ro|rw]
        hf_home: folder of the Hugging Face cache, as jobs see it
        env_vars: NAME (copied from your shell) or NAME=value

    Returns:
        The config that was written. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def sft(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str | Path,
    training_data: str,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    backend: str = 'cpu',
    data_dir: str | Path | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
    num_gpus: int | None = None,
    num_nodes: int = 1,
) -> TrainingOutcome:
    """Fine-tune a small model (SFT; LoRA on a CPU), here or as a cluster job. A killed or stopped run
    resumes with the same command and reaches the same numbers. Needs newskills[train,local].

    `ns sft` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns sft --help` lists them
        model: Hugging Face folder or hub name, .gguf file, or smollm2 (required)
        output_dir: folder for checkpoints and metrics; a run in the same folder resumes where it
            stopped (required)
        training_data: file of {messages}, {conversations}, {prompt, completion}, {instruction, output},
            {input, output} (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        backend: cpu: LoRA, small Llama, Qwen; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        data_dir: folder of prepared data
        eval_benchmark: benchmark to evaluate on during training (++eval.*), with its prompt and grader
        eval_split: split of that benchmark (default 'test')
        allow_overlap: allow training on problems that are also evaluated on
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox
        num_gpus: GPUs per node of the job; with `backend`=trl each gets a process (default: none)
        num_nodes: nodes of the job, which train together (`backend`=trl) (default 1)

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        `model` (its folder), `output_dir`, `steps`, `metrics` of the last step, `verdict` on held-out
        problems. On a cluster: the experiment that was submitted, None where nothing was left to do.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def sft_nemo_rl(
    ctx: Arguments | None = None,
    *,
    model: str,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    container: str | None = None,
    training_data: str | None = None,
    validation_data: str | None = None,
    output_dir: str | Path | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    backend: Literal['fsdp', 'megatron'] | None = None,
    max_length: int | None = None,
    lora_rank: int | None = None,
    ray_template: str | None = None,
    data_format: str | None = None,
    config: str | None = None,
    nemo_rl_path: str | Path = '/opt/nemo-rl',
    profile_step_range: str | None = None,
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    final_hf_path: str | Path | None = None,
    conversion_step: str = 'last',
    average_steps: str | Sequence[int] | None = None,
    remove_checkpoints_after_average: bool = False,
    run_conversion_only: bool = False,
    max_position_embeddings: int | None = None,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Fine-tune with NVIDIA's NeMo-RL on a cluster: writes its configuration, starts Ray on the nodes,
    trains, and converts the last checkpoint to a Hugging Face folder. ++key=value sets NeMo-RL's own
    keys.

    `ns nemo_rl sft` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns nemo_rl sft --help` lists them
        model: model to start from: a Hugging Face folder or name (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        container: container image of the trainer: a name of the cluster config or an image reference
        training_data: JSONL file to train on
        validation_data: JSONL file of the same format to validate on
        output_dir: folder for checkpoints, logs and final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all GPUs of the cluster's nodes)
        backend: training backend that splits the model (default: fsdp; megatron above 20 billion
            parameters)
        max_length: longest sequence in tokens, prompt and answer (default: the model's context, at most
            4096)
        lora_rank: train LoRA pairs of this rank instead of all weights (fsdp); they are merged at the
            end
        ray_template: program that starts Ray around a command, with the arguments of
            newskills.launch.ray_node
        data_format: format of the rows, if the file does not exist yet (default: read from its first
            line)
        config: another NeMo-RL YAML to start from
        nemo_rl_path: folder of NeMo-RL in the container (default '/opt/nemo-rl')
        profile_step_range: steps A:B to profile with nsys, from 1, B excluded
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: do not log to Weights & Biases (also the case without WANDB_API_KEY)
        final_hf_path: folder for the final model (default: OUTPUT_DIR/final_hf_model)
        conversion_step: step that becomes the final model: last, or a number (default 'last')
        average_steps: steps to average into the final model, comma separated
        remove_checkpoints_after_average: remove the checkpoints of these steps after averaging
        run_conversion_only: no training: only convert the checkpoints to the final model
        max_position_embeddings: value to write into the model's config.json
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def start_server(
    ctx: Arguments | None = None,
    *,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    port: int = 0,
    get_random_port: bool = False,
    host: str | None = None,
    create_tunnel: bool = False,
    server_tunnel_port: int = 5000,
    sandbox_tunnel_port: int = 6000,
    launch_chat_interface: bool = False,
    extra_chat_args: str = '',
    model: str | Model | Sequence[str | Model] = (),
    server_type: str | Sequence[str] = (),
    server_address: str | Sequence[str] = (),
    server_gpus: int | Sequence[int] = (),
    server_nodes: int | Sequence[int] = (),
    server_args: str | Sequence[str] = (),
    server_entrypoint: str | Sequence[str] = (),
    server_container: str | Sequence[str] = (),
    server_timeout: float = 1800.0,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> EndedServer:
    """Serve a model in the foreground: prints its address once it answers, then its log; Ctrl-C stops
    everything that was started.

    `ns start_server` as a function. The call lasts as long as the server, until Ctrl-C.

    Args:
        ctx: nothing: this function has no `++` keys
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        port: port to serve on; 0 = any free port (default 0)
        get_random_port: use any free port (the default)
        host: network interface to listen on (default: llamacpp: this machine only; GPU engines: all)
        create_tunnel: open an ssh tunnel from this machine to the server on the cluster
        server_tunnel_port: local port of the tunnel to the server (default 5000)
        sandbox_tunnel_port: local port of the tunnel to the sandbox (default 6000)
        launch_chat_interface: also serve a page to chat with the model in the browser, at
            http://127.0.0.1:7860
        extra_chat_args: settings of the chat page: ++port, ++host, ++system_message, ++temperature,
            ++top_p, ++tokens_to_generate
        model: name or path of the model (ns generate with --generation_module: of several models)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, transformers, gemini, anthropic,
            …
        server_address: address of a running server, with or without /v1
        server_gpus: start a server for the model, on this many GPUs per node
        server_nodes: nodes per model
        server_args: more arguments for the engine, passed on unchanged
        server_entrypoint: another start command for the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds to wait for a started server (default 1800.0)
        with_sandbox: run a sandbox for the model's code beside the work (or use the one at
            ++sandbox.host)
        sandbox_env_overrides: KEY=VALUE settings of the sandbox (NEMO_SKILLS_SANDBOX_…)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        The server that has ended: its `model`, `address` and `log_file`. On a cluster: the experiment
        that was submitted, None where nothing was left to do. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def status(
    ctx: Arguments | None = None,
    *,
    name: str | Experiment | None = None,
    job: str | None = None,
    all: bool = False,
    json: bool = False,
    last: int = 10,
) -> list[JobState]:
    """Show the state of submitted jobs: state, exit code, seconds, and the folder of their logs.

    `ns status` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        name: experiment: its name (the latest one of that name), the beginning of a name, or
            NAME/STAMP; without a name: the latest experiments. Or an invocation of ns evaluate: its id,
            the beginning of an id, or ID.INDEX; or the output folder of a run that asks in batches
        job: only this job
        all: show all jobs; without it: one screen, failed jobs first
        json: for an invocation: print JSON as nemo-evaluator-launcher status `json` does; for batches:
            their records
        last: number of experiments to show if no name is given (default 10)

    Returns:
        Each job with its `state`, `exit_code` and whether it has `ended`. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def summarize_results(
    ctx: Arguments | None = None,
    *,
    results_dir: str | Path,
    benchmarks: str | Sequence[str] | None = None,
    max_samples: int = -1,
    max_seq_len: int | None = None,
    errors_as: Literal['unscored', 'incorrect'] = 'unscored',
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    save_metrics_path: str | Path | None = None,
    accept_lost: float = 1.0,
    verbose: bool = True,
    group: str | Sequence[str] | None = None,
    debug: bool = False,
    dry_run: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    remote_tar_dir: str | Path | None = None,
) -> Summary:
    """Print the tables of a results folder and write metrics.json: pass@k, averages, majority@k,
    intervals. Reads results of earlier runs and of NeMo-Skills; generates nothing. If `cluster` is
    reached by ssh, the records are copied here, and metrics.json is written on the cluster.

    `ns summarize_results` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dir: folder of an evaluation, of one benchmark, or of several evaluations (required)
        benchmarks: only these benchmarks, comma separated (default: all in the folder)
        max_samples: only the first n problems; -1 = all (default -1)
        max_seq_len: generations with more tokens than this count as wrong
        errors_as: what samples without a verdict are (failed requests, judges, graders): left out, or
            incorrect (default 'unscored')
        metric_type: another metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for the metrics class
        save_metrics_path: file for the metrics, on this machine (default: RESULTS_DIR/metrics.json)
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        verbose: print the tables (default True)
        group: files or folders of your own benchmark groups to score, comma separated; groups of
            newskills are known by name
        debug: also show which files were read, and which metric was used
        dry_run: check everything and show what would be done; run nothing
        wandb_name: log the metrics under this run name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        remote_tar_dir: accepted for compatibility with NeMo-Skills; records are copied by rsync,
            without an archive

    Returns:
        `reports`, `notes`, and `path`, where metrics.json is. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def summarize_robustness(
    ctx: Arguments | None = None,
    *,
    results_dir: str | Path,
    save_metrics_path: str | Path | None = None,
    accept_lost: float = 1.0,
    verbose: bool = True,
    debug: bool = False,
    dry_run: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    remote_tar_dir: str | Path | None = None,
) -> RobustnessSummary:
    """Print how much the prompts of ns robust_eval change the scores, over all prompts and for each
    prompt: min, max, mean, standard deviation, sensitivity, consistency, missing answers. Generates
    nothing.

    `ns summarize_robustness` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dir: results folder of ns robust_eval (required)
        save_metrics_path: file for the numbers, on this machine (default:
            RESULTS_DIR/summarize_robustness/metrics.json)
        accept_lost: largest percentage of samples that may be unscored (failed requests, judges or
            graders) before the command fails (default 1.0)
        verbose: print the tables (default True)
        debug: also show which files were read
        dry_run: check everything and show what would be done; run nothing
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        data_dir: accepted for compatibility with NeMo-Skills; no data is read
        remote_tar_dir: accepted for compatibility with NeMo-Skills; records are copied by rsync,
            without an archive

    Returns:
        The spread of the scores over the prompts, for each benchmark. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def swe_bench(
    ctx: Arguments | None = None,
    *,
    action: Literal['export', 'grade', 'report'],
    input_file: str | Path,
    output_file: str | Path | None = None,
    reports: str | None = None,
    model_name: str = 'newskills',
    benchmark: str = 'swe-bench',
    data_dir: str | Path | None = None,
    engine: Literal['auto', 'podman', 'docker', 'apptainer', 'singularity', 'enroot', 'harness'] = 'auto',
    container_formatter: str = '',
    workers: int = 4,
    timeout: int = 1800,
    dry_run: bool = False,
) -> SweBenchFile:
    """Grade patches as SWE-bench does: run the tests in containers and read their logs by the package
    swebench, or export predictions for its harness and read its verdicts. An instance that could not be
    judged is unscored, never wrong.

    `ns swe_bench` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        action: export: write the patches as the SWE-bench harness reads them; grade: run the tests;
            report: add the verdicts of a finished harness run to the records (required)
        input_file: JSONL records with patches (required)
        output_file: file to write: predictions (export), otherwise records with verdicts, such as eval-
            results/swe-bench/output.jsonl
        reports: report: folder of the harness run (logs/run_evaluation/<run>), or the report of that
            run
        model_name: model name to write into the predictions (default 'newskills')
        benchmark: grade: benchmark whose prepared rows hold the tests (default 'swe-bench')
        data_dir: folder of prepared data
        engine: grade: program that runs the containers of the tests; harness: export, run the harness
            itself, which needs a docker daemon, report (default 'auto')
        container_formatter: grade: where the images are, with fields of the row in braces:
            /images/{instance_id}.sif
        workers: grade: containers to run at once (default 4)
        timeout: grade: time limit in seconds for the tests of one instance (default 1800)
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `output`, its number of `records`, how many are `without_patch`, the `ledger` of the verdicts.
        None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def tinker_rl(
    ctx: Arguments | None = None,
    *,
    data_dir: str | Path | None = None,
    dry_run: bool = False,
) -> ServiceTraining:
    """Train a model with reinforcement learning at a Tinker service (TINKER_BASE_URL, TINKER_API_KEY),
    with rewards from the math grader. Options are key=value. A killed run resumes with the same
    command. Needs newskills[tinker].

    `ns tinker rl` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns tinker rl --help` lists them
        data_dir: folder of prepared data
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `sampler_path` and `state_path` at the service, `metrics` of the last step, `checkpoints` (a
        file). None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def tinker_sft(
    ctx: Arguments | None = None,
    *,
    data_dir: str | Path | None = None,
    dry_run: bool = False,
) -> ServiceTraining:
    """Fine-tune a model at a Tinker service (TINKER_BASE_URL, TINKER_API_KEY) on solutions: chains of
    thought, with or without code. Options are key=value. A killed run resumes with the same command.
    Needs newskills[tinker].

    `ns tinker sft` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns tinker sft --help` lists them
        data_dir: folder of prepared data
        dry_run: check everything and show what would be done; run nothing

    Returns:
        `sampler_path` and `state_path` at the service, `metrics` of the last step, `checkpoints` (a
        file). None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def train_megatron_lm(
    ctx: Arguments | None = None,
    *,
    megatron_model: str,
    tokenizer_model: str,
    per_split_data_path: str | Path,
    expname: str | None = None,
    log_dir: str | Path | None = None,
    dry_run: bool = False,
    container: str | None = None,
    arguments: str | Sequence[str] = (),
    output_dir: str | Path | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    entrypoint: str = 'pretrain_gpt.py',
    init_cmd: str | None = None,
    megatron_path: str | Path | None = None,
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | Path | None = None,
    mount_paths: str | Sequence[str] | None = None,
    show_scripts: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    time_min: str | None = None,
    sbatch_kwargs: str | dict[str, Any] = '',
    exclusive: bool | None = None,
    check_mounted_paths: bool = False,
    run_after: str | Experiment | Sequence[str | Experiment | None] | None = (),
    allow_uncommitted: bool = False,
    allow_missing_dependency: bool = False,
    dependent_jobs: int = 0,
    reuse_code: bool = True,
    reuse_code_exp: str | Experiment | None = None,
    main_container: str | None = None,
    heterogeneous: bool = False,
    installation_command: str | None = None,
    skip_hf_home_check: bool | None = None,
    keep_mounts_for_sandbox: bool = False,
    sandbox_mounts: str | Sequence[str] = (),
    sandbox_container: str | None = None,
) -> Experiment | None:
    """Train with Megatron-LM on a cluster, one process per GPU. Give its own arguments after --, or as
    ++keys: ++lr=1e-5 is --lr=1e-5, ++bf16=true is --bf16.

    `ns megatron_lm train` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns megatron_lm train --help` lists them
        megatron_model: Megatron-LM checkpoint to start from (required)
        tokenizer_model: Hugging Face folder or name with the tokenizer (required)
        per_split_data_path: JSON file that names the data of each split (--per-split-data-args-path)
            (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder for the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; run nothing
        container: container image of the trainer: a name of the cluster config or an image reference
        arguments: more arguments for Megatron-LM, after --
        output_dir: folder for checkpoints, logs and final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all GPUs of the cluster's nodes)
        entrypoint: pretrain_gpt.py, pretrain_mamba.py, or a path (default 'pretrain_gpt.py')
        init_cmd: shell text to run before it, on each node
        megatron_path: folder of Megatron-LM in the container (default: MEGATRON_PATH or /opt/Megatron-
            LM)
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: do not log to Weights & Biases (also the case without WANDB_API_KEY)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: also show the scripts of the jobs
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time (D-HH:MM:SS)
        sbatch_kwargs: JSON of more sbatch settings
        exclusive: use whole nodes
        check_mounted_paths: check that mount sources exist before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: submit the last commit even if files have changed since
        allow_missing_dependency: accept unknown experiments in `run_after`
        dependent_jobs: number of follow-up jobs that resume after the time limit (default 0)
        reuse_code: copy the same code only once (always the case) (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: run the client on its own nodes, apart from the server's
        installation_command: command to run first, once per node
        skip_hf_home_check: do not require HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts for the sandbox only, src:dst[:rw]; read-only by default
        sandbox_container: container image of the sandbox

    Returns:
        On a cluster: the experiment that was submitted, None where nothing was left to do. Else None.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def validate(
    ctx: Arguments | None = None,
    *,
    benchmarks: str | Benchmark | Group | Sequence[str | Benchmark | Group] = (),
    category: str | None = None,
    data_dir: str | Path | None = None,
    mirror: str | None = None,
    offline: bool | None = None,
    extra_benchmark_map: str | None = None,
    max_samples: int | None = None,
    json: str | None = None,
    dry_run: bool = False,
) -> list[Validation]:
    """Check benchmarks without a model. Rows: the expected number, none missing, none duplicated, a prompt
    for each. Replies: a row's own answer is graded correct, in several spellings; an empty reply, the
    prompt itself, one reply for all rows, the answers of other rows, and replies that name many answers
    are graded correct no more often than by chance. The exit code is 1 if a check fails.

    `ns validate` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns validate --help` lists them
        benchmarks: names, groups, or your own files; `all` = every benchmark whose data is on this
            machine or in the mirror
        category: with `all`: only benchmarks of these categories, comma separated
        data_dir: folder of prepared data (default: NEMO_SKILLS_DATA_DIR, or the user's cache)
        mirror: folder of an offline mirror (default: NEWSKILLS_MIRROR)
        offline: never use the network
        extra_benchmark_map: JSON file that maps names to folders with more benchmarks
        max_samples: rows per benchmark whose replies are graded; -1 = all (default: 200; 25 where code
            is run)
        json: file for all findings, as a JSON list
        dry_run: check everything and show what would be done; run nothing

    Returns:
        A validation of each benchmark; what is wrong with it is in `problems`. None with
        `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

def why(
    ctx: Arguments | None = None,
    *,
    before: str,
    after: str,
    benchmarks: str | Sequence[str] | None = None,
    json: bool = False,
) -> list[Explanation]:
    """Explain why two scores differ: data, prompt (as a diff), grader, sampling, model and engine of both
    runs, and how many points each explains, if the records can tell: the same problems, the same
    grader, no truncated answers. Nothing is generated and nothing is written.

    `ns why` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        before: folder of results (required)
        after: another one (required)
        benchmarks: only these, comma separated (default: all that both have)
        json: print everything as JSON

    Returns:
        What differs in each benchmark, and what it is worth. None with `dry_run=True`.

    Raises:
        TypeError: a keyword is unknown, or a required one is missing
        ConfigError: a value or a `++` key does not fit
        UnknownNameError: a name is not known: a benchmark, a prompt, a cluster, …; the nearest ones are
            named
        DataError: a file is missing, or its contents do not fit
        LockedError: another run works in the same folder
        NewskillsError: everything else, such as work that is left undone; base of all but TypeError
    """

eval = evaluate

evaluate_async = aevaluate
