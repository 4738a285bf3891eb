# SPDX-License-Identifier: Apache-2.0
"""Where code written by a model runs, and nowhere else.

This module stays empty: `newskills_sandbox.inside` is imported by interpreters that have nothing else installed.
"""
