# SPDX-License-Identifier: Apache-2.0
"""Load tests of endpoints: the figures of each level."""

from __future__ import annotations

import msgspec

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.run.load_testing.result import SUMMARY, LoadTest
from newskills.view.files import MAX_FILE_BYTES
from newskills.view.library import Library

_decoder = msgspec.json.Decoder(LoadTest)


def load_tests_page(library: Library) -> Row:
    """Return all load tests; one whose file cannot be read is a note."""
    tests: list[Row] = []
    notes: list[str] = []
    for name, folder in sorted(library.catalog().load_tests.items()):
        try:
            test = _decoder.decode(library.folders.read(folder / SUMMARY, MAX_FILE_BYTES))
        except (DataError, OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            notes.append(f"{name}/{SUMMARY} cannot be read: {error}")
        else:
            tests.append({"id": name, **msgspec.to_builtins(test)})
    return {"tests": tests, "notes": notes}
