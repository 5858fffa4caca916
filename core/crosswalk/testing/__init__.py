"""For tests: the conformance kit for provider plugins, and a server that replays captures.

Only ``ProviderConformance`` needs the extra ``crosswalk-llm[testing]``. The command line uses the rest.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from crosswalk.lazy import imported_when_used

if TYPE_CHECKING:
    from crosswalk.testing.captures import Capture, capture_files, load_capture, load_captures, pairs
    from crosswalk.testing.case import Tally
    from crosswalk.testing.checks import (
        CHECKS,
        PROMISES,
        check_capture,
        load_exceptions,
    )
    from crosswalk.testing.conformance import ProviderConformance
    from crosswalk.testing.corpus import Corpus, compare_answer
    from crosswalk.testing.faults import Cut, Delay, Garbage, Reset, Slow, Stall
    from crosswalk.testing.pairing import check_pair, normalized
    from crosswalk.testing.perturbation import Leaf, fixed_clock, fixed_id, leaves, outcome, show_path
    from crosswalk.testing.problems import Problem, by_cause
    from crosswalk.testing.recorded import Recording, store_capture
    from crosswalk.testing.replay import Answer, ReceivedRequest, ReplayError, ReplayServer
    from crosswalk.testing.strict.providers import STRICT_PROVIDERS, strict_rules
    from crosswalk.testing.strict.rules import ServerRule, StrictRules

__all__ = [
    "CHECKS",
    "PROMISES",
    "STRICT_PROVIDERS",
    "Answer",
    "Capture",
    "Corpus",
    "Cut",
    "Delay",
    "Garbage",
    "Leaf",
    "Problem",
    "ProviderConformance",
    "ReceivedRequest",
    "Recording",
    "ReplayError",
    "ReplayServer",
    "Reset",
    "ServerRule",
    "Slow",
    "Stall",
    "StrictRules",
    "Tally",
    "by_cause",
    "capture_files",
    "check_capture",
    "check_pair",
    "compare_answer",
    "fixed_clock",
    "fixed_id",
    "leaves",
    "load_capture",
    "load_captures",
    "load_exceptions",
    "normalized",
    "outcome",
    "pairs",
    "show_path",
    "store_capture",
    "strict_rules",
]


# Imported on first use: the command line, which reads captures, needs only a few of them.
_LATER = {
    "captures": ("Capture", "capture_files", "load_capture", "load_captures", "pairs"),
    "case": ("Tally",),
    "corpus": ("Corpus", "compare_answer"),
    "pairing": ("check_pair", "normalized"),
    "problems": ("Problem", "by_cause"),
    "checks": ("CHECKS", "PROMISES", "check_capture", "load_exceptions"),
    "perturbation": ("Leaf", "leaves", "outcome", "show_path", "fixed_clock", "fixed_id"),
    "conformance": ("ProviderConformance",),  # needs pytest and syrupy
    "faults": ("Cut", "Delay", "Garbage", "Reset", "Slow", "Stall"),
    "recorded": ("Recording", "store_capture"),
    "replay": (
        "Answer",
        "ReceivedRequest",
        "ReplayError",
        "ReplayServer",
    ),  # needs asyncio, which takes long to import
    "strict.providers": ("STRICT_PROVIDERS", "strict_rules"),
    "strict.rules": ("ServerRule", "StrictRules"),
}
_HOMES = {name: f"crosswalk.testing.{module}" for module, names in _LATER.items() for name in names}
if not TYPE_CHECKING:

    def _names() -> set[str]:
        """The names in this module, for code that lists them and may get each."""
        return {*_HOMES} - (set() if find_spec("syrupy") else {"ProviderConformance"})

    __getattr__, __dir__ = imported_when_used(__name__, _HOMES.get, _names)
