# SPDX-License-Identifier: Apache-2.0
"""Why a run fails: groups of failures with their share of the loss, by rule; claims of a model, checked."""
