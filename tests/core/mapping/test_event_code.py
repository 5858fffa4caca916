"""The code that reads events is kept for the next answer, but not forever."""

from __future__ import annotations

from crosswalk.mapping.learnt import event_code
from crosswalk.mapping.learnt.event_code import EventCode, function_of


def test_of_ever_new_kinds_of_events_the_last_are_kept() -> None:
    for number in range(600):
        code = EventCode(
            (("text", str),),
            "content_delta",
            framed=False,
            keeps_raw=False,
            is_counted=(False, False),
            is_remembered=False,
            has_left=False,
            literals=(number,),
        )
        function_of(code, {"choice": 0})
    assert event_code._factory.cache_info().currsize <= 512
