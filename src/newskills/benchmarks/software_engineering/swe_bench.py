# SPDX-License-Identifier: Apache-2.0
"""Issues of repositories to be resolved by a patch: SWE-bench (Jimenez et al. 2024, arXiv:2310.06770) and relatives."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.options import field_set, kept_if, single_value
from newskills.graders.software.swe_bench_pro import WORKSPACE

_PRO, _PRO_COMMIT = "scaleapi/SWE-bench_Pro-os", "ca10a60a5fcae51e6948ffe1485d4153d421e6c5"

_COMMIT = "9fa561428aeef6406f534c8370c670f9ce51c630"
_DATA = f"https://raw.githubusercontent.com/SWE-bench/SWE-bench/{_COMMIT}/data"
_IMAGES = "docker://swebench/sweb.eval.x86_64.{instance_id}"
_DOCKERFILES = ("base_dockerfile/Dockerfile", "instance_dockerfile/Dockerfile")
_OWN_IMAGES = "docker://{docker_image}"
_LANGUAGES = {
    "c": "jqlang/jq micropython/micropython redis/redis valkey-io/valkey",
    "c++": "fmtlib/fmt nlohmann/json",
    "go": "caddyserver/caddy gin-gonic/gin gohugoio/hugo hashicorp/terraform prometheus/prometheus",
    "java": "apache/druid apache/lucene google/gson javaparser/javaparser projectlombok/lombok reactivex/rxjava",
    "javascript": "axios/axios babel/babel facebook/docusaurus immutable-js/immutable-js mrdoob/three.js "
    "preactjs/preact vuejs/core",
    "php": "briannesbitt/carbon laravel/framework php-cs-fixer/php-cs-fixer phpoffice/phpspreadsheet",
    "ruby": "faker-ruby/faker fastlane/fastlane fluent/fluentd jekyll/jekyll jordansissel/fpm rubocop/rubocop",
    "rust": "astral-sh/ruff burntsushi/ripgrep nushell/nushell sharkdp/bat tokio-rs/axum tokio-rs/tokio "
    "uutils/coreutils",
}
_LANGUAGE_OF = {repo: language for language, repos in _LANGUAGES.items() for repo in repos.split()}


def _instance_row(raw: Row, dataset: str, images: str) -> Row:
    """Map a row; names of images have no double underscore."""
    return {
        "id": raw["instance_id"],
        **raw,
        "container_formatter": images,
        "container_id": raw["instance_id"].replace("__", "_1776_").lower(),
        "dataset_name": dataset,
        "split": "test",
    }


def verified_row(raw: Row, index: int) -> Row:
    made = _instance_row(raw, "princeton-nlp/SWE-bench_Verified", _IMAGES)
    return {**made, "repo_formatter": "https://github.com/{repo}", "language": "python"}


def multilingual_row(raw: Row, index: int) -> Row:
    made = _instance_row(raw, "SWE-bench/SWE-bench_Multilingual", _IMAGES)
    return {**made, "language": _LANGUAGE_OF[raw["repo"].lower()]}


def with_scripts(raws: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, each with the texts of its files in the authors' repository by name (`_files`)."""
    files: dict[str, dict[str, str]] = {}
    for raw in raws:
        if "instance_id" in raw:
            yield {"_files": files.get(raw["instance_id"], {}), **raw}
        else:
            *above, instance, name = raw["_file"].split("/")
            files.setdefault(instance, {})["/".join([*above[1:], name])] = raw["text"]


def _eval_script(raw: Row, files: Mapping[str, str]) -> str:
    """Return the script that runs the tests once the patch is there: the settings of the image, the files of the tests,
    the scripts."""
    lines = [line.strip() for place in _DOCKERFILES for line in files.get(place, "").splitlines()]
    exports = [line.replace("ENV", "export", 1) for line in lines if line.startswith("ENV")]
    chosen = ",".join(ast.literal_eval(raw["selected_test_files_to_run"]))
    return "\n".join(
        (
            *exports,
            "cd /app",
            raw["before_repo_set_cmd"].strip().split("\n")[-1],
            f"bash {WORKSPACE}/run_script.sh {chosen} > {WORKSPACE}/stdout.log 2> {WORKSPACE}/stderr.log",
            f"python {WORKSPACE}/parser.py {WORKSPACE}/stdout.log {WORKSPACE}/stderr.log {WORKSPACE}/output.json",
            "",
        )
    )


def pro_row(raw: Row, index: int) -> Row:
    """Return the row of a task, whose problem says also what the patch must offer."""
    files = raw["_files"]
    if missing := [name for name in ("run_script.sh", "parser.py") if name not in files]:
        raise ValueError(f"the authors' repository has no {', '.join(missing)} for {raw['instance_id']}")
    problem = "\n\n".join(
        (
            raw["problem_statement"],
            f"Requirements:\n{raw['requirements']}",
            f"New interfaces introduced:\n{raw['interface']}",
        )
    )
    rest = {key: value for key, value in raw.items() if key != "_files"}
    return {
        **_instance_row(rest, "ScaleAI/SWE-bench_Pro", _OWN_IMAGES),
        "eval_script": _eval_script(raw, files),
        "run_script": files["run_script.sh"],
        "parser": files["parser.py"],
        "FAIL_TO_PASS": ast.literal_eval(raw["fail_to_pass"]),
        "PASS_TO_PASS": ast.literal_eval(raw["pass_to_pass"]),
        "problem_statement": problem,
        "language": raw["repo_language"],
        "docker_image": f"jefzda/sweap-images:{raw['dockerhub_tag']}",
        "container_id": raw["dockerhub_tag"],
        "container_repo_dir": "/app",
    }


