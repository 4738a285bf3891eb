# SPDX-License-Identifier: Apache-2.0
"""Typed scripts of clients: what `ns generate`, `ns eval` and `ns summarize_results` are inside a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from newskills.base.errors import ConfigError
from newskills.base.plan import Script, Word
from newskills.launch.scripts.script import (
    Context,
    JobScript,
    SandboxScript,
    ServerScript,
    sandbox_secrets,
    server_secrets,
)

DEFAULT_SCRIPT = "nemo_skills.inference.generate"
"""What NeMo-Skills calls its generation program; here it means our own."""


def ns_words(context: Context, command: str) -> tuple[Word, ...]:
    """Return the argv of one of our own commands, told not to look for a cluster again."""
    return (context.python, "-m", "newskills", command, "--cluster=none")


@dataclass(eq=False)
class ModelClientScript(JobScript):
    """What the clients of models share.

    extra_arguments             `++key=value …` and options, as text or words
    preprocess_cmd              shell text before; postprocess_cmd: after, where all went well
    servers                     of this job; None at the place of a model that is hosted elsewhere
    server_addresses_prehosted  for these
    model_names, server_types   of all models in order; of `servers` they are known
    requirements                packages that pip installs before
    """

    _: KW_ONLY
    output_dir: str
    extra_arguments: str | Sequence[str] = ""
    preprocess_cmd: str | None = None
    postprocess_cmd: str | None = None
    wandb_parameters: Mapping[str, Any] | None = None
    with_sandbox: bool = False
    sandbox: SandboxScript | None = None
    requirements: Sequence[str] = ()
    servers: Sequence[ServerScript | None] = ()
    server_addresses_prehosted: Sequence[str | None] = ()
    model_names: Sequence[str] = ()
    server_types: Sequence[str] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in (self.output_dir,) if path.startswith("/"))

    def words(self, context: Context) -> list[Word]:
        """Return the options that say what to do."""
        raise NotImplementedError

    def build(self, context: Context) -> Script:
        argv = [*self.words(context), *self._model_words(context), *self._sandbox_words(context)]
        argv += _option_words(self.wandb_parameters or {}, "wandb_")
        argv += _split_words(self.extra_arguments)
        keys = dict.fromkeys(name for server in self.servers for name in server_secrets(server, context))
        secrets = (*keys, *sandbox_secrets(self.sandbox, context))
        setup = [self.installation_command or ""]
        if self.requirements:
            setup.append(shlex.join([context.python, "-m", "pip", "install", *self.requirements]))
        return self._script(
            wrap_command(argv, self.preprocess_cmd, self.postprocess_cmd),
            context,
            secrets=secrets,
            setup="\n".join(text for text in setup if text),
        )

    def _model_words(self, context: Context) -> list[Word]:
        count = max(len(self.servers), len(self.server_addresses_prehosted), len(self.model_names))
        servers = _fill_values(self.servers, count)
        prehosted = _fill_values(self.server_addresses_prehosted, count)
        names, kinds = _fill_values(self.model_names, count), _fill_values(self.server_types, count)
        words: list[Word] = []
        for index, server in enumerate(servers):
            if server is not None:
                name, kind = names[index] or server.name, kinds[index] or server.server_type
                ref = context.ref(server)
                words += [f"--model={name}", f"--server_type={kind}", _with_option("--server_address=", ref)]
                continue
            if names[index]:
                words.append(f"--model={names[index]}")
            if kinds[index]:
                words.append(f"--server_type={kinds[index]}")
            if prehosted[index]:
                words.append(f"--server_address={prehosted[index]}")
        return words

    def _sandbox_words(self, context: Context) -> list[Word]:
        if self.sandbox is None:
            if self.with_sandbox:
                return ["--with_sandbox"]
            return []
        host, port = context.ref(self.sandbox, "host"), context.ref(self.sandbox, "port")
        return ["--with_sandbox", _with_option("++sandbox.host=", host), _with_option("++sandbox.port=", port)]


@dataclass(eq=False)
class GenerationClientScript(ModelClientScript):
    """`ns generate` for one seed and chunk.

    script  program of the user's instead of our own (a module for --generation_module)
    """

    _: KW_ONLY
    input_file: str | None = None
    input_dir: str | None = None
    random_seed: int | None = None
    chunk_id: int | None = None
    num_chunks: int | None = None
    script: str = DEFAULT_SCRIPT

    @property
    def paths(self) -> tuple[str, ...]:
        places = (self.output_dir, self.input_file, self.input_dir)
        return tuple(path for path in places if path and path.startswith("/"))

    def words(self, context: Context) -> list[Word]:
        """Return the words of `ns generate`. Raises ConfigError for `chunk_id` without `num_chunks`, and the
        reverse."""
        if (self.chunk_id is None) != (self.num_chunks is None):
            raise ConfigError(f"Command '{context.own}': chunk_id and num_chunks go together.")
        generation_module = None if self.script == DEFAULT_SCRIPT else self.script
        options = {
            "output_dir": self.output_dir,
            "input_file": self.input_file,
            "input_dir": self.input_dir,
            "random_seeds": self.random_seed,
            "num_chunks": self.num_chunks,
            "chunk_ids": self.chunk_id,
            "generation_module": generation_module,
        }
        return [*ns_words(context, "generate"), *_option_words(options)]


@dataclass(eq=False)
class EvalScript(ModelClientScript):
    """`ns eval` of `benchmarks` (`name[:N],…`)."""

    _: KW_ONLY
    benchmarks: str

    def words(self, context: Context) -> list[Word]:
        return [
            *ns_words(context, "eval"),
            *_option_words({"benchmarks": self.benchmarks, "output_dir": self.output_dir}),
        ]


@dataclass(eq=False)
class SummarizeScript(JobScript):
    """`ns summarize_results`, or another command over a results folder: tables and metrics.json."""

    results_dir: str
    _: KW_ONLY
    command: str = "summarize_results"
    benchmarks: str | None = None
    extra_arguments: str | Sequence[str] = ""
    wandb_parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        if self.results_dir.startswith("/"):
            return (self.results_dir,)
        return ()

    def build(self, context: Context) -> Script:
        options = [
            *_option_words({"benchmarks": self.benchmarks}),
            *_option_words(self.wandb_parameters, "wandb_"),
        ]
        words = (*ns_words(context, self.command), *options, *_split_words(self.extra_arguments))
        return self._script((*words, "--", self.results_dir), context)


@dataclass(eq=False)
class PrepareDataScript(JobScript):
    """`ns prepare_data`. `settings`: its options, as the job sees paths."""

    benchmarks: Sequence[str]
    _: KW_ONLY
    splits: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def build(self, context: Context) -> Script:
        splits = [f"--split={split}" for split in self.splits]
        words = (*ns_words(context, "prepare_data"), *_option_words(self.settings), *splits)
        return self._script((*words, "--", *self.benchmarks), context)


def _option_words(values: Mapping[str, Any], prefix: str = "") -> list[Word]:
    """Return options `--name=value`; nothing for None, `--name` or `--no_name` for booleans."""
    words: list[Word] = []
    for name, value in values.items():
        option = name if name.startswith(prefix) else f"{prefix}{name}"
        if value is True:
            words.append(f"--{option}")
        elif value is False:
            words.append(f"--no_{option}")
        elif value is not None:
            words.append(f"--{option}={value}")
    return words


def _split_words(words: str | Iterable[str]) -> list[str]:
    if isinstance(words, str):
        return shlex.split(words)
    return list(words)


def _fill_values(values: Sequence[Any], count: int) -> list[Any]:
    """Fill `values` up to `count`: a single one counts for all, missing ones are None."""
    if len(values) == 1:
        return list(values) * count
    return [*values, *[None] * (count - len(values))]


def _with_option(option: str, ref: Any) -> Word:
    from msgspec.structs import replace

    word: Word = replace(ref, before=option)
    return word


def wrap_command(argv: Sequence[Word], before: str | None, after: str | None) -> tuple[Word, ...]:
    """Wrap `argv` between two shell texts; the first failure ends it all. The words themselves are in no text."""
    if not before and not after:
        return tuple(argv)
    text = "\n".join(filter(None, ["set -e", before, '"$@"', after]))
    return ("bash", "-c", text, "bash", *argv)
