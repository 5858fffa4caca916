"""What the Converse API takes, and where.

Facts: the service model of bedrock-runtime in botocore; provider document "Amazon Bedrock Converse".
"""

from __future__ import annotations

from crosswalk.plugins import RequestTable, Row, below

CONVERSE = RequestTable(
    "bedrock",
    "Converse",
    ("/converse", "/converse-stream"),
    (
        *below(
            "inferenceConfig",
            Row("temperature", "temperature"),
            Row("topP", "top_p"),
            Row("maxTokens", "max_tokens"),
            Row("stopSequences", "stop"),
        ),
        Row(
            "outputConfig.effort",
            "reasoning_effort",
            words={word: word for word in ("low", "medium", "high", "xhigh", "max")},
        ),
        Row("toolConfig.toolChoice", "tool_choice", words={"auto": "auto", "required": "any"}),
        *below(
            "toolConfig.tools[].toolSpec",
            Row("name", "tool.name"),
            Row("description", "tool.description"),
            Row("inputSchema.json", "tool.parameters"),
            Row("strict", "tool.strict"),
        ),
        *below(
            "outputConfig.textFormat.structure.jsonSchema",
            Row("schema", "format.schema"),
            Row("name", "format.name"),
            Row("description", "format.description"),
        ),
        Row(
            "serviceTier.type",
            "service_tier",
            words={word: word for word in ("default", "flex", "priority")},
        ),
        Row("requestMetadata", "metadata"),
        Row("messages[].content[].cachePoint", "cache.mark", write=lambda mark: {"type": "default", **mark}),
        Row("messages[].content[].cachePoint.ttl", "cache.ttl"),
        Row("toolConfig.tools[].cachePoint", "cache.tools"),
    ),
)
