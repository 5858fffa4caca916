"""Results and errors of ``complete``, against a server that works and one that does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ContentFilterError,
    ErrorKind,
    FinishReason,
    InvalidJSONError,
    InvalidRequestError,
    MappingError,
    ModelUnavailableError,
    ProviderError,
    ProviderTimeoutError,
    QuotaError,
    RateLimitError,
    ResponseValidationError,
    ServerError,
    UnknownFinishReasonError,
)
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    LLMService,
    RetryPolicy,
    Timeouts,
    UnsupportedRequestError,
)
from crosswalk.testing.exchange import Cut, Delay, Garbage, Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from leaving import collect_garbage
from wires import body, chunk, usage

Make = Callable[..., LLMService]
HELLO = Answer.of_json(body({"content": "Hello."}, usage=usage(3, 2)))
ASK = ChatRequest("hi")
STREAMED = Answer.of_events(
    [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo."}),
        chunk({}, "stop"),
    ]
)


def complete(service: LLMService, request: ChatRequest = ASK) -> Any:
    async def run() -> Any:
        async with service:
            return await service.complete(request)

    return asyncio.run(run())


def failure(service: LLMService, request: ChatRequest = ASK) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        complete(service, request)
    return raised.value


def test_an_answer_with_everything_that_was_measured(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO)
    response = complete(service_of(server))
    assert response.text == "Hello."
    assert response.usage.total_tokens == 5
    assert response.metadata.request_duration.total_seconds() > 0
    assert response.metadata.time_to_first_token is None  # it came whole
    (attempt,) = response.attempts
    assert (attempt.provider_name, attempt.model, attempt.outcome, attempt.error) == (
        "vllm",
        "m",
        "success",
        None,
    )
    assert attempt.latency_ms > 0
    assert attempt.extra == {"status": 200}


@pytest.mark.parametrize("asked", [7, None, [], b"hi"])
def test_what_is_no_request_is_refused(server: ReplayServer, service_of: Make, asked: Any) -> None:
    service = service_of(server)
    with pytest.raises(ResponseValidationError, match="messages must be a text|at least one message"):
        asyncio.run(service.complete(asked))
    with pytest.raises(ResponseValidationError, match="messages must be a text|at least one message"):
        asyncio.run(service.complete_json(asked, {}))
    with pytest.raises(ResponseValidationError, match="messages must be a text|at least one message"):
        service.stream(asked)
    assert server.requests == ()


def test_a_stream_put_together_says_the_same(server: ReplayServer, service_of: Make) -> None:
    server.add(STREAMED)
    response = complete(service_of(server), attrs.evolve(ASK, stream=True))
    assert response.text == "Hello."
    assert response.metadata.time_to_first_token.total_seconds() > 0
    assert server.requests[0].json()["stream"] is True


def test_what_is_sent(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO)
    endpoint = Endpoint(
        "openai",
        model="m",
        base_url=f"{server.url}/v1?region=eu",
        api_key="sk-secret",
        headers={"X-Team": "t"},
    )
    complete(service_of(endpoint))
    (asked,) = server.requests
    assert (asked.method, asked.target) == ("POST", "/v1/chat/completions?region=eu")
    assert asked.headers["authorization"] == "Bearer sk-secret"
    assert asked.headers["x-team"] == "t"
    assert asked.headers["content-type"] == "application/json"
    assert asked.json() == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_the_requests_model_counts_more_than_the_endpoints(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO)
    complete(service_of(server), ChatRequest("hi", model="other"))
    assert server.requests[0].json()["model"] == "other"


def test_one_connection_serves_many_requests(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO, times=None)

    async def run() -> None:
        async with service_of(server) as service:
            for _ in range(5):
                await service.complete(ASK)

    asyncio.run(run())
    assert server.connections == 1


@pytest.mark.untraced
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_service_outlives_an_event_loop(server: ReplayServer, service_of: Make) -> None:
    """Its connections do not: Python warns if a loop ends without closing the service."""
    server.add(HELLO, times=None)
    service = service_of(server)
    assert [asyncio.run(service.complete(ASK)).text for _ in range(2)] == ["Hello.", "Hello."]
    del service
    collect_garbage()


# ------------------------------------------------------------------------------------ retries


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_passing_error_is_tried_again(server: ReplayServer, service_of: Make, status: int) -> None:
    server.add(Answer.failure(status), times=2).add(HELLO)
    response = complete(service_of(server))
    assert response.text == "Hello."
    assert [attempt.outcome for attempt in response.attempts] == ["error", "error", "success"]
    assert response.attempts[0].extra["status"] == status
    assert response.attempts[0].error == "the replay server is set to fail"


@pytest.mark.parametrize("fault", [Reset(), Reset(after_bytes=10), Cut(after_bytes=10), Cut()])
def test_a_broken_connection_is_tried_again(server: ReplayServer, service_of: Make, fault: Any) -> None:
    server.add(HELLO, fault).add(HELLO)
    response = complete(service_of(server))
    assert [attempt.outcome for attempt in response.attempts] == ["error", "success"]
    assert response.attempts[0].extra["kind"] == "server"


def test_no_more_than_the_policy_allows(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(503), times=None)
    error = failure(service_of(server))
    assert type(error) is ServerError
    assert len(server.requests) == 3
    assert [attempt.outcome for attempt in error.response.attempts] == ["error"] * 3


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "bad", InvalidRequestError),
        (404, "The model `m` does not exist.", ModelUnavailableError),
        (400, "blocked by our content filtering policy", ContentFilterError),
    ],
)
def test_a_lasting_error_is_not_tried_again(
    server: ReplayServer, service_of: Make, status: int, message: str, kind: type[ProviderError]
) -> None:
    server.add(Answer.failure(status, message=message), times=None)
    assert type(failure(service_of(server))) is kind
    assert len(server.requests) == 1


def test_a_retry_that_the_policy_does_not_name(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(429), times=None)
    policy = RetryPolicy(kinds={ErrorKind.SERVER}, initial_seconds=0)
    assert type(failure(service_of(server, retry=policy))) is RateLimitError
    assert len(server.requests) == 1


def test_an_error_inside_an_answer_of_status_200(server: ReplayServer, service_of: Make) -> None:
    broken = Answer.of_events([chunk({"content": "Hel"}), {"error": {"message": "engine died", "code": 500}}])
    server.add(broken, times=3)
    error = failure(service_of(server), attrs.evolve(ASK, stream=True))
    assert type(error) is ServerError
    assert error.response.text == "Hel"
    assert len(error.response.attempts) == 3


def test_retry_after_is_kept(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(429, retry_after=0.001)).add(HELLO)
    first, _ = complete(service_of(server)).attempts
    assert first.extra["retry_after"] == 0.001
    assert first.extra["waited_seconds"] >= 0.001


@pytest.mark.parametrize(
    ("status", "header", "attempts"), [(400, "true", 2), (429, "false", 1), (503, "false", 1), (400, "", 1)]
)
def test_the_server_decides_whether_to_retry(
    server: ReplayServer, service_of: Make, status: int, header: str, attempts: int
) -> None:
    refused = attrs.evolve(Answer.failure(status), headers={"X-Should-Retry": header})
    server.add(refused).add(HELLO)
    if attempts == 1:
        failure(service_of(server))
    else:
        complete(service_of(server))
    assert len(server.requests) == attempts


@pytest.mark.parametrize(("headers", "seconds"), [({"Retry-After": "0.001, 0.002"}, 0.002), ({}, 0.05)])
def test_a_wait_that_came_twice_or_in_the_error_is_kept(
    server: ReplayServer, service_of: Make, headers: dict[str, str], seconds: float
) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.05s"}]
    error = {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}
    server.add(attrs.evolve(Answer.of_json({"error": error}, status=429), headers=headers)).add(HELLO)
    first, _ = complete(service_of(server)).attempts
    assert first.extra["retry_after"] == seconds


@pytest.mark.parametrize("status", [600, 999])
def test_a_status_that_http_does_not_know_is_told_as_it_came(
    server: ReplayServer, service_of: Make, status: int
) -> None:
    server.add(attrs.evolve(Answer.failure(500, message="odd"), status=status), times=None)
    error = failure(service_of(server))
    assert type(error) is ServerError
    assert (error.info.status, error.info.message) == (status, "odd")
    assert error.response.attempts[0].extra["status"] == status


def test_a_retry_after_that_is_too_long_is_not_waited_for(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(429, retry_after=3600), times=None)
    error = failure(service_of(server))
    assert type(error) is RateLimitError
    assert error.response.attempts[0].extra["retry_after"] == 3600
    assert len(server.requests) == 1


# ------------------------------------------------------------------------------------ failover


def test_the_next_endpoint_is_asked(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(503), path="/v1/chat/completions", times=None)
    server.add(
        Answer.of_json(
            {
                "model": "n",
                "message": {"role": "assistant", "content": "Hi."},
                "done": True,
                "done_reason": "stop",
            }
        ),
        path="/api/chat",
    )
    second = Endpoint("ollama", model="n", base_url=server.url)
    response = complete(service_of(server, second))
    assert response.text == "Hi."
    assert response.metadata.provider_id == "ollama"
    told = [(attempt.provider_name, attempt.model, attempt.outcome) for attempt in response.attempts]
    assert told == [("vllm", "m", "error")] * 3 + [("ollama", "n", "success")]


def test_a_lasting_error_goes_to_the_next_endpoint_at_once(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(401)).add(HELLO)
    response = complete(service_of(server, server))
    assert [attempt.outcome for attempt in response.attempts] == ["error", "success"]


def refused(status: int, **error: Any) -> Answer:
    return Answer.of_json({"error": {"message": "No.", **error}}, status=status)


OF_A_DAY = "Rate limit reached for requests per day (RPD): Limit 10"
OF_A_DAY_FOR_GOOGLE = [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]
SPENT = [
    ("vllm", Answer.failure(402), QuotaError),
    ("openai", refused(429, code="insufficient_quota"), QuotaError),
    ("zai", refused(429, code="1113"), QuotaError),
    ("openai", Answer.of_events([{"error": {"message": "No.", "code": "insufficient_quota"}}]), QuotaError),
    ("vllm", Answer.failure(429, message=OF_A_DAY), RateLimitError),
    ("zai", refused(429, code="1302", message="The monthly limit is reached"), RateLimitError),
    ("dashscope", refused(429, code="Throttling.AllocationQuota", message=OF_A_DAY), RateLimitError),
    ("zai", refused(429, code="1308", message="Come back later"), RateLimitError),
    ("minimax", Answer.of_json({"base_resp": {"status_code": 2056, "status_msg": "No."}}), RateLimitError),
    ("gemini", refused(429, code=429, details=OF_A_DAY_FOR_GOOGLE), RateLimitError),
    ("gemini", refused(403, code=403, details=[{"reason": "BILLING_DISABLED"}]), QuotaError),
]
"""Errors of accounts without money, and of limits that are reached for the day or longer."""


@pytest.mark.parametrize(("provider", "answer", "error"), SPENT)
def test_no_wait_brings_back_what_is_spent(
    server: ReplayServer, service_of: Make, provider: str, answer: Answer, error: type[ProviderError]
) -> None:
    server.add(answer, times=None)
    raised = failure(service_of(Endpoint(provider, model="m", base_url=server.url, api_key="k")))
    assert type(raised) is error
    assert raised.info is not None
    assert not raised.info.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize(("provider", "answer", "_"), SPENT)
def test_the_next_endpoint_may_still_have_it(
    server: ReplayServer, service_of: Make, provider: str, answer: Answer, _: type[ProviderError]
) -> None:
    server.add(answer).add(HELLO)
    spent = Endpoint(provider, model="m", base_url=server.url, api_key="k")
    response = complete(service_of(spent, server))
    assert response.text == "Hello."
    assert [(one.provider_name, one.outcome) for one in response.attempts] == [
        (provider, "error"),
        ("vllm", "success"),
    ]


def test_a_policy_may_leave_money_to_its_reader(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(402), times=None)
    kinds = set(ErrorKind) - {ErrorKind.QUOTA}
    policy = RetryPolicy(initial_seconds=0, max_seconds=0, failover_kinds=kinds)
    assert type(failure(service_of(server, server, retry=policy))) is QuotaError
    assert len(server.requests) == 1


def test_a_server_may_know_that_money_comes(server: ReplayServer, service_of: Make) -> None:
    comes = attrs.evolve(Answer.failure(402), headers={"x-should-retry": "true"})
    server.add(comes).add(HELLO)
    assert complete(service_of(server)).text == "Hello."


def test_what_moderation_blocked_does_not(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(400, message="blocked by our content filtering policy"), times=None)
    assert type(failure(service_of(server, server))) is ContentFilterError
    assert len(server.requests) == 1


def test_an_answer_that_cannot_be_read_goes_to_the_next_endpoint(
    server: ReplayServer, service_of: Make
) -> None:
    server.add(HELLO, Garbage(after_bytes=5)).add(HELLO)
    response = complete(service_of(server, server))
    assert response.text == "Hello."
    assert response.attempts[0].outcome == "error"


@pytest.mark.parametrize("first", [True, False])
def test_what_one_endpoint_cannot_express_is_sent_to_none(
    server: ReplayServer, service_of: Make, first: bool
) -> None:
    """An option must not move the traffic to another provider unsaid."""
    strict = Endpoint("ollama", model="n", base_url=server.url)
    request = ChatRequest("hi", parallel_tool_calls=False)
    with pytest.raises(UnsupportedRequestError, match="^ollama: it cannot express"):
        complete(service_of(*((strict, server) if first else (server, strict))), request)
    assert server.requests == ()
    server.add(Answer.failure(400)).add(HELLO)
    response = complete(service_of(server, strict, on_unsupported="drop"), request)
    assert [attempt.provider_name for attempt in response.attempts] == ["vllm", "ollama"]


SOUND = ChatRequest([ChatMessage.user([AudioPart(data="UklGRg==", media_type="audio/wav")])])


@pytest.mark.parametrize("first", [True, False])
def test_an_endpoint_without_a_form_for_what_was_said_is_passed_over(
    server: ReplayServer, service_of: Make, first: bool
) -> None:
    """A tool's result must not end a conversation that another endpoint can hold."""
    server.add(HELLO)
    texts = Endpoint("ollama", model="n", base_url=server.url)
    response = complete(service_of(*((texts, server) if first else (server, texts))), SOUND)
    assert [(one.provider_name, one.outcome) for one in response.attempts] == [
        ("ollama", "error"),
        ("vllm", "success"),
    ]
    assert response.attempts[0].error == "ollama: a sound cannot be sent to this API"
    assert response.attempts[0].extra["code"] == "not_sent"
    assert len(server.requests) == 1


