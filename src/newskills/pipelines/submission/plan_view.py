# SPDX-License-Identifier: Apache-2.0
"""`--dry_run`: the jobs as a tree, their scripts, and the settings they were made from."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from newskills.base.plan import Command, CommandGroup, Job, Pipeline, Ref, Word
from newskills.base.tables import print_table
from newskills.base.terminal import counted
from newskills.config.layers import Resolved, explain
from newskills.launch.clusters.config import ClusterConfig, image_of
from newskills.launch.executors import make_executor
from newskills.launch.experiments import Experiment
from newskills.launch.job_script import render_scripts
from newskills.launch.place import ExecutorScript, Site
from newskills.launch.submit import site_of
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.spec import mask_addresses

if TYPE_CHECKING:
    from rich.tree import Tree

    from newskills.pipelines.submission.prepared import PreparedSubmission


OF_ONE_UNIT = ("input_file", "output_file", "random_seed", "chunk_id", "inference.random_seed")
SUMMARY = "summarize_results"
WIDEST = 10_000
"""Columns: lines are never cut."""


def show_pipeline(ready: PreparedSubmission, experiment: Experiment) -> None:
    """Print everything; nothing has been or will be submitted."""
    print_tree(ready.submission.pipeline, experiment.cluster)
    rows = [(name, value) for name, value in ready.shown.items()]
    package = experiment.package
    code = package.path
    if package.commit:
        code += f" (commit {package.commit[:12]})"
    sys.stdout.write("\n")
    print_table([*rows, ("code", code), ("folder", experiment.folder)])
    if ready.options.show_scripts:
        show_scripts(ready, experiment)


def print_tree(pipeline: Pipeline, cluster: ClusterConfig) -> None:
    """Print jobs, groups and commands as a tree."""
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(
        Text(f"{pipeline.name} on {cluster.name} (executor {cluster.executor}): {len(pipeline.jobs)} jobs")
    )
    for job in pipeline.order():
        _add_job(tree, job, cluster)
    Console(width=WIDEST).print(tree)


def show_scripts(ready: PreparedSubmission, experiment: Experiment) -> None:
    """Print every file that a job's folder would have."""
    submission = ready.submission
    site = site_of(
        experiment.cluster,
        submission.environ,
        name=experiment.name,
        folder=experiment.folder,
        code=experiment.package.path,
        log_dir=submission.log_dir,
    )
    print_scripts(submission.pipeline, site)


def print_scripts(pipeline: Pipeline, site: Site) -> None:
    """Print every file that a job's folder would have, for a pipeline at its site."""
    place = make_executor(site)
    if not isinstance(place, ExecutorScript):
        return
    for job in pipeline.jobs:
        for name, text in render_scripts(job, site.job_folder(job), place).items():
            sys.stdout.write(f"\n==> {site.folder}/{job.name}/{name} <==\n{text}")


def _add_job(tree: Tree, job: Job, cluster: ClusterConfig) -> None:
    from rich.text import Text

    title, notes = job.name, []
    if after := [*job.depends_on, *job.run_after]:
        notes.append(f"after {', '.join(after)}")
    if job.copies:
        notes.append(f"{job.copies} follow-up jobs resume after the time limit")
    if notes:
        title += f" ({'; '.join(notes)})"
    branch = tree.add(Text(title))
    for group in job.groups:
        if len(job.groups) > 1:
            place = branch.add(Text(f"group {group.name}: {_describe_hardware(group)}"))
        else:
            place = branch
        if len(job.groups) == 1 and group.hardware.num_gpus + group.hardware.num_nodes > 1:
            place = branch.add(Text(_describe_hardware(group)))
        for command in group.commands:
            place.add(Text(_describe_command(command, cluster)))


def _describe_hardware(group: CommandGroup) -> str:
    hardware = group.hardware
    words = [counted(hardware.num_nodes, "node")]
    if hardware.num_gpus:
        words.append(f"{counted(hardware.num_gpus, 'GPU')} each")
    if hardware.partition:
        words.append(f"partition {hardware.partition}")
    return ", ".join(words)


def _describe_command(command: Command, cluster: ClusterConfig) -> str:
    title = f"{command.role} {command.name}"
    if image := image_of(cluster, command.container):
        title += f" in {image}"
    return f"{title}: {_short_command(command.script.argv)}"


def _short_command(words: tuple[Word, ...]) -> str:
    """Return the text of a command; a summary is shown without the check in front of it, which lists all files of the
    results."""
    if SUMMARY in words and words[words.index(SUMMARY) - 1] == "newskills":
        return f"{SUMMARY} …"
    return argv_text(words)


def argv_text(words: tuple[Word, ...]) -> str:
    """Join words as a shell would have them; what the job fills in stands in braces."""
    shown = []
    for word in words:
        if isinstance(word, Ref):
            shown.append(f"{word.before}{{{word.component}.{word.attribute}}}{word.after}")
        else:
            shown.append(shlex.quote(word))
    return " ".join(shown)


def settings_of(resolved: Resolved[GenerationConfig]) -> dict[str, str]:
    """Return the settings that were set, and their sources."""
    rows = [row for row in explain(resolved) if row[2] != "default" and row[0] not in OF_ONE_UNIT]
    return {f"++{key}": f"{mask_addresses(value)}  ({source})" for key, value, source in rows}
