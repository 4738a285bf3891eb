# SPDX-License-Identifier: Apache-2.0
"""What `ns setup` does: the questions, the file, the trial."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, UserError, suggest
from newskills.base.store import atomic_write
from newskills.environments.engines import JOB_ENGINES
from newskills.launch.clusters.config import (
    CONFIG_SUFFIXES,
    ClusterConfig,
    RayClusterOptions,
    config_folders,
    from_keys,
)
from newskills.launch.clusters.mounts import is_reachable, parse_mount, parse_mounts
from newskills.launch.clusters.names import is_file_name
from newskills.launch.clusters.times import seconds_of
from newskills.launch.clusters.trial import engine_of, try_cluster
from newskills.launch.registry import EXECUTORS, ExecutorProperties

if TYPE_CHECKING:
    from newskills.pipelines.start.setup_options import SetupOptions

Answers = dict[str, Any]
Answer = str | list[str]


class Question(Struct, frozen=True, kw_only=True):
    """One thing to ask.

    when     whether to ask, after the answers so far
    fits     whether the option may be given; None: where it would be asked
    default  what an empty answer means
    check    raises ConfigError for an answer that cannot be
    """

    name: str
    text: str
    when: Callable[[Answers], bool] = lambda answers: True
    fits: Callable[[Answers], bool] | None = None
    default: Callable[[Answers], str] = lambda answers: ""
    check: Callable[[Any, Answers], object] = lambda answer, answers: None


class Interview:
    """Answers from options, else from `ask`, which gets a prompt and returns a line, and raises EOFError at its end."""

    def __init__(
        self,
        options: SetupOptions,
        given_names: frozenset[str],
        environ: Mapping[str, str],
        *,
        ask: Callable[[str], str],
        say: PrintLine,
    ) -> None:
        self.options, self.given, self.environ, self.ask, self.say = options, given_names, environ, ask, say
        self.folder = config_folders(options.config_dir, environ)[0]

    @property
    def where_to_look(self) -> str:
        """Return what else to type where `ns` would not look into the folder by itself."""
        searched = [folder.absolute() for folder in config_folders(None, self.environ)]
        if self.folder.absolute() in searched:
            return ""
        return f" --config_dir={self.folder}"

    def answers(self) -> Answers:
        """Collect all answers, checked. Raises ConfigError, also where the input ends."""
        answers: Answers = {}
        for question in _setup_questions(self.environ):
            if question.name in self.given:
                answer = getattr(self.options, question.name)
                if not (question.fits or question.when)(answers):
                    case = f"executor {answers['executor']}"
                    if question.name.startswith("ssh_"):
                        case += " without --ssh_host"
                    raise ConfigError(f"--{question.name} cannot be used with {case}.")
                question.check(answer, answers)
                answers[question.name] = answer
            elif question.when(answers):
                answers[question.name] = self.answer(question, answers)
            if question.name == "name":
                self.check_free(answers["name"])
        return {**answers, "ssh_port": self.options.ssh_port, "engine": self.options.engine}

    def answer(self, question: Question, answers: Answers) -> str:
        """Return what was typed, or the default; ask again where that does not fit.

        Raises ConfigError where the input ends, or with `--non_interactive` where the default does not fit.
        """
        default = question.default(answers)
        if self.options.non_interactive:
            try:
                question.check(default, answers)
            except ConfigError as error:
                raise ConfigError(f"--{question.name}: {error}") from error
            return default
        prompt = question.text
        if default:
            prompt += f" [{default}]"
        while True:
            try:
                text = self.ask(f"{prompt}: ") or default
                question.check(text, answers)
                return text
            except EOFError as error:
                raise ConfigError(
                    "The input ended before all questions were answered; nothing was written.",
                    hint="With --non_interactive, the answers are options and defaults.",
                ) from error
            except UserError as error:
                self.say(f"  {error}")

    def check_free(self, name: str) -> None:
        """Ask before another file is replaced. Raises ConfigError."""
        path = self.folder / f"{name}{CONFIG_SUFFIXES[0]}"
        if not path.exists() or self.options.overwrite:
            return
        if not self.options.non_interactive:
            try:
                if self.ask(f"{path} exists. Replace it? [no]: ").lower() in ("y", "yes"):
                    return
            except EOFError:
                pass
        raise ConfigError(f"{path} exists; it was not changed.", hint="Give another --name, or --overwrite.")


def write_config(answers: Answers, folder: Path, environ: Mapping[str, str]) -> tuple[Path, ClusterConfig]:
    """Write the file, whole or not at all, and return its path and what it says. Raises ConfigError, StorageError."""
    path, cluster, text = compose_config(answers, folder, environ)
    with atomic_write(path) as file:
        file.write(text.encode())
    return path, cluster


def compose_config(answers: Answers, folder: Path, environ: Mapping[str, str]) -> tuple[Path, ClusterConfig, str]:
    """Return the file's path, what it says, and its text. Raises ConfigError."""
    import yaml

    path = folder / f"{answers['name']}{CONFIG_SUFFIXES[0]}"
    keys = config_keys(answers)
    cluster = from_keys(keys, str(path), environ, name=answers["name"])
    text = yaml.safe_dump(keys, sort_keys=False, allow_unicode=True, width=1000)
    return path, cluster, f"# Cluster config of newskills, written by `ns setup`.\n{text}"


