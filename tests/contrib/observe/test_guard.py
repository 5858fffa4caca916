"""No fault of watching reaches the program, whatever replaces a library's own objects."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

from crosswalk.testing import ReplayServer
from crosswalk_observe import Watcher, install, requests_adapter, uninstall
from crosswalk_observe.patches import watched_request

from .conftest import Seen, Watch, capture

aiohttp = pytest.importorskip("aiohttp")
requests = pytest.importorskip("requests")
urllib3 = pytest.importorskip("urllib3")

CHAT = "/v1/chat/completions"
ASKED = {"model": "tiny", "stream": True}
ONE = capture("vllm/chat_think_stream.response.sse")


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    uninstall()


class Recorded:
    """A response as vcrpy plays it back: like urllib3's own, with less of its interface."""

    status, reason, version, headers, msg = 200, "OK", 11, urllib3.HTTPHeaderDict(), None
    _original_response = None

    def __init__(self) -> None:
        self._body = ONE.body

    def read(self, amt: int | None = None, /) -> bytes:
        self._body, data = b"", self._body
        return data

    def close(self) -> None: ...

    def release_conn(self) -> None: ...


def test_a_response_that_only_looks_like_urllib3_s_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, watch: Watch, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(urllib3.HTTPConnectionPool, "urlopen", lambda *_, **__: Recorded())
    watcher = watch()
    install(watcher)
    url = "http://api.openai.com:443" + CHAT
    for session in (requests.Session(), mounted(watcher)):
        with session:
            answer = session.post(url, json=ASKED, stream=True, proxies={"http": "", "https": ""})
            assert answer.raw.read(9) == ONE.body
    watcher.flush()
    assert (len(seen), caplog.records, watcher.dropped) == (0, [], 0)


def mounted(watcher: Watcher) -> Any:
    session = requests.Session()
    session.mount("http://", requests_adapter(watcher))
    return session


