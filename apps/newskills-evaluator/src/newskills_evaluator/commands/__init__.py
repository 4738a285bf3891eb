# SPDX-License-Identifier: Apache-2.0
"""`ns evaluate`, `ns nemo_evaluator`, and what looks after their invocations: `ns info`, `ns resume`."""
