# SPDX-License-Identifier: Apache-2.0
"""A cluster config: where jobs run, in which containers, with which mounts and variables (`cluster_configs/*.yaml`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, UnknownNameError, suggest
from newskills.launch.clusters.names import is_variable, looks_secret
from newskills.launch.registry import EXECUTORS, ExecutorProperties

if TYPE_CHECKING:
    from newskills.base.plan import Command


class SshTunnel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach the machine that submits. Everything else is read from the user's own ssh configuration.

    pre_command  shell text that runs before each remote command (to load modules)
    """

    host: str
    user: str | None = None
    job_dir: str = ""
    identity: str | None = None
    port: int | None = None
    shell: str | None = None
    pre_command: str = ""


class RayClusterOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How executor ray uses a Ray cluster.

    address           of its dashboard, which serves the Jobs API
    namespace         of Ray, in which the jobs' actors live
    default_num_cpus  CPUs that a job takes
    resources         what each job takes besides CPUs and GPUs: name → amount; `memory` in bytes
    partitions        name → such resources, for jobs with --partition=NAME; CPU in them is the number of CPUs
    runtime_env       Ray's own: pip, conda, …; for all jobs, after the nodes are chosen
    image             of containers that all jobs run in, by podman on the nodes; they see job_dir and `mounts`
    autoscaling       the cluster starts nodes as they are needed, so that a job may ask for what no node has now
    lost_nodes        how often a job begins again because its node was lost
    """

    address: str = "http://127.0.0.1:8265"
    namespace: str | None = None
    default_num_cpus: Annotated[float, Meta(ge=0)] = 1
    resources: dict[str, Annotated[float, Meta(ge=0)]] = {}
    partitions: dict[str, dict[str, Annotated[float, Meta(ge=0)]]] = {}
    runtime_env: dict[str, Any] = {}
    image: str | None = None
    autoscaling: bool = False
    lost_nodes: Annotated[int, Meta(ge=0)] = 20


class ClusterConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster, as its YAML file says; `name` is the file's.

    containers         name → image (`dockerfile:PATH`, a reference, or an absolute .sqsh path)
    mounts             `src:dst[:ro|rw]`, with ${VAR} and {VAR}
    env_vars           `NAME` (copied from the launching shell) or `NAME=value`
    required_env_vars  the same, and an error where the name is not set
    timeouts           partition → HH:MM:SS or D-HH:MM:SS
    job_dir            folder of experiments on a shared filesystem
    """

    executor: str = "none"
    name: str = "none"
    containers: dict[str, str] = {}
    mounts: list[str] = []
    env_vars: list[str] = []
    required_env_vars: list[str] = []
    skip_hf_home_check: bool = False
    account: str | None = None
    partition: str | None = None
    cpu_partition: str | None = None
    qos: str | None = None
    timeouts: dict[str, str] = {}
    default_timeout: str = "100-00:00:00"
    job_dir: str = ""
    job_name_prefix: str = ""
    dependency_type: Annotated[str, Meta(pattern="^after(any|ok|notok|corr)?$")] = "afterany"
    mail_type: str | None = None
    mail_user: str | None = None
    disable_gpus_per_node: bool = False
    ray_template: str | None = None
    ray: RayClusterOptions = RayClusterOptions()
    jobs: dict[str, Any] = {}
    ssh_tunnel: SshTunnel | None = None
    engine: Annotated[
        str | None,
        Meta(description="container engine of executor local; None: the one installed"),
    ] = None

    @property
    def properties(self) -> ExecutorProperties:
        """Return what its executor can do. Raises UnknownNameError, ConfigError for a plug-in that cannot be loaded."""
        return EXECUTORS.properties(self.executor)

    def mounts_of(self, command: Command) -> Sequence[str]:
        """Return the mounts of a command: its own, else those of the cluster."""
        if command.mounts is None:
            return self.mounts
        return command.mounts


USUAL_CONTAINERS = (
    "nemo-skills",
    "sandbox",
    "nemo-rl",
    "nemo-gym",
    "verl",
    "nemo",
    "comet",
)
"""Names that commands use unasked; server types are such names, too."""

BUILT_IN = {
    "none": ClusterConfig(),
    "local": ClusterConfig(name="local"),
}
"""Clusters that need no file. Both run processes of this machine; containers need images, which a file names."""

CONFIG_FOLDER = "cluster_configs"
EXAMPLES_FOLDER = "examples"
"""Folder in it of files to copy from, which are no clusters."""
CONFIG_SUFFIXES = (".yaml", ".yml")


