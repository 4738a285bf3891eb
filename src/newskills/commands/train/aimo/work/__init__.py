# SPDX-License-Identifier: Apache-2.0
"""What the commands of the three-stage recipe do."""
