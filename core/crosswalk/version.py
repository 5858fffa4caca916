"""The version of the installed distribution."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("crosswalk-llm")
"""The version of the installed distribution, ``crosswalk-llm``."""
