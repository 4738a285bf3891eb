# SPDX-License-Identifier: Apache-2.0
"""Tasks of NVIDIA's NeMo Evaluator as jobs."""