def config_keys(answers: Answers) -> dict[str, Any]:
    """Return the answers as the keys of a cluster config; empty ones are left out."""
    keys: dict[str, Any] = {"executor": answers["executor"]}
    tunnel = {key: answers.get(f"ssh_{key}") or None for key in ("host", "user", "identity", "port")}
    if tunnel["host"]:
        keys["ssh_tunnel"] = {key: value for key, value in tunnel.items() if value is not None}
    for key in ("job_dir", "account", "partition", "cpu_partition", "qos", "engine"):
        if answers.get(key):
            keys[key] = answers[key]
    if address := answers.get("ray_address"):
        keys["ray"] = {"address": address}
    if limit := answers.get("time_limit"):
        if answers.get("partition"):
            keys["timeouts"] = {answers["partition"]: limit}
        else:
            keys["default_timeout"] = limit
    if containers := _parse_images(answers.get("containers", "")):
        keys["containers"] = containers
    if mounts := _split_answer(answers.get("mounts", "")):
        keys["mounts"] = mounts
    variables = _split_answer(answers.get("env_vars", ""))
    if home := answers.get("hf_home"):
        variables = [
            *(variable for variable in variables if variable.partition("=")[0] != "HF_HOME"),
            f"HF_HOME={home}",
        ]
    elif containers and not any(variable.partition("=")[0] == "HF_HOME" for variable in variables):
        keys["skip_hf_home_check"] = True
    if variables:
        keys["env_vars"] = variables
    return keys


def try_and_tell(
    cluster: ClusterConfig, environ: Mapping[str, str], *, say: PrintLine, pull: bool = False
) -> bool:
    """Test the cluster and print each result; return whether everything that the config promises is there."""
    trials = try_cluster(cluster, environ)
    for trial in trials:
        say(f"  [{trial.state}] {trial.what}: {trial.text}")
    ok = all(trial.ok for trial in trials)
    if pull:
        return _pull_images(cluster, environ, say) and ok
    return ok


def _pull_images(cluster: ClusterConfig, environ: Mapping[str, str], say: PrintLine) -> bool:
    from newskills.launch.machines.ssh import shell_of

    shell = shell_of(cluster, environ)
    engine = None
    if _pulls_images(cluster.properties):
        engine = engine_of(shell, cluster)
    if engine is None:
        raise ConfigError("--pull_images needs executor local and a container engine that answers.")
    ok = True
    for image in dict.fromkeys(cluster.containers.values()):
        if not image.startswith("dockerfile:"):
            done = shell.run([engine, "pull", image])
            line = f"  [ok] {image}"
            if done.code:
                ok = False
                line = ": ".join([f"  [wrong] {image}", *done.err.strip().splitlines()[-1:]])
            say(line)
    return ok


def _setup_questions(environ: Mapping[str, str]) -> list[Question]:
    """Return the questions in the order in which they are asked."""
    home = "${HOME}" if environ.get("HOME") else ""
    return [
        Question(
            name="executor",
            text="Where do jobs run? none (processes of this machine), local (containers of this machine), slurm "
            "or ray",
            default=lambda answers: _likely_executor(),
            check=lambda text, answers: _one_of(text, tuple(EXECUTORS.built_in())),
        ),
        Question(name="name", text="Name of the cluster", default=lambda a: str(a["executor"]), check=_check_name),
        *_questions_of_queues(home),
        *_questions_of_containers(environ, home),
        Question(
            name="env_vars",
            text="Variables, NAME (copied from your shell) or NAME=value, comma separated",
            check=lambda text, answers: from_keys(
                {"executor": "none", "env_vars": _split_answer(text)}, "env_vars", environ
            ),
        ),
    ]


def _if_executor(fits: Callable[[ExecutorProperties], bool]) -> Callable[[Answers], bool]:
    """Return the condition that the executor of the answers has properties that fit."""
    return lambda answers: fits(EXECUTORS.properties(answers["executor"]))


