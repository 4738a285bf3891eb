# SPDX-License-Identifier: Apache-2.0
"""Programs that work as agents: each is a data file, in `library/` or of the user's own. How one is read and installed.

`definition.py` says what a file holds, `installing.py` makes the folder that environments see read-only. What a program
does in a task's environment is the business of `solve`.
"""
