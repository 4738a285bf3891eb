# SPDX-License-Identifier: Apache-2.0
"""What `python -m newskills.interop.nel_environments` prints the place of; nel also loads this file by its path."""

from __future__ import annotations

from newskills_evaluator.nel_environments import EnvironmentProblems, path, register_all

__all__ = ["EnvironmentProblems", "path", "register_all"]

if __name__ == "__main__":
    print(path())
elif __name__.startswith("_nel_ext_"):
    register_all()