def test_what_fails_then_is_the_failure_of_who_was_asked(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(503), times=None)
    texts = Endpoint("ollama", model="n", base_url=server.url)
    raised = failure(service_of(server, texts), SOUND)
    assert type(raised) is ServerError
    assert [one.provider_name for one in raised.response.attempts] == ["ollama", "vllm", "vllm", "vllm"]


def test_where_nobody_has_a_form_the_first_one_says_so(server: ReplayServer, service_of: Make) -> None:
    texts = [Endpoint(name, model="n", base_url=server.url, api_key="k") for name in ("ollama", "anthropic")]
    with pytest.raises(UnsupportedRequestError, match="^ollama: a sound"):
        complete(service_of(*texts), SOUND)
    assert server.requests == ()


@pytest.mark.parametrize("first", [True, False])
def test_an_option_that_is_missing_counts_more(server: ReplayServer, service_of: Make, first: bool) -> None:
    texts = Endpoint("ollama", model="n", base_url=server.url)
    strict = Endpoint("openai", model="n", base_url=server.url, api_key="k")
    with pytest.raises(UnsupportedRequestError, match="^openai: it cannot express top_k"):
        complete(service_of(*((texts, strict) if first else (strict, texts))), attrs.evolve(SOUND, top_k=3))


def test_a_model_of_texts_is_told_what_it_cannot_be_shown(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO)
    complete(service_of(Endpoint("ollama", model="n", base_url=server.url, takes_media=False), server), SOUND)
    (said,) = server.requests[-1].json()["messages"]
    assert said["content"] == "(a sound: audio/wav, you cannot be shown it)"


