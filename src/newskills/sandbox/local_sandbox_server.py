# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.sandbox.local_sandbox_server [options]` is `ns sandbox serve [options]`.

For lines written for NeMo-Skills, which start its sandbox as a module and stop it by its process id.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-m", "newskills", "sandbox", "serve", *sys.argv[1:]])  # noqa: S606 - no shell is wanted
