"""The tables of vendors' errors: each names its sources, and each row works through its plugin."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from crosswalk import ErrorKind, FinishReason, normalize, normalize_stream
from crosswalk.plugins import error_info

FILES: Final = sorted(Path(__file__).parents[2].glob("*/crosswalk_*/errors.toml"))
TABLES: Final = {
    name: table for file in FILES for name, table in tomllib.loads(file.read_text("utf-8")).items()
}
KEYS: Final = {"codes", "statuses", "message", "reasons", "kind", "retryable"}
TEXTS: Final = {
    r"^model:": "model: x",
    "input length": "Range of input length should be [1, 30720]",
    r"^the supported api model names are\b": "The supported API model names are a or b, but you passed x.",
    r"^model not found\b": "Model not found: x",
    "^(model is )?overloaded": "Model is overloaded",
    r"^(request failed during |incomplete[ _])?generation\b|^stream[ _](event )?serialization": "Incomplete generation",
    "^(input )?validation|^template[ _]error|^missing[ _]template[ _]va|^tool[ _]error": "Input validation error: no",
    r"\bis not a valid model id\b": "acme/x is not a valid model ID",
}
"""A message of the vendor for each pattern that the envelopes below do not have."""

_CHAT = "thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?"
_BEDROCK_404 = "Please refer to the AWS documentation for more details."
SAID: Final[list[tuple[str, int, Any, str, bool]]] = [
    # Envelopes as the vendors send them: provider, status, body, kind, whether a retry may help.
    ("openai", 404, {"error": {"message": f"This is not a chat model and {_CHAT}", "type": "invalid_request_error", "param": "model", "code": None}}, "model_unavailable", False),
    ("openai", 404, {"error": {"message": "This model is only supported in v1/responses and not in v1/chat/completions.", "type": "invalid_request_error", "param": "model", "code": None}}, "model_unavailable", False),
    ("openai", 404, {"error": {"message": "No such file: not a chat model", "type": "invalid_request_error", "param": "id", "code": None}}, "invalid_request", False),
    ("openai", 429, {"error": {"message": "Request too large for m in organization o on tokens per min (TPM): Limit 30000, Requested 48000.", "type": "tokens", "code": "rate_limit_exceeded"}}, "rate_limit", False),
    ("openai", 429, {"error": {"message": "Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000, Used 29000.", "type": "tokens", "code": "rate_limit_exceeded"}}, "rate_limit", True),
    ("groq", 413, {"error": {"message": "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000", "type": "tokens", "code": "rate_limit_exceeded"}}, "rate_limit", False),
    ("groq", 400, {"error": {"message": "The model `m` has been decommissioned and is no longer supported.", "type": "invalid_request_error", "code": "model_decommissioned"}}, "model_unavailable", False),
    ("anthropic", 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}, "quota", False),
    ("anthropic", 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "The tool says: You have reached your specified API usage limits."}}, "invalid_request", False),
    ("gemini", 429, {"error": {"code": 429, "message": "Your project has exceeded its monthly spending cap.", "status": "RESOURCE_EXHAUSTED"}}, "quota", False),
    ("gemini", 429, {"error": {"code": 429, "message": "Your prepayment credits are depleted.", "status": "RESOURCE_EXHAUSTED"}}, "quota", False),
    ("gemini", 429, {"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota).", "status": "RESOURCE_EXHAUSTED"}}, "rate_limit", True),
    ("gemini", 400, {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}, "authentication", False),
    ("gemini", 400, {"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}, "context_overflow", False),
    ("gemini", 400, {"error": {"code": 400, "message": "The token count is 40000 but model only supports up to 32768.", "status": "INVALID_ARGUMENT"}}, "context_overflow", False),
    ("openrouter", 404, {"error": {"message": "No endpoints found for acme/x.", "code": 404}}, "model_unavailable", False),
    ("openrouter", 404, {"error": {"message": "No endpoints found matching your data policy.", "code": 404}}, "model_unavailable", False),
    ("openrouter", 404, {"error": {"message": "No allowed providers are available for the selected model.", "code": 404}}, "model_unavailable", False),
    ("openrouter", 404, {"error": {"message": "The free period for this model has ended.", "code": 404}}, "model_unavailable", False),
    ("openrouter", 404, {"error": {"message": "The alpha period for this model has ended.", "code": 404}}, "model_unavailable", False),
    ("openrouter", 404, {"error": {"message": "No endpoints found that support tool use.", "code": 404}}, "invalid_request", False),
    ("openrouter", 403, {"error": {"message": "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", "code": 403}}, "quota", False),
    ("openrouter", 403, {"error": {"message": "Key limit exceeded. Manage it using https://openrouter.ai/keys", "code": 403}}, "quota", False),
    ("openrouter", 403, {"error": {"message": "Your key may not use this model.", "code": 403}}, "permission", False),
    ("xai", 429, {"code": "Some resource has been exhausted", "error": "Your team 1 has either used all available credits or reached its monthly spending limit."}, "quota", False),
    ("xai", 403, {"code": "The caller does not have permission", "error": "Your newly created team doesn't have any credits or licenses yet."}, "quota", False),
    ("xai", 403, {"code": "The caller does not have permission", "error": "Content violates usage guidelines. Team: 1, Model: m"}, "content_filter", False),
    ("xai", 403, {"code": "The caller does not have permission", "error": "The key may not use this endpoint."}, "permission", False),
    ("xai", 400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 150000 tokens."}, "context_overflow", False),
    ("deepseek", 400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error", "code": "invalid_request_error"}}, "model_unavailable", False),
    ("deepseek", 400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error", "code": "invalid_request_error"}}, "content_filter", False),
    ("deepseek", 400, {"error": {"message": "Content Exists Risk in the field name", "type": "invalid_request_error", "code": "invalid_request_error"}}, "invalid_request", False),
    ("fireworks", 412, {"error": {"message": "Account a is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."}}, "quota", False),
    ("fireworks", 412, {"error": {"message": "The deployment is not ready."}}, "invalid_request", False),
    ("together", 422, {"error": {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000", "type": "invalid_request_error"}}, "context_overflow", False),
    ("tgi", 422, {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", "error_type": "validation"}, "context_overflow", False),
    ("tgi", 422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048.", "error_type": "validation"}, "context_overflow", False),
    ("lmstudio", 400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length."}, "context_overflow", False),
    ("lmstudio", 400, {"error": "No models loaded. Please load a model in the developer page."}, "model_unavailable", False),
    ("lmstudio", 400, {"error": "No tools loaded."}, "invalid_request", False),
    ("cohere", 429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}, "rate_limit", False),
    ("cohere", 429, {"message": "You are using a Trial key, which is limited to 20 API calls / minute."}, "rate_limit", True),
    ("bedrock", 400, {"message": "The provided model identifier is invalid."}, "model_unavailable", False),
    ("bedrock", 400, {"__type": "ValidationException", "message": "Invocation of model ID m with on-demand throughput isn\u2019t supported."}, "model_unavailable", False),
    ("bedrock", 404, {"message": f"This model version has reached the end of its life. {_BEDROCK_404}"}, "model_unavailable", False),
    ("bedrock", 403, {"__type": "AccessDeniedException", "message": "You don't have access to the model with the specified model ID."}, "model_unavailable", False),
    ("bedrock", 403, {"__type": "AccessDeniedException", "message": "User a is not authorized to perform: bedrock:InvokeModel"}, "permission", False),
    ("bedrock", 403, {"message": "The security token included in the request is expired"}, "authentication", False),
    ("bedrock", 400, {"__type": "ValidationException", "message": "Input is too long for requested model."}, "context_overflow", False),
    ("bedrock", 429, {"message": "Too many tokens per day, please wait before trying again."}, "rate_limit", False),
    ("moonshot", 400, {"error": {"message": "Invalid request: Your request exceeded model token limit: 262144", "type": "invalid_request_error"}}, "context_overflow", False),
    ("ollama", 404, {"error": 'model "x" not found, try pulling it first'}, "model_unavailable", False),
    ("ollama", 500, {"error": "Failed to create new sequence: missing data required for image input"}, "invalid_request", False),
    ("ollama", 500, {"error": "model runner has unexpectedly stopped, this may be due to resource limitations"}, "server", True),
    ("zai", 429, {"error": {"code": "1310", "message": "The limit of the week or the month is exhausted."}}, "rate_limit", False),
    ("zai", 429, {"error": {"code": "1309", "message": "Your plan has expired and is temporarily unavailable."}}, "quota", False),
    ("dashscope", 403, {"error": {"message": "The free tier of the model has been exhausted.", "type": "AllocationQuota.FreeTierOnly", "code": "AllocationQuota.FreeTierOnly"}}, "quota", False),
]  # fmt: skip


def text_for(pattern: str) -> str:
    """Return a message of a vendor for *pattern*."""
    said = (error_info(400, body).message for _, _, body, _, _ in SAID)
    known = TEXTS.get(pattern)
    return next(text for text in (known, *said) if text and re.search(pattern, quoted(text), re.IGNORECASE))


def quoted(text: str) -> str:
    """Return *text* as the tables see it: without its quotations."""
    return re.sub("`[^`]*`", "…", text)


def rows() -> Iterator[tuple[str, dict[str, Any], str | None, int, str | None]]:
    for vendor, table in TABLES.items():
        for row in table["errors"]:
            names = (row.get("codes", [None]), row.get("statuses", [400]), row.get("reasons", [None]))
            for code, status, reason in product(*names):
                yield vendor, row, code, status, reason


def failed(vendor: str, code: str | None, message: str, reason: str | None = None) -> dict[str, Any]:
    match vendor:
        case "gemini" if code is not None and code.isdecimal():
            return {"error": {"code": int(code), "message": message}}
        case "gemini":
            details = [7, {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]
            return {"error": {"code": 400, "message": message, "status": code or "X", "details": details}}
        case "minimax":
            return {"base_resp": {"status_code": int(code or 0), "status_msg": message}}
        case "cloudflare":
            return {"success": False, "errors": [{"code": int(code or 0), "message": message}]}
        case "anthropic":
            return {"type": "error", "error": {"type": code, "message": message}}
        case "tgi":
            return {"error": message, "error_type": code}
        case "bedrock":
            return {"message": message, "__type": code}
        case "cohere" if code is not None:  # the finish word of an answer
            return {"id": "a", "message": {"role": "assistant"}, "finish_reason": code, "error": message}
        case "cohere":
            return {"message": message}
        case "ollama":
            return {"error": message}
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize("vendor", TABLES)
def test_every_table_names_its_sources_and_a_date(vendor: str) -> None:
    table = TABLES[vendor]
    assert table.keys() == {"sources", "checked", "errors"}
    assert table["sources"]
    assert all(source.startswith("https://") for source in table["sources"])
    assert type(table["checked"]) is date
    for row in table["errors"]:
        assert {"kind"} < row.keys() <= KEYS
        assert ErrorKind(row["kind"])
        assert "message" not in row or text_for(row["message"])


@pytest.mark.untraced
@pytest.mark.parametrize(("vendor", "row", "code", "status", "reason"), list(rows()))
def test_every_row_decides_the_kind_of_its_error(
    vendor: str, row: dict[str, Any], code: str | None, status: int, reason: str | None
) -> None:
    text = text_for(row["message"]) if "message" in row else "No."
    body = failed(vendor, None if code is None else code.replace("*", "Parameter"), text, reason)
    is_answer = vendor == "cohere" and code is not None
    info = normalize(body, vendor, status=200 if is_answer else status).error_info
    assert info is not None
    assert info.kind == row["kind"]
    if "retryable" in row:
        assert info.retryable is row["retryable"]


@pytest.mark.parametrize(("provider", "status", "body", "kind", "retryable"), SAID)
def test_an_envelope_of_a_vendor_has_its_kind(
    provider: str, status: int, body: Any, kind: str, retryable: bool
) -> None:
    info = normalize(body, provider, status=status).error_info
    assert info is not None
    assert (info.kind, info.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("provider", "error", "kind"),
    [
        ("openrouter", {"code": 403, "message": "Key limit exceeded (total limit)."}, "quota"),
        ("openrouter", {"code": 404, "message": "No allowed providers are available for the selected model."}, "model_unavailable"),
        ("openrouter", {"code": 403, "message": "Not for you."}, "permission"),
    ],
)  # fmt: skip
def test_an_error_of_a_choice_has_its_vendors_kind(provider: str, error: Any, kind: str) -> None:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi"},
        "finish_reason": "error",
        "error": error,
    }
    body = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    info = normalize(body, provider).error_info
    assert info is not None
    assert info.kind == kind


@pytest.mark.parametrize(
    ("message", "retryable"),
    [
        ("Limit reached on tokens per day (TPD): Limit 10", False),
        ("The weekly limit of this plan is reached", False),
        ("free-models-per-month", False),
        ("Limit reached on tokens per minute (TPM): Limit 10", True),
        ("Too many requests today; the tool 'daily' was called", True),
    ],
)
def test_a_limit_of_a_day_or_more_is_not_worth_a_retry(message: str, retryable: bool) -> None:
    info = error_info(429, {"error": {"message": message}})
    assert (info.kind, info.retryable) == (ErrorKind.RATE_LIMIT, retryable)


@pytest.mark.parametrize(
    "details",
    [
        [7, {"violations": 7}, {"violations": [7, {"quotaId": 7}, {"quotaId": "PerDayNot"}]}],
        [{"violations": [{"quotaId": "RequestsPerDaylight"}]}],
    ],
)
def test_details_of_another_shape_name_no_quota(details: Any) -> None:
    body = {"error": {"code": 429, "message": "No.", "status": "RESOURCE_EXHAUSTED", "details": details}}
    expected = "PerDayNot" in str(details)
    info = error_info(429, [body])
    assert info.retryable is not expected


@pytest.mark.untraced
@pytest.mark.parametrize("provider", sorted(TABLES))
@pytest.mark.parametrize("error", ["nope and why", {"message": "nope and why"}])
@pytest.mark.parametrize("type", [{}, {"type": "error"}])
def test_a_stream_that_begins_with_an_error_says_its_text(
    provider: str, error: Any, type: dict[str, str]
) -> None:
    frame = b"data: %s\n\n" % orjson.dumps({**type, "error": error})
    *_, last = normalize_stream([frame], provider)
    assert last.finish_reason is FinishReason.ERROR
    assert last.segment is not None
    assert last.segment.content == "nope and why"
