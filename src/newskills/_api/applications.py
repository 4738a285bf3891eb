# SPDX-License-Identifier: Apache-2.0
"""What the applications in `apps/` may import beyond the public modules: the lines of `applications.txt`.

They are released with newskills and require its exact version, so these may change from one version to the next; but
who changes one of them has to look at the applications, and an application that wants another one adds it there.
"""

from pathlib import Path

FOR_APPLICATIONS = frozenset(Path(__file__).with_name("applications.txt").read_text("utf-8").split())
