"""load_event: what orjson reads, within limits, and each failure typed and without content."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from crosswalk.errors import CrosswalkError, InvalidJSONError, LineTooLongError, NestingTooDeepError
from crosswalk.wire import Limits, load_event

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def depth_of(value: Any) -> int:
    """How deep *value* is nested. A scalar is 0."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(value=json_values, depth=st.integers(min_value=1, max_value=5))
def test_json_is_read_up_to_its_depth(value: Any, depth: int) -> None:
    """Any JSON comes out as orjson reads it, or is refused for being deeper than the limit."""
    data = orjson.dumps(value)
    assert load_event(data, place="here") == value
    if depth_of(value) <= depth:
        assert load_event(data, Limits(depth=depth), place="here") == value
    else:
        with pytest.raises(NestingTooDeepError) as caught:
            load_event(data, Limits(depth=depth), place="here")
        assert caught.value.limit == depth


def nested(depth: int, opening: bytes, closing: bytes) -> bytes:
    """Nothing but nesting."""
    return opening * depth + b"1" + closing * depth


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[0,{"]":', b"},0]")])
@pytest.mark.parametrize("limit", [1, 2, 7, 253, 254, 255, 256, 300, 1024])
def test_the_limit_itself_is_allowed(opening: bytes, closing: bytes, limit: int) -> None:
    """The deepest nesting allowed passes, one level more is refused with limit and place."""
    each = depth_of(json.loads(opening + b"1" + closing))
    data = nested(limit // each, opening, closing)
    load_event(data, Limits(depth=limit), place="event 1")
    with pytest.raises(NestingTooDeepError, match=f"event 1: .* deeper than {limit} levels") as caught:
        load_event(nested(limit // each + 1, opening, closing), Limits(depth=limit), place="event 1")
    assert caught.value.limit == limit


@pytest.mark.parametrize("limit", [3, 256])
def test_many_brackets_are_not_deep(limit: int) -> None:
    """Wide JSON, and brackets in strings, are no nesting, however many there are."""
    wide = b'[{"a":[1],"b":{}},' + b",".join([b'{"a":[1],"b":"[[[["}'] * 2000) + b"]"
    limits = Limits(depth=limit)
    assert load_event(wide, limits, place="here") == orjson.loads(wide)
    text = orjson.dumps("[" * 5000)
    assert load_event(text, limits, place="here") == "[" * 5000


@pytest.mark.parametrize(
    "data",
    [
        nested(1025, b"[", b"]"),
        nested(1025, b'{"\\"":', b"}"),
        b"[" * 100_000,
        b"[" * 600,
        b'["]",' * 300,
        b'{"\\\\":' * 300,
    ],
)
@pytest.mark.parametrize("depth", [10, 256])
def test_depth_comes_before_other_mistakes(data: bytes, depth: int) -> None:
    """Too deep input is reported as such, also if it is cut off or is not JSON further on."""
    with pytest.raises(NestingTooDeepError) as caught:
        load_event(data, Limits(depth=depth), place="here")
    assert caught.value.limit == depth


def test_orjsons_own_limit_is_ours_too() -> None:
    """A larger limit than orjson's ends at 1024 levels, and the error names it."""
    with pytest.raises(NestingTooDeepError) as caught:
        load_event(nested(1025, b"[", b"]"), Limits(depth=5000), place="here")
    assert caught.value.limit == 1024


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"", 0),
        (b" ", 0),
        (b"<html>secret</html>", 0),
        (b"[DONE]", 1),
        (b'{"secret":1', 11),
        (b'{"a":1} {"secret":2}', 8),
        (b'{"a":NaN,"secret":1}', 5),
        (b'{"a":1e999}', 5),
        (b'{"a":01}', 5),
        (b'["secret\xff"]', 8),
        (b'["secret\xed\xa0\x80"]', 8),
        (b'["secret\\ud800"]', None),
        (b'"secret\x00"', 7),
        (b"{'secret':1}", 1),
        ('["\u00e9\U0001f600\u2028", secret]'.encode(), 14),
        (b"\xef\xbb\xbf{}", 0),
        (b"[[]]]", 4),
        (b'["' + b"[" * 300, None),
        (b'["\\' + b"[" * 300, None),
        (b'["a"]' * 300, 5),
    ],
)
def test_what_is_no_json_is_refused_at_its_byte(data: bytes, offset: int | None) -> None:
    """The error names the byte and the place, and quotes nothing."""
    with pytest.raises(InvalidJSONError, match=r"^event 3: not JSON at byte \d+: ") as caught:
        load_event(data, place="event 3")
    assert caught.value.place == "event 3"
    assert caught.value.offset == offset or offset is None
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_an_integer_keeps_its_digits() -> None:
    assert load_event(b'{"wei": 1250000000000000000001, "id": -9223372036854775809}') == {
        "wei": 1250000000000000000001,
        "id": -9223372036854775809,
    }
    with pytest.raises(InvalidJSONError, match="too many digits"):
        load_event(b"[" + b"9" * 5000 + b"]")


def test_a_place_may_be_filled_in_later() -> None:
    """Without a place the error has none, and takes the one that the reader knows."""
    with pytest.raises(InvalidJSONError, match=r"^not JSON at byte 0") as caught:
        load_event(b"x")
    assert str(caught.value.locate(provider="acme", event="event 2")).startswith("acme, event 2: ")


def test_an_event_is_bounded_by_line_bytes() -> None:
    """A body that never went through a decoder is bounded all the same."""
    assert load_event(b'"abc"', Limits(line_bytes=5), place="body") == "abc"
    with pytest.raises(LineTooLongError, match="longer than 5 bytes") as caught:
        load_event(b'"abcd"', Limits(line_bytes=5), place="body")
    assert caught.value.limit == 5
    assert caught.value.place == "body"


tokens = st.lists(
    st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b"a", b":", b",", b"1", b"\xff", b"\xc3\xa9"]),
    max_size=40,
).map(b"".join)


@given(data=tokens | st.binary(max_size=50), depth=st.integers(min_value=1, max_value=4))
def test_junk_raises_only_our_errors(data: bytes, depth: int) -> None:
    """Random bytes are read or refused with a Crosswalk error, the offset within the data."""
    try:
        load_event(data, Limits(depth=depth), place="here")
    except InvalidJSONError as error:
        assert error.offset is not None
        assert 0 <= error.offset <= len(data)
    except CrosswalkError:
        pass
