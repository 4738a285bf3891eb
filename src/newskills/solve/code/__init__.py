# SPDX-License-Identifier: Apache-2.0
"""Code in answers: it is run, and the model goes on from its output."""
