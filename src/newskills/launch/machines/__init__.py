# SPDX-License-Identifier: Apache-2.0
"""Commands and files on the machine that submits, here or behind ssh."""
