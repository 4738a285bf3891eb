# SPDX-License-Identifier: Apache-2.0
"""Container images and engines."""
