# SPDX-License-Identifier: Apache-2.0
"""Types of functions that are handed down so that work can tell of itself."""

from __future__ import annotations

from collections.abc import Callable

PrintLine = Callable[[str], None]
"""Shows one line of text to the person who waits, wherever that is."""