def test_options_of_a_provider_that_is_not_there(server: ReplayServer, service_of: Make) -> None:
    """For one that is, though it is not asked, they are no mistake."""
    server.add(HELLO)
    assert complete(service_of(server), ChatRequest("hi", provider_options={"ollama": {"a": 1}}))
    with pytest.raises(UnsupportedRequestError, match="'vlm'.: there is no such provider") as raised:
        complete(service_of(server), ChatRequest("hi", provider_options={"vlm": {"a": 1}}))
    assert raised.value.options == ("provider_options['vlm']",)
    assert len(server.requests) == 1


def test_when_nobody_can_express_it_nothing_is_sent(server: ReplayServer, service_of: Make) -> None:
    strict = Endpoint("ollama", model="n", base_url=server.url)
    with pytest.raises(UnsupportedRequestError) as raised:
        complete(service_of(strict), ChatRequest("hi", parallel_tool_calls=False))
    assert raised.value.options == ("parallel_tool_calls",)
    assert server.requests == ()


def test_what_is_dropped_is_recorded(server: ReplayServer, service_of: Make) -> None:
    server.add(
        Answer.of_json(
            {
                "model": "n",
                "message": {"role": "assistant", "content": "Hi."},
                "done": True,
                "done_reason": "stop",
            }
        )
    )
    lax = Endpoint("ollama", model="n", base_url=server.url)
    response = complete(service_of(lax, on_unsupported="drop"), ChatRequest("hi", parallel_tool_calls=False))
    (attempt,) = response.attempts
    assert attempt.extra["adaptations"] == (
        {
            "field": "parallel_tool_calls",
            "kind": "dropped",
            "reason": "it cannot be forbidden",
            "asked": False,
            "sent": None,
            "refuses": True,
        },
    )


