"""Errors as servers send them, and what each one means: provider, status, body, kind, code, whether to retry."""

from __future__ import annotations

from typing import Any

from crosswalk import ErrorKind

K = ErrorKind


def openai(message: str, type: str | None = "invalid_request_error", code: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic(type: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}}


def gemini(status: int, word: str, message: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": word, "details": list(details)}}


QUOTING: list[tuple[str, int, Any, ErrorKind, str | None, bool]] = [
    # The message names something of the user's. The type or code says what is wrong.
    ("openai", 400, openai("Invalid schema for function 'throttling_test'", code="invalid_function_parameters"), K.INVALID_REQUEST, "invalid_function_parameters", False),
    ("openai", 400, openai("Missing tool results for too_many_requests_probe"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 400, openai("Invalid value: `overloaded` is not a voice"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 400, openai("The function engine_timed_out timed out of its enum"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 401, openai("You sent 'rate limit exceeded' as a key", "invalid_request_error", "invalid_api_key"), K.AUTHENTICATION, "invalid_api_key", False),
    ("openai", 400, openai("Unknown parameter: \u201cforbidden\u201d, try \u2018maximum context length\u2019"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 400, openai("Tool model_not_found_page has no parameters"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 400, openai('Cannot read "the model `x` does not exist" as a schema'), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 400, openai("Unexpected text 'flagged by moderation"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("vllm", 400, openai("Cannot parse 'Internal Server Error' as JSON", "BadRequestError", 400), K.INVALID_REQUEST, "BadRequestError", False),
    ("vllm", 400, openai("The tool 'content_filter' has no schema", "Bad Request", 400), K.INVALID_REQUEST, "Bad Request", False),
    ("anthropic", 400, anthropic("invalid_request_error", "tools.0.name: rate_limit_check is too long"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("anthropic", 403, anthropic("permission_error", "Your key may not use the tool 'overloaded'"), K.PERMISSION, "permission_error", False),
    ("gemini", 400, gemini(400, "INVALID_ARGUMENT", "Function name check.rate.limit: too many requests per turn"), K.INVALID_REQUEST, "INVALID_ARGUMENT", False),
    ("ollama", 400, {"error": "invalid tool name \"server busy\""}, K.INVALID_REQUEST, None, False),
    ("bedrock", 400, {"__type": "ValidationException", "message": "toolConfig.tools.0: ThrottlingException is a reserved name"}, K.INVALID_REQUEST, "ValidationException", False),
    ("cohere", 422, {"message": "tool 'unauthorized' timed out in your test"}, K.INVALID_REQUEST, None, False),
    # A status of 400 to 499 is not made worth a retry by the words of the message.
    ("openai", 404, openai("Too many requests have used this endpoint", None), K.INVALID_REQUEST, None, False),
    ("openai", 400, openai("list has no element 0", "internal_server_error", 400), K.INVALID_REQUEST, "internal_server_error", False),
    ("ollama", 400, {"error": "upstream timed out"}, K.INVALID_REQUEST, None, False),
]  # fmt: skip

STATED: list[tuple[str, int, Any, ErrorKind, str | None, bool]] = [
    # The type or code counts more than the status.
    ("openai", 500, openai("bad schema"), K.INVALID_REQUEST, "invalid_request_error", False),
    ("openai", 400, openai("slow down", "rate_limit_error", "rate_limit_exceeded"), K.RATE_LIMIT, "rate_limit_exceeded", True),
    ("bedrock", 400, {"__type": "ThrottlingException", "message": "Rate exceeded"}, K.RATE_LIMIT, "ThrottlingException", True),
    ("anthropic", 400, anthropic("timeout_error", "x"), K.TIMEOUT, "timeout_error", True),
    ("openai", 413, openai("Request too large: tokens per minute", "tokens", "rate_limit_exceeded"), K.RATE_LIMIT, "rate_limit_exceeded", False),
    ("gemini", 404, gemini(404, "NOT_FOUND", "models/gemini-0 is not found for API version v1beta"), K.MODEL_UNAVAILABLE, "NOT_FOUND", False),
    ("gemini", 499, gemini(499, "CANCELLED", "The operation was cancelled."), K.TIMEOUT, "CANCELLED", False),
    # An exact status counts more than a type that says only that something is wrong.
    ("openai", 401, openai("You did not provide a key"), K.AUTHENTICATION, "invalid_request_error", False),
    ("openai", 429, openai("Too fast"), K.RATE_LIMIT, "invalid_request_error", True),
    # A known sentence makes a broad type more exact.
    ("openai", 400, openai("This model's maximum context length is 8192 tokens."), K.CONTEXT_OVERFLOW, "invalid_request_error", False),
    ("anthropic", 400, anthropic("invalid_request_error", "Output blocked by content filtering policy"), K.CONTENT_FILTER, "invalid_request_error", False),
    ("vllm", 500, openai("The model's maximum context length is 8 tokens.", "InternalServerError", 500), K.CONTEXT_OVERFLOW, "InternalServerError", False),
    ("openai", 500, openai("Rate limit reached for this server", "server_error"), K.RATE_LIMIT, "server_error", True),
    # A number is a code, too.
    ("openrouter", 200, {"error": {"message": "Bad gateway", "code": 502}}, K.SERVER, "502", True),
    ("openai", 400, openai("no", None, 1214), K.INVALID_REQUEST, "1214", False),
    ("openai", 200, {"error": {"message": "wait", "code": 429}}, K.RATE_LIMIT, "429", True),
    ("openai", 400, {"error": {"message": "wait", "code": "429"}}, K.RATE_LIMIT, "429", True),
]  # fmt: skip