def load_cluster(
    cluster: str | Mapping[str, Any] | ClusterConfig | None,
    config_dir: str | None,
    environ: Mapping[str, str],
    *,
    say: PrintLine = lambda text: None,
) -> ClusterConfig:
    """Return the cluster that the user means: `cluster` is a name, a path of a YAML file, the keys themselves, or
    nothing.

    Order: keys as they are; a path; NAME.yaml in `config_dir`, in the folder of NEMO_SKILLS_CONFIG_DIR, in
    `./cluster_configs`; built-in. Without a name: the file NEMO_SKILLS_CONFIG, else executor none. A variable
    NEWSKILLS_… is read before its NEMO_SKILLS_… twin. `say` hears of choices that nobody made.
    Raises ConfigError, DataError, UnknownNameError.
    """
    if isinstance(cluster, ClusterConfig):
        return cluster
    if isinstance(cluster, Mapping):
        return from_keys(dict(cluster), "cluster config", environ)
    if not cluster:
        if path := environment_setting("CONFIG", environ):
            return _from_file(Path(path).expanduser(), environ)
        say("no --cluster: working on this machine")
        return BUILT_IN["none"]
    if cluster.startswith("{"):  # keys from Python, on their way through an option
        try:
            return from_keys(msgspec.json.decode(cluster, type=dict[str, Any]), "cluster config", environ)
        except msgspec.DecodeError as error:
            raise ConfigError(f"--cluster is neither a name nor JSON: {error}.") from error
    if cluster.endswith(CONFIG_SUFFIXES) or "/" in cluster:
        return _from_file(Path(cluster).expanduser(), environ)
    folders = config_folders(config_dir, environ)
    for folder in folders:
        for ending in CONFIG_SUFFIXES:
            if (file := folder / f"{cluster}{ending}").is_file():
                return _from_file(file, environ)
    if cluster in BUILT_IN:
        if cluster != BUILT_IN[cluster].executor:
            plain = f"--cluster={cluster} runs plain processes (ns setup writes one with containers)"
            say(f"there is no {cluster}.yaml: {plain}")
        return BUILT_IN[cluster]
    looked = ", ".join(str(folder) for folder in folders)
    names = cluster_names(config_dir, environ)
    own_clusters = ", ".join(name for name in names if name not in BUILT_IN) or "none"
    example = next(
        (file for folder in folders if (file := folder / EXAMPLES_FOLDER / f"{cluster}.yaml").is_file()), None
    )
    write = "ns setup writes one"
    if example:
        write += f"; {example} is an example to copy"
    raise UnknownNameError(
        "cluster", cluster, names, hint=f"Looked in {looked}; clusters there: {own_clusters}. {write}."
    )


