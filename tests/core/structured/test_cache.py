"""Every store keeps the same promises."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cache_backends import FAILURE, VALUE, Backend, put_bytes
from crosswalk.errors import ConfigurationError
from crosswalk.structured.cache import AnswerCache, CachedAnswer, CacheStats, answer_key
from crosswalk.structured.cache_entry import ENTRY_FORMAT, StoredEntry, decode_entry, encode_entry
from crosswalk.structured.cache_stored import StoredCache
from crosswalk.structured.result import Violation
from tries import tries

KEY = answer_key("schema", "text")
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(20))
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=8,
)


class Parses:
    """A parse that counts how often it is asked for."""

    def __init__(self, answer: CachedAnswer = VALUE) -> None:
        self.answer = answer
        self.count = 0

    def __call__(self) -> CachedAnswer:
        self.count += 1
        return self.answer

    def through(self, cache: StoredCache, key: str = KEY, **options: Any) -> CachedAnswer:
        return cache.get_or_parse(key, self, lambda result: result, lambda stored: stored, **options)


# ------------------------------------------------------------------------------------- look-ups


def test_a_second_look_up_does_not_parse(backend: Backend) -> None:
    cache, parses = backend.cache(), Parses()
    assert parses.through(cache) == VALUE
    assert parses.through(cache) == VALUE
    assert parses.count == 1
    assert cache.stats() == CacheStats(hits=1, misses=1, stores=1)
    assert cache.stats().hit_rate == 0.5
    assert cache.size() == 1


def test_two_caches_of_one_kind_promise_the_same(backend: Backend) -> None:
    cache: AnswerCache = backend.cache()
    assert cache.stats().hit_rate is None
    assert cache.get(KEY) is None
    cache.put(KEY, VALUE)
    assert cache.get(KEY) == VALUE
    assert cache.get(answer_key("other")) is None
    assert cache.stats() == CacheStats(hits=1, misses=2, stores=1)


def test_all_of_an_answer_comes_back(backend: Backend) -> None:
    cache = backend.cache()
    answer = CachedAnswer(
        document={"a": [1, 2.5, None, "ü\u2028"]},
        stage="repair",
        reason="truncated",
        violations=(Violation("wrong", "$.a[0]"),),
        partial=True,
        schema_version="1.1",
        choice="fenced",
        candidates=({"a": 1}, {"a": 2**70}),
        cut="$.a",
    )
    cache.put(KEY, answer)
    assert cache.get(KEY) == answer


@SHARED
@given(document=DOCUMENTS)
def test_any_json_comes_back(backend: Backend, document: Any) -> None:
    cache = backend.cache()
    answer = CachedAnswer(document=document, stage="direct", reason="success")
    cache.put(KEY, answer)
    assert cache.get(KEY) == answer


def test_nobody_can_change_what_another_is_given(backend: Backend) -> None:
    cache = backend.cache()
    answer = CachedAnswer(document={"sources": []}, stage="direct", reason="success")
    cache.put(KEY, answer)
    for _ in range(2):
        found = cache.get(KEY)
        assert found is not None
        assert found.document == {"sources": []}
        found.document["sources"].append("mine")
    assert answer.document == {"sources": []}


@pytest.mark.parametrize("key", ["", "ä b\n", "*", "x" * 10_000, "{a}"])
def test_any_text_can_be_a_key(backend: Backend, key: str) -> None:
    cache = backend.cache()
    cache.put(key, VALUE)
    assert cache.get(key) == VALUE
    assert cache.get(key + "'") is None


@pytest.mark.parametrize(
    ("key", "document"),
    [
        ("\ud800", {}),
        (KEY, {"a": object()}),
        (KEY, "\udfff"),
        (KEY, {1: 2}),
        (KEY, [float("nan")]),
        (KEY, (1, 2)),
    ],
    ids=["key", "object", "surrogate", "no text as a name", "nan", "tuple"],
)
def test_what_json_cannot_hold_is_not_stored(backend: Backend, key: str, document: Any) -> None:
    cache = backend.cache()
    parses = Parses(CachedAnswer(document=document, stage="direct", reason="success"))
    assert parses.through(cache, key).document is document
    assert parses.through(cache, key).document is document
    assert (cache.stats().hits, cache.stats().misses, cache.stats().stores) == (0, 2, 0)


def test_what_is_nested_too_deeply_is_not_stored(backend: Backend) -> None:
    document: list[Any] = []
    for _ in range(50_000):
        document = [document]
    cache = backend.cache()
    cache.put(KEY, CachedAnswer(document=document, stage="direct", reason="success"))
    assert cache.get(KEY) is None


def test_what_a_parse_raises_is_not_stored(backend: Backend) -> None:
    cache = backend.cache()

    def fails() -> CachedAnswer:
        raise RuntimeError("no")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            cache.get_or_parse(KEY, fails, lambda result: result, lambda stored: stored)
    assert Parses().through(cache) == VALUE
    assert cache.stats() == CacheStats(misses=3, stores=1)


def test_clearing_leaves_only_the_statistics(backend: Backend) -> None:
    cache = backend.cache(max_entries=2000)
    for number in range(1100):
        cache.put(str(number), VALUE)
    assert cache.size() == 1100
    cache.clear()
    assert cache.size() == 0
    assert cache.get("1") is None
    assert cache.stats() == CacheStats(misses=1, stores=1100)
    cache.reset_stats()
    assert cache.stats() == CacheStats()


# ------------------------------------------------------------------------------------- time to live


def test_a_value_lives_its_time(backend: Backend) -> None:
    cache = backend.cache(ttl=300)
    cache.put(KEY, VALUE)
    backend.clock.now += 299
    assert cache.get(KEY) == VALUE
    backend.clock.now += 1
    assert cache.get(KEY) is None
    assert cache.size() == 0


def test_every_entry_may_have_its_own_time(backend: Backend) -> None:
    cache = backend.cache(ttl=300)
    Parses().through(cache, "short", ttl=10)
    cache.put("long", VALUE, ttl=3600)
    cache.put("own", VALUE)
    backend.clock.now += 11
    assert [key for key in ("short", "own", "long") if cache.get(key)] == ["own", "long"]
    backend.clock.now += 300
    assert [key for key in ("short", "own", "long") if cache.get(key)] == ["long"]


def test_a_new_value_begins_a_new_time(backend: Backend) -> None:
    cache = backend.cache(ttl=300)
    cache.put(KEY, VALUE)
    backend.clock.now += 200
    cache.put(KEY, VALUE)
    backend.clock.now += 200
    assert cache.get(KEY) == VALUE
    assert cache.size() == 1


def test_a_failure_is_stored_for_a_shorter_time(backend: Backend) -> None:
    cache, parses = backend.cache(ttl=300, negative_ttl=30), Parses(FAILURE)
    assert [parses.through(cache), parses.through(cache)] == [FAILURE, FAILURE]
    assert cache.stats() == CacheStats(hits=1, negative_hits=1, misses=1, stores=1)
    backend.clock.now += 31
    parses.through(cache)
    assert parses.count == 2


def test_failures_need_not_be_stored(backend: Backend) -> None:
    cache, parses = backend.cache(negative_ttl=None), Parses(FAILURE)
    parses.through(cache)
    parses.through(cache, ttl=10)
    assert parses.count == 2
    assert cache.stats() == CacheStats(misses=2)


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 10**400])
def test_a_time_to_live_is_a_positive_number(backend: Backend, ttl: float) -> None:
    cache = backend.cache()
    with pytest.raises(ConfigurationError, match="ttl: a time to live"):
        cache.put(KEY, VALUE, ttl=ttl)
    with pytest.raises(ConfigurationError, match="ttl: a time to live"):
        Parses().through(cache, ttl=ttl)
    with pytest.raises(ConfigurationError, match="^ttl"):
        backend.cache(ttl=ttl)
    with pytest.raises(ConfigurationError, match="^negative_ttl"):
        backend.cache(negative_ttl=ttl)
    assert cache.stats() == CacheStats()


def test_a_cache_holds_at_least_one_entry(backend: Backend) -> None:
    with pytest.raises(ConfigurationError, match="max_entries"):
        backend.cache(max_entries=0)


# ------------------------------------------------------------------------------------- least recently used


def test_the_least_recently_used_makes_room(backend: Backend) -> None:
    cache = backend.cache(max_entries=3)
    for key in "abc":
        cache.put(key, VALUE)
    cache.get("a")
    cache.put("d", VALUE)
    cache.put("c", VALUE)
    cache.put("e", VALUE)
    assert [key for key in "abcde" if cache.get(key)] == ["c", "d", "e"]
    assert cache.size() == 3
    assert cache.stats().evictions == 2


def test_what_has_expired_makes_room_first(backend: Backend) -> None:
    cache = backend.cache(max_entries=2)
    cache.put("old", VALUE)
    cache.put("brief", VALUE, ttl=1)
    backend.clock.now += 2
    cache.put("new", VALUE)
    assert [key for key in ("old", "brief", "new") if cache.get(key)] == ["old", "new"]
    assert cache.stats().evictions == 0


@SHARED
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("pg"), st.sampled_from("abcdef"), st.sampled_from([5, 50])), max_size=40
    )
)
def test_every_store_keeps_what_a_simple_model_keeps(
    backend: Backend, steps: list[tuple[str, str, int]]
) -> None:
    cache = backend.cache(max_entries=3)
    cache.clear()
    model: dict[str, float] = {}  # expiry by key, the least recently used first
    for step, key, ttl in steps:
        backend.clock.now += 3
        now = backend.clock.now
        model = {kept: expiry for kept, expiry in model.items() if expiry > now}
        if step == "g":
            assert (cache.get(key) is not None) is (key in model)
            if key in model:
                model[key] = model.pop(key)
        else:
            cache.put(key, VALUE, ttl=ttl)
            model.pop(key, None)
            model[key] = now + ttl
            if len(model) > 3:
                del model[next(iter(model))]
    assert cache.size() == len(model)


# ------------------------------------------------------------------------------------- corrupt and foreign


def entry(**changes: Any) -> bytes:
    """An entry that is right but for *changes*; a change to ``...`` leaves the field out."""
    answer = {
        "document": {},
        "stage": "direct",
        "reason": "success",
        "violations": [],
        "partial": False,
        "schema_version": None,
        "choice": None,
        "candidates": [],
        "cut": None,
    }
    whole: dict[str, Any] = {"format": ENTRY_FORMAT, "key": KEY, "expires_at": 2_000_000.0, "answer": answer}
    for name, value in changes.items():
        place = answer if name in answer else whole
        place[name] = value
        if value is ...:
            del place[name]
    return orjson.dumps(whole)


STRANGE = {
    "nothing": b"",
    "no JSON": b"\x80\x04\x95pickle",
    "no text": b"\xff\xfe",
    "cut": entry()[:-5],
    "null": b"null",
    "array": b"[]",
    "text": b'"crosswalk"',
    "deep": b"[" * 100_000,
    "another's": b'{"value": 1}',
    "older format": entry(format="crosswalk.answer/0"),
    "newer format": entry(format="crosswalk.answer/2"),
    "no format": entry(format=...),
    "another key": entry(key="other"),
    "key of another type": entry(key=1),
    "no expiry": entry(expires_at=...),
    "expiry of another type": entry(expires_at="soon"),
    "expiry true": entry(expires_at=True),
    "no answer": entry(answer=...),
    "answer of another type": entry(answer=[]),
    "no document": entry(document=...),
    "stage of another type": entry(stage=None),
    "reason of another type": entry(reason=3),
    "partial of another type": entry(partial=0),
    "violations of another type": entry(violations={}),
    "violation of another type": entry(violations=["x"]),
    "violation without a message": entry(violations=[{"path": "$", "code": "schema_type_error"}]),
    "version of another type": entry(schema_version=1.0),
    "choice of another type": entry(choice=1),
    "candidates of another type": entry(candidates={}),
    "an unknown stage": entry(stage="leap"),
    "an unknown reason": entry(reason="luck"),
    "an unknown choice": entry(choice="toss"),
    "a violation of an unknown code": entry(violations=[{"message": "m", "path": "$", "code": "luck"}]),
    "one key more": entry(colour="red"),
}


def test_the_entry_that_the_table_changes_is_a_right_one(backend: Backend) -> None:
    cache = backend.cache()
    put_bytes(cache, KEY, entry())
    assert cache.get(KEY) == CachedAnswer(document={}, stage="direct", reason="success")


@pytest.mark.parametrize("stored", STRANGE.values(), ids=STRANGE)
def test_a_corrupt_or_foreign_entry_is_a_miss(backend: Backend, stored: bytes) -> None:
    cache, parses = backend.cache(), Parses()
    put_bytes(cache, KEY, stored)
    assert cache.get(KEY) is None
    assert cache.stats() == CacheStats(misses=1, rejected=1)
    assert parses.through(cache) == VALUE
    assert parses.through(cache) == VALUE  # the right entry took its place
    assert cache.stats() == CacheStats(hits=1, misses=2, rejected=2, stores=1)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_entry_or_none(stored: bytes) -> None:
    assert decode_entry(stored) is None


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_changed_byte_gives_an_entry_or_none(place: int, byte: int) -> None:
    stored = bytearray(entry())
    stored[place % len(stored)] = byte
    found = decode_entry(bytes(stored))
    if found is not None:
        assert decode_entry(encode_entry(found) or b"") == found


@given(st.text(), DOCUMENTS)
def test_an_entry_comes_back(key: str, document: Any) -> None:
    whole = StoredEntry(key, 1.5, CachedAnswer(document=document, stage="direct", reason="success"))
    stored = encode_entry(whole)
    assert stored is None or decode_entry(stored) == whole


@pytest.mark.parametrize(
    "refusal", [lambda _: None, lambda stored: stored.document["no"]], ids=["None", "raises"]
)
def test_what_its_reader_refuses_is_a_miss(
    backend: Backend, refusal: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cache = backend.cache()
    cache.put(KEY, VALUE)
    assert cache.get_or_parse(KEY, lambda: "parsed", lambda _: VALUE, refusal) == "parsed"
    assert cache.stats() == CacheStats(misses=1, rejected=1, stores=2)
    assert "yes" not in caplog.text


# ------------------------------------------------------------------------------------- keys


def test_a_key_is_the_same_in_every_process() -> None:
    key = answer_key("gemma3", "v1", ["adr-21", "adr-22"], None, "text")
    assert key == "6dec13e122035e2f2b63959b68c04cce6c4b435cb337000fba9def71322ee44e"


PARTS = st.none() | st.text(max_size=4) | st.lists(st.text(max_size=3), max_size=3)


@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_two_keys_are_equal_only_for_the_same_parts(one: list[Any], other: list[Any]) -> None:
    assert (answer_key(*one) == answer_key(*other)) is (one == other)


def test_a_key_may_be_made_of_any_text() -> None:
    assert answer_key("\ud800") != answer_key("\ud801")
    assert answer_key(item for item in "ab") == answer_key(["a", "b"])
    assert len(answer_key()) == 64
