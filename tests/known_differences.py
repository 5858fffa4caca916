"""What is known about captures that lie outside the project: the one list of every exception, with its reason.

Keys are ``folder/pair``. All of these are facts about the server that was recorded, not about the mapping.
"""

from __future__ import annotations

UNPARSED_CALL = (
    "the server streams the pieces of a tool call before it knows that the call cannot be parsed; "
    "in the body it gives its text instead"
)
REASONING_COUNT = "the server counts other reasoning tokens in a stream than in the body"
FINISH_WORD = "the server says tool_calls in the body, stop in the stream; neither has a call"
STREAM_REFUSED = "the server refuses this request when it is streamed"
CRASH = "the server was killed in mid-answer: the body is its HTTP error, the stream just ends"
SAMPLED = "the server sampled another answer for the stream"

UNEQUAL_PAIRS = {
    "ollama/crash_v1_chat": CRASH,
    "ollama/plain_chat_think": SAMPLED,
    "ollama/plain_chat_tools": "the server failed with HTTP 500 for the body only",
    "vllm/tool_auto_badtool": UNPARSED_CALL,
    "vllm/tool_auto_cut_in_arguments": UNPARSED_CALL,
    "vllm/vllm_prompt_logprobs": STREAM_REFUSED,
    "vllm-reasoning/chat_emoji": REASONING_COUNT,
    "vllm-reasoning/chat_emoji_cut": REASONING_COUNT,
    "vllm-reasoning/chat_stop_string": REASONING_COUNT,
    "vllm-reasoning/chat_stop_string_partial": REASONING_COUNT,
    "vllm-reasoning/logprobs_emoji": REASONING_COUNT,
    "vllm-reasoning/tool_auto_badtool": UNPARSED_CALL,
    "vllm-reasoning/tool_auto_cut_in_arguments": UNPARSED_CALL,
    "vllm-reasoning/tool_auto_unktool": UNPARSED_CALL,
    "vllm-reasoning/tool_required": FINISH_WORD,
    "vllm-reasoning/vllm_best_effort_tool_strict": FINISH_WORD,
    "vllm-reasoning/vllm_continue_final_message": REASONING_COUNT,
    "vllm-reasoning/vllm_prompt_logprobs": STREAM_REFUSED,
    "vllm-reasoning/vllm_stop_token_ids": REASONING_COUNT,
    "vllm-reasoning/vllm": UNPARSED_CALL,  # vllm_stream_tool_named_bad_args_type, as the manifest pairs it
}
"""Pairs whose two forms the server itself answered differently."""
