# SPDX-License-Identifier: Apache-2.0
"""What the short ladder of tests, and every commit, relies on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIGHT = """
    _hypothesis_globals _pytest _yaml antlr4 attr attrs coverage emoji execnet httptools hypothesis
    iniconfig jinja2 jsonschema jsonschema_specifications langdetect latex2sympy2_extended markdown_it
    markupsafe math_verify mdurl mpmath msgspec newskills packaging platformdirs pluggy pygments pytest
    pytest_cov pytest_timeout referencing rich rpds six sortedcontainers syllapy sympy typing_extensions
    xdist yaml
"""
"""Modules that `pip install '.[test]'` brings."""
COLLECT = """
import sys
from importlib.metadata import packages_distributions

import pytest

BLOCKED = set(packages_distributions()) - set(sys.argv[1].split())

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] in BLOCKED]:
    del sys.modules[name]
sys.meta_path.insert(0, Blocker())
sys.exit(pytest.main(["--collect-only", "-q", "-p", "pytest_timeout", "-p", "no:cacheprovider", "tests"]))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_every_machine_collects_all_tests() -> None:
    """Where only the extra `test` is installed, files that need more are skipped, with the package's name."""
    environ = {
        name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "NEWSKILLS_TEST_"))
    }
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    words = [sys.executable, "-c", COLLECT, LIGHT]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "no torch here: pip install -e '.[dev]'" in done.stdout


def commit_message(folder: Path, text: str) -> int:
    (folder / "message").write_text(text)
    hook = ROOT / ".githooks/commit-msg"
    return subprocess.run([hook, folder / "message"], capture_output=True, cwd=ROOT).returncode


def test_commits_are_signed_off(tmp_path: Path) -> None:
    assert commit_message(tmp_path, "Fix it\n\nWhy.\n\nSigned-off-by: Ada Byron <ada@example.org>\n") == 0
    assert commit_message(tmp_path, "Fix it\n") == 1
    assert commit_message(tmp_path, "Fix it\n\nSigned-off-by: \n") == 1
    assert commit_message(tmp_path, "Signed-off-by: nobody\n\nMend it\n") == 1
