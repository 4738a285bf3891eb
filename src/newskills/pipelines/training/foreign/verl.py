# SPDX-License-Identifier: Apache-2.0
"""What `ns verl ppo` does: a chain of training jobs, then the model from the last checkpoint."""

from __future__ import annotations

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref, Word
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, JobDict
from newskills.pipelines.submission.groups import MAIN
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.training.foreign.jobs import (
    HARVEST,
    InsideScript,
    TrainingPlacement,
    backend_of,
    check_lora,
    form_of,
    judges_of,
    key_as_number,
    one_blank,
    sandbox_of,
    shape_here,
    with_others,
)
from newskills.pipelines.training.foreign.merging import LORA, add_merge
from newskills.pipelines.training.foreign.options import PpoVerlOptions, reward_services
from newskills.train.pipelines import verl, verl_saving
from newskills.train.pipelines.common import FINAL, TrainerRun
from newskills.train.pipelines.estimates import ClusterStep, memory_line
from newskills.train.pipelines.formats import PPO
from newskills.train.pipelines.inside import check_option

CONTAINER = "verl"
PROMPT = "prompt.txt"


def prepare(parsed: Parsed[PpoVerlOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare the training and the conversion. Raises ConfigError, DataError."""
    options = planned_options(parsed)
    placement = TrainingPlacement.for_cluster(cluster, options, CONTAINER, "ppo")
    model = placement.model(options.model)
    backend = backend_of(options, model, placement.paths)
    check_lora(options, backend)
    trained = placement.trainer_run(model)
    plan = Plan()
    training, script = _make_training(parsed, trained, backend, placement)
    job = _add_training(plan, training, script, options, placement)
    shown = {"writes": trained.output_dir, "backend": backend, "training data": options.prompt_data}
    if (memory := _describe_memory(parsed, training, placement)) is not None:
        shown["memory"] = memory
    if options.convert_last_ckpt_to_hf:
        target = placement.data(options.final_ckpt_path, "--final_ckpt_path") or f"{trained.output_dir}/{FINAL}"
        _add_harvest(plan, trained, backend, target, job, placement, pairs=options.lora_rank is not None)
        shown["model"] = target
    shown["reward"] = "the math grader" if training.graded else "verl's own, chosen by data_source"
    return prepare_submission(placement.name, plan, cluster, options, shown)


run, train_with_verl = job_functions(prepare)


def _make_training(
    parsed: Parsed[PpoVerlOptions], trained: TrainerRun, backend: str, placement: TrainingPlacement
) -> tuple[verl.Verl, InsideScript]:
    options = parsed.options
    data = placement.paths.path_in_job(options.prompt_data, "--prompt_data")
    data_file = placement.data_facts(data, PPO, options.data_format)
    form = form_of(data_file, PPO, options.data_format)
    evaluated = placement.data(options.eval_data, "--eval_data")
    if evaluated is not None:
        placement.data_facts(evaluated, (form,), form)
    if options.staleness is not None and options.rollout_gpus >= trained.gpus:
        raise ConfigError(
            f"--rollout_gpus={options.rollout_gpus} of {trained.gpus} GPUs per node leaves none that learns.",
            hint="Give fewer, or more --num_gpus.",
        )
    files = {data: f"{trained.output_dir}/data/train.jsonl"}
    if evaluated is not None and evaluated != data:
        files[evaluated] = f"{trained.output_dir}/data/eval.jsonl"
    steps: list[Word] = [f"--check={check_option((form,), path)}" for path in files]
    train_file, eval_file = data, evaluated
    if form == "plain":
        for source, made in files.items():
            steps += ["--to-verl", source, made]
        steps.append(Ref(MAIN, "folder", "--prompt=", f"/{PROMPT}"))
        train_file = files[data]
        if evaluated is not None:
            eval_file = files[evaluated]
    prompt, answer = _sequence_lengths(parsed, trained.model, placement)
    training = verl.Verl(
        run=trained,
        prompt=prompt,
        answer=answer,
        prompt_data=train_file,
        eval_data=eval_file,
        backend=backend,
        graded=form == "plain",
        module=options.script_module,
        config_dir=options.verl_config_dir,
        config_name=options.verl_config_name,
        tools=placement.data(options.tools, "--tools"),
        staleness=options.staleness,
        samplers=options.rollout_gpus,
        loss=options.loss,
        entropy=options.entropy_bonus,
        lora_rank=options.lora_rank,
    )
    services = reward_services(options)
    if trained.save_by is not None:
        steps.append(f"--deadline={trained.save_by}")
    if training.saves_in_time:
        steps.append(f"--stopped-file={trained.checkpoints}/{verl_saving.STOPPED}")
        if "trainer.save_freq" not in parsed.overrides:
            steps += ["--without", verl_saving.NEEDS, "trainer.save_freq=1"]
    script = InsideScript(
        [*training.words(), *(f"++{key}={value}" for key, value in parsed.overrides.items())],
        options=[*steps, f"--folder={trained.checkpoints}"],
        nodes=trained.nodes,
        ray="",
        template=options.ray_template,
        judges=judges_of(services),
        judge_address=services.server_address,
        judge_model=services.server_model,
        sandbox=sandbox_of(services, options),
        port=0,
        installation_command=options.installation_command,
    )
    return training, script


def _describe_memory(
    parsed: Parsed[PpoVerlOptions], training: verl.Verl, placement: TrainingPlacement
) -> str | None:
    """Return what each GPU that learns needs; None where the model's sizes are not known here, or another backend
    divides it."""
    shape = shape_here(training.run.model, placement.paths)
    if shape is None or training.backend != "fsdp":
        return None
    length = training.prompt + training.answer
    samplers = 0 if training.staleness is None else training.samplers
    critic = parsed.overrides.get("algorithm.adv_estimator", "gae") == "gae"
    step = ClusterStep(
        devices=(training.run.gpus - samplers) * training.run.nodes,
        tokens=key_as_number(parsed.overrides, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu")
        or max(length, verl.MICRO_TOKENS),
        length=length,
        logit_bytes=verl.LOGIT_BYTES,
        rank=training.lora_rank,
        checkpointing=parsed.overrides.get("actor_rollout_ref.model.enable_gradient_checkpointing", "true")
        == "true",
        models=2 if critic else 1,
    )
    return memory_line(shape, step)


def _sequence_lengths(parsed: Parsed[PpoVerlOptions], model: str, placement: TrainingPlacement) -> tuple[int, int]:
    """Return the tokens of prompt and answer: verl's own keys where they are set, else a quarter and the rest of a
    sequence."""
    prompt = key_as_number(parsed.overrides, "data.max_prompt_length")
    answer = key_as_number(parsed.overrides, "data.max_response_length")
    if prompt is None or answer is None:
        length = placement.sequence_length(parsed.options.max_length, model, verl.LENGTH)
        prompt = prompt or length // 4
        answer = answer or max(1, length - prompt)
    return prompt, answer


def _add_training(
    plan: Plan, training: verl.Verl, script: InsideScript, options: PpoVerlOptions, placement: TrainingPlacement
) -> JobDict:
    trained = training.run
    command = Command(script, container=placement.container(CONTAINER), name=MAIN)
    group = placement.group(command, placement.logs(trained.output_dir), gpus=trained.gpus, nodes=trained.nodes)
    outputs = [trained.output_dir, placement.paths.path_in_job(options.prompt_data, "--prompt_data")]
    if trained.model.startswith("/"):
        outputs.append(trained.model)
    return plan.add(
        "ppo",
        with_others(group, script, reward_services(options), options),
        files={PROMPT: one_blank(options.prompt_config)} if training.graded else {},
        outputs=tuple(outputs),
        makes=(trained.output_dir,),
        copies=options.dependent_jobs,
    )


def _add_harvest(
    plan: Plan,
    trained: TrainerRun,
    backend: str,
    target: str,
    needs: JobDict,
    placement: TrainingPlacement,
    *,
    pairs: bool,
) -> None:
    made = f"{trained.output_dir}/{LORA}" if pairs else target
    options = [
        f"--checkpoints={trained.checkpoints}",
        f"--prefix={verl.PREFIX}",
        "--step=last",
        f"--target={made}",
        f"--model={trained.model}",
    ]
    script = InsideScript(verl.converter_words(backend), module=HARVEST, options=options)
    command = Command(script, container=placement.container(CONTAINER), name=MAIN)
    group = placement.group(command, placement.logs(trained.output_dir), gpus=trained.gpus)
    converted = plan.add("convert", [group], [needs], outputs=(trained.output_dir, made), makes=(made,))
    if pairs:
        add_merge(plan, made, f"{made}/{verl.PAIRS}", target, converted, trained, placement)
