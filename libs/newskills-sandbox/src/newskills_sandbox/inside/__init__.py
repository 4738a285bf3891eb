# SPDX-License-Identifier: Apache-2.0
"""What runs inside the sandbox's own interpreter: zygote, supervisor, worker. The standard library only."""
