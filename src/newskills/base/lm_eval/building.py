# SPDX-License-Identifier: Apache-2.0
"""A task of lm_eval from where it is described: with its data, or for scoring alone.

A task file may name Python functions (`!function`), which are imported and run: it is code, as a script is.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.lm_eval.package import full_task_path, keep_templates, require_package
from newskills.base.records import Row

DATA_FAULTS = ("ConnectionError", "DatasetNotFoundError", "OfflineModeIsEnabled", "LocalEntryNotFoundError")
"""What `datasets` and the hub's client raise for data that are not here, by the names of classes."""


class HarnessTask(Struct, frozen=True, kw_only=True):
    """Where a task is described.

    task       its name
    file       YAML file; `lm_eval:…` is one of the package; empty: `config` is all there is
    overrides  what the group says otherwise
    config     of a task that stands in the file of its group
    """

    task: str
    file: str = ""
    overrides: Row = {}
    config: Row = {}

    @property
    def full_name(self) -> str:
        """How errors call it."""
        return f"lm-eval:{self.task}"


class HarnessWishes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How documents become requests: options of `lm_eval run` under the same names."""

    num_fewshot: int | None = None
    apply_chat_template: bool = False
    fewshot_as_multiturn: bool | None = None
    system_instruction: str | None = None
    gen_kwargs: Row = {}

    @property
    def as_turns(self) -> bool:
        """Whether examples are turns of a conversation: with a chat template, unless told otherwise."""
        if self.fewshot_as_multiturn is None:
            return self.apply_chat_template
        return self.fewshot_as_multiturn


class ScoringFacts(Struct, frozen=True, kw_only=True):
    """What a task has seen of its first document, which scoring without data needs.

    features  names of fields
    """

    features: list[str] = []
    multiple_input: int = 0
    multiple_target: int = 0


def build_task(origin: HarnessTask, wishes: HarnessWishes) -> Any:
    """Return the task with its data. Raises ConfigError, DataError."""
    from lm_eval.api.task import ConfigurableTask

    config = _task_config(origin)
    try:
        task = _make_task(config.get("class") or ConfigurableTask, config)
    except Exception as error:
        raise task_error(error, origin, config) from error
    _check_task(origin, programs=getattr(task, "UNSAFE_CODE", False), media=getattr(task, "MULTIMODAL", False))
    _apply_options(task, wishes)
    return task


def _check_task(origin: HarnessTask, *, programs: Any, media: Any) -> None:
    """Raise ConfigError for a task that is not run here."""
    if media:
        raise ConfigError(
            f"{origin.full_name} shows images or plays sound, which tasks of lm_eval do not do here."
        )
    if programs:
        raise ConfigError(
            f"{origin.full_name} runs programs of the model on this machine, outside any sandbox, so it is not run.",
            hint="Benchmarks of newskills run them in its sandbox: ns list benchmarks code",
        )


def scoring_task(origin: HarnessTask, wishes: HarnessWishes, doc: Any, facts: ScoringFacts) -> Any:
    """Return the task without data, for its filters, `process_results` and aggregations. Raises ConfigError."""
    from lm_eval.api.task import ConfigurableTask

    config = _task_config(origin)
    try:
        task = _make_task(_without_data(config.get("class") or ConfigurableTask, doc, facts.features), config)
    except Exception as error:
        raise task_error(error, origin, config) from error
    if hasattr(task, "multiple_input"):
        task.multiple_input, task.multiple_target = facts.multiple_input, facts.multiple_target
    _apply_options(task, wishes)
    return task


def facts_of(task: Any, doc: Any) -> ScoringFacts:
    """Return what scoring needs to know of a task with data."""
    features = doc if isinstance(doc, dict) else ()
    return ScoringFacts(
        features=list(getattr(task, "features", features)),
        multiple_input=int(getattr(task, "multiple_input", 0)),
        multiple_target=int(getattr(task, "multiple_target", 0)),
    )


def describe_task(origin: HarnessTask) -> Row:
    """Return the settings of a task as its file says them, without data; functions are imported. Raises ConfigError."""
    require_package()
    from lm_eval.tasks._yaml_loader import load_yaml

    try:
        if origin.file:
            raw = load_yaml(full_task_path(origin.file), resolve_func=False)
        else:
            raw = origin.config
    except Exception as error:
        raise task_error(error, origin, {}) from error
    # Before the functions are imported: code for programs or images may load what is not here.
    _check_task(origin, programs=raw.get("unsafe_code"), media=raw.get("doc_to_image") or raw.get("doc_to_audio"))
    return _task_config(origin)


def task_error(error: Exception, origin: HarnessTask, config: Row) -> ConfigError | DataError:
    """Return what an exception of a task means for who runs it."""
    if isinstance(error, ModuleNotFoundError):
        name = error.name or _named_package(str(error))
        package = name.partition(".")[0]
        if package != name and find_spec(package) is not None:
            return ConfigError(f"{origin.full_name} needs {name}, which the installed {package} does not have.")
        beside = full_task_path(origin.file).parent if origin.file else None
        if beside is not None and ((beside / f"{package}.py").is_file() or (beside / package).is_dir()):
            return ConfigError(
                f"{origin.full_name} imports {name}, which lies beside its file, where Python does not look.",
                hint=f"Run with PYTHONPATH={beside}, as lm_eval wants it, too.",
            )
        return ConfigError(f"{origin.full_name} needs the package {name}.", hint=f"Install it: pip install {name}")
    names = {kind.__name__ for raised in _cause_chain(error) for kind in type(raised).__mro__}
    if names & set(DATA_FAULTS):
        source = " ".join(str(config[key]) for key in ("dataset_path", "dataset_name") if config.get(key))
        hint = "The hub is out of reach, or refuses it."
        if _is_offline():
            hint = f"Run: ns prepare_data {origin.full_name}"
        return DataError(
            f"{origin.full_name} reads the data set {source or '(named in its code)'} of the hub, which is not on "
            "this machine.",
            hint=hint,
        )
    if isinstance(error, FileNotFoundError):
        what = str(error)
    else:
        what = f"{type(error).__name__}: {error}"
    return ConfigError(f"{origin.full_name} cannot be made by lm_eval: {' '.join(what.split())[:600]}")


def _is_offline() -> bool:
    import huggingface_hub.constants

    return bool(huggingface_hub.constants.HF_HUB_OFFLINE)


def _cause_chain(error: BaseException) -> Iterable[BaseException]:
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        current = current.__cause__ or current.__context__
    return seen


def _named_package(message: str) -> str:
    words = message.replace("`", " ").replace("'", " ").split()
    return next(
        (words[at + 1] for at, word in enumerate(words[:-1]) if word in ("install", "package")), "it names"
    )


def _task_config(origin: HarnessTask) -> Row:
    require_package()
    from lm_eval.tasks._factory import TaskFactory
    from lm_eval.tasks._index import Entry, Kind

    keep_templates()
    path = full_task_path(origin.file) if origin.file else None
    entry = Entry(name=origin.task, kind=Kind.TASK, yaml_path=path, cfg=dict(origin.config) or None)
    try:
        config: Row = TaskFactory()._load_full_config(entry, dict(origin.overrides) or None)
    except Exception as error:
        raise task_error(error, origin, {}) from error
    for name in ("tag", "group", "task_list"):
        config.pop(name, None)
    config.setdefault("task", origin.task)
    return config


def _make_task(kind: Any, config: Row) -> Any:
    """Make a task of a class as the package does."""
    from lm_eval.tasks._factory import _ctor_accepts_config

    task = kind(config=config) if _ctor_accepts_config(kind) else kind()
    if "class" in config and hasattr(getattr(task, "config", None), "task"):
        task.config.task = config["task"]
    return task


def _apply_options(task: Any, wishes: HarnessWishes) -> None:
    """Apply the options as `lm_eval.simple_evaluate` does."""
    from newskills.base.lm_eval.package import FEWSHOT_SEED

    if wishes.gen_kwargs and task.get_config("output_type") == "generate_until":
        task.set_config(key="generation_kwargs", value=dict(wishes.gen_kwargs), update=True)
    usual = task.get_config("num_fewshot")
    if wishes.num_fewshot is not None and usual != 0:
        task.set_config(key="num_fewshot", value=wishes.num_fewshot)
    elif usual is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=FEWSHOT_SEED)


class _Documents(list[Any]):
    """A data set of the documents at hand."""

    def __init__(self, docs: Iterable[Any], features: Iterable[str]) -> None:
        super().__init__(docs)
        self.features = dict.fromkeys(features)


def _without_data(kind: Any, doc: Any, features: list[str]) -> Any:
    """Derive a class of tasks that downloads nothing and has one document."""
    docs = _Documents([doc], features)

    def download(self: Any, *args: Any, **kwargs: Any) -> None:
        self.dataset = None

    return type(
        kind.__name__,
        (kind,),
        {"download": download, "fewshot_docs": lambda self: None, "eval_docs": property(lambda self: docs)},
    )
