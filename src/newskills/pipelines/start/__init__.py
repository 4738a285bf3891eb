# SPDX-License-Identifier: Apache-2.0
"""First steps: what this machine has, cluster configs, lists of names."""
