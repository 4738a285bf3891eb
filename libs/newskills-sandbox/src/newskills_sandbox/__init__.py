# SPDX-License-Identifier: Apache-2.0
"""Code that a model wrote, run where it can do no harm.

What is imported here loads when it is first used: `newskills_sandbox.inside` is imported by interpreters that have
nothing else installed.
"""

from __future__ import annotations

from newskills_sandbox._version import __version__

__all__ = ["__version__"]
