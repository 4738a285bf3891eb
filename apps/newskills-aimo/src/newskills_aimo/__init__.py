# SPDX-License-Identifier: Apache-2.0
"""The three-stage recipe of `ns aimo …`: a model for competition mathematics, trained, evaluated and asked.

`recipe` writes the stages as `ns` lines, `running` runs them, `commands` is the command line. Scripts of the recipe
that this one replaces import its names from `newskills.aimo`, which comes with this package.
"""

from newskills_aimo._version import __version__

__all__ = ["__version__"]