def rebench_row(raw: Row, index: int) -> Row:
    """Map a row, which names its image."""
    made = _instance_row(raw, "nebius/SWE-rebench-leaderboard", _OWN_IMAGES)
    return {**made, "container_id": raw["docker_image"]}


_OPTIONS = {
    "container_formatter": field_set("container_formatter", "where the images of the tasks lie"),
    "dataset_name": field_set("dataset_name", "another name of the data set, for the harness"),
}
_OWN_OPTIONS = {
    "swe-bench": {"repo_formatter": field_set("repo_formatter", "where the repositories lie")},
    "swe-rebench": {
        "start_date": kept_if(
            "only issues from this day on (2025-01-31)",
            lambda row, day: str(row["created_at"])[:10] >= single_value("day", day),
        ),
        "end_date": kept_if(
            "only issues up to this day", lambda row, day: str(row["created_at"])[:10] <= single_value("day", day)
        ),
    },
}


_PROJECT = {"homepage": "https://www.swebench.com", "citation": "arXiv:2310.06770"}


def _benchmark(
    name: str, title: str, source: Source, row: Callable[[Row, int], Row], items: int, **fields: object
) -> Benchmark:
    return Benchmark(
        name=name,
        category="software-engineering",
        title=title,
        sources=(source,),
        row=row,
        options=_OPTIONS | _OWN_OPTIONS.get(name, {}),
        split="default",
        prompt="eval/swe-bench/issue",
        metric="swe-bench",
        solver="software_agent",
        items={"default": items} if items else {},
        **{"grader": "swe_bench", **_PROJECT, **fields},  # type: ignore[arg-type]
    )


_TRAP = (
    "An agent works on each task in a container of the task's image, and the tests run in another one, as the "
    "package swebench (`newskills[agents]`) says: ++agent=bash. Patches made elsewhere: `ns swe_bench`."
)
_PRO_TRAP = (
    "An agent works on each task in a container of the task's image: ++agent=bash. The tests run in another one, by "
    "the script and the parser that the authors' repository has for the task. Patches made elsewhere: "
    "`ns swe_bench grade --benchmark=swe-bench-pro`."
)
_OWN_HARNESS = (
    "++agent=bash makes the patches, in containers of the tasks' images. Its own harness judges them: `ns swe_bench "
    "export` writes them for it."
)
_NO_PATCH = (
    "patch_cant_apply counts patches that are there and cannot be applied, as SWE-bench's own report keeps empty "
    "patches apart; NeMo-Skills counts an answer without a patch in it as well as in no_patch."
)

BENCHMARKS = (
    _benchmark(
        "swe-bench",
        "SWE-bench Verified: issues of Python projects",
        Source(
            split="default",
            url=f"{_DATA}/SWE-bench_Verified/test.parquet",
            format="parquet",
            revision=_COMMIT,
            sha256="9cf3c8d406a3878dffdec80e1933b2601d00fd5868aabbe6f268c0a29484f21a",
        ),
        verified_row,
        500,
        aliases=("swe-bench-verified",),
        licence="MIT",
        traps=(_TRAP, _NO_PATCH, "FAIL_TO_PASS and PASS_TO_PASS are lists written as JSON texts."),
    ),
    _benchmark(
        "swe-bench-multilingual",
        "SWE-bench Multilingual: issues of projects in nine languages",
        Source(
            split="default",
            url=f"{_DATA}/SWE-bench_Multilingual/test.parquet",
            format="parquet",
            revision=_COMMIT,
            sha256="f71dbee835fb3fd7d3b4b04334dab3f2c0ec16c518fb76b888d9d03d0a637904",
        ),
        multilingual_row,
        300,
        licence="MIT",
        traps=(_TRAP, _NO_PATCH, "FAIL_TO_PASS and PASS_TO_PASS are lists, not texts."),
    ),
    _benchmark(
        "swe-bench-pro",
        "SWE-bench Pro: long tasks in larger projects",
        Source(
            split="default",
            hf="ScaleAI/SWE-bench_Pro",
            hf_split="test",
            github=_PRO,
            revision=_PRO_COMMIT,
            members="{run_scripts/*/run_script.sh,run_scripts/*/parser.py,dockerfiles/*/*/Dockerfile}",
            format="text",
        ),
        pro_row,
        731,
        join=with_scripts,
        citation="arXiv:2509.16941",
        licence="unstated",
        unverified=True,
        grader="swe_bench_pro",
        traps=(_PRO_TRAP, _NO_PATCH, "Requirements and interfaces are appended to the problem statement."),
    ),
    _benchmark(
        "swe-rebench",
        "SWE-rebench: recent issues, collected month by month",
        Source(split="default", hf="nebius/SWE-rebench-leaderboard", hf_split="test"),
        rebench_row,
        0,
        homepage="https://swe-rebench.com",
        citation="arXiv:2505.20411",
        licence="CC-BY-4.0",
        unverified=True,
        grader="",
        traps=(_OWN_HARNESS, _NO_PATCH, "Grows every month: name the dates of the issues beside a score."),
    ),
)
