# SPDX-License-Identifier: Apache-2.0
"""Figures that need a GPU to mean something; every script also runs tiny on a CPU."""
