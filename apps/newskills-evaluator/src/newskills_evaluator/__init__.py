# SPDX-License-Identifier: Apache-2.0
"""NeMo Evaluator: its configurations, jobs, results and harness, for newskills.

`compile` and `suites` read configurations, `deployments` makes jobs of them, `exporters` bring results elsewhere;
`harness` and `nel_environments` serve our benchmarks to NeMo Evaluator; `running` does what `commands` are asked.
"""

from newskills_evaluator._version import __version__

__all__ = ["__version__"]
