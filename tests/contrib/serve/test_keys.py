"""Keys and what each has used, in memory and in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from time import time
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from crosswalk.errors import ConfigurationError, ErrorKind
from crosswalk_serve.config import Key, KeyHash
from crosswalk_serve.http import Refusal
from crosswalk_serve.routing import (
    Caller,
    CountError,
    Counters,
    Keyring,
    MemoryCounters,
    Period,
    Quotas,
    RedisCounters,
    connect,
    new_key,
)
from redis_server import redis_address  # noqa: F401  # a fixture

ALICE, BOB = "cw-alice-0123456789abcdefghij", "cw-bob-0123456789abcdefghijkl"
SALTS = {ALICE: b"saltsalt", BOB: b"pepper pepper"}
KEYS = {name: Key(hash=KeyHash.of(key, SALTS[key])) for name, key in (("alice", ALICE), ("bob", BOB))}


class Clock:
    now = 1_000_000_020.0

    def __call__(self) -> float:
        return self.now


# ------------------------------------------------------------------------------------ who asks


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"authorization": f"Bearer {ALICE}"}, "alice"),
        ({"authorization": f"bearer  {BOB} "}, "bob"),
        ({"x-api-key": BOB}, "bob"),
        ({"x-api-key": BOB, "authorization": f"Bearer {BOB}"}, "bob"),
    ],
)
def test_a_key_is_known_wherever_an_sdk_puts_it(headers: dict[str, str], name: str) -> None:
    assert Keyring(KEYS).caller(headers).name == name


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {ALICE}"},
        {"authorization": ALICE},
        {"authorization": f"Bearer {ALICE[:-1]}"},
        {"authorization": f"Bearer {ALICE}x"},
        {"authorization": f"Bearer {ALICE.upper()}"},
        {"authorization": f"Bearer {KEYS['alice'].hash}"},
        {"authorization": f"Bearer {ALICE}", "x-api-key": BOB},
        {"authorization": "Bearer " + "x" * 100_000},
        {"x-api-key": "ü" * 20},
    ],
)
def test_any_other_is_refused_in_the_same_words(headers: dict[str, str]) -> None:
    with pytest.raises(Refusal) as raised:
        Keyring(KEYS).caller(headers)
    assert (raised.value.info.kind, str(raised.value)) == (
        ErrorKind.AUTHENTICATION,
        "no valid API key was given",
    )


def test_without_keys_everybody_may_ask_for_everything() -> None:
    caller = Keyring({}).caller({"authorization": "Bearer anything"})
    assert caller == Caller(None, None)
    assert caller.may_ask("any")


@pytest.mark.parametrize(
    ("models", "name", "may"),
    [(None, "any", True), ((), "any", False), (("a", "b"), "b", True), (("a",), "ab", False), (("gpt-*",), "gpt-5", True), (("gpt-*",), "gp", False)],
)  # fmt: skip
def test_a_key_may_be_for_some_models(models: tuple[str, ...] | None, name: str, may: bool) -> None:
    assert Caller("alice", Key(hash=KEYS["alice"].hash, models=models)).may_ask(name) is may


def test_a_hash_is_read_back_and_tells_nothing() -> None:
    hashed = KEYS["alice"].hash
    assert KeyHash.parse(str(hashed)) == hashed
    assert KeyHash.of(ALICE, b"other salt") != hashed
    assert ALICE not in str(hashed)
    assert len({new_key() for _ in range(100)}) == 100


@pytest.mark.sweep
@pytest.mark.parametrize(
    "text", ["", ALICE, "sha256:00:00", "sha256:0011223344556:" + "0" * 64, "md5:" + "0" * 81]
)
def test_what_is_no_hash_is_not_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a hash") as raised:
        KeyHash.parse(text)
    assert text == "" or text not in str(raised.value)


# ------------------------------------------------------------------------------------ how much


@asynccontextmanager
async def counters_of(kind: str, clock: Clock, address: str) -> AsyncIterator[Counters]:
    """Counters of a kind. Made in the event loop that uses them."""
    if kind == "memory":
        yield MemoryCounters(clock)
        return
    client: Any = connect(address) if kind == "redis" else FakeAsyncRedis(server=FakeServer())
    async with client:
        yield RedisCounters(client, f"test-{kind}-{new_key()}")


@pytest.fixture
def address(kind: str, request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("redis_address") if kind == "redis" else ""


kinds = pytest.mark.parametrize("kind", ["memory", "fakeredis", "redis"])


def limited(**limits: Any) -> Caller:
    return Caller("alice", Key(hash=KEYS["alice"].hash, **limits))


def test_a_key_has_so_many_requests_at_once() -> None:
    quotas, caller = Quotas(MemoryCounters(time), time), limited(concurrent_requests=2)
    with quotas.place(caller):
        with quotas.place(caller):
            with pytest.raises(Refusal, match="more than 2 requests at once") as raised, quotas.place(caller):
                pass
            assert (raised.value.info.kind, raised.value.retry_after) == (ErrorKind.RATE_LIMIT, 1)
            with quotas.place(attrs_named(caller, "bob")):  # whose own count it is
                pass
        with quotas.place(caller):
            pass


@kinds
def test_requests_are_counted_by_the_minute(kind: str, address: str) -> None:
    async def main() -> None:
        clock = far(kind)
        async with counters_of(kind, clock, address) as counters:
            quotas, caller = Quotas(counters, clock), limited(requests_per_minute=2)
            for _ in range(2):
                await quotas.admit(caller)
            with pytest.raises(Refusal, match="more than 2 requests a minute") as raised:
                await quotas.admit(caller)
            assert raised.value.info.kind is ErrorKind.RATE_LIMIT
            assert raised.value.retry_after == 60 - int(clock.now) % 60
            await quotas.admit(attrs_named(caller, "bob"))  # whose own count it is
            clock.now += raised.value.retry_after
            await quotas.admit(caller)

    asyncio.run(main())


@kinds
def test_tokens_are_counted_by_the_minute_once_they_are_known(kind: str, address: str) -> None:
    async def main() -> None:
        clock = far(kind)
        async with counters_of(kind, clock, address) as counters:
            quotas, caller = Quotas(counters, clock), limited(tokens_per_minute=10)
            await quotas.admit(caller)
            await quotas.spend(caller, 9, 1.0)
            await quotas.admit(caller)
            await quotas.spend(caller, 1, 1.0)
            with pytest.raises(Refusal, match="more than 10 tokens a minute"):
                await quotas.admit(caller)
            clock.now += 60
            await quotas.admit(caller)

    asyncio.run(main())


@kinds
def test_a_budget_is_for_a_day(kind: str, address: str) -> None:
    async def main() -> None:
        clock = far(kind)
        async with counters_of(kind, clock, address) as counters:
            quotas, caller = Quotas(counters, clock), limited(budget_per_day=0.5)
            await quotas.admit(caller)
            await quotas.spend(caller, 5, 0.4999)
            await quotas.admit(caller)
            await quotas.spend(caller, 5, 0.0001)
            with pytest.raises(Refusal, match="the budget of the day is used up") as raised:
                await quotas.admit(caller)
            assert raised.value.info.code == "insufficient_quota"
            assert raised.value.retry_after == 86400 - int(clock.now) % 86400
            clock.now += raised.value.retry_after
            await quotas.admit(caller)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("now", "next_month"),
    [
        ("2027-01-31T23:59:59", "2027-02-01"),
        ("2027-02-28T00:00:00", "2027-03-01"),
        ("2028-02-29T12:00:00", "2028-03-01"),
        ("2027-12-01T00:00:00", "2028-01-01"),
    ],
)
def test_a_month_is_that_of_the_calendar(now: str, next_month: str) -> None:
    seconds = [datetime.fromisoformat(f"{text}+00:00").timestamp() for text in (now, f"{next_month}T00:00")]
    month, after = (Period.at("month", at) for at in seconds)
    assert (month.end, after.number) == (seconds[1], month.number + 1)


@kinds
def test_a_key_may_have_both_budgets(kind: str, address: str) -> None:
    """What the one refuses is not taken from the other."""

    async def main() -> None:
        clock = Clock()
        clock.now = datetime(2096, 1, 30, tzinfo=UTC).timestamp()  # Redis forgets by its own clock
        async with counters_of(kind, clock, address) as counters:
            quotas, caller = Quotas(counters, clock), limited(budget_per_day=2, budget_per_month=3)
            first = await quotas.admit(caller, 2)
            with pytest.raises(Refusal, match="the budget of the day is used up"):
                await quotas.admit(caller, 1)
            clock.now += 86400
            await quotas.spend(caller, 5, 1.5, first)  # in the periods that it was reserved in
            await quotas.spend(attrs_named(caller, "bob"), 5, 9.0)
            with pytest.raises(Refusal, match=r"the budget of the month has not the \$1\.60 left") as raised:
                await quotas.admit(caller, 1.6)
            assert raised.value.retry_after == 86400
            assert raised.value.info.code == "insufficient_quota"
            await quotas.admit(caller, 1.5)
            with pytest.raises(Refusal, match="the budget of the month is used up"):
                await quotas.admit(caller)
            clock.now += 86400
            await quotas.admit(caller, 2)

    asyncio.run(main())


def test_a_key_is_refused_once_it_has_expired() -> None:
    clock = Clock()
    end = datetime.fromtimestamp(clock.now + 60, UTC)
    keyring = Keyring({"alice": Key(hash=KEYS["alice"].hash, expires=end), "bob": KEYS["bob"]}, clock)
    headers = {"x-api-key": ALICE}
    assert keyring.caller(headers).name == "alice"
    clock.now += 60
    with pytest.raises(Refusal, match="the API key has expired") as raised:
        keyring.caller(headers)
    assert (raised.value.info.kind, raised.value.info.code) == (ErrorKind.AUTHENTICATION, "invalid_api_key")
    assert keyring.caller({"x-api-key": BOB}).name == "bob"


@kinds
def test_a_budget_is_reserved_and_settled(kind: str, address: str) -> None:
    async def main() -> None:
        clock = far(kind)
        async with counters_of(kind, clock, address) as counters:
            quotas, caller = Quotas(counters, clock), limited(budget_per_day=1)
            first, _ = [await quotas.admit(caller, 0.5) for _ in range(2)]
            with pytest.raises(Refusal, match="the budget of the day is used up"):
                await quotas.admit(caller, 0.5)
            await quotas.spend(caller, 5, 0.25, first)
            with pytest.raises(Refusal, match=r"has not the \$0\.26 left that this request may cost"):
                await quotas.admit(caller, 0.26)
            last = await quotas.admit(caller, 0.25)
            clock.now += 86400
            await quotas.spend(caller, 0, 0.0, last)  # on the next day it is settled on its own
            await quotas.admit(caller, 1)
            with pytest.raises(Refusal, match="is used up"):
                await quotas.admit(caller)

    asyncio.run(main())


def far(kind: str) -> Clock:
    """A clock for *kind*: Redis forgets by its own."""
    clock = Clock()
    if kind != "memory":
        clock.now = 4_000_000_020.0
    return clock


def attrs_named(caller: Caller, name: str) -> Caller:
    return Caller(name, caller.key)


class Away:
    async def add(self, name: str, amount: int, until: float) -> int:
        raise CountError("away")


def test_where_nobody_can_tell_limits_hold_and_what_has_none_is_served() -> None:
    async def main() -> None:
        quotas = Quotas(Away())
        with pytest.raises(Refusal, match="away") as raised:
            await quotas.admit(limited(requests_per_minute=1))
        assert raised.value.info.status == 503
        assert "cannot be checked now" in raised.value.info.message
        await quotas.spend(limited(tokens_per_minute=1), 1, 1.0)
        await quotas.admit(limited())
        await quotas.admit(Caller(None, None))
        await quotas.spend(Caller(None, None), 1, 1.0)

    asyncio.run(main())


def test_counts_are_forgotten_when_their_time_is_over() -> None:
    async def main() -> None:
        clock = Clock()
        counters = MemoryCounters(clock)
        for number in range(100):
            clock.now += 60
            assert await counters.add(f"requests:{number}", 1, clock.now + 60) == 1
        assert len(counters._counts) <= 3
        assert await counters.add("a", 1, clock.now + 1) == 1
        clock.now += 1
        assert await counters.add("a", 1, clock.now + 1) == 1

    asyncio.run(main())


def test_a_redis_that_is_away_is_said() -> None:
    async def main() -> None:
        client = connect("redis://127.0.0.1:1/0", seconds=5)
        with pytest.raises(CountError, match="Redis: ConnectionError"):
            await RedisCounters(client, "p").add("a", 1, 1.0)
        await client.aclose()

    asyncio.run(main())


def test_an_address_that_is_none_is_not_quoted() -> None:
    with pytest.raises(ConfigurationError, match="expected an address of a Redis") as raised:
        connect("http://user:secret@host")
    assert "secret" not in str(raised.value)
