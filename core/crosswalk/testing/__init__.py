"""For tests: the conformance kit for provider plugins, and a server that replays captures.

Only ``ProviderConformance`` needs the extra ``crosswalk-llm[testing]``. The command line uses the rest.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.testing.captures import (
        Capture as Capture,
        capture_files as capture_files,
        load_capture as load_capture,
        load_captures as load_captures,
        pairs as pairs,
    )
    from crosswalk.testing.case import Tally as Tally
    from crosswalk.testing.checks import (
        CHECKS as CHECKS,
        PROMISES as PROMISES,
        check_capture as check_capture,
        load_exceptions as load_exceptions,
    )
    from crosswalk.testing.conformance import ProviderConformance as ProviderConformance
    from crosswalk.testing.corpus import Corpus as Corpus, compare_answer as compare_answer
    from crosswalk.testing.exchange import (
        Answer as Answer,
        Cut as Cut,
        Delay as Delay,
        Garbage as Garbage,
        ReceivedRequest as ReceivedRequest,
        ReplayError as ReplayError,
        Reset as Reset,
        Slow as Slow,
        Stall as Stall,
    )
    from crosswalk.testing.pairing import check_pair as check_pair, normalized as normalized
    from crosswalk.testing.perturbation import (
        Leaf as Leaf,
        fixed_clock as fixed_clock,
        fixed_id as fixed_id,
        leaves as leaves,
        outcome as outcome,
        show_path as show_path,
    )
    from crosswalk.testing.problems import Problem as Problem, by_cause as by_cause
    from crosswalk.testing.recorded import Recording as Recording, store_capture as store_capture
    from crosswalk.testing.replay import ReplayServer as ReplayServer
    from crosswalk.testing.strict import STRICT_PROVIDERS as STRICT_PROVIDERS, strict_rules as strict_rules
    from crosswalk.testing.strict.rules import ServerRule as ServerRule, StrictRules as StrictRules
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.testing.captures": "Capture capture_files load_capture load_captures pairs",
            "crosswalk.testing.case": "Tally",
            "crosswalk.testing.checks": "CHECKS PROMISES check_capture load_exceptions",
            "crosswalk.testing.conformance": "ProviderConformance",
            "crosswalk.testing.corpus": "Corpus compare_answer",
            "crosswalk.testing.exchange": (
                "Answer Cut Delay Garbage ReceivedRequest ReplayError Reset Slow Stall"
            ),
            "crosswalk.testing.pairing": "check_pair normalized",
            "crosswalk.testing.perturbation": "Leaf fixed_clock fixed_id leaves outcome show_path",
            "crosswalk.testing.problems": "Problem by_cause",
            "crosswalk.testing.recorded": "Recording store_capture",
            "crosswalk.testing.replay": "ReplayServer",
            "crosswalk.testing.strict": "STRICT_PROVIDERS strict_rules",
            "crosswalk.testing.strict.rules": "ServerRule StrictRules",
        },
        hidden="" if find_spec("syrupy") else "ProviderConformance",
    )
