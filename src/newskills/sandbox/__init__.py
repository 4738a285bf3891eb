# SPDX-License-Identifier: Apache-2.0
"""Where code written by a model runs, and nowhere else: the library `newskills_sandbox`, as newskills configures it."""