def config_folders(config_dir: str | None, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders where cluster configs are looked for, first to last."""
    own_folders = [config_dir, environment_setting("CONFIG_DIR", environ)]
    return [*(Path(folder).expanduser() for folder in own_folders if folder), Path(CONFIG_FOLDER)]


def cluster_names(config_dir: str | None, environ: Mapping[str, str]) -> list[str]:
    """Return the clusters that can be named, built-in ones included."""
    files = [
        file for folder in config_folders(config_dir, environ) if folder.is_dir() for file in folder.iterdir()
    ]
    return sorted({*BUILT_IN, *(file.stem for file in files if file.suffix in CONFIG_SUFFIXES)})


def environment_setting(name: str, environ: Mapping[str, str]) -> str:
    """Return the variable NEWSKILLS_<name>, else NEMO_SKILLS_<name>, else an empty text."""
    return environ.get(f"NEWSKILLS_{name}") or environ.get(f"NEMO_SKILLS_{name}", "")


def from_keys(
    keys: Mapping[str, Any], where: str, environ: Mapping[str, str], *, name: str = "cluster"
) -> ClusterConfig:
    """Return the config from the keys of a cluster config, checked and with variables filled in; `where` is the file,
    for errors.

    Values in `env_vars` are filled in later (`variables.job_variables`): they may be secrets. Raises ConfigError.
    """
    from newskills.launch.clusters.reading import check_keys, error_sentence

    check_keys(keys, ClusterConfig, where)
    if isinstance(tunnel := keys.get("ssh_tunnel"), dict):
        check_keys(tunnel, SshTunnel, where, "ssh_tunnel.")
    if isinstance(ray := keys.get("ray"), dict):
        check_keys(ray, RayClusterOptions, where, "ray.")
    if not keys.get("executor"):
        *names, last = EXECUTORS.built_in()
        raise ConfigError(f"{where}: 'executor' is missing; it can be {', '.join(names)} or {last}.")
    keys_set = {key: value for key, value in keys.items() if value is not None}
    try:
        config = msgspec.convert({"name": name, **keys_set}, ClusterConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(error_sentence(error, where)) from error
    _check_values(config, where)
    return _expand_config(config, where, environ)


def image_of(cluster: ClusterConfig, container: str | None) -> str | None:
    """Return the image of a command's `container`, which is a name in `containers` or an image itself; None: no
    container.

    Some executors use no containers for commands, and neither does a cluster that names none, unless the image itself
    is given: there the usual names stand for plain processes. Raises UnknownNameError.
    """
    if container is None or cluster.properties.containers != "command":
        return None
    if container in cluster.containers:
        return cluster.containers[container]
    if any(mark in container for mark in ":/") or container.endswith(".sqsh"):
        return container
    if cluster.containers:
        raise UnknownNameError(f"container of cluster '{cluster.name}'", container, cluster.containers)
    _check_usual(cluster, container)
    return None


def _check_usual(cluster: ClusterConfig, container: str) -> None:
    if container in USUAL_CONTAINERS:
        return
    from newskills.models.serving import SERVERS

    if container not in (containers := (*USUAL_CONTAINERS, *SERVERS.names())):
        raise UnknownNameError(
            "container",
            container,
            containers,
            hint=f"Cluster '{cluster.name}' has no containers in its config; add: containers: {{{container}: "
            "IMAGE}.",
        )


def python_of(cluster: ClusterConfig, image: str | None) -> str:
    """Return the Python interpreter for a command: this one's own where the command runs on the same machine or disk,
    else `python3`."""
    if image or cluster.ssh_tunnel or not cluster.properties.shares_disks:
        return "python3"
    return sys.executable


def _from_file(path: Path, environ: Mapping[str, str]) -> ClusterConfig:
    from newskills.launch.clusters.reading import read_cluster_file

    return from_keys(read_cluster_file(path), str(path), environ, name=path.stem)


def _check_values(config: ClusterConfig, where: str) -> None:
    from newskills.launch.clusters.expand import variable_names

    if "::" not in config.executor:
        try:
            EXECUTORS.resolve(config.executor)
        except UnknownNameError as error:
            raise ConfigError(f"{where}: {error}") from error
    if config.properties.uses_ray:
        _check_ray(config, where)
    from newskills.launch.clusters.times import seconds_of

    if config.engine is not None:
        _check_engine(config.engine, where)
    for entry in (*config.env_vars, *config.required_env_vars):
        variable, equals, text = entry.partition("=")
        if not is_variable(variable):
            raise ConfigError(f"{where}: '{variable}' is not the name of a variable; write NAME or NAME=value.")
        if equals and text and looks_secret(variable) and not variable_names(text):
            raise ConfigError(
                f"{where}: the value of {variable} is written in the file, and it looks like a secret.",
                hint=f"Set {variable} in your shell, and write only its name there.",
            )
    for text in (*config.timeouts.values(), config.default_timeout):
        try:
            seconds_of(text)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error


def _check_engine(name: str, where: str) -> None:
    from newskills.environments.engines import ENGINES, JOB_ENGINES

    fitting = [
        engine for engine in ENGINES.names() if engine in JOB_ENGINES or ENGINES.properties(engine).like_docker
    ]
    if name not in fitting and not ("::" in name and ENGINES.properties(name).like_docker):
        raise ConfigError(f"{where}: engine is '{name}'; expected {' or '.join(fitting)}{suggest(name, fitting)}")


def _check_ray(config: ClusterConfig, where: str) -> None:
    if config.containers:
        raise ConfigError(
            f"{where}: executor ray has one image for all commands, so 'containers' has no effect.",
            hint="Its nodes are the containers (KubeRay), or ray.image names the image.",
        )
    if config.mounts and config.ray.image is None:
        raise ConfigError(
            f"{where}: jobs of executor ray see what their nodes see, so 'mounts' has no effect.",
            hint="Mounts are for the containers of ray.image.",
        )
    own = config.ray.runtime_env
    if config.ray.image is not None and (others := sorted(own.keys() - {"env_vars", "config"})):
        raise ConfigError(
            f"{where}: Ray takes no ray.runtime_env.{others[0]} beside ray.image.", hint="Put it into the image."
        )
    variables = own.get("env_vars")
    names = variables if isinstance(variables, dict) else ()
    if secret := next((name for name in names if looks_secret(str(name))), None):
        raise ConfigError(
            f"{where}: ray.runtime_env.env_vars has {secret}, which looks like a secret; Ray shows its value.",
            hint=f"Set {secret} in your shell, and write its name in env_vars.",
        )


def _expand_config(config: ClusterConfig, where: str, environ: Mapping[str, str]) -> ClusterConfig:
    from newskills.launch.clusters.expand import at_home, expand_variables
    from newskills.launch.clusters.mounts import parse_mounts

    def filled(text: str) -> str:
        return expand_variables(text, environ, where)

    def filled_path(text: str) -> str:
        """Return a path of the machine that submits; of a machine behind ssh, the home is not known."""
        if config.ssh_tunnel is not None:
            return filled(text)
        return at_home(filled(text), environ)

    tunnel = config.ssh_tunnel
    if tunnel is not None:
        identity = at_home(filled(tunnel.identity), environ) if tunnel.identity else None
        tunnel = msgspec.structs.replace(tunnel, job_dir=filled(tunnel.job_dir), identity=identity)
    mounts = [filled_path(mount) for mount in config.mounts]
    try:
        parse_mounts(mounts)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    folder = filled_path(config.job_dir)
    if tunnel is not None:
        folder = folder or tunnel.job_dir
    if folder and not folder.startswith("/"):
        raise ConfigError(f"{where}: job_dir must be an absolute path, not '{folder}'.")
    if not config.properties.this_machine and not folder:
        raise ConfigError(f"{where}: 'job_dir' is missing: a folder for jobs, on a shared filesystem.")
    return msgspec.structs.replace(
        config,
        mounts=mounts,
        containers={name: filled(image) for name, image in config.containers.items()},
        job_dir=folder,
        ssh_tunnel=tunnel,
    )