def test_a_transport_that_answers_with_something_else_is_left_alone(
    watch: Watch, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    class Other:
        def handle_request(self, request: Any) -> str:
            return "an answer"

        async def handle_async_request(self, request: Any) -> str:
            return "an answer"

    transport: Any = watch(providers={"a.example": "vllm"}).transport(Other())
    request = httpx.Request("POST", "http://a.example" + CHAT, json=ASKED)
    assert transport.handle_request(request) == "an answer"
    assert asyncio.run(transport.handle_async_request(request)) == "an answer"
    assert transport.handle_request("no request") == "an answer"
    assert (seen, caplog.records) == ([], [])


class Failing:
    """Headers that cannot be read."""

    encoding = "ascii"

    @property
    def raw(self) -> Any:
        raise ZeroDivisionError

    def items(self) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_request_or_an_answer_that_cannot_be_read_reaches_the_program_as_it_is(
    library: Any, watch: Watch, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    class OwnRequest(library.Request):  # type: ignore[misc]
        """A class of the program's own module."""

    answer = library.Response(200)
    answer.headers = Failing()
    watcher = watch(providers={"a.example": "vllm"})
    transport: Any = watcher.transport(library.MockTransport(lambda _: answer))
    request = OwnRequest("POST", "http://a.example" + CHAT, json=ASKED)
    assert transport.handle_request(request) is answer
    request.headers = Failing()
    assert transport.handle_request(request) is answer

    async def asked() -> Any:
        return await transport.handle_async_request(request)

    assert asyncio.run(asked()) is answer
    assert seen == []
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["watching httpx failed with ZeroDivisionError (logged once)"]


def test_a_session_of_aiohttp_that_is_made_differently_is_left_alone(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    async def original(*arguments: Any, **options: Any) -> Any:
        return arguments, options

    watcher = watch()
    call = watched_request(lambda: watcher, original)
    assert asyncio.run(call("a session", "GET", "/", a=2)) == (("a session", "GET", "/"), {"a": 2})
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["watching aiohttp failed with AttributeError (logged once)"]


def test_a_middleware_below_that_answers_with_something_else(watch: Watch, seen: Seen) -> None:
    from crosswalk_observe import aiohttp_middleware

    async def handler(request: Any) -> str:
        return "an answer"

    url = "http://a.example" + CHAT
    request = types.SimpleNamespace(method="POST", url=url, headers={}, body=b'{"model": "m"}')
    middleware = aiohttp_middleware(watch(providers={"a.example": "vllm"}))
    assert asyncio.run(middleware(request, handler)) == "an answer"
    assert seen == []


def test_a_read_of_urllib3_that_cannot_be_noted_gives_its_bytes(
    server: ReplayServer, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: Any) -> bool:
        raise ZeroDivisionError

    server.add(ONE)
    install(watch())
    with urllib3.PoolManager() as pool:
        answer = pool.request("POST", server.url + CHAT, json=ASKED, preload_content=False)
        own = type(answer)
        answer.__class__ = type("Watched", (own,), {"isclosed": fails})
        assert answer.read() == ONE.body
        answer.close()
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["watching urllib3 failed with ZeroDivisionError (logged once)"]


def test_no_call_of_an_exchange_raises(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    with Watcher(seen, in_background=False) as watcher:
        exchange = watcher.begin("POST", "https://api.openai.com" + CHAT, {}, b'{"model":"m"}')
        assert exchange is not None
        assert not exchange.answered(200, [5])  # type: ignore[list-item]
        assert [record.getMessage() for record in caplog.records] == [
            "watching failed with TypeError (logged once)"
        ]
        caplog.clear()
        exchange.answered(200, {})
        exchange.chunk(5)  # type: ignore[arg-type]
        exchange.chunk(ONE.body)
        exchange.ended()
    assert len(seen) == 1
    assert caplog.records == []


def test_an_exchange_that_ends_in_its_own_context_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Its record is made in that context, which cannot be entered twice."""
    with Watcher(Seen(), in_background=False) as watcher:
        exchange = watcher.begin("POST", "https://api.openai.com" + CHAT, {}, b'{"model":"m"}')
        assert exchange is not None
        exchange.context.run(exchange.ended)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["watching failed with RuntimeError (logged once)"]


def test_a_library_in_a_version_that_is_not_known_is_left_alone_and_named_once(
    monkeypatch: pytest.MonkeyPatch, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    before = aiohttp.ClientSession._request
    monkeypatch.setattr(aiohttp, "__version__", "3.11.18")
    monkeypatch.setattr(urllib3, "__version__", "unknown")
    monkeypatch.delattr(httpx, "AsyncHTTPTransport")
    watcher = watch()
    for _ in range(2):
        install(watcher)
        assert aiohttp.ClientSession._request is before
        uninstall()
    assert [record.getMessage() for record in caplog.records] == [
        "httpx is not watched: it has no AsyncHTTPTransport.handle_async_request",
        "aiohttp is not watched: version 3.11.18 is older than 3.12",
        "urllib3 is not watched: version unknown is older than 1.26",
    ]


def test_a_library_that_cannot_be_imported_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> Any:
        raise RuntimeError(name)

    before = httpx.HTTPTransport.handle_request
    monkeypatch.setattr("crosswalk_observe.patches.import_module", broken)
    install(watch())
    assert httpx.HTTPTransport.handle_request is before
    assert caplog.records[0].getMessage() == "importing httpx failed with RuntimeError (logged once)"


# ------------------------------------------------------------- the libraries themselves, old and new

PROGRAM = """
import asyncio, json, logging, sys
from crosswalk.testing import ReplayServer, load_capture
from crosswalk_observe import Watcher, install
logging.basicConfig(level=logging.WARNING)
one = load_capture({capture!r})
asked = {{"model": "tiny", "stream": True}}
seen = []
with ReplayServer() as server:
    server.add(one, times=None)
    url = server.url + "/v1/chat/completions"
    watcher = Watcher(seen.append, providers={{server.url.partition("//")[2]: "vllm"}}, in_background=False)
    install(watcher)
    body = b""
{body}
assert body == one.body, body
assert all(record.body == one.body for record in seen)
print(len(seen))
"""
BODIES = {
    "aiohttp": """
import aiohttp
async def ask():
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json=asked) as answer:
            return await answer.read()
body = asyncio.run(ask())
""",
    "requests": """
import requests
body = b"".join(requests.post(url, json=asked, stream=True).iter_content(100))
""",
    "httpx": """
import httpx
with httpx.Client() as client:
    body = client.post(url, content=json.dumps(asked)).content
""",
    "vcr": """
import requests, vcr
for _ in range(2):
    with vcr.use_cassette("played.yaml"):
        body = b"".join(requests.post(url, json=asked, stream=True).iter_content(100))
""",
    "responses": """
import requests, responses
with responses.RequestsMock() as mock:
    mock.post(url, body=one.body)
    body = requests.post(url, json=asked).content
""",
    "requests-mock": """
import requests, requests_mock
with requests_mock.Mocker() as mock:
    mock.post(url, content=one.body)
    body = requests.post(url, json=asked).content
""",
    "respx": """
import httpx, respx
with respx.mock:
    respx.post(url).respond(content=one.body)
    body = httpx.post(url, json=asked).content
""",
}


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("packages", "program", "records"),
    [
        ("aiohttp==3.9.5", "aiohttp", 0),
        ("aiohttp==3.11.18", "aiohttp", 0),
        ("aiohttp==3.12.0", "aiohttp", 1),
        ("aiohttp", "aiohttp", 1),
        ("urllib3==1.25.11 requests==2.25.1", "requests", 0),
        ("urllib3==1.26.0 requests==2.25.1", "requests", 1),
        ("urllib3 requests", "requests", 1),
        ("httpx==0.19.0", "httpx", 0),
        ("httpx==0.20.0", "httpx", 1),
        ("httpx", "httpx", 1),
        ("vcrpy requests urllib3", "vcr", None),
        ("responses", "responses", None),
        ("requests-mock", "requests-mock", None),
        ("respx httpx", "respx", None),
    ],
)
def test_a_program_gets_its_bytes_with_every_version(
    packages: str, program: str, records: int | None, tmp_path: Path
) -> None:
    """The last column is the number of exchanges that are recorded. Answers of a mock may pass unseen."""
    install_packages = [sys.executable, "-m", "pip", "install", "-q", "--target", "packages"]
    subprocess.run([*install_packages, *packages.split()], cwd=tmp_path, check=True, capture_output=True)
    one = Path(__file__).parents[2] / "captures/vllm/chat_think_stream.response.sse"
    body = "\n".join(f"    {line}" for line in BODIES[program].splitlines())
    (tmp_path / "program.py").write_text(PROGRAM.format(capture=str(one), body=body))
    environment = {"PYTHONPATH": str(tmp_path / "packages"), "PATH": ""}
    run = [sys.executable, "program.py"]
    result = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    if records is not None:
        assert int(result.stdout) == records
        assert ("is not watched: version" in result.stderr) is (records == 0)
