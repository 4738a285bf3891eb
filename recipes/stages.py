# SPDX-License-Identifier: Apache-2.0
"""What the recipes share: their options, and stages that are shown before they run, here or on a cluster."""

from __future__ import annotations

import argparse
import atexit
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import newskills
from newskills.base.errors import DataError, NewskillsError

Keys = Mapping[str, object]


def options(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every recipe."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--output_dir", default="results", help="folder of everything that the recipe writes")
    parser.add_argument("--stages", default="", help="only these, comma separated (default: all)")
    parser.add_argument("--dry_run", action="store_true", help="check every stage and show what it would do")
    parser.add_argument("--cluster", help="cluster config; default: this machine")
    parser.add_argument("--max_samples", type=int, default=-1, help="rows of each input, at most (to try it)")
    model_options(parser, "model", "the model that solves")
    return parser


def model_options(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add `--<name>`, and where it is served."""
    prefix = "server" if name == "model" else name
    parser.add_argument(f"--{name}", default="my-model", help=f"name or path of {what}")
    parser.add_argument(f"--{prefix}_type", default="vllm", help="vllm, sglang, openai, llamacpp, …")
    parser.add_argument(f"--{prefix}_address", help="where it is served already")
    parser.add_argument(
        f"--{prefix}_gpus", type=int, help="or: serve it for the run, on so many GPUs of each node"
    )
    parser.add_argument(f"--{prefix}_nodes", type=int, help="and on so many nodes")


class Recipe:
    """Stages in order. On a cluster each waits for the one before; here each runs when it is called.

    A stage whose input an earlier stage still has to write is shown by `example`, a row of that form.
    """

    def __init__(self, name: str, args: argparse.Namespace, stages: Sequence[str]) -> None:
        self.name, self.args, self.out = name, args, Path(args.output_dir).absolute()
        self.wanted = args.stages.split(",") if args.stages else list(stages)
        if unknown := [stage for stage in self.wanted if stage not in stages]:
            sys.exit(f"{', '.join(unknown)}: there is no such stage; there are {', '.join(stages)}.")
        self._before = ""
        self._submitted = 0
        self._examples: Path | None = None
        if args.dry_run:
            self._examples = Path(tempfile.mkdtemp())
            atexit.register(shutil.rmtree, self._examples)

    def model(self, name: str = "model") -> dict[str, Any]:
        """Return the options of `newskills.generate` and `newskills.eval` that name a model."""
        prefix = "server" if name == "model" else name
        found = {"model": getattr(self.args, name)}
        for key in ("type", "address", "gpus", "nodes"):
            found[f"server_{key}"] = getattr(self.args, f"{prefix}_{key}")
        return {key: value for key, value in found.items() if value is not None}

    def generate(self, stage: str, reads: Path, example: dict[str, Any], keys: Keys, **given: Any) -> None:
        """Run `ns generate` over the rows of a file, into the folder `stage`."""
        if self.args.cluster is None and reads.exists() and not reads.stat().st_size:
            self._nothing(stage, reads, given.get("num_random_seeds"))
            return
        keys = {**keys, "max_samples": self.args.max_samples}
        given = {"output_dir": str(self.out / stage), "input_file": self._input(reads, example), **given}
        self._call(stage, "generate", keys, **given)

    def _nothing(self, stage: str, reads: Path, seeds: int | None) -> None:
        """Write no rows where none come in: of a kind of row there may be none."""
        if stage in self.wanted and not self.args.dry_run:
            print(f"\n== {stage}\n{reads} has no rows, so there is nothing to do")
            (self.out / stage).mkdir(parents=True, exist_ok=True)
            for name in ["output"] if seeds is None else [f"output-rs{seed}" for seed in range(seeds)]:
                (self.out / stage / f"{name}.jsonl").touch()

    def evaluate(self, stage: str, keys: Keys, *, prepared_by: str = "", **given: Any) -> None:
        """Run `ns eval`, into the folder `stage`; its data may be left to the stage `prepared_by`."""
        keys = {**keys, "max_samples": self.args.max_samples}
        self._call(stage, "eval", keys, prepared_by=prepared_by, output_dir=str(self.out / stage), **given)

    def prepare(
        self, stage: str, reads: Sequence[Path], example: dict[str, Any], keys: Keys, **given: Any
    ) -> None:
        """Run `ns prepare_training_data`, which on clusters runs as a job."""
        files = " ".join(self._input(path, example) for path in reads)
        keys = {**keys, "input_files": files}
        if self.args.cluster is None:
            self._call(stage, "prepare_training_data", keys, placed=False, **given)
            return
        words = ["ns", "prepare_training_data", *_words(given), *_overrides(keys)]
        self._call(stage, "run_cmd", {}, command=shlex.join(words))

    def step(self, stage: str, program: Path, words: Sequence[object], *, reads: Sequence[Path] = ()) -> None:
        """Run a Python program of the recipe's own, `program words…`."""
        python = sys.executable if self.args.cluster is None else "python"
        self.run(stage, [python, program, *words], reads=reads)

    def run(self, stage: str, words: Sequence[object], *, reads: Sequence[Path] = ()) -> None:
        """Run a command of one's own; `reads` has to be there."""
        line = shlex.join(map(str, words))
        if self.args.cluster is not None:
            self._call(stage, "run_cmd", {}, command=line)
            return
        if stage not in self.wanted:
            return
        print(f"\n== {stage}\n{line}", flush=True)
        if self.args.dry_run:
            missing = ", ".join(str(path) for path in reads if not path.exists())
            print(f"reads what an earlier stage writes: {missing}" if missing else "all inputs are there")
        else:
            subprocess.run([str(word) for word in words], check=True)

    def train(self, stage: str, reads: Path, keys: Keys, **given: Any) -> None:
        """Fine-tune on `reads`, into `<stage>/final_hf_model`: NeMo-RL on a cluster, else in this process."""
        given = {"training_data": str(reads), "output_dir": str(self.out / stage), **given}
        if self.args.cluster is not None:
            self._call(stage, "sft_nemo_rl", keys, **given)
        else:
            given["training_data"] = self._input(reads, {"input": "1 + 1 =", "output": " 2"})
            self._call(stage, "sft", keys, placed=False, **given)

    def _input(self, path: Path, example: dict[str, Any]) -> str:
        """Return `path`, or for a dry run on this machine a file with the example."""
        if self._examples is None or self.args.cluster is not None or path.exists():
            return str(path)
        shown = self._examples / f"{path.parent.name}-{path.name}"
        shown.write_text(json.dumps(example) + "\n")
        return str(shown)

    def _call(
        self, stage: str, name: str, keys: Keys, /, *, placed: bool = True, prepared_by: str = "", **given: Any
    ) -> None:
        if stage not in self.wanted:
            return
        if placed and self.args.cluster is not None:
            self._submitted += 1
            expname = f"{self.name}-{self._submitted}-{stage}"
            given |= {"cluster": self.args.cluster, "expname": expname}
            if self._before:
                given |= {"run_after": [self._before], "allow_missing_dependency": self.args.dry_run}
            self._before = expname
        if self.args.dry_run:
            given["dry_run"] = True
        print(f"\n== {stage}\n{shlex.join(['ns', name, *_words(given), *_overrides(keys)])}", flush=True)
        try:
            getattr(newskills, name)(newskills.wrap_arguments(shlex.join(_overrides(keys))), **given)
        except NewskillsError as error:
            if not (self.args.dry_run and isinstance(error, DataError) and prepared_by in self.wanted):
                sys.exit(f"{stage}: {error}")
            print(f"left to the stage {prepared_by}: {error}")


class StepRecipe(Recipe):
    """A recipe in a folder of its own, with `prompts/` and a program `steps.py` that makes rows of rows."""

    def __init__(self, folder: Path, args: argparse.Namespace, stages: Sequence[str]) -> None:
        super().__init__(folder.name, args, stages)
        # Clusters see the repository that they were started from, not this machine's folders.
        self._folder = folder if args.cluster is None else Path(folder.parent.name) / folder.name

    def prompt(self, name: str) -> str:
        """Return the path of one of the recipe's own prompts."""
        return str(self._folder / "prompts" / f"{name}.yaml")

    def own(self, name: str) -> str:
        """Return the path of another file of the recipe's own."""
        return str(self._folder / name)

    def file(self, name: str) -> Path:
        """Return the path of the rows that a step writes."""
        return self.out / "rows" / f"{name}.jsonl"

    def seeds(self, stage: str, count: int) -> list[Path]:
        """Return the files that a stage of several seeds writes."""
        return [self.out / stage / f"output-rs{seed}.jsonl" for seed in range(count)]

    def rows(self, stage: str, step: str, output: str, reads: Sequence[Path]) -> None:
        """Run a step of `steps.py`, from files to `file(output)`."""
        self.step(stage, self._folder / "steps.py", [step, self.file(output), *reads], reads=reads)


def _words(given: Mapping[str, Any]) -> list[str]:
    texts = {key: ",".join(map(str, v)) if isinstance(v, list) else v for key, v in given.items()}
    return [f"--{key}" if v is True else f"--{key}={v}" for key, v in texts.items() if v not in (None, "", False)]


def _overrides(keys: Keys) -> list[str]:
    return [f"++{key}={str(v).lower() if isinstance(v, bool) else v}" for key, v in keys.items() if v is not None]
