"""How every test runs: the same examples every time, and none judged by the clock."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("crosswalk", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=5000)  # --hypothesis-profile=search
if settings.get_current_profile_name() == "default":
    settings.load_profile("crosswalk")
