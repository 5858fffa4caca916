"""A credential of an exchange is nowhere in its record, however it was sent and however the server repeats it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import httpx2
import pytest

from crosswalk import to_json
from crosswalk.service import names_credential
from crosswalk.testing import Answer, ReplayServer
from crosswalk.text import CREDENTIAL_NAMES, CredentialName
from crosswalk_observe import CaptureFolder, ObservedExchange, Watcher, install, uninstall

from .conftest import Seen, Watch, capture
from .test_records import observe

KEY = "wombat-ÄÖ/1234+56=78'\"\\"
PLAIN_KEY = "wombat-1234-5678"


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    uninstall()


def all_of(record: ObservedExchange) -> str:
    """Everything that *record* says."""
    parts = [record, record.url, record.headers, record.body.decode(), record.request.headers]
    parts += [(record.request.body or b"").decode(), record.request.options]
    if record.response is not None:
        parts += [to_json(record.response).decode(), record.response.attempts, record.response.error_info]
    partial = getattr(record.error, "partial", None)
    parts += [record.error, partial and to_json(partial).decode()]
    return " ".join(map(str, parts))


def refused(text: str) -> bytes:
    return b'{"error": {"message": "no such key: %s!", "type": "t"}}' % text.encode()


def event(**delta: Any) -> bytes:
    more = {"index": delta.pop("index", 0), "finish_reason": delta.pop("finish_reason", None)}
    if "logprobs" in delta:
        more["logprobs"] = {"content": delta.pop("logprobs")}
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{**more, "delta": delta}],
    }
    return b"data: %s\n\n" % json.dumps(chunk).encode()


END = event(finish_reason="stop") + b"data: [DONE]\n\n"
STREAM = {"content-type": "text/event-stream"}


@pytest.mark.parametrize(
    "form",
    [
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        quote(KEY),
        quote(KEY, safe="!*'()~"),
        quote(KEY, safe="!*'();:@&=+$,/?#~"),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1].replace("/", r"\/"),
        json.dumps(json.dumps(KEY)[1:-1])[1:-1],
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"x{KEY}".encode()).decode(),
    ],
)
def test_every_form_of_a_credential_is_replaced(form: str) -> None:
    asked = {"model": "tiny", "api_key": KEY}
    record = observe(refused(form), status=401, asked=json.dumps(asked).encode())
    assert record.response is not None
    assert record.response.error_info is not None
    assert "<secret>" in record.response.error_info.message
    assert "wombat" not in all_of(record)
    assert form not in all_of(record)


BASIC = base64.b64encode(b"me:pass-word-1234").decode()


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Authorization": f"Basic {BASIC}"}, "pass-word-1234"),
        ({"Authorization": f"basic {BASIC}"}, f"me:pass-word-1234 or {BASIC}"),
        ({"Authorization": "Basic pass-word-1234"}, "pass-word-1234"),  # not base64
        ({"X-Api-Key": "pass-wor,d-1234"}, "pass-wor,d-1234"),
        ({"Authorization": f"Basic {BASIC.rstrip('=')}"}, "pass-word-1234"),
        (
            {"Authorization": f"Basic  {base64.b64encode('mü:pass-word-1234'.encode('latin-1')).decode()}"},
            "pass-word-1234",
        ),
        (
            {"Authorization": f"Basic {base64.urlsafe_b64encode(b'm~?>:pass-word-1234').decode()}"},
            "pass-word-1234",
        ),
        ({"Authorization": 'Token token="pass-word-1234", realm="x"'}, "pass-word-1234"),
        ({"Authorization": "key=pass-word-1234"}, "pass-word-1234"),
        ({"Authorization": "sso-key me:pass-word-1234"}, "pass-word-1234"),
        ({"Authorization": 'Digest uri="/v1/chat/completions", response="pass-word-1234"'}, "pass-word-1234"),
        ({"X-Auth": '{"token": "pass-word-1234"}'}, "pass-word-1234"),
        ({"Cookie": "sid=%7B%22a%22%3A%22pass-word-1234%22%7D"}, "pass-word-1234"),
        ({"Authorization": "Basic pass-word-1234!"}, "pass-word-1234!"),
        ({"Cookie": 'sid="pass-word-1234"; a=b'}, "pass-word-1234"),
        ({"Cookie": "sid=pass%2Bword-1234"}, "pass+word-1234 pass%2Bword-1234"),
        ({"X-Secret": "pass-word in four words"}, "pass-word in four words"),
        ([("X-Api-Key", "pass-word-1234"), ("X-Api-Key", "pass-word-5678")], "pass-word-1234 pass-word-5678"),
    ],
)
def test_every_part_of_a_header_s_value_is_a_credential(headers: Any, said: str) -> None:
    record = observe(refused(said), status=401, sent=headers)
    assert "word-1234" not in all_of(record)
    assert "pass-wor" not in all_of(record)
    assert BASIC not in all_of(record)


@pytest.mark.parametrize(
    "asked",
    [
        {"api_key": [PLAIN_KEY]},
        {"headers": {"X-API-Key": [["short"], PLAIN_KEY]}},
        {"Secret": PLAIN_KEY, "a": ["nothing"]},
        {"messages": [{"tool_calls": [{"function": {"arguments": json.dumps({"api_key": PLAIN_KEY})}}]}]},
        {"a": json.dumps([json.dumps({"b": [{"PASSWORD": f"Bearer {PLAIN_KEY}"}]})])},
        {"a": json.dumps(json.dumps({"access-token": PLAIN_KEY}))},
        {"authorization": {"type": "bearer", "token": PLAIN_KEY}},
        {"authorization": {"value": PLAIN_KEY}},
        {"secrets": [{"name": "a", "value": PLAIN_KEY}]},
        {"credentials": {"type": "string", "value": PLAIN_KEY}},
        {"password": {"type": "string", "default": PLAIN_KEY}},
        {"auth": {"properties": {}, "type": [{"key": PLAIN_KEY}]}},
        {"api_keys": [[{"a": {"b": PLAIN_KEY}}]]},
        {"refresh_token": PLAIN_KEY, "X-Api-Token": PLAIN_KEY, "API Key": PLAIN_KEY, "api.key": PLAIN_KEY},
        {"headers": [{"name": "Authorization", "value": f"Bearer {PLAIN_KEY}"}]},
        {"a": [{"header": "x-api-key", "values": [PLAIN_KEY]}]},
        {"headers": [["X-Team-Key", PLAIN_KEY]]},
        {"tool": {"extra_headers": {"X-Team-Key": PLAIN_KEY}}},
        {"a": json.dumps({"auth_token": PLAIN_KEY}) + "\n" + json.dumps({"a": 1}) + "\n[not JSON\n"},
        {"a": f"Call it with ```json\n{{'token' : '{PLAIN_KEY}', ```"},
        {"a": f"https://me:{PLAIN_KEY}@h.example/?a=b"},
        {"tools": [{"type": "mcp", "server_url": f"https://h.example/sse?a=b&api_key={PLAIN_KEY}#c"}]},
        {"a": json.dumps({"b": f"See http://h.example?token={PLAIN_KEY} or postgres://{PLAIN_KEY}:x@db/a"})},
        {"a": rf'as "{{\"api_key\": \"{PLAIN_KEY}\"}}" says'},
    ],
)
def test_a_credential_in_json_is_replaced_wherever_it_stands(asked: dict[str, Any]) -> None:
    content = json.dumps({"model": "tiny", **asked, "note": f"use {PLAIN_KEY}", "big": 2**70})
    record = observe(refused(PLAIN_KEY), status=401, asked=content.encode())
    assert "wombat" not in all_of(record)
    assert "short" not in all_of(record)
    assert record.request.body is not None
    sent = json.loads(record.request.body)
    assert (sent["model"], sent["note"], sent["big"]) == ("tiny", "use <secret>", 2**70)
    assert sent.keys() == {"model", *asked, "note", "big"}


def test_a_name_with_escapes_is_the_same_name() -> None:
    asked = rb'{"model":"tiny","api\u005fkey":"%s"}' % PLAIN_KEY.encode()
    record = observe(refused(PLAIN_KEY), status=401, asked=asked)
    assert record.request.body == b'{"model":"tiny","api_key":"<secret>"}'
    assert "wombat" not in all_of(record)


@pytest.mark.parametrize(
    "text",
    [
        '{"secret": "a',
        '"password" is a word',
        "[the secret is out]",
        '{"secret": {"type": "string"}}',
        '{"api_key": 5, "big": 1.10}',
        '{"secretary": "Bartholomew", "secret_ingredient": "salt", "password_policy": "long", "tokens": ["a"]}',
        '{"token_note": "word"} is not "secret_note": "word"',
        '{"properties": {"password": {"type": "string", "description": "the new one", "enum": ["a"]}}}',
        '{"required": ["password", "city"], "headers": [["Accept", "text"], ["Authorization", "a", "b"]]}',
        '{"eos_token": "</s>", "session_id": "s", "prompt_cache_key": "k", "code": "print()", "key": "city"}',
        '{"name": "key", "value": "city"} {"name": 5, "value": "a secret"}',
        "https://h.example/@jo/post?city=Rome&max_tokens=5 by jo@h.example, ?key=abc",
    ],
)
def test_what_is_no_credential_stays_as_it_was_sent(text: str) -> None:
    asked = json.dumps({"model": "tiny", "messages": [{"content": text}], "temperature": 1.10}, indent=2)
    assert observe(refused("x"), status=401, asked=asked.encode()).request.body == asked.encode()


def test_a_credential_too_deep_in_a_text_leaves_the_text() -> None:
    text = f'{{"secret": "short", "deep": {"[" * 300}1{"]" * 300}}}'
    asked = json.dumps({"model": "tiny", "a": text})
    sent = json.loads(observe(refused("x"), status=401, asked=asked.encode()).request.body or b"")
    assert sent["a"] == text.replace("short", "<secret>")


def spellings(words: list[str]) -> list[str]:
    """*words* as a name, in every way that names are written."""
    joined = [separator.join(words) for separator in "_-. "]
    return [*joined, words[0] + "".join(map(str.title, words[1:])), "_".join(words).upper(), f"{joined[0]}_2"]


def rows() -> Iterator[tuple[CredentialName, list[str]]]:
    """Yield each row of the table with the words of each name that it has."""
    for row in CREDENTIAL_NAMES:
        for last in row.last.split():
            for before in row.after.split() or ["our"]:
                yield row, [last] if before == "-" else [before, last]


@pytest.mark.untraced
@pytest.mark.parametrize("place", ["header", "query", "JSON", "set-cookie"])
def test_each_name_of_the_table_is_that_of_a_credential(place: str) -> None:
    for row, words in rows():
        for name in spellings(words):
            sent, query, asked, answered = {}, "", {"model": "tiny"}, {}
            header = name.replace(" ", "-")
            if place == "header" and not (name.islower() or name.isupper()):
                continue  # the capitals of a header mean nothing
            if place == "header":
                sent = {header: PLAIN_KEY}
            elif place == "query":
                query = f"?{quote(name)}={PLAIN_KEY}"
            elif place == "JSON":
                asked |= {"a": {name: PLAIN_KEY}}
            else:
                answered = {"set-cookie": f"{header}=plain-words-alone"}
            is_one = place != "JSON" or names_credential(name)
            assert is_one or row.in_head_alone
            body = refused(f"{PLAIN_KEY} plain-words-alone")
            record = observe(
                body, status=401, sent=sent, query=query, asked=json.dumps(asked).encode(), headers=answered
            )
            assert (b"<secret>" in record.body) is is_one, name
            assert ("wombat" in record.url + str(record.request.headers)) is False
            assert (b"wombat" in (record.request.body or b"")) is not is_one, name


@pytest.mark.parametrize("row", CREDENTIAL_NAMES)
def test_a_name_is_read_by_whole_words(row: CredentialName) -> None:
    for last in row.last.split():
        for name in (
            f"{last}ary",
            f"un{last}ed_word",
            f"{last}_policy",
            f"my_{last}-name",
            *row.never_after.split(),
        ):
            assert not names_credential(name, in_head=True), name
        for before in row.never_after.split():
            assert not names_credential(f"{before}_{last}", in_head=True)
    for name in (
        "",
        "_",
        "42",
        "id",
        "monkey",
        "x-author",
        "x-authoritative",
        "x-session-name",
        "compass",
        "tokens",
    ):
        assert not names_credential(name, in_head=True), name


def test_a_request_that_is_not_json_is_not_searched() -> None:
    record = observe(refused("a word"), status=401, asked=b'{"secret": "a word')
    assert record.request.body is None
    assert b"a word" in record.body


def test_of_many_credentials_in_json_all_are_replaced_there_and_the_longest_elsewhere() -> None:
    keys = {f"api_key_{number}": f"{number:0{20 + number}}" for number in range(60)}
    record = observe(
        refused(" ".join(keys.values())), status=401, asked=json.dumps({"model": "tiny", **keys}).encode()
    )
    assert record.request.body is not None
    assert set(json.loads(record.request.body).values()) == {"tiny", "<secret>"}
    assert record.body.count(b"<secret>") == 60 - 10
    assert keys["api_key_9"].encode() in record.body


def test_a_body_that_cannot_be_written_without_its_credential_is_left_out() -> None:
    asked = b'{"model":"tiny","secret":"%s","deep":%s1%s}' % (PLAIN_KEY.encode(), b"[" * 300, b"]" * 300)
    record = observe(refused(PLAIN_KEY), status=401, asked=asked)
    assert record.request.body is None
    assert "wombat" not in all_of(record)
    nothing_to_replace = b'{"model":"tiny","secret":1,"deep":%s1%s}' % (b"[" * 300, b"]" * 300)
    assert observe(refused("x"), status=401, asked=nothing_to_replace).request.body == nothing_to_replace


@pytest.mark.parametrize(
    ("cookie", "value"),
    [
        ("sid=session-1234567; Path=/v1/chat/completions; HttpOnly", "session-1234567"),
        ("a=1; Expires=Wed, 09 Jun 2027 10:18:14 GMT, b=session-1234567; Max-Age=1", "session-1234567"),
        ('__Host-a="session-1234567"', "session-1234567"),
        ("a=sess+99/Value77", "sess%2B99%2FValue77 " + base64.b64encode(b"sess+99/Value77").decode()),
        ("a=sess%2B99%2FValue77", "sess+99/Value77 " + b"sess+99/Value77".hex()),
        ("a=abcdefghijklmnop", "abcdefghijklmnop"),
        ("a=aBcDeF-gHiJkL", "aBcDeF-gHiJkL"),
        ("session_id=some-plain-words", "some-plain-words"),
        ("session-1234567", "session-1234567"),
        ('sid="session-1234567 and more"', "session-1234567"),
        ("connect.sid=s%3Asession-1234567.abcDEF123", "session-1234567"),
    ],
)
def test_a_cookie_that_the_answer_sets_is_a_credential(cookie: str, value: str) -> None:
    record = observe(
        refused(f"{value} at /v1/chat/completions in 2027"), status=401, headers={"Set-Cookie": cookie}
    )
    assert record.headers["set-cookie"] == "<secret>"
    assert not any(word in all_of(record) for word in value.split())
    assert b"<secret> at /v1/chat/completions in 2027" in record.body
    assert record.url.endswith("/v1/chat/completions")


@pytest.mark.parametrize("value", ["en-US-locale-x", "dark_mode.Enabled", "EUROPE-West"])
def test_a_cookie_of_plain_words_is_no_credential(value: str) -> None:
    record = observe(refused(f"{value} is set"), status=401, headers={"Set-Cookie": f"lang={value}; Path=/"})
    assert record.headers["set-cookie"] == "<secret>"
    assert f"{value} is set".encode() in record.body


@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize("begin", ["no key: ", '{"choices": [{"message": {"content": "It is '])
@pytest.mark.parametrize("length", [12, len(PLAIN_KEY) - 1])
def test_what_begins_a_credential_where_the_answer_was_cut_is_replaced(
    status: int, begin: str, length: int
) -> None:
    seen: list[ObservedExchange] = []
    with Watcher(seen.append, in_background=False, keep_bytes=len(begin) + length) as watcher:
        exchange = watcher.begin(
            "POST", "http://127.0.0.1:8000/v1/chat/completions", {"X-Api-Key": PLAIN_KEY}, b'{"model":"m"}'
        )
        assert exchange is not None
        exchange.answered(status, {"content-type": "application/json"})
        exchange.chunk((begin + PLAIN_KEY.upper() + '"}}]}').encode())
        exchange.ended()
    (record,) = seen
    assert record.is_cut
    assert record.body == f"{begin}<secret>".encode()
    assert PLAIN_KEY[:12] not in all_of(record).lower()


def test_what_begins_a_credential_in_pieces_where_the_answer_breaks_off_is_replaced() -> None:
    pieces = [event(content=piece) for piece in SPLIT]
    sent = {"X-Api-Key": PLAIN_KEY + "-and-more"}
    record = observe(*pieces, headers=STREAM, sent=sent, end="abandoned")
    assert record.response is not None
    assert (record.response.text, record.body) == ("<secret>", b"<secret>")
    other = observe(event(content=SPLIT[0]), headers=STREAM, sent=sent, end="abandoned")
    assert other.body == event(content=SPLIT[0])
    split = observe(event(content=PLAIN_KEY[4:]), headers=STREAM, sent=sent, end="abandoned")
    assert split.response is not None
    assert split.response.text == PLAIN_KEY[4:]


def test_a_credential_in_another_case_is_replaced() -> None:
    record = observe(refused(PLAIN_KEY.upper()), status=401, sent={"X-Api-Key": PLAIN_KEY})
    assert record.body == refused("<secret>")


def test_a_very_long_credential_is_replaced_by_its_beginning() -> None:
    secret = PLAIN_KEY * 2000
    record = observe(refused(secret[:17_000]), status=401, sent={"X-Api-Key": secret})
    assert b"no such key: <secret>" in record.body


SPLIT = [PLAIN_KEY[:3], PLAIN_KEY[3:9], PLAIN_KEY[9:]]


def tokens(text: str) -> list[dict[str, Any]]:
    return [{"token": text, "logprob": -1.0, "bytes": [*text.encode()], "top_logprobs": []}]


@pytest.mark.parametrize(
    "delta_of",
    [
        lambda piece: {"content": piece},
        lambda piece: {"reasoning_content": piece},
        lambda piece: {"content": piece, "logprobs": tokens(piece)},
        lambda piece: {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]},
    ],
)
def test_a_credential_that_a_stream_repeats_in_pieces_is_replaced(
    delta_of: Callable[[str], dict[str, Any]],
) -> None:
    begin = [event(content="It is "), event(tool_calls=[{"index": 0, "id": "t", "function": {"name": "f"}}])]
    pieces = [event(**delta_of(piece)) for piece in SPLIT]
    record = observe(*begin, *pieces, END, headers=STREAM, sent={"X-Api-Key": PLAIN_KEY})
    assert record.response is not None
    assert record.response.finish_reason == "tool_calls"
    assert record.is_complete
    assert "<secret>" in to_json(record.response).decode()
    assert not any(piece in all_of(record) for piece in SPLIT)
    assert record.body == b"<secret>"


def test_an_answer_with_a_credential_in_pieces_becomes_no_capture(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = [event(content=piece) for piece in SPLIT]
    with Watcher(CaptureFolder(tmp_path), in_background=False) as watcher:
        url, content = "http://127.0.0.1:8000/v1/chat/completions", b'{"model": "tiny"}'
        exchange = watcher.begin("POST", url, {"X-Api-Key": PLAIN_KEY}, content)
        assert exchange is not None
        exchange.answered(200, STREAM)
        exchange.chunk(b"".join(pieces) + END)
        exchange.ended()
    assert [*tmp_path.iterdir()] == []
    assert "it holds what looks like a key" in caplog.text


def test_choices_that_come_in_turns_repeat_no_credential_either() -> None:
    pieces = [event(content=piece, index=index) for piece in SPLIT for index in (0, 1)]
    ends = event(finish_reason="stop", index=1) + END
    record = observe(*pieces, ends, headers=STREAM, sent={"X-Api-Key": PLAIN_KEY})
    assert record.response is not None
    assert [record.response.text, record.response.alternatives[0].message.content] == ["<secret>"] * 2
    assert not any(piece in all_of(record) for piece in SPLIT)
    only_the_second = event(content="Hi") + b"".join(pieces[1::2]) + ends
    record = observe(only_the_second, headers=STREAM, sent={"X-Api-Key": PLAIN_KEY})
    assert record.response is not None
    assert (record.response.text, record.response.alternatives[0].message.content) == ("Hi", "<secret>")


def test_a_stream_that_breaks_off_repeats_no_credential_either() -> None:
    pieces = [event(content=piece) for piece in SPLIT]
    record = observe(*pieces, b"data: {\n\n", headers=STREAM, sent={"X-Api-Key": PLAIN_KEY})
    assert record.error is not None
    assert record.response is not None
    assert record.response.text == "<secret>"
    assert not any(piece in all_of(record) for piece in SPLIT)


def test_a_credential_with_needless_escapes_is_replaced() -> None:
    body = capture("vllm/chat_think.response.json").body
    said = json.loads(body)["choices"][0]["message"]["content"]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in PLAIN_KEY).encode()
    record = observe(
        body.replace(json.dumps(said).encode(), b'"%s"' % escaped), sent={"X-Api-Key": PLAIN_KEY}
    )
    assert record.response is not None
    assert record.response.text == "<secret>"
    assert record.body == body.replace(json.dumps(said).encode(), b'"<secret>"')


@pytest.mark.parametrize("letters", ["\\u0077ombat", "\\u0022\\u005c\\u0077ombat", "w\\u006Fmbat"])
def test_a_credential_with_escapes_in_the_arguments_of_a_call_is_replaced(letters: str) -> None:
    arguments = json.dumps({"k": "KEY"}).replace("KEY", letters + PLAIN_KEY[6:])
    call = {"index": 0, "id": "t", "function": {"name": "f", "arguments": arguments}}
    record = observe(event(tool_calls=[call]), END, headers=STREAM, sent={"X-Api-Key": PLAIN_KEY})
    assert record.response is not None
    assert json.loads(record.response.tool_calls[0].arguments)["k"].endswith("<secret>")
    assert PLAIN_KEY[6:] not in all_of(record)


# ----------------------------------------------------------------- passwords of addresses and proxies

ASKED = {"model": "tiny"}
PASSWORD = "pass-word-1234"


def by_aiohttp(url: str, **options: Any) -> None:
    aiohttp = pytest.importorskip("aiohttp")

    async def ask() -> None:
        async with aiohttp.ClientSession() as session, session.post(url, json=ASKED, **options) as answer:
            await answer.read()

    asyncio.run(ask())


def by_urllib3(url: str, proxy: str) -> None:
    urllib3 = pytest.importorskip("urllib3")
    headers = urllib3.make_headers(proxy_basic_auth=f"me:{PASSWORD}")
    with urllib3.ProxyManager(proxy.replace(f"me:{PASSWORD}@", ""), proxy_headers=headers) as manager:
        manager.request("POST", url, json=ASKED)


def by_requests(url: str, proxy: str) -> None:
    pytest.importorskip("requests").post(url, json=ASKED, proxies={"http": proxy})


BY_PROXY: dict[str, Callable[[str, str], object]] = {
    "httpx": lambda url, proxy: httpx.post(url, json=ASKED, proxy=proxy),
    "httpx2": lambda url, proxy: httpx2.post(url, json=ASKED, proxy=proxy),
    "aiohttp": lambda url, proxy: by_aiohttp(url, proxy=proxy),
    "requests": by_requests,
    "urllib3": by_urllib3,
}


@pytest.mark.parametrize("client", BY_PROXY)
def test_the_password_of_a_proxy_is_a_credential(
    client: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(Answer((f"who is me:{PASSWORD}, {BASIC}?".encode(),), 407, {"Content-Type": "text/plain"}))
    install(watch(include=["vllm.example"]))
    BY_PROXY[client](
        "http://vllm.example/v1/chat/completions", server.url.replace("http://", f"http://me:{PASSWORD}@")
    )
    assert seen.one.body == b"who is <secret>, <secret>?"
    assert seen.one.request.headers["proxy-authorization"] == "<secret>"
    assert PASSWORD not in all_of(seen.one)


def test_the_password_of_an_address_is_a_credential(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(Answer.failure(401, message=PASSWORD), times=None)
    install(watch())
    url = server.url.replace("http://", f"http://me:{PASSWORD}@") + "/v1/chat/completions"
    by_aiohttp(url)
    httpx2.post(url, json=ASKED)
    assert [b"<secret>" in record.body for record in seen] == [True, True]
    assert not any(PASSWORD in all_of(record) for record in seen)
