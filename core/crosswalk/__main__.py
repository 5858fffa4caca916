"""``python -m crosswalk`` is ``crosswalk``."""

import sys

from crosswalk.cli import main

sys.exit(main())
