# SPDX-License-Identifier: Apache-2.0
"""One grammar for choosing samples: `ns samples --where`, `newskills.analysis` and pages read it with this parser."""
