"""One list of adaptations in three places: ``plan`` of a service, ``crosswalk ask --dry-run``, the gateway's header."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from contrib_serve import asking, config_of
from crosswalk.cli import main
from crosswalk.config import Settings
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    RequestPlan,
    SyncLLMService,
    UnsupportedRequestError,
    read_request,
)
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from strict_answers import answer_of

HI = {"role": "user", "content": "Hi"}
TEXT = {
    "type": "document",
    "title": "Sky",
    "source": {"type": "text", "media_type": "text/plain", "data": "The sky is green."},
}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "7"}
AFTER_A_RESULT = [
    HI,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]},
    {"role": "user", "content": [RESULT, {"type": "text", "text": "And now?"}]},
]
MARKED = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}

SAID: dict[str, dict[str, Any]] = {
    "effort": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
    "temperature": {"temperature": 0.3},
    "no ceiling": {"max_tokens": None},
    "document": {"messages": [{"role": "user", "content": [TEXT, {"type": "text", "text": "Which?"}]}]},
    "after a result": {"messages": AFTER_A_RESULT, "tools": [{"name": "f", "input_schema": {"type": "object"}}]},
    "cache mark": {"messages": [{"role": "user", "content": [MARKED]}]},
}  # fmt: skip
"""What a client of Messages says, beside its ceiling."""
TOLD = "told: messages[0].content[0]: it is sent as text"
ARE_DROPPED = "no such option of this server is known"
CLAUDES = "anthropic.claude"
ROWS: list[tuple[str, str, str, list[str]]] = [
    ("effort", "anthropic", "claude-opus-4-6", ["clamped: reasoning_effort: xhigh became max: claude-opus-4-6 takes no 'xhigh'"]),
    ("effort", "openai", "gpt-5.1", ["clamped: reasoning_effort: xhigh became high: gpt-5.1 takes no 'xhigh'"]),
    ("effort", "gemini", "gemini-2.5-pro", ["clamped: reasoning_effort: xhigh became 32768: gemini-2.5-pro takes a budget in tokens for it"]),
    ("effort", "mistral", "codestral-latest", ["dropped: reasoning_effort: codestral-latest does not think, and takes no effort"]),
    ("effort", "bedrock", f"{CLAUDES}-opus-4-6", [f"clamped: reasoning_effort: xhigh became max: {CLAUDES}-opus-4-6 takes no 'xhigh'"]),
    ("temperature", "anthropic", "claude-opus-4-8", ["dropped: temperature: claude-opus-4-8 takes no temperature"]),
    ("temperature", "openai", "o3", ["dropped: temperature: o3 takes no temperature"]),
    ("temperature", "gemini", "gemini-2.5-pro", []),
    ("temperature", "mistral", "codestral-latest", []),
    ("temperature", "bedrock", f"{CLAUDES}-opus-4-8", [f"dropped: temperature: {CLAUDES}-opus-4-8 takes no temperature"]),
    ("no ceiling", "anthropic", "claude-opus-4-6", ["defaulted: max_tokens: 128000 is sent: the API needs it"]),
    ("no ceiling", "openai", "gpt-5.1", []),
    ("no ceiling", "gemini", "gemini-2.5-pro", []),
    ("no ceiling", "mistral", "codestral-latest", []),
    ("no ceiling", "bedrock", f"{CLAUDES}-opus-4-8", []),
    ("document", "anthropic", "claude-opus-4-6", []),
    ("document", "openai", "gpt-5.1", [TOLD]),
    ("document", "gemini", "gemini-2.5-pro", [TOLD]),
    ("document", "mistral", "codestral-latest", [TOLD]),
    ("document", "bedrock", f"{CLAUDES}-opus-4-8", [TOLD]),
    ("after a result", "anthropic", "claude-opus-4-6", []),
    ("after a result", "openai", "gpt-5.1", []),
    ("after a result", "gemini", "gemini-2.5-pro", []),
    ("after a result", "mistral", "codestral-latest", ["added: messages[3].content: 'I have the results.' is sent: the user cannot speak after a tool's result"]),
    ("after a result", "bedrock", f"{CLAUDES}-opus-4-8", []),
    ("cache mark", "anthropic", "claude-opus-4-6", []),
    ("cache mark", "openai", "gpt-5.1", []),
    ("cache mark", "gemini", "gemini-2.5-pro", ["dropped: cache_marks[0]: Gemini has no such option"]),
    ("cache mark", "mistral", "codestral-latest", [f"dropped: cache_marks[0]: {ARE_DROPPED}"]),
    ("cache mark", "bedrock", f"{CLAUDES}-opus-4-8", []),
]  # fmt: skip
IN_THE_COMMAND = {
    "effort": ["--reasoning-effort", "xhigh"],
    "temperature": ["--temperature", "0.3"],
    "no ceiling": [],
}


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A key for every provider."""
    for provider in ("ANTHROPIC", "OPENAI", "GEMINI", "MISTRAL", "BEDROCK"):
        monkeypatch.setenv(f"CROSSWALK_{provider}_API_KEY", "a-key-of-mine")
    return "a-key-of-mine"


