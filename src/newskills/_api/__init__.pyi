# SPDX-License-Identifier: Apache-2.0
# Written by docs/generate.py from the options of the commands.

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Union

from newskills._api.calls import Arguments as Arguments, wrap_arguments as wrap_arguments
from newskills.base.records import Report
from newskills.launch.experiments import Experiment
from newskills.run.evaluate import Evaluation
from newskills.run.planning.spec import RunResult
from newskills.run.reporting.robustness import RobustnessSummary
from newskills.run.reporting.summarize import Summary
from newskills.train.data.card import Card
from newskills.view.comparison.paired_runs import Comparison
from newskills.view.comparison.planning import EvalPlan
from newskills.view.comparison.regrade import Regraded
from newskills.view.comparison.why import Explanation
from newskills.view.samples import SelectedSample

def average_checkpoints(
    ctx: Arguments | None = None,
    *,
    checkpoints: str | Sequence[str],
    output_model: str,
    expname: str | None = None,
    log_dir: str | None = None,
    dry_run: bool = False,
    steps: str | Sequence[int] | None = None,
    remove: str | Sequence[str] = (),
    remove_checkpoints_after_average: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | None = None,
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
) -> None:
    """Average the weights of checkpoints of one run, tensor by tensor, here or as a job of a cluster. The
    originals stay, unless they are to be removed after it.

    `ns average_checkpoints` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        checkpoints: Hugging Face folders of the same model (several words); with `steps` the folder
            they lie in (required)
        output_model: folder to write; must not be there yet (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        steps: the folders step_N of `checkpoints` with these numbers, comma separated
        remove: folders that are removed once the mean is there, and only then
        remove_checkpoints_after_average: remove the checkpoints themselves in that way
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox

    Returns:
        None.

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
    what changed from right to wrong and from wrong to right, and which differences could not have been
    seen. Runs that differ in data, prompt or grader are refused unless `allow` names it. Exit codes: 0;
    2 where nothing can be compared; 3 where a condition of `fail_if` holds.

    `ns compare` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        runs: folders of results; the first is what the others are compared with (required)
        benchmarks: only these, comma separated (default: all that both have)
        allow: compare although the runs differ in it: data, prompt, grader, comma separated
        margin: points that a run may lose and still count as not worse (non-inferiority) (default 1.0)
        fail_if: exit with code 3 where this holds: worse, or 'gsm8k < -1.0' (a difference in points);
            repeatable
        flips: how many samples that changed sides are listed for each benchmark (default 5)
        json: print everything as JSON, with all samples that changed sides
        html: also write a page that stands alone to this file

    Returns:
        Figures, flips and one sentence for each benchmark. None with `dry_run=True`.

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
    prediction_jsonl_files: str | Sequence[str],
    benchmark: str,
    max_samples: int = -1,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    save_metrics_path: str | None = None,
    accept_lost: float = 1.0,
    dry_run: bool = False,
) -> Union[list[Report], Any]:
    """Metrics of single graded output files, without a results folder. Ungraded files: ns grade first.

    `ns compute_metrics` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        prediction_jsonl_files: graded output files of one benchmark; several = its seeds (required)
        benchmark: name of the benchmark (decides the metrics) (required)
        max_samples: only the first n problems; -1 = all (default -1)
        metric_type: other metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for it
        save_metrics_path: write metrics.json there (default: print only)
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        dry_run: check everything and show what would be done; do nothing

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
    log_dir: str | None = None,
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
    config_dir: str | None = None,
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
    """Convert a model. Llama models between a Hugging Face folder (float16, tokenizer and chat template
    included) and a GGUF file that the embedded server runs: here. Checkpoints of NeMo-RL to Hugging
    Face, Hugging Face to Megatron-LM, and to an fp8 engine of TensorRT-LLM: by their own programs, in
    their containers.

    `ns convert` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        input_model: Hugging Face folder, checkpoint (step_N of NeMo-RL), .gguf file, or smollm2
            (required)
        output_model: folder (file: gguf) to write (required)
        convert_from: form of the input; dcp, megatron: checkpoints of NeMo-RL (required)
        convert_to: form of the output; gguf: matrices in F16 (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        arguments: further arguments of the converter, behind --
        model_type: kind of model, where the converter has to know it
        num_gpus: GPUs per node; the model is split over them for trtllm and megatron (default 1)
        num_nodes: parts of the pipeline (trtllm, megatron) (default 1)
        hf_model_name: the model on the hub, for its tokenizer and configuration
        dtype: numbers of the output; fp8 for trtllm only (default 'bf16')
        max_position_embeddings: written into config.json (hf)
        container: image of the converter
        calib_dataset: data set for the scales of fp8
        calib_size: its rows that are used (default 4096)
        trt_prepare_args: further arguments of the step that calibrates
        trt_reuse_tmp_engine: keep a calibrated checkpoint that is there (default True)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
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

def evaluate(
    ctx: Arguments | None = None,
    *,
    benchmarks: str | Sequence[str],
    expname: str | None = None,
    log_dir: str | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | None = None,
    data_dir: str | None = None,
    split: str | None = None,
    extra_benchmark_map: str | None = None,
    auto_summarize_results: bool = True,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    accept_lost: float = 1.0,
    model: str | Sequence[str] = (),
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
    num_jobs: int | None = None,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    judge_model: str | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_server_gpus: int | None = None,
    judge_server_nodes: int | None = None,
    judge_server_args: str | None = None,
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
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
    config_dir: str | None = None,
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
) -> Union[Evaluation, Any]:
    """Evaluate a model on benchmarks: generate, grade while generating, and print tables with intervals.
    Interrupted runs go on where they were; samples lost to an instrument failure are never counted as
    wrong.

    `ns eval` as a function. `ns evaluate` is another command: `profile_evaluate`.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns eval --help` lists them
        benchmarks: name[:samples],… ; samples ≥ 1 = seeds at temperature 0.7; none = greedy (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        single_node_mode: units of one process: parallel or sequential (default 'parallel')
        output_dir: folder of the results (default: results/<expname>)
        data_dir: where prepared data lies
        split: split to evaluate (default: the benchmark's own)
        extra_benchmark_map: JSON file name → folder of further benchmarks
        auto_summarize_results: tables and metrics.json after the run (default True)
        metric_type: other metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for it
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        model: name or path of the model (ns generate: of several, for a --generation_module)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: use a running server, with or without /v1
        server_gpus: host the model on this many GPUs per node
        server_nodes: nodes per model
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds a hosted server may take to start (default 1800.0)
        with_sandbox: a sandbox for the model's code beside the work (or the one that ++sandbox.host
            names)
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one for each (default: 1; on slurm -1)
        starting_seed: first seed (default 0)
        num_chunks: split the input into so many pieces
        chunk_ids: only these pieces: 1,2,5 or 0..4
        rerun_done: ignore .done markers and start anew
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        judge_model: name or path of the judge (default: the benchmark's own)
        judge_server_type: as `server_type`, of the judge
        judge_server_address: a judge that runs
        judge_server_gpus: host the judge on this many GPUs per node
        judge_server_nodes: nodes of its server
        judge_server_args: further arguments of its engine, as they are
        judge_server_entrypoint: other start command of its engine
        judge_server_container: container image of its server (clusters)
        judge_container: container image of the judge's client (clusters)
        judge_type: llm: one question per answer; math_judge: none where the texts are equal; comet,
            nvembed: a trained model that runs with the judge (translations; choices)
        judge_generation_type: the same, as older documents have it
        judge_generation_module: a judge of your own: FILE.py or MODULE, with SOLVER or ::MAKER
        judge_step_fn: a function of your own, FILE.py::NAME: records → a text with a verdict for each
        extra_judge_args: ++ options of the judge, as one text
        judge_pipeline_kwargs: JSON of options for the judge's jobs: model, server_*, partition,
            num_jobs, …
        judge_sbatch_kwargs: JSON of sbatch settings of the judge's jobs
        judge_all: judge the benchmarks that need no judge, too
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox
        summarize_sbatch_kwargs: JSON of sbatch settings of the summary

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `reports`, one for each benchmark, and `result`, the units of work. On a cluster: the experiment
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

async def evaluate_async(
    ctx: Arguments | None = None,
    *,
    benchmarks: str | Sequence[str],
    expname: str | None = None,
    log_dir: str | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | None = None,
    data_dir: str | None = None,
    split: str | None = None,
    extra_benchmark_map: str | None = None,
    auto_summarize_results: bool = True,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    accept_lost: float = 1.0,
    model: str | Sequence[str] = (),
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
    num_jobs: int | None = None,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    judge_model: str | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_server_gpus: int | None = None,
    judge_server_nodes: int | None = None,
    judge_server_args: str | None = None,
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
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
    config_dir: str | None = None,
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
) -> Union[Evaluation, Any]:
    """Evaluate a model on benchmarks: generate, grade while generating, and print tables with intervals.
    Interrupted runs go on where they were; samples lost to an instrument failure are never counted as
    wrong.

    `ns eval` as a function. `evaluate`, awaited within a running event loop, on a thread of its own.
    Cancelling it stops the evaluation: what is done is on disk, and the same call goes on from there.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns eval --help` lists them
        benchmarks: name[:samples],… ; samples ≥ 1 = seeds at temperature 0.7; none = greedy (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        single_node_mode: units of one process: parallel or sequential (default 'parallel')
        output_dir: folder of the results (default: results/<expname>)
        data_dir: where prepared data lies
        split: split to evaluate (default: the benchmark's own)
        extra_benchmark_map: JSON file name → folder of further benchmarks
        auto_summarize_results: tables and metrics.json after the run (default True)
        metric_type: other metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for it
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        model: name or path of the model (ns generate: of several, for a --generation_module)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: use a running server, with or without /v1
        server_gpus: host the model on this many GPUs per node
        server_nodes: nodes per model
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds a hosted server may take to start (default 1800.0)
        with_sandbox: a sandbox for the model's code beside the work (or the one that ++sandbox.host
            names)
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one for each (default: 1; on slurm -1)
        starting_seed: first seed (default 0)
        num_chunks: split the input into so many pieces
        chunk_ids: only these pieces: 1,2,5 or 0..4
        rerun_done: ignore .done markers and start anew
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        judge_model: name or path of the judge (default: the benchmark's own)
        judge_server_type: as `server_type`, of the judge
        judge_server_address: a judge that runs
        judge_server_gpus: host the judge on this many GPUs per node
        judge_server_nodes: nodes of its server
        judge_server_args: further arguments of its engine, as they are
        judge_server_entrypoint: other start command of its engine
        judge_server_container: container image of its server (clusters)
        judge_container: container image of the judge's client (clusters)
        judge_type: llm: one question per answer; math_judge: none where the texts are equal; comet,
            nvembed: a trained model that runs with the judge (translations; choices)
        judge_generation_type: the same, as older documents have it
        judge_generation_module: a judge of your own: FILE.py or MODULE, with SOLVER or ::MAKER
        judge_step_fn: a function of your own, FILE.py::NAME: records → a text with a verdict for each
        extra_judge_args: ++ options of the judge, as one text
        judge_pipeline_kwargs: JSON of options for the judge's jobs: model, server_*, partition,
            num_jobs, …
        judge_sbatch_kwargs: JSON of sbatch settings of the judge's jobs
        judge_all: judge the benchmarks that need no judge, too
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox
        summarize_sbatch_kwargs: JSON of sbatch settings of the summary

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `reports`, one for each benchmark, and `result`, the units of work. On a cluster: the experiment
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

def generate(
    ctx: Arguments | None = None,
    *,
    expname: str | None = None,
    log_dir: str | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | None = None,
    input_file: str | None = None,
    input_dir: str | None = None,
    generation_type: Literal['generate', 'math_judge', 'check_contamination', 'autoformalize', 'prover', 'majority', 'weighted_vote', 'best_of_n', 'genselect', 'gensynthesis'] | None = None,
    generation_module: str | None = None,
    preprocess_cmd: str | None = None,
    postprocess_cmd: str | None = None,
    model: str | Sequence[str] = (),
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
    num_jobs: int | None = None,
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
    config_dir: str | None = None,
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
) -> Union[RunResult, Any]:
    """Run a model over a JSONL file: render the prompt for each row, ask, and write row + answer, in input
    order. Interrupted runs go on where they were.

    `ns generate` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns generate --help` lists them
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        single_node_mode: units of one process: parallel or sequential (default 'parallel')
        output_dir: folder of the results (default: results/<expname>)
        input_file: JSONL file of rows
        input_dir: folder whose output-rs{seed}.jsonl are the inputs, seed by seed
        generation_type: math_judge: ask whether predicted_answer and expected_answer are the same;
            check_contamination: whether a problem is the same as one of its similar_items;
            autoformalize: problems into statements of Lean 4; prover: proofs of such, mended by what
            Lean says; majority, weighted_vote, best_of_n, genselect, gensynthesis: one answer out of
            several
        generation_module: a task of your own: module::maker or file.py::maker of a solver (without ::,
            its SOLVER); or a module of NeMo-Skills by its name, nemo_skills.inference.NAME
        preprocess_cmd: your shell command before the run
        postprocess_cmd: your shell command after each finished (and merged) seed
        model: name or path of the model (ns generate: of several, for a `generation_module`)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: use a running server, with or without /v1
        server_gpus: host the model on this many GPUs per node
        server_nodes: nodes per model
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds a hosted server may take to start (default 1800.0)
        with_sandbox: a sandbox for the model's code beside the work (or the one that ++sandbox.host
            names)
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one for each (default: 1; on slurm -1)
        starting_seed: first seed (default 0)
        num_chunks: split the input into so many pieces
        chunk_ids: only these pieces: 1,2,5 or 0..4
        rerun_done: ignore .done markers and start anew
        num_random_seeds: samples of each row, at temperature 0.7 unless told
        random_seeds: these seeds: 1,2,5 or 0..4
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        `units` (one for each seed and chunk, with its `output`), `retries`, `ledger`. On a cluster: the
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

def grade(
    ctx: Arguments | None = None,
    *,
    grader: str = 'math',
    input_files: str | Sequence[str] = (),
    output_file: str | None = None,
    accept_lost: float = 1.0,
    dry_run: bool = False,
) -> None:
    """Verdicts for any JSONL file of answers: adds predicted_answer, symbolic_correct (true, false or null
    = undecided), outcome, grader and why to each row. ++key=value sets the grader's options,
    ++sandbox.key=value those of the sandbox for graders that run code.

    `ns grade` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns grade --help` lists them
        grader: name, module::Class or file.py::Class (default 'math')
        input_files: JSONL files; none or - = standard input
        output_file: JSONL to write (default: standard output)
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        dry_run: check everything and show what would be done; do nothing

    Returns:
        None.

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
    output_dir: str,
    backend: str = 'cpu',
    dry_run: bool = False,
    data_dir: str | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    benchmark: str | None = None,
    split: str = 'train',
    training_data: str | None = None,
    eval_data: str | None = None,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
) -> None:
    """Reinforce a small model on this machine (GRPO, LoRA on a CPU): the grader that measures is the
    reward. A killed or stopped run goes on with the same command, to the same numbers. Needs
    newskills[train,local].

    `ns grpo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns grpo --help` lists them
        model: Hugging Face folder or name on the hub, .gguf file, or smollm2 (required)
        output_dir: folder of checkpoints and metrics; the same folder goes on where it was (required)
        backend: cpu: LoRA, small Llama models; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        dry_run: check everything and show what would be done; do nothing
        data_dir: where prepared data lies
        eval_benchmark: benchmark whose problems are asked on the way (++eval.*), with its prompt and
            grader
        eval_split: of that benchmark (default 'test')
        allow_overlap: learn also from questions that are measured by
        benchmark: whose prompt, grader and split to learn from
        split: of the benchmark (default 'train')
        training_data: JSONL of problems instead, with what prompt and grader need
        eval_data: JSONL of held-out problems, with prompt and grader of the training (or
            `eval_benchmark`)
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        None.

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
    log_dir: str | None = None,
    dry_run: bool = False,
    container: str | None = None,
    training_data: str | None = None,
    validation_data: str | None = None,
    output_dir: str | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    backend: Literal['fsdp', 'megatron'] | None = None,
    max_length: int | None = None,
    ray_template: str | None = None,
    data_format: str | None = None,
    config: str | None = None,
    nemo_rl_path: str = '/opt/nemo-rl',
    profile_step_range: str | None = None,
    prompt_config: str = 'generic/math',
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    final_hf_path: str | None = None,
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
    config_dir: str | None = None,
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
    """Reinforce a model with NVIDIA's NeMo-RL on a cluster. Rows of {problem, expected_answer} are
    rewarded by the math grader of evaluations; rows of NeMo Gym by what its YAML names. ++key=value are
    NeMo-RL's own keys.

    `ns nemo_rl grpo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns nemo_rl grpo --help` lists them
        model: model to start from: a Hugging Face folder or name (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        container: image of the trainer, a name of the cluster config or a reference
        training_data: JSONL to learn from
        validation_data: JSONL of the same form to validate on
        output_dir: checkpoints, logs, final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all that the cluster's nodes have)
        backend: how the model is split (default: fsdp; megatron above 20 billion parameters)
        max_length: tokens of a sequence, prompt and answer (default: what the model can see, at most
            4096)
        ray_template: program that starts Ray around a command, called as newskills.launch.ray_node is
        data_format: form of the rows, where the file is not there yet (default: its first line tells)
        config: another YAML of NeMo-RL's to start from
        nemo_rl_path: folder of NeMo-RL in the container (default '/opt/nemo-rl')
        profile_step_range: steps A:B that nsys watches, from 1, without B
        prompt_config: prompt for rows {problem, expected_answer}: the one that evaluations use (default
            'generic/math')
        with_sandbox: a sandbox beside the trainer
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: no Weights & Biases (nor without WANDB_API_KEY)
        final_hf_path: folder of the model (default: OUTPUT_DIR/final_hf_model)
        conversion_step: step that becomes the model: last, or a number (default 'last')
        average_steps: steps whose mean becomes the model, comma separated
        remove_checkpoints_after_average: remove the checkpoints of these steps once their mean is there
        run_conversion_only: no training: make the model of the checkpoints
        max_position_embeddings: written into the model's config.json
        server_model: name or path of the judge
        server_address: a judge that runs
        server_type: engine: vllm, sglang, trtllm, …
        server_gpus: GPUs per node of each server
        server_nodes: nodes of each server (default 1)
        n_servers: servers, independent of each other (default 1)
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the servers
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
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
) -> list[EvalPlan]:
    """Plan an evaluation: how many problems, and samples of each, it takes to see a difference between two
    models, and what that costs in tokens, time and money, judged by runs that there are. A probe of 20
    problems with several seeds will do.

    `ns plan_eval` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        delta: difference to be seen, in points (required)
        runs: folder of results to plan from, or two that differ about as much as the models that will
            be compared
        benchmarks: only these, comma separated (default: all)
        power: share of comparisons that shall see it (default 0.8)
        paired: both models answer the same problems; --no_paired: each has its own (default True)
        seeds: samples of each problem to plan for, comma separated (default '1,2,4,8,16')
        accuracy: without a run: percent that is right, about
        problems: without a run: how many problems there are
        prices: price of a million tokens read and written, READ,WRITTEN (default: what past runs cost)
        json: print everything as JSON

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
    log_dir: str | None = None,
    dry_run: bool = False,
    container: str | None = None,
    eval_data: str | None = None,
    output_dir: str | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    backend: Literal['fsdp', 'megatron'] | None = None,
    max_length: int | None = None,
    ray_template: str | None = None,
    data_format: str | None = None,
    prompt_config: str = 'generic/math',
    script_module: str = 'verl.trainer.main_ppo',
    verl_config_dir: str | None = None,
    verl_config_name: str | None = None,
    with_sandbox: bool = False,
    sandbox_env_overrides: str | Sequence[str] = (),
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    final_ckpt_path: str | None = None,
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
    config_dir: str | None = None,
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
    """Reinforce a model with verl (PPO, GRPO, …) on a cluster. Rows of {problem, expected_answer} are
    turned into verl's and rewarded by the math grader of evaluations. ++key=value are verl's own keys.

    `ns verl ppo` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns verl ppo --help` lists them
        model: model to start from: a Hugging Face folder or name (required)
        prompt_data: rows in verl's form (parquet, JSONL), or JSONL of {problem, expected_answer}
            (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        container: image of the trainer, a name of the cluster config or a reference
        eval_data: the same to validate on
        output_dir: checkpoints, logs, final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all that the cluster's nodes have)
        backend: how the model is split (default: fsdp; megatron above 20 billion parameters)
        max_length: tokens of a sequence, prompt and answer (default: what the model can see, at most
            4096)
        ray_template: program that starts Ray around a command, called as newskills.launch.ray_node is
        data_format: verl or plain, where the file is not there yet (default: its first line tells)
        prompt_config: prompt for rows {problem, expected_answer}: the one that evaluations use (default
            'generic/math')
        script_module: module that trains (default 'verl.trainer.main_ppo')
        verl_config_dir: folder with another Hydra configuration
        verl_config_name: its name
        with_sandbox: a sandbox beside the trainer
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: no Weights & Biases (nor without WANDB_API_KEY)
        final_ckpt_path: folder of the model (default: OUTPUT_DIR/final_hf_model)
        convert_last_ckpt_to_hf: make a Hugging Face folder of the last checkpoint (default True)
        server_model: name or path of the judge
        server_address: a judge that runs
        server_type: engine: vllm, sglang, trtllm, …
        server_gpus: GPUs per node of each server
        server_nodes: nodes of each server (default 1)
        n_servers: servers, independent of each other (default 1)
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the servers
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
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
    log_dir: str | None = None,
    dry_run: bool = False,
    benchmarks: str | Sequence[str] = (),
    dataset: str | None = None,
    data_dir: str | None = None,
    split: str | Sequence[str] = (),
    mirror: str | None = None,
    offline: bool | None = None,
    extra_benchmark_map: str | None = None,
    parallelism: int = 20,
    retries: int = 3,
    skip_data_dir_check: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | None = None,
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
) -> Experiment | None:
    """Fetch benchmark data, check it, and lay it out as <data_dir>/<name>/<split>.jsonl with a record of
    where it came from. Needs no other set-up. With `cluster` a job does it there. Benchmarks may have
    options of their own: ns prepare_data NAME --help shows them.

    `ns prepare_data` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        benchmarks: names, or groups of them; `all` = every benchmark of the catalog
        dataset: one name (older spelling), also of a published training set: openmathinstruct-2, …
        data_dir: where <name>/<split>.jsonl goes (default: NEMO_SKILLS_DATA_DIR, or the user's cache)
        split: only these splits (default: all there are)
        mirror: folder of an offline mirror (default: NEWSKILLS_MIRROR)
        offline: never use the network
        extra_benchmark_map: JSON file name → folder of further benchmarks
        parallelism: benchmarks prepared at the same time (default 20)
        retries: further attempts after a failed download (default 3)
        skip_data_dir_check: accepted as in the reference system; no set is too large for the user's
            cache
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox
        num_gpus: GPUs of the job
        num_nodes: nodes of the job; the first one prepares (default 1)
        **further_options: options of the benchmarks themselves

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

def prepare_training_data(
    ctx: Arguments | None = None,
    *,
    config_name: Literal['math_sft', 'stem_sft', 'code_sft', 'math_rl'] = 'math_sft',
    dataset: str | None = None,
    benchmark: str | None = None,
    split: str | None = None,
    data_dir: str | None = None,
    mirror: str | None = None,
    offline: bool | None = None,
    workers: int = 0,
    dry_run: bool = False,
    decontaminate: str | Sequence[str] = (),
    decontaminate_ngram: int = 5,
    decontaminate_share: float = 0.5,
) -> Union[Card, Any]:
    """Build training data: filter generations or a published set, remove duplicates and what benchmarks
    ask, choose, shuffle, and write SFT, conversation or RL rows with a card that says what each step
    removed. Keys marked code_sft and math_rl belong to these recipes; shown defaults are those of
    math_sft.

    `ns prepare_training_data` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns prepare_training_data --help` lists
            them
        config_name: recipe: solutions, conversations, code, or problems for reinforcement learning
            (default 'math_sft')
        dataset: published set: fetched, or with ++input_files its own files (JSONL, JSON, parquet, also
            gzipped)
        benchmark: whose prompt asks the problems, as in an evaluation (needs ++tokenizer; more ++ keys
            change it)
        split: split of the published set (default: its first)
        data_dir: where prepared data lies (default: NEMO_SKILLS_DATA_DIR, or the user's cache)
        mirror: folder of an offline mirror (default: NEWSKILLS_MIRROR)
        offline: never use the network
        workers: processes; 0 = one for each CPU. They change nothing else (default 0)
        dry_run: check everything and show what would be done; do nothing
        decontaminate: benchmarks (or JSONL files with `problem`) whose problems are removed, by shared
            words
        decontaminate_ngram: words in a sequence (default 5)
        decontaminate_share: share of the shorter text's sequences that must be in both (default 0.5)

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
) -> None:
    """Evaluate with a config of NeMo Evaluator's launcher: compose its defaults, resolve it with a profile
    of env.toml, show it, and run its tasks here or on that profile's cluster. key.sub=value changes the
    config.

    `ns evaluate` as a function. `ns eval` is another command: `evaluate`.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns evaluate --help` lists them
        config: config: a path, or a name in evaluate_configs/ or among those of newskills
        run: profile of env.toml: submit there, show the logs, end as the jobs end
        batch: profile of env.toml: submit there, and print the invocation
        dry_run: compile and check everything, show what would be done; do nothing
        task: only this task: all of that name, or name.1: the second task of the config, called name
        force_squash: import container images anew

    Returns:
        None.

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
    results_dir: str,
    benchmarks: str | Sequence[str] | None = None,
    grader: str | None = None,
    strict: bool = False,
    lenient: bool = False,
    spread: bool = True,
    output_dir: str | None = None,
    flips: int = 10,
    json: bool = False,
) -> list[Regraded]:
    """Grade finished records anew, without any generation: which verdicts change, and how much of a score
    is the grader's (strict, usual and lenient extraction). The records themselves are never changed;
    `output_dir` keeps the new ones. ++key=value sets the grader's options, ++sandbox.key=value those of
    the sandbox.

    `ns regrade` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns regrade --help` lists them
        results_dir: folder of results (required)
        benchmarks: only these, comma separated (default: all)
        grader: grade with this one, NAME or NAME@VERSION (default: that of the records, as it is today)
        strict: an answer counts only in the form that was asked for
        lenient: an answer counts in whatever form it is found
        spread: show the scores of strict, usual and lenient extraction (graders that know them)
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

def report(
    ctx: Arguments | None = None,
    *,
    results_dirs: str | Sequence[str],
    output: str | None = None,
    title: str = 'Evaluation report',
    contamination_file: str | None = None,
    spread: bool = True,
) -> list[Path]:
    """Write a report of results, as one HTML file that needs nothing else and as Markdown: scores with
    intervals, plots, the grader's share, comparisons, trainings, settings, prompts, versions, hashes,
    licences of the data, cost, and the command that makes it again.

    `ns report` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dirs: folders of results; with several, each is compared with the first (required)
        output: where the report goes, without an ending (default: report in the first folder)
        title: heading of the report (default 'Evaluation report')
        contamination_file: what check_contamination wrote about the test problems: adds the score of
            the clean ones
        spread: grade by strict and lenient extraction, too (graders that know them) (default True)

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

def retrieve_similar(
    ctx: Arguments | None = None,
    *,
    retrieve_from: str | Sequence[str],
    compare_to: str | Sequence[str],
    output_file: str,
    retrieve_key: str = 'problem',
    top_k: int = 3,
    model: str | None = None,
    batch_size: int = 32,
    dry_run: bool = False,
) -> None:
    """Find the most similar problems of one data set for each problem of another, by the words that they
    share (TF-IDF) or, with `model`, by meaning (embeddings). A model then says which are the same: ns
    generate --generation_type=check_contamination.

    `ns retrieve_similar` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        retrieve_from: JSONL files to look for similar problems in (commas or several words) (required)
        compare_to: JSONL files whose problems are looked up (required)
        output_file: JSONL file to write: the problem, similar_items, similarities (required)
        retrieve_key: field of both that holds the problem (default 'problem')
        top_k: similar problems of each (default 3)
        model: sentence-transformers model, name or folder: by meaning; without: by words
        batch_size: texts that the model reads together (default 32)
        dry_run: check everything and show what would be done; do nothing

    Returns:
        None.

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
    benchmarks: str | Sequence[str],
    expname: str | None = None,
    log_dir: str | None = None,
    dry_run: bool = False,
    single_node_mode: Literal['parallel', 'sequential'] = 'parallel',
    output_dir: str | None = None,
    data_dir: str | None = None,
    split: str | None = None,
    extra_benchmark_map: str | None = None,
    auto_summarize_results: bool = True,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    accept_lost: float = 1.0,
    prompt_set_config: str = 'robustness/prompt_set_config',
    model: str | Sequence[str] = (),
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
    num_jobs: int | None = None,
    starting_seed: int = 0,
    num_chunks: int | None = None,
    chunk_ids: str | Sequence[int] | None = None,
    rerun_done: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    log_samples: bool = False,
    judge_model: str | None = None,
    judge_server_type: str | None = None,
    judge_server_address: str | None = None,
    judge_server_gpus: int | None = None,
    judge_server_nodes: int | None = None,
    judge_server_args: str | None = None,
    judge_server_entrypoint: str | None = None,
    judge_server_container: str | None = None,
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
    config_dir: str | None = None,
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
) -> Union[RobustnessSummary, Any]:
    """Evaluate a model on benchmarks with many wordings of the prompt, one `ns eval` for each, and print
    how much the wording changes the scores: mean, spread, sensitivity, consistency. Goes on where it
    was interrupted.

    `ns robust_eval` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns robust_eval --help` lists them
        benchmarks: name[:samples],… ; samples ≥ 1 = seeds at temperature 0.7; none = greedy (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        single_node_mode: units of one process: parallel or sequential (default 'parallel')
        output_dir: folder of the results (default: results/<expname>)
        data_dir: where prepared data lies
        split: split to evaluate (default: the benchmark's own)
        extra_benchmark_map: JSON file name → folder of further benchmarks
        auto_summarize_results: tables and metrics.json after the run (default True)
        metric_type: other metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for it
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        prompt_set_config: prompts of each benchmark: a set's name, or YAML of benchmark:
            [{prompt_config, extract_regex}, …] (default 'robustness/prompt_set_config')
        model: name or path of the model (ns generate: of several, for a --generation_module)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: use a running server, with or without /v1
        server_gpus: host the model on this many GPUs per node
        server_nodes: nodes per model
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds a hosted server may take to start (default 1800.0)
        with_sandbox: a sandbox for the model's code beside the work (or the one that ++sandbox.host
            names)
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings (NEMO_SKILLS_SANDBOX_…)
        num_jobs: jobs to spread seeds and chunks over; -1 = one for each (default: 1; on slurm -1)
        starting_seed: first seed (default 0)
        num_chunks: split the input into so many pieces
        chunk_ids: only these pieces: 1,2,5 or 0..4
        rerun_done: ignore .done markers and start anew
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        log_samples: also log 200 records
        judge_model: name or path of the judge (default: the benchmark's own)
        judge_server_type: as `server_type`, of the judge
        judge_server_address: a judge that runs
        judge_server_gpus: host the judge on this many GPUs per node
        judge_server_nodes: nodes of its server
        judge_server_args: further arguments of its engine, as they are
        judge_server_entrypoint: other start command of its engine
        judge_server_container: container image of its server (clusters)
        judge_container: container image of the judge's client (clusters)
        judge_type: llm: one question per answer; math_judge: none where the texts are equal; comet,
            nvembed: a trained model that runs with the judge (translations; choices)
        judge_generation_type: the same, as older documents have it
        judge_generation_module: a judge of your own: FILE.py or MODULE, with SOLVER or ::MAKER
        judge_step_fn: a function of your own, FILE.py::NAME: records → a text with a verdict for each
        extra_judge_args: ++ options of the judge, as one text
        judge_pipeline_kwargs: JSON of options for the judge's jobs: model, server_*, partition,
            num_jobs, …
        judge_sbatch_kwargs: JSON of sbatch settings of the judge's jobs
        judge_all: judge the benchmarks that need no judge, too
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox
        summarize_sbatch_kwargs: JSON of sbatch settings of the summary

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
    log_dir: str | None = None,
    dry_run: bool = False,
    words: str | Sequence[str] = (),
    command: str | None = None,
    container: str = 'nemo-skills',
    num_gpus: int | None = None,
    num_nodes: int = 1,
    num_tasks: int = 1,
    get_random_port: bool = False,
    model: str | Sequence[str] = (),
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
    config_dir: str | None = None,
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
    """Run a command of your own as a job: here in the foreground, on a cluster in the queue. A model
    server (`model`, `server_type`, `server_gpus`) and a sandbox (`with_sandbox`) run beside it if asked
    for; the command finds them in NEMO_SKILLS_SERVER_ADDRESS, NEMO_SKILLS_OPENAI_BASE_URL,
    NEMO_SKILLS_OPENAI_MODEL, NEMO_SKILLS_SANDBOX_HOST and NEMO_SKILLS_SANDBOX_PORT.

    `ns run_cmd` as a function.

    Args:
        ctx: the command from `wrap_arguments('my command')`, instead of `command`
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        words: the command behind all options: word by word, or one quoted text for bash
        command: the command as one text for bash, instead (or --cmd)
        container: container to run it in (default 'nemo-skills')
        num_gpus: GPUs per node (default: those of the server)
        num_nodes: nodes; the command runs on each of them (default 1)
        num_tasks: processes of the command per node (default 1)
        get_random_port: a free port for the server, which is the default
        model: name or path of the model (ns generate: of several, for a --generation_module)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: use a running server, with or without /v1
        server_gpus: host the model on this many GPUs per node
        server_nodes: nodes per model
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds a hosted server may take to start (default 1800.0)
        with_sandbox: a sandbox for the model's code beside the work (or the one that ++sandbox.host
            names)
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings (NEMO_SKILLS_SANDBOX_…)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
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
    results_dir: str,
    benchmarks: str | Sequence[str] | None = None,
    outcome: Literal['correct', 'wrong', 'no_answer', 'unscored'] | None = None,
    cause: Literal['model', 'truncation', 'provider', 'content_filter', 'sandbox', 'tool', 'judge', 'timeout', 'grader', 'harness', 'data'] | None = None,
    seed: int | None = None,
    subset: str | None = None,
    id: str | None = None,
    search: str | None = None,
    number: int = 5,
    full: bool = False,
    json: bool = False,
) -> list[SelectedSample]:
    """Read samples of a run in the terminal: the question, the reply, the expected and the extracted
    answer, and why the grader decided so. Paged where a person reads; nothing that a model wrote is
    obeyed by the terminal.

    `ns samples` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dir: folder of results (required)
        benchmarks: only these, comma separated (default: all)
        outcome: only samples that ended so
        cause: only samples that are wrong, or lost, for this cause
        seed: only samples of this seed
        subset: only samples of this subset of the benchmark
        id: only the samples of this problem
        search: only samples with this text in the question, the reply or an answer
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

def sft(
    ctx: Arguments | None = None,
    *,
    model: str,
    output_dir: str,
    training_data: str,
    backend: str = 'cpu',
    dry_run: bool = False,
    data_dir: str | None = None,
    eval_benchmark: str | None = None,
    eval_split: str = 'test',
    allow_overlap: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
) -> None:
    """Fine-tune a small model on this machine (LoRA on a CPU). A killed or stopped run goes on with the
    same command, to the same numbers. Needs newskills[train,local].

    `ns sft` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns sft --help` lists them
        model: Hugging Face folder or name on the hub, .gguf file, or smollm2 (required)
        output_dir: folder of checkpoints and metrics; the same folder goes on where it was (required)
        training_data: JSONL of {input, output} or {messages} (required)
        backend: cpu: LoRA, small Llama models; trl: any model, GPUs (newskills[trl]); tinker: at a
            Tinker service (default 'cpu')
        dry_run: check everything and show what would be done; do nothing
        data_dir: where prepared data lies
        eval_benchmark: benchmark whose problems are asked on the way (++eval.*), with its prompt and
            grader
        eval_split: of that benchmark (default 'test')
        allow_overlap: learn also from questions that are measured by
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')

    Older names of arguments work, too: `hf_model` for `model`.

    Returns:
        None.

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
    log_dir: str | None = None,
    dry_run: bool = False,
    container: str | None = None,
    training_data: str | None = None,
    validation_data: str | None = None,
    output_dir: str | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    backend: Literal['fsdp', 'megatron'] | None = None,
    max_length: int | None = None,
    ray_template: str | None = None,
    data_format: str | None = None,
    config: str | None = None,
    nemo_rl_path: str = '/opt/nemo-rl',
    profile_step_range: str | None = None,
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    final_hf_path: str | None = None,
    conversion_step: str = 'last',
    average_steps: str | Sequence[int] | None = None,
    remove_checkpoints_after_average: bool = False,
    run_conversion_only: bool = False,
    max_position_embeddings: int | None = None,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | None = None,
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
    trains, and makes a Hugging Face folder of the last checkpoint. ++key=value are NeMo-RL's own keys.

    `ns nemo_rl sft` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns nemo_rl sft --help` lists them
        model: model to start from: a Hugging Face folder or name (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        container: image of the trainer, a name of the cluster config or a reference
        training_data: JSONL to learn from
        validation_data: JSONL of the same form to validate on
        output_dir: checkpoints, logs, final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all that the cluster's nodes have)
        backend: how the model is split (default: fsdp; megatron above 20 billion parameters)
        max_length: tokens of a sequence, prompt and answer (default: what the model can see, at most
            4096)
        ray_template: program that starts Ray around a command, called as newskills.launch.ray_node is
        data_format: form of the rows, where the file is not there yet (default: its first line tells)
        config: another YAML of NeMo-RL's to start from
        nemo_rl_path: folder of NeMo-RL in the container (default '/opt/nemo-rl')
        profile_step_range: steps A:B that nsys watches, from 1, without B
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: no Weights & Biases (nor without WANDB_API_KEY)
        final_hf_path: folder of the model (default: OUTPUT_DIR/final_hf_model)
        conversion_step: step that becomes the model: last, or a number (default 'last')
        average_steps: steps whose mean becomes the model, comma separated
        remove_checkpoints_after_average: remove the checkpoints of these steps once their mean is there
        run_conversion_only: no training: make the model of the checkpoints
        max_position_embeddings: written into the model's config.json
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
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
    log_dir: str | None = None,
    dry_run: bool = False,
    port: int = 0,
    get_random_port: bool = False,
    host: str | None = None,
    create_tunnel: bool = False,
    server_tunnel_port: int = 5000,
    sandbox_tunnel_port: int = 6000,
    launch_chat_interface: bool = False,
    extra_chat_args: str = '',
    model: str | Sequence[str] = (),
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
    config_dir: str | None = None,
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
) -> None:
    """Serve a model in the foreground: its address is printed once it answers, then its log; Ctrl-C stops
    everything that was started.

    `ns start_server` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        port: port to serve on; 0 = a free one (default 0)
        get_random_port: a free port, which is the default
        host: interface to bind (llamacpp: this machine only; engines for GPUs: all)
        create_tunnel: reach the server of a cluster at a port of this machine, through ssh
        server_tunnel_port: that port (default 5000)
        sandbox_tunnel_port: the same for the sandbox (default 6000)
        launch_chat_interface: also a page to chat with the model in the browser, at
            http://127.0.0.1:7860
        extra_chat_args: settings of that page: ++port, ++host, ++system_message, ++temperature,
            ++top_p, ++tokens_to_generate
        model: name or path of the model (ns generate: of several, for a --generation_module)
        server_type: openai, vllm, sglang, trtllm, megatron, llamacpp, azureopenai, gemini, anthropic, …
        server_address: use a running server, with or without /v1
        server_gpus: host the model on this many GPUs per node
        server_nodes: nodes per model
        server_args: further arguments of the engine, as they are
        server_entrypoint: other start command of the engine
        server_container: container image of the server (clusters)
        server_timeout: seconds a hosted server may take to start (default 1800.0)
        with_sandbox: a sandbox for the model's code beside the work (or the one that ++sandbox.host
            names)
        sandbox_env_overrides: KEY=VALUE of the sandbox's own settings (NEMO_SKILLS_SANDBOX_…)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
        sandbox_container: container image of the sandbox

    Older names of arguments work, too: `model_path` for `model`, `num_gpus` for `server_gpus`.

    Returns:
        None.

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
    results_dir: str,
    benchmarks: str | Sequence[str] | None = None,
    max_samples: int = -1,
    max_seq_len: int | None = None,
    metric_type: str | None = None,
    metrics_kwargs: str | dict[str, Any] = '',
    save_metrics_path: str | None = None,
    accept_lost: float = 1.0,
    verbose: bool = True,
    group: str | Sequence[str] | None = None,
    debug: bool = False,
    dry_run: bool = False,
    wandb_name: str | None = None,
    wandb_group: str | None = None,
    wandb_project: str = 'nemo-skills',
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | None = None,
    mount_paths: str | Sequence[str] | None = None,
    remote_tar_dir: str | None = None,
) -> Union[Summary, Any]:
    """Print the tables of a results folder and write metrics.json: pass@k, averages, majority, intervals.
    Reads results of earlier runs and of the reference system; generates nothing. With a `cluster` that
    is reached by ssh, the records are fetched, and metrics.json is written there.

    `ns summarize_results` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dir: folder of an evaluation, of one benchmark, or of several (required)
        benchmarks: only these, comma separated (default: all found)
        max_samples: only the first n problems; -1 = all (default -1)
        max_seq_len: longer generations (tokens) count as wrong
        metric_type: other metrics class (name or module::Class)
        metrics_kwargs: JSON of arguments for it
        save_metrics_path: where metrics.json goes, on this machine (default: RESULTS_DIR/metrics.json)
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        verbose: print the tables (default True)
        group: files or folders of groups of your own whose scores are wanted, comma separated; others
            are known by name
        debug: also say which files were read, and which metric was used
        dry_run: check everything and show what would be done; do nothing
        wandb_name: log the metrics under this name (extra newskills[wandb])
        wandb_group: group of the run
        wandb_project: project of the run (default 'nemo-skills')
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        remote_tar_dir: accepted as in the reference system; records come by rsync, without an archive

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
    results_dir: str,
    save_metrics_path: str | None = None,
    accept_lost: float = 1.0,
    verbose: bool = True,
    debug: bool = False,
    dry_run: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | None = None,
    mount_paths: str | Sequence[str] | None = None,
    data_dir: str | None = None,
    remote_tar_dir: str | None = None,
) -> Union[RobustnessSummary, Any]:
    """Print how much the prompts of ns robust_eval change the scores, over all prompts and for each: min,
    max, mean, standard deviation, sensitivity, consistency, missing answers. Generates nothing.

    `ns summarize_robustness` as a function.

    Args:
        ctx: nothing: this function has no `++` keys
        results_dir: folder that ns robust_eval has written (required)
        save_metrics_path: where the numbers go, on this machine (default:
            RESULTS_DIR/summarize_robustness/metrics.json)
        accept_lost: percent of samples that the instrument may lose before the command fails (default
            1.0)
        verbose: print the tables (default True)
        debug: also say which files were read
        dry_run: check everything and show what would be done; do nothing
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        data_dir: accepted as in the reference system; no data is read
        remote_tar_dir: accepted as in the reference system; records come by rsync, without an archive

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

def train_megatron_lm(
    ctx: Arguments | None = None,
    *,
    megatron_model: str,
    tokenizer_model: str,
    per_split_data_path: str,
    expname: str | None = None,
    log_dir: str | None = None,
    dry_run: bool = False,
    container: str | None = None,
    arguments: str | Sequence[str] = (),
    output_dir: str | None = None,
    num_nodes: int = 1,
    num_gpus: int | None = None,
    entrypoint: str = 'pretrain_gpt.py',
    init_cmd: str | None = None,
    megatron_path: str | None = None,
    wandb_project: str = 'nemo-skills',
    wandb_group: str | None = None,
    disable_wandb: bool = False,
    cluster: str | dict[str, Any] | None = None,
    config_dir: str | None = None,
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
    """Train with Megatron-LM on a cluster, one process for each GPU. Its own arguments follow behind --,
    or as ++keys: ++lr=1e-5 is --lr=1e-5, ++bf16=true is --bf16.

    `ns megatron_lm train` as a function.

    Args:
        ctx: `++` keys, from `wrap_arguments('++key=value')`; `ns megatron_lm train --help` lists them
        megatron_model: checkpoint of Megatron-LM's to start from (required)
        tokenizer_model: Hugging Face folder or name with the tokenizer (required)
        per_split_data_path: JSON that names the data of each split (--per-split-data-args-path)
            (required)
        expname: name of the experiment, for `run_after`, ns status and ns logs (default: the command)
        log_dir: folder of the logs (default: with the results, or the job's folder)
        dry_run: check everything and show what would be done; do nothing
        container: image of the trainer, a name of the cluster config or a reference
        arguments: further arguments of Megatron-LM, behind --
        output_dir: checkpoints, logs, final_hf_model (default: results/EXPNAME, printed)
        num_nodes: nodes (default 1)
        num_gpus: GPUs per node (default: all that the cluster's nodes have)
        entrypoint: pretrain_gpt.py, pretrain_mamba.py, or a path (default 'pretrain_gpt.py')
        init_cmd: shell text before it, on each node
        megatron_path: folder of Megatron-LM in the container (default: MEGATRON_PATH or /opt/Megatron-
            LM)
        wandb_project: project of the run (default 'nemo-skills')
        wandb_group: group of the run
        disable_wandb: no Weights & Biases (nor without WANDB_API_KEY)
        cluster: cluster config; none or local = this machine
        config_dir: folder of cluster configs
        mount_paths: extra mounts src:dst, comma separated
        show_scripts: with `dry_run`: the scripts of the jobs, too
        partition: Slurm partition
        account: Slurm account
        qos: Slurm quality of service
        time_min: Slurm minimum time
        sbatch_kwargs: JSON of further sbatch settings
        exclusive: whole nodes
        check_mounted_paths: verify mount sources before submitting
        run_after: experiments that must finish first, comma separated
        allow_uncommitted: go with the last commit where files of the repository have changed since
        allow_missing_dependency: do not insist that the experiments of `run_after` are known
        dependent_jobs: copies that continue after the time limit (default 0)
        reuse_code: copy the same code only once, which is always so (default True)
        reuse_code_exp: reuse the code package of that experiment
        main_container: container image of the client
        heterogeneous: the client on nodes of its own, apart from the server's
        installation_command: command run once per node first
        skip_hf_home_check: do not insist on HF_HOME
        keep_mounts_for_sandbox: give the sandbox the mounts of the job
        sandbox_mounts: mounts of the sandbox alone, src:dst[:ro|rw]
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

def why(
    ctx: Arguments | None = None,
    *,
    before: str,
    after: str,
    benchmarks: str | Sequence[str] | None = None,
    json: bool = False,
) -> list[Explanation]:
    """Tell why two scores differ: data, prompt (as a diff), grader, sampling, model and engine of both
    runs, and how many points each is worth where the records can tell: the same problems, the same
    grader, no answers that were cut off. Nothing is generated and nothing is written.

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
