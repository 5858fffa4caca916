"""The conformance kit for provider plugins (design, section 7).

``ProviderConformance`` alone needs the extra ``crosswalk[testing]``: the command line uses the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosswalk.testing.captures import Capture, capture_files, load_capture, load_captures, pairs
from crosswalk.testing.checks import CHECKS, Problem, Tally, check_capture, check_pair, normalized
from crosswalk.testing.fixed import fixed_clock, fixed_id
from crosswalk.testing.perturbation import Leaf, leaves, outcome, show_path

if TYPE_CHECKING:
    from crosswalk.testing.conformance import ProviderConformance

__all__ = [
    "CHECKS",
    "Capture",
    "Leaf",
    "Problem",
    "ProviderConformance",
    "Tally",
    "capture_files",
    "check_capture",
    "check_pair",
    "fixed_clock",
    "fixed_id",
    "leaves",
    "load_capture",
    "load_captures",
    "normalized",
    "outcome",
    "pairs",
    "show_path",
]


def __getattr__(name: str) -> Any:
    if name != "ProviderConformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from crosswalk.testing.conformance import ProviderConformance  # it needs pytest and syrupy

    return ProviderConformance
