# SPDX-License-Identifier: Apache-2.0
"""`ns gateway`: the gateway with the run's endpoint behind it, and its records."""
