# SPDX-License-Identifier: Apache-2.0
import sys

from newskills.cli import main

sys.exit(main())
