# SPDX-License-Identifier: Apache-2.0
"""Training over the Tinker API: a service of it on a CPU, and two recipes that train at any such service.

`server` is the service of `ns serve_tinker`, `recipes` the trainings of `ns tinker rl` and `ns tinker sft`; `running`
starts them, `commands` is the command line. The client, by which `--backend=tinker` trains as well, is newskills' own.
"""

from newskills_tinker._version import __version__

__all__ = ["__version__"]
