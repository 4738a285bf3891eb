# SPDX-License-Identifier: Apache-2.0
"""newskills as a harness of NVIDIA's NeMo Evaluator, which finds it in the namespace `core_evals`.

`framework.yml` is generated: `python -m newskills.interop.harness`.
"""
