# SPDX-License-Identifier: Apache-2.0
"""Files of tests whose packages are missing are skipped with a message, so that every machine collects all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import pytest

OURS = ("newskills", "core_evals", "tests", "bench")


class OptionalModule(pytest.Module):
    """A file of tests; what it imports may be missing, unless NEWSKILLS_TEST_EXTRAS is set, as in CI."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            _ = self.obj  # imports the file
        except self.CollectError as error:
            missing = missing_package(error.__cause__)
            if missing in ("", *OURS) or os.environ.get("NEWSKILLS_TEST_EXTRAS"):
                raise
            # pytest leaves a file that it could not import in the table of modules; others import helpers from it.
            sys.modules.pop(".".join(self.path.relative_to(self.config.rootpath).with_suffix("").parts), None)
            pytest.skip(f"no {missing} here: pip install -e '.[dev]'", allow_module_level=True)
        return super().collect()


def missing_package(error: BaseException | None) -> str:
    """The package whose absence is the cause of `error`; empty where it is none."""
    while error is not None and not isinstance(error, ModuleNotFoundError):
        error = error.__cause__ or error.__context__
    return (error.name or "").partition(".")[0] if error is not None else ""
