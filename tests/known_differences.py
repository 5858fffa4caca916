"""Known facts about captures outside the project: the one list of every exception, with its reason.

All of these are facts about the server that was recorded, or about who recorded it, not about the mapping.
The tests fail as soon as one of them is not an exception any more.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from crosswalk.testing import load_exceptions

# ------------------------------------------------------------- body and stream of the same exchange (P2)

COUNTED_OTHERWISE = "the server counts other reasoning tokens in a stream than in the body"
CRASH = "the server was killed in mid-answer: the body is its HTTP error, the stream just ends"
CUT_CALL = (
    "the server streams the piece of a call that was cut; in the body it gives no call, or none of the piece"
)
ECHO = "the server leaves the prompt out of the stream"
ERROR_OR_EMPTY = "the server answers with an HTTP error to the one, and sends an empty stream for the other"
FAILED_BODY = "the server failed with HTTP 500 for the body only"
FINISH_WORD = "the server says tool_calls in the body, stop in the stream; neither has a call"
FIRST_ONLY = "in a body the server counts the first answer alone"
FORCED = "the server streams what a forced tool is called with, though it is no JSON; the body has none or other text"
LINE_BREAK = "in a stream the server keeps the line break before a tool call, in a body it does not"
NOT_ASKED = "the client asked for no counts in this one of the streams"
SAMPLED = "the server sampled another answer for the stream"
STREAM_REFUSED = "the server refuses this request when it is streamed"
UNPARSED = (
    "the server streams a call before it knows that it cannot parse it; in the body it gives no call, or text"
)

UNEQUAL_PAIRS = {
    "llama-cpp-python/cmpl_echo": ECHO,
    "llama-cpp-python/cmpl_echo_logprobs": ECHO,
    "llama-cpp-python/err_context_overflow_prompt": ERROR_OR_EMPTY,
    "llama-cpp-python/err_messages_empty": ERROR_OR_EMPTY,
    "llama-cpp-python/logprobs_emoji": "the server loses the characters of several tokens in a stream",
    "llama-cpp-python-functions/cmpl_echo": ECHO,
    "llama-cpp-python-functions/cmpl_echo_logprobs": ECHO,
    "llama-cpp-python-functions/err_context_overflow_prompt": ERROR_OR_EMPTY,
    "llama-cpp-python-functions/legacy_functions_auto": ERROR_OR_EMPTY,
    "llama-cpp-python-functions/n3_tools": SAMPLED,
    "llama-cpp-python-functions/tool_auto_parallel_off": SAMPLED,
    "llama-cpp-python-functions/tool_auto_parallel_seed4": SAMPLED,
    "llama-cpp-python-functions/tool_auto_parallel_seed5": SAMPLED,
    "llama-cpp-python-functions/tool_auto_parallel_seed8": SAMPLED,
    "llama-cpp-python-functions/tool_required": ERROR_OR_EMPTY,
    "llama-server/chat_hello_stream_nousage": NOT_ASKED,
    "llama-server/cmpl_batch": FIRST_ONLY,
    "llama-server/cmpl_n2": FIRST_ONLY,
    "llama-server/logprobs_emoji": "the server leaves the end of the sequence out of a stream's tokens",
    "llama-server/msg_tool_any": SAMPLED,
    "llama-server/msg_tool_cut": CUT_CALL,
    "llama-server/msg_tool_parallel": SAMPLED,
    "llama-server/n2": FIRST_ONLY,
    "llama-server/resp_tool_required": SAMPLED,
    "llama-server/tool_auto_cut_in_name": "the server keeps a piece of a call as text in a body, not in a stream",
    "ollama/crash_v1_chat": CRASH,
    "ollama/crash_v1_resp": CRASH,
    "ollama/plain_chat_think": SAMPLED,
    "ollama/plain_chat_tools": FAILED_BODY,
    "ollama/v1_msg_tool_parallel": FAILED_BODY,
    "ollama/v1_resp_json_schema": SAMPLED,
    "ollama/v1_resp_texttool_auto": "the server drops the text of a body that has a call",
    "ollama/v1_resp_tool_parallel": FAILED_BODY,
    "sglang/json_schema": SAMPLED,
    "sglang/json_schema_cut": SAMPLED,
    "sglang/msg_empty": "the server reports 0 input tokens when it streams nothing",
    "sglang/msg_tool_cut": CUT_CALL,
    "sglang/msg_tool_named": FORCED,
    "sglang/msg_tool_parallel": SAMPLED,
    "sglang/n2": SAMPLED,
    "sglang/n3_tools": SAMPLED,
    "sglang/resp_json_schema": SAMPLED,
    "sglang/resp_texttool_auto": "the server cuts the white space at the end of a body's text",
    "sglang/resp_tool_required": CUT_CALL,
    "sglang/tool_auto_badtool": UNPARSED,
    "sglang/tool_auto_cut_in_name": UNPARSED,
    "sglang/tool_auto_parallel_seed2": SAMPLED,
    "sglang/tool_auto_parallel_seed3": SAMPLED,
    "sglang/tool_auto_parallel_seed5": SAMPLED,
    "sglang/tool_auto_parallel_seed8": SAMPLED,
    "sglang/tool_auto_texttool": LINE_BREAK,
    "sglang/tool_auto_think_then_call": SAMPLED,
    "sglang/tool_auto_unktool": UNPARSED,
    "sglang/tool_named": SAMPLED,
    "sglang/tool_required_seed9": SAMPLED,
    "sglang-reasoning/chat_random": SAMPLED,
    "sglang-reasoning/n2": SAMPLED,
    "sglang-reasoning/tool_auto_badtool": UNPARSED,
    "sglang-reasoning/tool_auto_cut_in_arguments": UNPARSED,
    "sglang-reasoning/tool_auto_cut_in_name": UNPARSED,
    "sglang-reasoning/tool_auto_parallel_off": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed2": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed4": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed5": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed6": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed7": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed8": SAMPLED,
    "sglang-reasoning/tool_auto_think_then_call": SAMPLED,
    "sglang-reasoning/tool_named": SAMPLED,
    "vllm/msg_tool_any": FORCED,
    "vllm/msg_tool_cut": CUT_CALL,
    "vllm/resp_json_schema": SAMPLED,
    "vllm/resp_logprobs": "the server streams tokens without their bytes, and gives them with the whole alone",
    "vllm/resp_tool_required": SAMPLED,
    "vllm/tool_auto_badtool": UNPARSED,
    "vllm/tool_auto_cut_in_arguments": UNPARSED,
    "vllm/vllm_prompt_logprobs": STREAM_REFUSED,
    "vllm-force-usage/resp_json_schema": SAMPLED,
    "vllm-force-usage/resp_tool_parallel": SAMPLED,
    "vllm-reasoning/chat_emoji": COUNTED_OTHERWISE,
    "vllm-reasoning/chat_emoji_cut": COUNTED_OTHERWISE,
    "vllm-reasoning/chat_stop_string": COUNTED_OTHERWISE,
    "vllm-reasoning/chat_stop_string_partial": COUNTED_OTHERWISE,
    "vllm-reasoning/logprobs_emoji": COUNTED_OTHERWISE,
    "vllm-reasoning/msg_tool_parallel": SAMPLED,
    "vllm-reasoning/resp_emoji": COUNTED_OTHERWISE,
    "vllm-reasoning/resp_tool_parallel": SAMPLED,
    "vllm-reasoning/tool_auto_badtool": UNPARSED,
    "vllm-reasoning/tool_auto_cut_in_arguments": UNPARSED,
    "vllm-reasoning/tool_auto_unktool": UNPARSED,
    "vllm-reasoning/tool_required": FINISH_WORD,
    "vllm-reasoning/vllm": UNPARSED,  # vllm_stream_tool_named_bad_args_type, as the manifest pairs it
    "vllm-reasoning/vllm_best_effort_tool_strict": FINISH_WORD,
    "vllm-reasoning/vllm_continue_final_message": COUNTED_OTHERWISE,
    "vllm-reasoning/vllm_prompt_logprobs": STREAM_REFUSED,
    "vllm-reasoning/vllm_stop_token_ids": COUNTED_OTHERWISE,
}
"""Pairs, as ``folder/pair``, whose two forms the server itself answered differently."""

UNCOUNTED = ("usage", "metadata.provenance.usage")
NOT_COMPARED = {
    "llama-cpp-python": UNCOUNTED,  # the server does not count in a stream
    "llama-cpp-python-functions": UNCOUNTED,
    "vllm-reasoning": (
        "segments[0].metadata.signature",
    ),  # the server signs with random text, each time another
}
"""What differs in all pairs of a folder, as canonical paths."""

# ------------------------------------------------------------------- promises about one answer (P1, P4)


@attrs.frozen
class Broken:
    """The promises that an answer breaks.

    Attributes:
        promises: exactly these.
        reason: why they cannot hold.
    """

    promises: frozenset[str]
    reason: str


NO_ANSWER = Broken(
    frozenset({"P4"}),
    "the answer of countTokens, not of a model: an unknown event, of which nothing is kept",
)
ENDS_TWICE = Broken(
    frozenset({"P4"}), "the server says STOP more than once: cut after the first, the stream looks whole"
)

MORE_THOUGHTS = Broken(frozenset({"P8"}), "the server counts more reasoning tokens than completion tokens")

BROKEN_PROMISES = {
    "ai__xai-tool-call": Broken(
        frozenset({"P8"}),
        "an answer of xAI, which counts reasoning apart from the completion, filed among others",
    ),
    "rig__prompt_caching-blocking_probe-v4": MORE_THOUGHTS,
    "rig__prompt_caching-streaming_probe-v5": MORE_THOUGHTS,
    "rig__response_identity_edge-streaming_identity_contract_vs_reality": MORE_THOUGHTS,
    "generative-ai-js__mock-responses-streaming-success-search-grounding": ENDS_TWICE,
    "pydantic-ai__openrouter-openrouter_stream_error": Broken(
        frozenset({"P1", "P4"}),
        "the server ends the answer twice and then reports an error: cut before that it looks whole, and the word of "
        "the first end is not kept",
    ),
    "pydantic-ai__openai_responses-openai_previous_response_id__1": Broken(
        frozenset({"P4"}), "its status is a word that the API has not"
    ),
    "rig__stream_terminal_matrix-two_terminal_stream_with_visible_thoughts": ENDS_TWICE,
    "vertexai-sdk-test-data__vertexai-streaming-failure-recitation-no-content": ENDS_TWICE,
    "vertexai-sdk-test-data__vertexai-unary-success-detailed-token-response": NO_ANSWER,
}
"""Captures on which a promise cannot hold."""

EXCEPTIONS = {
    name: list(map(str, load_exceptions(Path(__file__).parent / "captures" / name)))
    for name in ("anthropic", "cohere", "gemini")
}
# A model that repeats itself is stopped below the limit of its request.
EXCEPTIONS["vllm"] = [f"answers its request: vllm_repetition_detection{form}" for form in ("", "_stream")]
# Another server adds a time of its own, in a field that OpenAI does not have.
EXCEPTIONS["openai"] = ["times kept: created_at"]
# The API takes no text of white space alone, and no container that has expired.
EXCEPTIONS["anthropic"] += [
    "requests say all: llm-anthropic__anthropic-opus_46_adaptive_thinking",
    "requests say all: ai__anthropic-programmatic-tool-calling.1-v2 1",
]
# Other tokens at a place are no other answers. An event without an index is of the first choice.
EXCEPTIONS["gemini"] += [
    "kinds are read: candidates[].logprobsResult.topCandidates[].candidates",
    "choices are told apart: pydantic-ai__code_execution-code_execution_stream",
    "choices are told apart: pydantic-ai__google-google_model_file_search_grounding_gemini_3-True__3",
]
# The canonical log probabilities are those of the text: those of the reasoning stay where they are.
EXCEPTIONS["deepseek"] = ["kinds are read: choices[].logprobs.reasoning_content[]"]
# What a program of the server's drew stays with the call of its tool.
EXCEPTIONS["openai_responses"] = ["kinds are read: item.outputs[].url"]
"""What a check rightly finds at a leaf of a provider's, and what is right nevertheless."""