# ------------------------------------------------------------------------------------ what cannot be read


def test_garbage_is_a_typed_error_with_its_attempts(server: ReplayServer, service_of: Make) -> None:
    """After an event that could be read: the read part is there, and no other server is asked."""
    server.add(STREAMED, Garbage(after_events=2), times=None)
    with pytest.raises(InvalidJSONError) as raised:
        complete(service_of(server))
    assert raised.value.partial.text == "Hel"
    assert raised.value.partial.attempts[0].outcome == "error"
    assert len(server.requests) == 1


PAGE = Answer((b"<!doctype html><html>sign in</html>",), headers={"Content-Type": "text/html; charset=utf-8"})


@pytest.mark.parametrize("answer", [PAGE, Answer((b"{]",), stream=True), Answer((b"data: {]\n\n",))])
def test_what_is_no_answer_at_all_is_the_servers_failure(
    server: ReplayServer, service_of: Make, answer: Answer
) -> None:
    server.add(answer, times=2).add(HELLO)
    response = complete(service_of(server))
    assert response.text == "Hello."
    assert [attempt.extra.get("code") for attempt in response.attempts] == ["unreadable_answer"] * 2 + [None]
    said = answer.headers.get("Content-Type", "without a content type")
    assert f"no answer that can be read (HTTP 200, {said})" in response.attempts[0].error


