# SPDX-License-Identifier: Apache-2.0
"""Generator of long-context tasks of the kinds of RULER (Hsieh et al. 2024, arXiv:2404.06654), in words of our own.

The same task, tokenizer, length and seed give the same rows on every machine.
"""
