"""What Cohere's chat takes, and where.

Facts: Cohere's reference of "Chat" (v2); provider document "Cohere Chat".
"""

from __future__ import annotations

from crosswalk.plugins import RequestTable, Row

COHERE = RequestTable(
    "cohere",
    "Cohere's chat",
    ("/v2/chat",),
    (
        *(
            Row(name, name)
            for name in (
                *("temperature", "max_tokens", "seed", "frequency_penalty", "presence_penalty", "logprobs"),
            )
        ),
        Row("p", "top_p"),
        Row("k", "top_k"),
        Row("stop_sequences", "stop"),
        Row("tool_choice", "tool_choice", words={"none": "NONE", "required": "REQUIRED"}),
        Row("strict_tools", "tool.strict"),
        Row("messages[].content[][image_url].image_url.detail", "part.detail"),
        Row("thinking.token_budget", "thinking_budget", beside={"thinking.type": ("enabled",)}),
    ),
)