def test_a_body_that_was_cut_is_the_servers_failure(server: ReplayServer, service_of: Make) -> None:
    """HTTP ended as it should: only the JSON tells that something is missing."""
    server.add(HELLO, Cut(after_bytes=30, clean=True)).add(HELLO)
    response = complete(service_of(server))
    assert [attempt.outcome for attempt in response.attempts] == ["error", "success"]
    server.add(HELLO, Cut(after_bytes=30, clean=True), times=None)
    error = failure(service_of(server))
    assert isinstance(error, ServerError)
    assert error.info.retryable


def test_an_unknown_finish_word_is_kept_or_raises(server: ReplayServer, service_of: Make) -> None:
    """A paid answer is not thrown away for a word, and no other server is asked."""
    server.add(Answer.of_json(body({"content": "Hi."}, "tired")), times=None)
    kept = complete(service_of(server))
    assert (kept.raw_finish_reason, kept.text, kept.is_complete) == ("tired", "Hi.", False)
    assert [attempt.outcome for attempt in kept.attempts] == ["success"]
    with pytest.raises(UnknownFinishReasonError, match="tired") as raised:
        complete(service_of(server, unknown="raise"))
    assert raised.value.partial.text == "Hi."


def test_a_plugin_that_breaks_is_named(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_json(body({"content": 7})))
    with pytest.raises(MappingError, match="content"):
        complete(service_of(server))


def test_a_redirect_is_not_followed(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer((b"",), 307, {"Location": "http://127.0.0.1:1/"}))
    error = failure(service_of(server))
    assert type(error) is InvalidRequestError
    assert "redirect" in str(error)
    server.add(Answer((), 304))
    assert "HTTP 304: the server sends no answer" in str(failure(service_of(server)))


# ------------------------------------------------------------------------------------ time, and who is not there


def test_a_server_that_says_nothing(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO, Stall(), times=2)
    limits = Timeouts(total=0.05)
    error = failure(service_of(server, timeout=limits, retry=RetryPolicy(attempts=2, initial_seconds=0)))
    assert type(error) is ProviderTimeoutError
    assert error.info.code == "total_timeout"
    assert error.response.model == "m"
    assert len(server.requests) == 1  # it has taken all of its time: it is not paid for again


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("limits", "events", "code", "text"),
    [
        (Timeouts(first_token=0.1), 1, "first_token_timeout", ""),
        (Timeouts(between_tokens=1), 2, "between_tokens_timeout", "Hel"),
        (Timeouts(total=2), 2, "total_timeout", "Hel"),
    ],
)
def test_a_stream_that_stalls(
    server: ReplayServer, service_of: Make, limits: Timeouts, events: int, code: str, text: str
) -> None:
    server.add(STREAMED, Stall(after_events=events))
    service = service_of(server, timeout=limits, retry=RetryPolicy(attempts=1))
    error = failure(service, attrs.evolve(ASK, stream=True))
    assert error.info.code == code
    assert error.response.text == text


