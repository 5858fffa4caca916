"""``python -m crosswalk.cli`` is ``crosswalk``."""

import sys

from crosswalk.cli import main

sys.exit(main())
