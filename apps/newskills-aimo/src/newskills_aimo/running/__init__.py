# SPDX-License-Identifier: Apache-2.0
"""What the commands of the three-stage recipe do: each step is another command, which runs in this process."""