# ---------------------------------------------------------------------------------------- what they are

NO_ANSWERS = {
    "ruby-openai__conversations_create_items": "an item of OpenAI's Conversations API, filed as Anthropic's",
}
"""Captures in the folder of an API that are no answers of it."""

SEVERAL_STREAMS = {"ai__anthropic-programmatic-tool-calling.1-v2": b"event: message_start\n"}
"""Captures that hold several streams, with what each of them begins with."""

# -------------------------------------------------------------------------------------------- detection

FILED_WRONG = "OpenRouter's own fields: it was filed as OpenAI's"
HOSTED = "a host of vLLM's adds the fields of its own service: both are certain"
MISTAKEN = {
    "llm__tools_streaming-tools_streaming_variant_c__1": FILED_WRONG,
    "llm__tools_streaming-tools_streaming_variant_d": FILED_WRONG,
    "llm__tools_streaming-tools_streaming_variant_d__1": FILED_WRONG,
    "ollama_api_chat_nostream": "SGLang imitates Ollama's answer",
    "ruby_llm__chat_function_calling_azure_kimi-k2_5_can_use_tools_in_multi-turn_conversations__2": HOSTED,
    "ruby_llm__ction_calling_azure_grok-4-1-fast-non-reasoning_can_use_tools_without_parameters": HOSTED,
}
"""Captures for which another provider is certain."""

NO_MARK = "it answers as OpenAI does, without a mark of its own"
UNMARKED = {
    "ai__anthropic-advisor-stop-reasons-v2": "its id was written by hand",
    "dd-trace-py__anthropic_completion_thinking_tools": "its id was replaced and its usage cut down by who recorded it",
    "live/llama-cpp-python": NO_MARK,
    "live/llama-cpp-python-functions": NO_MARK,
    "openllmetry-js__e-attributes-in-span-for-given-prompt-with-streaming-result_3091204960-recording": "Bedrock "
    "leaves out what Cohere's Generate says of its version",
    "openllmetry-js__e-attributes-in-span-for-given-prompt-with-streaming-result_3091204960-recording-v2": "Bedrock "
    "leaves out the type of Anthropic's text completion",
    "text-generation-inference__basic_tutorials-using_guidance": "a text alone, which other services answer, too",
}
"""Answers, or folders of them, without the mark that their server's answers carry: possibly its own, not certainly."""
