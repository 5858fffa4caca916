"""docs/requests.md shows the tables of requests as they are. ``python scripts/request_page.py`` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from request_page import PAGE, current_page


def test_the_page_shows_the_tables_of_now() -> None:
    """If this fails: ``python scripts/request_page.py``, and read the difference."""
    assert current_page() == PAGE.read_text(encoding="utf-8"), "run python scripts/request_page.py"