def client_says(what: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "tiny", "messages": [HI], "max_tokens": 5000, **SAID[what]}
    return {name: value for name, value in body.items() if value is not None}


def planned(request: ChatRequest, provider: str, model: str, url: str, *, drops: bool = True) -> RequestPlan:
    endpoint = Endpoint(provider, model=model, base_url=url)
    unsupported: Any = "drop" if drops else "raise"
    with SyncLLMService(endpoint, on_unsupported=unsupported, settings=Settings()) as service:
        return service.plan(request.for_model(model))


def through_gateway(
    upstream: ReplayServer, body: dict[str, Any], provider: str, model: str, unsupported: str
) -> httpx2.Response:
    models = (
        f"tiny: {{provider: {provider}, model: {model}, base_url: '{upstream.url}', api_key: k-of-theirs}}"
    )
    app = create_app(config_of(upstream, f"on_unsupported: {unsupported}", models))

    async def post() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post("/v1/messages", json=body)

    return asyncio.run(post())


def header_of(answer: httpx2.Response) -> list[str]:
    """The adaptations of the request in the gateway's header. It has semicolons for commas."""
    names = answer.headers.get("x-crosswalk-dropped", "").split(", ")
    return [name.removeprefix("request.") for name in names if name.startswith("request.")]


def in_header(lines: list[str]) -> list[str]:
    return [line.partition(": ")[2].replace(",", ";") for line in lines]


def of_plan(plan: RequestPlan) -> list[str]:
    return [f"{one.kind.value}: {one}" for one in plan.adaptations]


@pytest.mark.untraced
@pytest.mark.parametrize(("what", "provider", "model", "lines"), ROWS)
def test_each_change_is_in_one_list_that_the_plan_the_command_and_the_gateway_show(
    what: str,
    provider: str,
    model: str,
    lines: list[str],
    upstream: ReplayServer,
    key: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = client_says(what)
    plan = planned(read_request(body, "anthropic").request, provider, model, upstream.url)
    assert of_plan(plan) == lines
    assert [one.refuses for one in plan.adaptations] == [what == "temperature"] * len(lines)
    assert not upstream.requests
    if (options := IN_THE_COMMAND.get(what)) is not None:
        options = [*options, "--unsupported", "drop", "--dry-run"]
        if what != "no ceiling":
            options += ["--max-tokens", "5000"]
        to = ["--provider", provider, "--model", model, "--base-url", upstream.url]
        assert main(["ask", *to, *options, "Hi"]) == 0
        _, who, *shown = capsys.readouterr().out.splitlines()
        assert who == f"provider {provider}, model {model}, model class {plan.model_class}"
        assert shown == (lines or ["all that is asked for is sent"])
        assert not upstream.requests
    upstream.add(Answer.of_json(answer_of(provider, 3)))
    answer = through_gateway(upstream, body, provider, model, "drop")
    assert answer.status_code == 200, answer.text
    assert header_of(answer) == in_header(lines)
    (sent,) = upstream.requests
    assert sent.json() == plan.request.body
    assert key not in f"{plan!r} {plan} {plan.request.headers}"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("what", "provider", "model", "named"),
    [
        *((what, provider, model, "temperature" if lines else "") for what, provider, model, lines in ROWS if what == "temperature"),
        *((what, provider, model, "") for what, provider, model, _ in ROWS if what != "temperature"),
    ],
)  # fmt: skip
def test_what_has_a_meaning_is_refused_by_its_name_and_a_hint_is_no_error(
    what: str,
    provider: str,
    model: str,
    named: str,
    upstream: ReplayServer,
    key: str,
) -> None:
    body = client_says(what)
    request = read_request(body, "anthropic").request
    if not named:
        assert planned(request, provider, model, upstream.url, drops=False).adaptations == (
            planned(request, provider, model, upstream.url).adaptations
        )
        return
    with pytest.raises(UnsupportedRequestError) as caught:
        planned(request, provider, model, upstream.url, drops=False)
    assert caught.value.options == (named,)
    answer = through_gateway(upstream, body, provider, model, "refuse")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == str(caught.value)
    assert not upstream.requests


@pytest.mark.parametrize("field", ["container", "conversation", "previous_response_id"])
def test_state_is_refused_however_options_are_treated(field: str, upstream: ReplayServer, key: str) -> None:
    form: Any = "anthropic" if field == "container" else "openai-responses"
    said = {"messages": [HI], "max_tokens": 9} if form == "anthropic" else {"input": "Hi"}
    request = read_request({"model": "tiny", **said, field: "kept_1"}, form).request
    for drops in (True, False):
        with pytest.raises(UnsupportedRequestError, match=field) as caught:
            planned(request, "mistral", "codestral-latest", upstream.url, drops=drops)
        assert caught.value.options == (field,)
