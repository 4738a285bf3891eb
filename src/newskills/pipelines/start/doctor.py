# SPDX-License-Identifier: Apache-2.0
"""What `ns doctor` does: what this machine has, what is missing, and the next command for each gap. Changes nothing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct

from newskills._version import __version__
from newskills.base.cache import cache_folder
from newskills.base.errors import NewskillsError
from newskills.base.tables import print_table
from newskills.config.command_line import Parsed
from newskills.pipelines.options import doc

EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "math": (("math_verify", "antlr4"), "math grader: symbolic comparison"),
    "local": (("xllamacpp", "gguf", "reasoning_gym"), "a real model on this machine's CPU"),
    "hf": (("huggingface_hub", "tokenizers", "pyarrow"), "tokenizers and data sets of the Hugging Face hub"),
    "sandbox": (("numpy", "sympy"), "packages that code in the sandbox finds"),
    "view": (("starlette", "uvicorn"), "results in a browser: ns view"),
    "analysis": (("pyarrow", "duckdb"), "results in SQL and as tables: ns query"),
    "tools": (("mcp",), "MCP servers as tools"),
    "train": (("torch", "safetensors", "tokenizers"), "training in this process"),
    "trl": (("trl", "transformers", "peft"), "SFT and GRPO with TRL, on GPUs"),
    "transformers": (
        ("torch", "transformers", "accelerate", "peft"),
        "models of transformers, on this machine's CPU or GPUs",
    ),
    "tinker": (("tinker",), "training over the Tinker API, and a service of it"),
    "instructions": (
        ("langdetect", "emoji", "syllapy", "jsonschema"),
        "instruction following: languages, emoji, syllables, JSON schemas",
    ),
    "thai": (("pythainlp", "pycrfsuite"), "words and sentences of Thai texts"),
    "translation": (("sacrebleu",), "scores of translations"),
    "comet": (("comet",), "translations judged by a trained model"),
    "media": (("PIL", "soundfile", "jiwer", "whisper_normalizer"), "images and sound, word error rates"),
    "speech": (("riva", "soundfile"), "speech services of Riva and speech NIMs"),
    "excel": (("python_calamine",), "workbooks in prompts"),
    "embeddings": (("sentence_transformers",), "memories by vectors, judges by embeddings"),
    "agents": (("swebench", "minisweagent"), "SWE-bench and mini-SWE-agent"),
    "agentdojo": (("agentdojo",), "AgentDojo: tools and attacks"),
    "agentharm": (("inspect_evals",), "AgentHarm: simulated tools"),
    "verifiers": (("verifiers",), "environments of the verifiers package"),
    "science": (
        ("periodictable", "CoolProp", "particle", "radioactivedecay"),
        "tools over tables of elements, fluids, particles and nuclides",
    ),
    "lm-eval": (("lm_eval",), "tasks of lm-evaluation-harness"),
    "openenv": (("openenv",), "environments of OpenEnv"),
    "inspect": (("zstandard",), "logs of Inspect"),
    "wandb": (("wandb",), "logging to Weights & Biases"),
    "mlflow": (("mlflow",), "results as runs of MLflow"),
    "litellm": (("litellm",), "model providers through LiteLLM (Bedrock, Vertex AI, Cohere, …)"),
}
"""Every extra that users may install: its modules, and what they are for."""
PLUGINS = (
    *("benchmarks", "graders", "metrics", "models", "solvers", "tools", "agents"),
    *("engines", "executors", "servers", "trainers", "exporters"),
)
"""Groups of entry points, `newskills.…`."""
State = Literal["ok", "note", "missing", "wrong"]


class DoctorOptions(Struct, frozen=True, kw_only=True):
    server_address: Annotated[str | None, doc("also ask this endpoint which models it serves")] = None
    cluster: Annotated[
        str | None, doc("also test this cluster: ssh, scheduler or containers, folders, images", {"name": True})
    ] = None
    config_dir: Annotated[str | None, doc("folder of cluster configs")] = None


class DoctorFinding(Struct):
    """One line of the page. `wrong` makes the exit code 1."""

    what: str
    state: State
    text: str


def examine_machine(options: DoctorOptions) -> list[DoctorFinding]:
    findings = [
        _examine_python(),
        *_examine_extras(),
        _examine_gpus(),
        *_examine_keys(),
        *_examine_folders(),
        _examine_mirror(),
        *_examine_plugins(),
    ]
    if options.server_address:
        findings.append(_examine_endpoint(options.server_address))
    return [*findings, *_examine_clusters(options)]


def _examine_python() -> DoctorFinding:
    version = ".".join(map(str, sys.version_info[:3]))
    return DoctorFinding(
        "newskills", "ok", f"{__version__}, Python {version}, {os.cpu_count()} CPUs, {sys.prefix}"
    )


def _examine_extras() -> list[DoctorFinding]:
    findings = []
    for extra, (modules, use) in EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        if not missing:
            findings.append(DoctorFinding(f"extra {extra}", "ok", use))
            continue
        text = f"{use}: pip install 'newskills[{extra}]'"
        if len(missing) < len(modules):
            text += f" ({', '.join(missing)} missing)"
        findings.append(DoctorFinding(f"extra {extra}", "note", text))
    return findings


def _examine_gpus() -> DoctorFinding:
    from newskills.models.serving.gpus import visible_gpus

    if count := visible_gpus():
        return DoctorFinding("GPUs", "ok", f"{count} visible")
    return DoctorFinding("GPUs", "note", "none: models run on the CPU")


def _examine_keys() -> list[DoctorFinding]:
    from newskills.models.kinds import service_keys

    names = (*service_keys(), "HF_TOKEN")
    present = [name for name in names if os.environ.get(name)]
    if present:
        return [DoctorFinding("API keys", "ok", ", ".join(present))]
    return [DoctorFinding("API keys", "note", f"none is set; only hosted services need one ({names[0]}, …)")]


def _examine_folders() -> list[DoctorFinding]:
    from newskills.benchmarks.folders import data_dir

    findings = []
    for name, folder in (("data folder", data_dir()), ("cache", cache_folder())):
        there = folder
        while not there.exists():
            there = there.parent
        free = shutil.disk_usage(there).free / 2**30
        state: State = "ok" if free > 1 else "wrong"
        remarks = f"{free:.1f} GiB free"
        if not (there.is_dir() and os.access(there, os.W_OK)):
            state, remarks = "wrong", f"{remarks}, not writable"
        findings.append(DoctorFinding(name, state, f"{folder} ({remarks})"))
    return findings


def _examine_mirror() -> DoctorFinding:
    mirror = os.environ.get("NEWSKILLS_MIRROR")
    if not mirror:
        return DoctorFinding(
            "data mirror",
            "note",
            "none; data is downloaded from the network (set NEWSKILLS_MIRROR to use a folder)",
        )
    if (Path(mirror) / "MANIFEST.json").is_file():
        return DoctorFinding("data mirror", "ok", mirror)
    return DoctorFinding("data mirror", "wrong", f"{mirror} has no MANIFEST.json")


def _examine_plugins() -> list[DoctorFinding]:
    from importlib.metadata import entry_points

    points = [f"{kind}: {p.name}" for kind in PLUGINS for p in entry_points(group=f"newskills.{kind}")]
    if points:
        return [DoctorFinding("plug-ins", "ok", ", ".join(points))]
    return []


def _examine_endpoint(address: str) -> DoctorFinding:
    from newskills.models.probe import served_models

    try:
        models = served_models(address)
    except NewskillsError as error:
        return DoctorFinding(address, "wrong", str(error))
    return DoctorFinding(address, "ok", f"serves {', '.join(models) or 'no model'}")


def _examine_clusters(options: DoctorOptions) -> list[DoctorFinding]:
    """Check which cluster configs there are, and of the named one, whether it keeps what it promises."""
    from newskills.launch.clusters.config import BUILT_IN, cluster_names, load_cluster
    from newskills.launch.clusters.variables import missing_variables

    names = [name for name in cluster_names(options.config_dir, os.environ) if name not in BUILT_IN]
    if options.cluster is None:
        if names:
            known_clusters = f"{', '.join(names)}; not tested: ns doctor --cluster={names[0]}"
        else:
            known_clusters = ""
        return [DoctorFinding("clusters", "note", known_clusters or "no cluster config: ns setup writes one")]
    try:
        cluster = load_cluster(options.cluster, options.config_dir, os.environ)
        missing = missing_variables(cluster, os.environ)
        from newskills.launch.clusters.trial import try_cluster

        tried = try_cluster(cluster, os.environ)
    except NewskillsError as error:
        return [DoctorFinding(f"cluster {options.cluster}", "wrong", str(error))]
    findings = [DoctorFinding(f"cluster {cluster.name}", "ok", f"executor {cluster.executor}")]
    if missing:
        findings.append(DoctorFinding("variables", "wrong", f"required but not set: {', '.join(missing)}"))
    return [*findings, *(DoctorFinding(trial.what, trial.state, trial.text) for trial in tried)]


def run_doctor(parsed: Parsed[DoctorOptions]) -> list[DoctorFinding]:
    """Return what was examined; nothing that is wrong raises an error."""
    return examine_machine(parsed.options)


def run(parsed: Parsed[DoctorOptions]) -> int:
    findings = examine_machine(parsed.options)
    print_table([(f"[{finding.state}]", finding.what, finding.text) for finding in findings])
    if any(finding.state == "wrong" for finding in findings):
        return 1
    return 0
