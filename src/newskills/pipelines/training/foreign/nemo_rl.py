# SPDX-License-Identifier: Apache-2.0
"""What `ns nemo_rl sft` and `ns nemo_rl grpo` do: a chain of training jobs, then the model from their checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.plan import Ref, Word
from newskills.base.records import Row
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup, JobDict
from newskills.pipelines.notices import print_note
from newskills.pipelines.submission.groups import MAIN, main_container
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.training.average_script import AverageScript
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
from newskills.pipelines.training.foreign.options import GrpoNemoRlOptions as GrpoOptions
from newskills.pipelines.training.foreign.options import NemoRlOptions, reward_services
from newskills.train.pipelines import nemo_rl
from newskills.train.pipelines.common import FINAL, STEPS, TrainerRun, step_range, steps_of
from newskills.train.pipelines.estimates import ClusterStep, memory_line
from newskills.train.pipelines.formats import GRPO, SFT, DataFileFacts
from newskills.train.pipelines.inside import check_option

CONTAINER = "nemo-rl"
YAML, PROMPT = "nemo_rl.yaml", "prompt.txt"
"""Files of the training job."""


class Harvest(Struct, frozen=True, kw_only=True):
    """How a Hugging Face folder is made of the checkpoints: of one step, or the mean of several."""

    run: TrainerRun
    backend: nemo_rl.Backend
    root: str
    target: str
    step: str
    average: tuple[int, ...] = ()
    remove: bool = False
    positions: int | None = None

    def harvest_script(self) -> InsideScript:
        steps, target = [self.step], self.target
        if self.average:
            steps = [str(step) for step in self.average]
            target = f"{self.run.output_dir}/{STEPS}/step_{{step}}"
        options = [
            f"--checkpoints={self.run.checkpoints}",
            *(f"--step={step}" for step in steps),
            f"--target={target}",
            f"--model={self.run.model}",
            f"--project={self.root}",
        ]
        if self.positions is not None:
            options.append(f"--max-position-embeddings={self.positions}")
        if self.backend == "fsdp":
            options.append(f"--plain={nemo_rl.WEIGHTS}")
        return InsideScript(nemo_rl.converter_words(self.backend, self.root), module=HARVEST, options=options)

    def averaging_script(self) -> AverageScript:
        folders = [f"{self.run.output_dir}/{STEPS}/step_{step}" for step in self.average]
        if self.remove:
            removed = [f"{self.run.checkpoints}/step_{step}" for step in self.average]
        else:
            removed = []
        return AverageScript(folders, self.target, [*folders, *removed])


def prepare(parsed: Parsed[Any], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare the training, the conversion, and the average. Raises ConfigError, DataError."""
    options: NemoRlOptions = planned_options(parsed)
    judged = isinstance(options, GrpoOptions)
    placement = TrainingPlacement.for_cluster(cluster, options, CONTAINER, "grpo" if judged else "sft")
    model = placement.model(options.model)
    backend = backend_of(options, model, placement.paths)
    check_lora(options, backend)
    if options.lora_rank is not None and not model.startswith("/"):
        raise ConfigError(
            f"--lora_rank merges the pairs into the model, but {model} is a name.", hint="Give its folder."
        )
    trained = placement.trainer_run(model)
    harvest = _make_harvest(options, trained, backend, placement)
    plan = Plan()
    needs: list[JobDict] = []
    shown: dict[str, object] = {"writes": trained.output_dir, "model": harvest.target, "backend": backend}
    if not options.run_conversion_only:
        training = _make_training(parsed, trained, backend, placement)
        shown |= {"program": training.program, "training data": training.training_data, "form": training.form}
        needs.append(_add_training(plan, training, parsed, placement))
        shown["tokens of a sequence"] = training.length
        if (memory := _describe_memory(parsed, training, placement)) is not None:
            shown["memory"] = memory
        if training.graded:
            shown["reward"] = "the math grader"
    _add_harvest(plan, harvest, needs, placement, pairs=options.lora_rank is not None)
    return prepare_submission(placement.name, plan, cluster, options, shown)


run, train_with_nemo_rl = job_functions(prepare)


