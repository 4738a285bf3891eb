# SPDX-License-Identifier: Apache-2.0
"""`ns load_test`: from options to measured levels, and how they are shown."""
