# SPDX-License-Identifier: Apache-2.0
"""Environments of other packages as skills: the package plays the environment, our model answers."""
