# SPDX-License-Identifier: Apache-2.0
"""What `ns convert` does as a job: a program of others in its container, or our own converter."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import KW_ONLY, dataclass

from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.plan import Script, Word
from newskills.config.command_line import Parsed
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.declarative import Command, CommandGroup
from newskills.launch.scripts.clients import ns_words
from newskills.launch.scripts.script import Context, JobScript
from newskills.pipelines.conversion.options import ConvertOptions
from newskills.pipelines.placement.cluster import ClusterPaths, hardware_of, paths_of
from newskills.pipelines.submission.groups import MAIN, main_container
from newskills.pipelines.submission.job_command import job_functions, planned_options
from newskills.pipelines.submission.plan import Plan
from newskills.pipelines.submission.prepared import PreparedSubmission, prepare_submission
from newskills.pipelines.training.foreign.jobs import HARVEST, InsideScript
from newskills.train.pipelines import nemo_rl
from newskills.train.pipelines.conversion import OWN, Conversion

NAME = "conversion"
LOGS = "conversion-logs"
_STEP = re.compile(r"(?P<folder>.+)/(?P<prefix>[^/]*?)(?P<step>\d+)\Z", re.ASCII)


@dataclass(eq=False)
class ConversionScript(JobScript):
    """`ns convert` between hf and gguf, in a job."""

    asked: Conversion
    _: KW_ONLY

    def build(self, context: Context) -> Script:
        conversion = self.asked
        words: list[Word] = [*ns_words(context, "convert"), f"--input_model={conversion.input_model}"]
        words += [f"--output_model={conversion.output_model}", f"--convert_from={conversion.convert_from}"]
        return self._script([*words, f"--convert_to={conversion.convert_to}"], context)


def prepare(parsed: Parsed[ConvertOptions], cluster: ClusterConfig) -> PreparedSubmission:
    """Prepare one job. Raises ConfigError."""
    options = planned_options(parsed)
    conversion = _conversion_of(options)
    conversion.check()
    own = conversion.pair in OWN
    if own:
        usual_container, gpus = main_container(options), 0
    else:
        usual_container, gpus = conversion.container, options.num_gpus
    container = options.container or usual_container
    paths = paths_of(cluster, container, options)
    if conversion.convert_from == "megatron" and not conversion.of_nemo_rl and conversion.hf_model_name:
        conversion = replace(conversion, hf_model_name=_model_in_job(conversion.hf_model_name, paths))
    conversion = replace(
        conversion,
        input_model=_model_in_job(conversion.input_model, paths),
        output_model=paths.path_in_job(options.output_model, "--output_model"),
    )
    command = Command(_conversion_script(conversion, options, own=own), container=container, name=MAIN)
    logs = None
    if not options.log_dir:
        logs = f"{os.path.dirname(paths.host_path(conversion.output_model))}/{LOGS}"
    group = CommandGroup([command], hardware=hardware_of(options, gpus=gpus), name=MAIN, log_dir=logs)
    plan = Plan()
    name = options.expname or NAME
    visible = [path for path in (conversion.input_model, conversion.output_model) if path.startswith("/")]
    plan.add(
        NAME, [group], outputs=tuple(visible), makes=(conversion.output_model,), copies=options.dependent_jobs
    )
    shown = {
        "from": f"{conversion.input_model} ({conversion.convert_from})",
        "to": f"{conversion.output_model} ({conversion.convert_to})",
    }
    return prepare_submission(name, plan, cluster, options, shown)


run, convert_in_job = job_functions(prepare)


def _conversion_of(options: ConvertOptions) -> Conversion:
    return Conversion(
        input_model=options.input_model,
        output_model=options.output_model,
        convert_from=options.convert_from,
        convert_to=options.convert_to,
        model_type=options.model_type,
        num_gpus=options.num_gpus,
        num_nodes=options.num_nodes,
        hf_model_name=options.hf_model_name,
        dtype=options.dtype,
        calib_dataset=options.calib_dataset,
        calib_size=options.calib_size,
        trt_prepare_args=shlex.split(options.trt_prepare_args),
        trt_reuse_tmp_engine=options.trt_reuse_tmp_engine,
        extra=options.arguments,
    )


def _model_in_job(name: str, paths: ClusterPaths) -> str:
    """Return a path as the job sees it; a name that is not a path of this machine is returned as a name on the hub."""
    if os.path.isabs(name) or (paths.cluster.ssh_tunnel is None and os.path.exists(name)):
        return paths.path_in_job(name, "--input_model")
    return name


def _conversion_script(conversion: Conversion, options: ConvertOptions, *, own: bool) -> JobScript:
    before = options.installation_command
    if own:
        return ConversionScript(conversion, installation_command=before)
    if conversion.of_nemo_rl:
        step = _STEP.match(conversion.input_model)
        if step is None:
            raise ConfigError(
                f"--input_model={conversion.input_model}: expected the folder of one NeMo-RL step (…/step_500)."
            )
        words = [
            f"--checkpoints={step['folder']}",
            f"--prefix={step['prefix']}",
            f"--step={step['step']}",
            f"--target={conversion.output_model}",
            f"--project={conversion.project}",
        ]
        if conversion.convert_from == "dcp":
            words.append(f"--plain={nemo_rl.WEIGHTS}")
        if conversion.hf_model_name:
            words.append(f"--model={conversion.hf_model_name}")
        if options.max_position_embeddings is not None:
            words.append(f"--max-position-embeddings={options.max_position_embeddings}")
        return InsideScript(conversion.words(), module=HARVEST, options=words, installation_command=before)
    return InsideScript(conversion.words(), installation_command=before)