def _make_harvest(
    options: NemoRlOptions, trained: TrainerRun, backend: nemo_rl.Backend, placement: TrainingPlacement
) -> Harvest:
    average = steps_of(options.average_steps, "--average_steps")
    if len(average) == 1:
        raise ConfigError(
            f"--average_steps={options.average_steps}: an average needs at least two steps.",
            hint="For one step: --conversion_step=N.",
        )
    if average and options.lora_rank is not None:
        raise ConfigError("LoRA pairs are not averaged.", hint="Leave out --average_steps or --lora_rank.")
    if options.remove_checkpoints_after_average and not average:
        raise ConfigError("--remove_checkpoints_after_average needs --average_steps.")
    step = options.conversion_step
    if step != "last" and not (step.isascii() and step.isdigit()):
        raise ConfigError(f"--conversion_step={step}: expected last or the number of a step.")
    target = placement.data(options.final_hf_path, "--final_hf_path") or f"{trained.output_dir}/{FINAL}"
    if average and placement.paths.local_path(target) is not None:
        raise ConfigError(
            f"{target} already exists, so the average cannot be written there.",
            hint="Give another --final_hf_path, or remove it.",
        )
    return Harvest(
        run=trained,
        backend=backend,
        root=options.nemo_rl_path,
        target=target,
        step=step,
        average=tuple(average),
        remove=options.remove_checkpoints_after_average,
        positions=options.max_position_embeddings,
    )


def _make_training(
    parsed: Parsed[Any], trained: TrainerRun, backend: nemo_rl.Backend, placement: TrainingPlacement
) -> nemo_rl.NemoRl:
    options: NemoRlOptions = parsed.options
    data = placement.data(options.training_data, "--training_data")
    if data is None:
        raise ConfigError("No training data is given. Give --training_data (JSONL).")
    if isinstance(options, GrpoOptions):
        forms, loss, entropy = GRPO, options.loss, options.entropy_bonus
    else:
        forms, loss, entropy = SFT, None, 0.0
    data_file = placement.data_facts(data, forms, options.data_format)
    form = form_of(data_file, forms, options.data_format)
    if data_file is not None and data_file.both and form == "messages":
        print_note(
            "the rows have both messages and input, output: messages is used, with the tokenizer's chat template"
        )
    validation = placement.data(options.validation_data, "--validation_data")
    if validation is not None:
        placement.data_facts(validation, (form,), form)
    length = key_as_number(parsed.overrides, "policy.max_total_sequence_length")
    length = length or placement.sequence_length(options.max_length, trained.model, nemo_rl.LENGTH)
    algorithm: nemo_rl.Algorithm = "grpo"
    steps = None
    if forms is SFT:
        algorithm, steps = "sft", _known_steps(parsed, data_file)
    elif form == "gym":
        algorithm = "gym"
    return nemo_rl.NemoRl(
        run=trained,
        length=length,
        steps=steps,
        rate=_learning_rate(parsed, backend),
        algorithm=algorithm,
        backend=backend,
        training_data=data,
        validation_data=validation,
        form=form,
        tools=data_file is not None and data_file.tools and form == "messages",
        root=options.nemo_rl_path,
        parent=placement.data(options.config, "--config"),
        loss=loss,
        entropy=entropy,
        lora_rank=options.lora_rank,
    )


def _describe_memory(parsed: Parsed[Any], training: nemo_rl.NemoRl, placement: TrainingPlacement) -> str | None:
    """Return what each GPU needs; None where the model's sizes are not known here, or another backend divides it."""
    shape = shape_here(training.run.model, placement.paths)
    if shape is None or training.backend != "fsdp":
        return None
    micro = key_as_number(parsed.overrides, "policy.train_micro_batch_size", training.micro_batch_size) or 1
    step = ClusterStep(
        devices=training.run.gpus * training.run.nodes,
        tokens=micro * training.length,
        length=training.length,
        logit_bytes=nemo_rl.LOGIT_BYTES,
        rank=training.lora_rank,
        checkpointing=parsed.overrides.get("policy.dtensor_cfg.activation_checkpointing") == "true",
    )
    return memory_line(shape, step)


