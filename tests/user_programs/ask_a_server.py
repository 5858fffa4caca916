"""Ask a server, once and as a stream, with a fallback and with errors that are acted on."""

from __future__ import annotations

from crosswalk import ChatMessage, ImagePart, ProviderError, QuotaError, RateLimitError, TextPart
from crosswalk.service import ChatRequest, Endpoint, RetryPolicy, SyncLLMService

here, there = Endpoint("vllm", model="tiny"), Endpoint("openai", model="gpt", api_key="sk")
with SyncLLMService(here, there, retry=RetryPolicy(attempts=3), timeout=30) as service:
    try:
        response = service.complete("Why is the sky blue?", temperature=0.2)
    except RateLimitError as error:
        print("later:", error)
    except QuotaError as error:
        print("no money:", error.correlation_id)
    except ProviderError as error:
        if error.info is not None:
            print(error.info.kind, error.info.message, error.correlation_id)
    else:
        print(response.text, [(one.outcome, one.provider_name) for one in response.attempts])

    photo = ImagePart(data="iVBORw0KGgo=", media_type="image/png")
    request = ChatRequest([ChatMessage.user([TextPart("What is this?"), photo])], max_tokens=100)
    with service.stream(request) as events:
        for event in events:
            if event.delta is not None and event.delta.content_delta:
                print(event.delta.content_delta, end="")
    print(events.response.usage.completion_tokens)
    plan = service.plan(request)
    print(plan.request.headers["content-type"], [one.field for one in plan.adaptations])
