# SPDX-License-Identifier: Apache-2.0
"""What runs inside of an environment beside the program: the way to the run's gateway, in C and in Python."""
