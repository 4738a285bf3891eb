# SPDX-License-Identifier: Apache-2.0
"""Commands of the three-stage math recipe as modules, and what its scripts import."""