def _known_steps(parsed: Parsed[Any], data_file: DataFileFacts | None) -> int | None:
    """Return the updates of a fine-tuning, as far as they are known: from a number of steps, or of epochs of known
    data; None: unknown."""
    steps = key_as_number(parsed.overrides, "sft.max_num_steps")
    epochs = key_as_number(parsed.overrides, "sft.max_num_epochs")
    batch = key_as_number(
        parsed.overrides, "policy.train_global_batch_size", None if parsed.options.config else nemo_rl.SFT_BATCH
    )
    if epochs and batch and data_file is not None and data_file.rows >= 0:
        steps = min(steps or nemo_rl.FOREVER, max(1, epochs * (data_file.rows // batch)))
    if steps is None:
        print_note(
            "the number of steps is not known, so the learning rate stays constant; ++sft.max_num_steps=N or "
            "++sft.max_num_epochs=N lets it decay to its end"
        )
    return steps


def _learning_rate(parsed: Parsed[Any], backend: nemo_rl.Backend) -> float:
    key = "policy.megatron_cfg.optimizer.lr" if backend == "megatron" else "policy.optimizer.kwargs.lr"
    value = parsed.overrides.get(key)
    try:
        if value is None:
            return nemo_rl.RATE
        return float(value)
    except ValueError as error:
        raise ConfigError(f"++{key}={value}: expected a number.") from error


def _add_training(
    plan: Plan, training: nemo_rl.NemoRl, parsed: Parsed[Any], placement: TrainingPlacement
) -> JobDict:
    options: NemoRlOptions = parsed.options
    trained = training.run
    words: list[Word] = [*training.words(), Ref(MAIN, "folder", after=f"/{YAML}")]
    files = {YAML: _yaml_text(training.config())}
    if training.algorithm == "grpo" and isinstance(options, GrpoOptions):
        words.append(Ref(MAIN, "folder", "++data.default.prompt_file=", f"/{PROMPT}"))
        files[PROMPT] = one_blank(options.prompt_config)
    words += [f"++{key}={value}" for key, value in parsed.overrides.items()]
    checked = [path for path in (training.training_data, training.validation_data) if path is not None]
    services = reward_services(options)
    inside = [f"--check={check_option((training.form,), path)}" for path in checked]
    inside += [f"--project={training.root}", f"--folder={trained.checkpoints}", f"--stopped={nemo_rl.STOPPED}"]
    if training.graded:
        inside.append(f"--needs={nemo_rl.NEEDS}")
    script = InsideScript(
        words,
        options=inside,
        nodes=trained.nodes,
        ray=nemo_rl.RAY_RESOURCES,
        template=options.ray_template,
        env=_profiling_variables(options),
        judges=judges_of(services),
        judge_address=services.server_address,
        judge_model=services.server_model,
        sandbox=sandbox_of(services, options),
        port=0,
        installation_command=options.installation_command,
    )
    command = Command(script, container=placement.container(CONTAINER), name=MAIN)
    group = placement.group(command, placement.logs(trained.output_dir), gpus=trained.gpus, nodes=trained.nodes)
    groups = with_others(group, script, services, options)
    outputs = [trained.output_dir, *checked]
    if trained.model.startswith("/"):
        outputs.append(trained.model)
    name = "sft" if training.algorithm == "sft" else "grpo"
    made = (trained.output_dir,)
    return plan.add(name, groups, files=files, outputs=tuple(outputs), makes=made, copies=options.dependent_jobs)


def _profiling_variables(options: NemoRlOptions) -> dict[str, Word]:
    if options.profile_step_range is None:
        return {}
    steps = step_range(options.profile_step_range)
    return {"NRL_NSYS_PROFILE_STEP_RANGE": steps, "NRL_NSYS_WORKER_PATTERNS": nemo_rl.PROFILED}


def _add_harvest(
    plan: Plan, harvest: Harvest, needs: Sequence[JobDict], placement: TrainingPlacement, *, pairs: bool
) -> None:
    logs = placement.logs(harvest.run.output_dir)
    target = harvest.target
    if pairs:
        harvest = replace(harvest, target=f"{harvest.run.output_dir}/{LORA}")
    outputs = (harvest.run.output_dir, harvest.target)
    command = Command(harvest.harvest_script(), container=placement.container(CONTAINER), name=MAIN)
    group = placement.group(command, logs, gpus=harvest.run.gpus)
    converted = plan.add("convert", [group], needs, outputs=outputs, makes=(harvest.target,))
    if pairs:
        add_merge(plan, harvest.run.model, harvest.target, target, converted, harvest.run, placement)
    if not harvest.average:
        return
    averaging = Command(harvest.averaging_script(), container=main_container(placement.options), name=MAIN)
    group = CommandGroup([averaging], hardware=placement.group(averaging, None).hardware, name=MAIN, log_dir=logs)
    plan.add("average", [group], [converted], outputs=outputs, makes=(f"{harvest.target} (average)",))


def _yaml_text(config: Row) -> str:
    return yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=110)
