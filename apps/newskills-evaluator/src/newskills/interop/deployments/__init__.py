# SPDX-License-Identifier: Apache-2.0
"""A program that plans of earlier versions name."""
