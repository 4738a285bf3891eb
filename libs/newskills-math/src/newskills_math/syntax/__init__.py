# SPDX-License-Identifier: Apache-2.0
"""Text to trees: lexer, parser, and the tables behind them."""
