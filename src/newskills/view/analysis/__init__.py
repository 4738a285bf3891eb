# SPDX-License-Identifier: Apache-2.0
"""Results as tables of Arrow: runs, scores, samples, messages, comparisons; SQL over them; files of them.

What users import is `newskills.analysis`.
"""
