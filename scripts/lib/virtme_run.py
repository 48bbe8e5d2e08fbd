# SPDX-License-Identifier: GPL-2.0-only
"""virtme-run with another folder of guest tools than virtme-ng's own.

Usage: virtme_run.py GUEST-TOOLS ARGUMENT...

The folder holds virtme-init, the first process of the guest.
"""

import sys

from virtme import resources
from virtme.commands import run

guest_tools = sys.argv.pop(1)
resources.find_guest_tools = lambda: guest_tools
sys.exit(run.main())
