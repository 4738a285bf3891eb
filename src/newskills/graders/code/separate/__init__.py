# SPDX-License-Identifier: Apache-2.0
"""Answers and tests as two programs: in place of the function, the tests call a stub that asks the answer's program.

The stub has the head that the benchmark gives, so nothing of the answer is in the tests' program: what it defines,
redefines, prints, reads or ends is its own. Values travel as data.
"""

from __future__ import annotations

from collections.abc import Callable

from newskills.graders.code.programs import PairTask
from newskills.graders.code.separate.cpp import separate_cpp
from newskills.graders.code.separate.go import separate_go
from newskills.graders.code.separate.java import separate_java
from newskills.graders.code.separate.parts import Answer
from newskills.graders.code.separate.rust import separate_rust
from newskills.graders.code.separate.scripts import separate_js, separate_sh

WRITERS: dict[str, Callable[[Answer, float], PairTask | None]] = {
    "cpp": separate_cpp,
    "go": separate_go,
    "java": separate_java,
    "js": separate_js,
    "rust": separate_rust,
    "sh": separate_sh,
}
"""By language. Each returns None where the head that the prompt ends with is not one whose calls can be carried."""
