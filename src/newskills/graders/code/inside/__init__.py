# SPDX-License-Identifier: Apache-2.0
"""What runs inside the sandbox: the text of these files is sent there, so they use the standard library only."""
