# SPDX-License-Identifier: Apache-2.0
"""`ns average_checkpoints`: the mean of some checkpoints' weights, here or as a job."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from newskills.base.errors import ConfigError, DataError
from newskills.commands._command import Command
from newskills.commands._dry_run import Step, show_dry_run
from newskills.commands._options import PlacementOptions, doc
from newskills.config.command_line import Parsed

if TYPE_CHECKING:
    from newskills.commands._submitting import Prepared
    from newskills.launch.cluster import ClusterConfig

STEP = "step_"
NAME = "average"


class Options(PlacementOptions, frozen=True, kw_only=True):
    checkpoints: Annotated[
        list[str],
        doc("Hugging Face folders of the same model (several words); with --steps the folder they lie in"),
    ]
    output_model: Annotated[str, doc("folder to write; must not be there yet")]
    steps: Annotated[
        str | None, doc("the folders step_N of --checkpoints with these numbers, comma separated")
    ] = None
    remove: Annotated[list[str], doc("folders that are removed once the mean is there, and only then")] = []  # noqa: RUF012 - copied
    remove_checkpoints_after_average: Annotated[bool, doc("remove the checkpoints themselves in that way")] = False


def folders_of(options: Options) -> tuple[list[str], list[str]]:
    """What is averaged, and what is removed afterwards. Raises ConfigError."""
    from newskills.train.pipelines.common import steps_of

    folders = options.checkpoints
    if options.steps is not None:
        if len(folders) != 1:
            raise ConfigError("With --steps, --checkpoints is the one folder that the steps lie in.")
        folders = [f"{folders[0].rstrip('/')}/{STEP}{step}" for step in steps_of(options.steps, "--steps")]
    if len(folders) < 2:
        raise ConfigError("An average needs at least two checkpoints.")
    removed = [*(folders if options.remove_checkpoints_after_average else ()), *options.remove]
    if options.output_model in removed:
        raise ConfigError(f"--remove {options.output_model}: that is where the mean goes.")
    return folders, list(dict.fromkeys(removed))


def run(parsed: Parsed[Options]) -> int:
    from newskills.commands._cluster import placed
    from newskills.commands._submitting import run_prepared

    cluster = placed(parsed.options, parsed.given)
    if cluster is not None:
        return run_prepared(prepare(parsed, cluster), show=("main",))
    return _here(parsed.options)


def _here(options: Options) -> int:
    from newskills.commands._training import require_train
    from newskills.train.convert.merge import average_checkpoints

    folders, removed = folders_of(options)
    target = Path(options.output_model)
    if options.dry_run:
        steps: list[Step] = [("reads", folder, "weights") for folder in folders]
        steps.append(("writes", target, f"the mean of {len(folders)}"))
        show_dry_run([*steps, *(("removes", folder, "once the mean is there") for folder in removed)])
        return 0
    require_train("torch", "safetensors")
    average_checkpoints([Path(folder) for folder in folders], target)
    for folder in removed:
        _remove(Path(folder))
    said = f"; removed {', '.join(removed)}" if removed else ""
    sys.stdout.write(f"{target}: the mean of {len(folders)} checkpoints{said}\n")
    return 0


def _remove(folder: Path) -> None:
    if not folder.is_dir():
        return
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be removed: {error.strerror}. The mean is there.") from error


def prepare(parsed: Parsed[Options], cluster: ClusterConfig) -> Prepared:
    """The same as a job. Raises ConfigError."""
    from newskills.commands._averaging import AverageScript
    from newskills.commands._cluster import paths_of
    from newskills.commands._submitting import prepared
    from newskills.commands._unit_jobs import Plan, job_group, main_container

    options = parsed.options
    paths = paths_of(cluster, main_container(options), options)
    folders, removed = folders_of(options)
    seen = [paths.seen(folder, "--checkpoints") for folder in folders]
    target = paths.seen(options.output_model, "--output_model")
    script = AverageScript(
        seen,
        target,
        [paths.seen(folder, "--remove") for folder in removed],
        installation_command=options.installation_command,
    )
    plan = Plan()
    name = options.expname or NAME
    plan.add(NAME, [job_group(script, options)], outputs=(*seen, target), makes=(target,))
    return prepared(name, plan, cluster, options, {"checkpoints": " ".join(seen), "writes": target})


COMMAND = Command(
    name="average_checkpoints",
    summary="Average the weights of checkpoints of one run, tensor by tensor, here or as a job of a cluster. The "
    "originals stay, unless they are to be removed after it.",
    options=Options,
    run=run,
    prepare=prepare,
    examples=(
        "ns average_checkpoints --checkpoints hf/step-100 hf/step-200 --output_model=hf/mean",
        "ns average_checkpoints --checkpoints hf --steps=100,200 --output_model=hf/mean "
        "--remove_checkpoints_after_average",
    ),
)
