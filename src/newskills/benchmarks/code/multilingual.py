# SPDX-License-Identifier: Apache-2.0
"""HumanEval in other languages: HumanEval-X (Zheng et al. 2023, arXiv:2303.17568) and MultiPL-E (Cassano et al.
2022, arXiv:2208.08227)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_NAME = re.compile(r"(?:const|let|var)\s+(\w+)\s*=|\bfn\s+(\w+)|(\w+)\s*\(")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEAD = re.compile(r"(\w+)\s*\([^(){}]*\)\s*\{\s*\Z")
_IMPORTS = ("#", "using ", "import ", "const require", "use ")
_TUPLES = re.compile(r"\b(?:Unit|Pair|Triplet|Quartet|Quintet)\b")
_LANGUAGES = {"rs": "rust", "bash": "sh", "go_test.go": "go"}
_X = "https://raw.githubusercontent.com/THUDM/CodeGeeX/main/codegeex/benchmark/humaneval-x/"
_E = "https://raw.githubusercontent.com/deepseek-ai/DeepSeek-Coder/main/Evaluation/HumanEval/data/humaneval-"


def humaneval_x(raw: Row, index: int) -> Row:
    language = raw["_file"].partition("/")[0]
    prompt, entry = raw["prompt"], _name_at_end(raw["prompt"]) or name_in(raw["declaration"])
    common = {
        "id": raw["task_id"],
        "question": prompt,
        "language": language,
        "subset_for_metrics": language,
        "prompt": prompt,
        "entry_point": entry,
        "canonical_solution": raw["canonical_solution"],
    }
    if language == "python":
        return common | {"style": "function", "test_list": [raw["test"]]}
    if language == "rust":
        common["declaration"] = raw["declaration"]
    setup = f"{raw['test_setup']}\n" if language == "go" else ""
    program = {"style": "program", "test": f"{setup}{raw['test']}"}
    return common | program | _prelude_fields(language, raw["declaration"], entry)


def _prelude_fields(language: str, declaration: str, entry: str) -> Row:
    """Return what a whole answer relies on: the lines that import, and functions above the one that is asked for."""
    lines = declaration[: declaration.rfind(entry)].split("\n")[:-1]
    parts: Row = {"head": "".join(f"{line}\n" for line in lines if line.startswith(_IMPORTS))}
    helpers = [line for line in lines if not line.startswith(_IMPORTS)]
    names = [match[match.lastindex or 0] for line in helpers if (match := _NAME.search(line))]
    if language in ("cpp", "js") and names:
        parts |= {"helper": names[0], "helpers": "\n".join(helpers)}
    return parts


def multipl_e(raw: Row, index: int) -> Row:
    language = _LANGUAGES.get(raw["language"], raw["language"])
    prompt, tests = raw["prompt"], raw["tests"]
    if language == "java" and not _TUPLES.search(prompt + tests):
        prompt = prompt.replace("import org.javatuples.*;\n", "")
    closing = ""
    if match := re.match(r"\s*\}\n", tests):
        closing, tests = match.group(), tests[match.end() :]
    return {
        "id": f"{language}/{raw['name']}",
        "question": prompt,
        "language": language,
        "subset_for_metrics": language,
        "style": "program",
        "prompt": prompt,
        "entry_point": name_in(prompt.rstrip()),
        "test": tests,
        "closing": closing,
        "inside": language == "java",
        "main": "Problem",
        "head": "".join(
            line for line in prompt.splitlines(keepends=True) if line.startswith(("#include", "import "))
        ),
        "stop_tokens": raw["stop_tokens"],
    }


def _name_at_end(prompt: str) -> str:
    """Return the name of the function whose head ends the prompt, comments aside; empty where it ends otherwise."""
    head = _HEAD.search(_COMMENT.sub(" ", prompt))
    if head:
        return head[1]
    return ""


def name_in(code: str) -> str:
    """Return the name of the function that the last lines of `code` begin. Raises ValueError."""
    for line in reversed(code.rstrip().splitlines()):
        if match := _NAME.search(line):
            return match[match.lastindex or 0]
    raise ValueError("the prompt does not end with the head of a function")


BENCHMARKS = (
    Benchmark(
        name="humaneval-x",
        category="code",
        title="HumanEval-X: the same functions in C++, Go, Java, JavaScript, Python and Rust",
        sources=(
            Source(
                url=_X
                + "{cpp/data/humaneval_cpp,go/data/humaneval_go,java/data/humaneval_java,js/data/humaneval_js,"
                "python/data/humaneval_python,rust/data/humaneval_rust}.jsonl.gz",
                revision="2838420b7b4492cf3d16bce5320e26e65960c9e2",
            ),
        ),
        row=humaneval_x,
        prompt="generic/codegen-language",
        grader="code_tests",
        metric="code_tests",
        items={"test": 984},
        licence="Apache-2.0",
        homepage="https://github.com/THUDM/CodeGeeX",
        citation="arXiv:2303.17568",
        needs_sandbox=True,
        traps=(
            "Each language needs its compiler in the sandbox; answers in one without are unscored, with its name.",
            "Go and Rust tests need packages (testify; rand, regex, md5) that only a prepared sandbox has.",
        ),
    ),
    Benchmark(
        name="multipl-e-humaneval",
        category="code",
        title="MultiPL-E: HumanEval in C++, Go, Java, JavaScript, Rust and Bash",
        sources=(
            Source(url=_E + "{cpp,go,java,js,rs,sh}.jsonl", revision="2f9fd85927c669dae3c0fbb2d607274023af243e"),
        ),
        row=multipl_e,
        prompt="generic/codegen-language",
        grader="code_tests",
        metric="code_tests",
        items={"test": 948},
        licence="BSD-3-Clause with a clause against training",
        homepage="https://github.com/nuprl/MultiPL-E",
        citation="arXiv:2208.08227",
        needs_sandbox=True,
        traps=(
            "An answer may be the whole function or what follows the given head; the latter ends at the stop tokens.",
            "Each language needs its compiler in the sandbox; answers in one without are unscored, with its name.",
            "Java tasks with tuples need the javatuples library, or are unscored.",
        ),
    ),
)