def test_a_slow_server_within_its_time(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO, Delay(0.01))
    assert complete(service_of(server, timeout=Timeouts(total=None, first_token=0.001))).text == "Hello."


def test_a_cancelled_task_closes_the_connection(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(HELLO, Stall(after_bytes=5))

    async def run() -> None:
        async with service_of(server) as service:
            task = asyncio.create_task(service.complete(ASK))
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.requests))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.disconnects))

    with caplog.at_level(logging.INFO, "crosswalk.service"):
        asyncio.run(run())
    assert [vars(record)["crosswalk.outcome"] for record in caplog.records[:1]] == ["cancelled"]


def test_nobody_is_there(service_of: Make) -> None:
    nobody = Endpoint("vllm", model="m", base_url="http://127.0.0.1:9")
    error = failure(service_of(nobody))
    assert type(error) is ServerError
    assert error.info.code == "connect_error"
    assert "127.0.0.1:9" in str(error)
    assert len(error.response.attempts) == 3


def test_a_closed_service_sends_nothing(server: ReplayServer, service_of: Make) -> None:
    async def run() -> None:
        service = service_of(server)
        await service.aclose()
        await service.complete(ASK)

    with pytest.raises(Exception, match="the service is closed"):
        asyncio.run(run())


# ------------------------------------------------------------------------------------ secrets and the log


def test_a_credential_is_nowhere(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the error of a server that quotes it, not in a repr, not in the log of any logger at any level."""
    key = "sk-" + "verysecret" * 3
    server.add(Answer.failure(401, message=f"Incorrect API key provided: {key}"))
    endpoint = Endpoint("openai", model="m", base_url=server.url, api_key=key, headers={"X-Other": f"{key}2"})
    with caplog.at_level(logging.DEBUG):
        error = failure(service := service_of(endpoint))
    shown = [str(error), repr(error.response), repr(error.response.attempts), repr(service), repr(endpoint)]
    shown += [str(vars(record)) for record in caplog.records]
    assert not [text for text in shown if "verysecret" in text]
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"


def test_what_the_log_is_told(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(Answer.failure(503)).add(HELLO)
    with caplog.at_level(logging.DEBUG, "crosswalk.service"):
        response = complete(service_of(server))
    records = [vars(record) for record in caplog.records if record.name == "crosswalk.service"]
    assert [record["event.name"] for record in records] == [
        "crosswalk.attempt",
        "crosswalk.attempt",
        "crosswalk.call",
    ]
    assert [record["levelname"] for record in records] == ["INFO", "DEBUG", "DEBUG"]
    assert len({record["crosswalk.call.id"] for record in records}) == 1
    assert records[0]["error.type"] == "server"
    assert records[2]["gen_ai.response.id"] == response.id
    assert records[2]["gen_ai.usage.input_tokens"] == 3
    assert "crosswalk.content" not in records[2]


@pytest.mark.parametrize(("level", "told"), [(logging.WARNING, 0), (logging.INFO, 1), (logging.DEBUG, 3)])
def test_the_log_is_told_what_its_level_asks_for(
    level: int, told: int, server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(Answer.failure(503)).add(HELLO)
    with caplog.at_level(level, "crosswalk.service"):
        complete(service_of(server))
    assert len([record for record in caplog.records if record.name == "crosswalk.service"]) == told


def test_a_failed_call_is_in_the_log(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "crosswalk.service"):
        error = failure(service_of(server))
        with pytest.raises(UnsupportedRequestError):
            complete(service_of(server), ChatRequest("hi", provider_options={"vlm": {"a": 1}}))
    calls = [
        vars(record) for record in caplog.records if getattr(record, "event.name", "") == "crosswalk.call"
    ]
    assert calls[0]["gen_ai.response.id"] == error.correlation_id
    assert calls[0]["gen_ai.response.finish_reasons"] == (FinishReason.ERROR.value,)
    assert calls[1]["error.type"] == "UnsupportedRequestError"


def test_content_is_logged_where_the_settings_allow_it(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswalk.text._log_content", True)
    server.add(HELLO)
    with caplog.at_level(logging.DEBUG, "crosswalk.service"):
        complete(service_of(server))
    assert "Hello." in [vars(record).get("crosswalk.content") for record in caplog.records]