def _pulls_images(properties: ExecutorProperties) -> bool:
    return properties.this_machine and properties.containers == "command"


def _questions_of_queues(home: str) -> list[Question]:
    accounts, ray = (
        _if_executor(lambda executor: executor.has_accounts),
        _if_executor(lambda executor: executor.uses_ray),
    )
    queue = _if_executor(lambda executor: not executor.this_machine)

    def over_ssh(answers: Answers) -> bool:
        return bool(answers.get("ssh_host"))

    return [
        Question(name="ssh_host", text="Machine to submit from, by ssh (empty: this machine)", when=queue),
        Question(name="ssh_user", text="User name there (empty: as in ~/.ssh/config)", when=over_ssh),
        Question(name="ssh_identity", text="Key file (empty: as in ~/.ssh/config)", when=over_ssh),
        Question(
            name="ray_address",
            text="Address of Ray's dashboard",
            when=ray,
            default=lambda answers: RayClusterOptions().address,
        ),
        Question(
            name="job_dir",
            text="Folder for scripts and logs of jobs, on a shared filesystem",
            when=queue,
            fits=lambda answers: True,
            default=lambda answers: "" if answers.get("ssh_host") or not home else f"{home}/newskills-jobs",
            check=_check_folder,
        ),
        Question(name="account", text="Account to charge (empty: none)", when=accounts),
        Question(name="partition", text="Partition (empty: the cluster's default)", when=accounts),
        Question(name="cpu_partition", text="Partition for jobs without GPUs (empty: the same)", when=accounts),
        Question(name="qos", text="Quality of service (empty: none)", when=accounts),
        Question(
            name="time_limit",
            text="Time limit, HH:MM:SS or D-HH:MM:SS",
            when=queue,
            default=lambda answers: "04:00:00",
            check=lambda text, answers: seconds_of(text),
        ),
    ]


def _questions_of_containers(environ: Mapping[str, str], home: str) -> list[Question]:
    boxes = _if_executor(lambda executor: executor.containers == "command")
    mounts_home = _if_executor(_pulls_images)
    return [
        Question(
            name="containers",
            text="Images, NAME=IMAGE, comma separated (empty: no containers)",
            when=boxes,
            check=lambda text, answers: _parse_images(text),
        ),
        Question(
            name="mounts",
            text="Mounts, src:dst[:ro|rw], comma separated",
            when=boxes,
            default=lambda answers: f"{home}:/workspace" if home and mounts_home(answers) else "",
            check=lambda text, answers: [_check_mount(mount, environ) for mount in _split_answer(text)],
        ),
        Question(
            name="hf_home",
            text="Folder of the Hugging Face cache, as jobs see it (empty: none)",
            when=_if_executor(lambda executor: not executor.in_process),
            check=lambda text, answers: _check_cache(text, answers, environ),
        ),
    ]


def _likely_executor() -> str:
    if shutil.which("sbatch"):
        return "slurm"
    if any(shutil.which(engine) for engine in JOB_ENGINES):
        return "local"
    return "none"


def _one_of(text: str, names: tuple[str, ...]) -> None:
    if text not in names:
        raise ConfigError(f"'{text}' is not one of the choices{suggest(text, names)}")


def _check_name(text: str, answers: Answers) -> None:
    if not is_file_name(text):
        raise ConfigError(f"'{text}' is not a file name of letters, digits and _.+=@-.")


def _check_folder(text: str, answers: Answers) -> None:
    if not text.startswith(("/", "~/", "${", "{")):
        raise ConfigError("An absolute path is needed.")


def _check_mount(text: str, environ: Mapping[str, str]) -> str:
    from newskills.launch.clusters.expand import at_home, expand_variables

    filled = at_home(expand_variables(text, environ, "mounts"), environ)
    parse_mount(filled)
    return filled


def _check_cache(text: str, answers: Answers, environ: Mapping[str, str]) -> None:
    mounts = parse_mounts(_check_mount(mount, environ) for mount in _split_answer(answers.get("mounts", "")))
    if text and answers.get("containers") and not is_reachable(text, mounts):
        raise ConfigError(f"{text} is not below a mount, so each job would download its models again.")


def _parse_images(text: Answer) -> dict[str, str]:
    images: dict[str, str] = {}
    for entry in _split_answer(text):
        name, equals, image = entry.partition("=")
        if not equals or not image or not is_file_name(name):
            raise ConfigError(f"'{entry}' is not of the form NAME=IMAGE.")
        images[name] = image
    return images


def _split_answer(text: Answer) -> list[str]:
    if isinstance(text, list):
        return text
    return [part.strip() for part in text.split(",") if part.strip()]
