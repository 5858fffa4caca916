"""Show the sources of an answer: ToolCall -> Chunk -> Annotation.

    python examples/responses_tool_citations.py

A model in a chat asked for two searches. The program runs them, numbers the results, and finds those that
support the answer. The searches and the answer are made up, so that it runs without a server.
"""

from __future__ import annotations

from crosswalk import ToolCall
from crosswalk.responses import (
    CitedResponse,
    DocumentFinderToolCall,
    FileSearchResult,
    FileSearchToolCall,
    FoundDocument,
    Response,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseToolCall,
    tool_registry,
)

ASKED = (
    ToolCall("call_1", "file_search", '{"queries": ["opening hours"]}'),
    ToolCall("call_2", "document_finder", '{"queries": ["museum"]}'),
)
RULES = "The museum opens at nine and closes at six. On Fridays it closes at ten."
MAP = "Trams 4 and 11 stop in front of the museum; the car park has two hundred places."


def run(call: ResponseToolCall) -> ResponseToolCall:
    """Return the *call* with its result. A real program would search here."""
    if isinstance(call, FileSearchToolCall):
        found = FileSearchResult(file_id="file_rules", filename="rules.pdf", text=RULES)
        call = call.advance("searching")
        return FileSearchToolCall(call.item.replace(results=(found,))).advance("completed")
    documents = (
        FoundDocument(file_id="file_map", filename="map.pdf", title="How to get there", text=MAP),
        FoundDocument(file_id="file_rules", filename="rules.pdf", text=RULES),
    )
    call = call.advance("searching")
    return DocumentFinderToolCall(call.item.replace(results=documents)).advance("completed")


def answer(text: str) -> Response:
    """Return the model's answer after it has read the chunks."""
    message = ResponseOutputMessage(id="msg_1", content=(ResponseOutputText(text=text),))
    return Response(id="resp_1", output=(message,))


def main() -> None:
    """Run the calls, cite, compress."""
    calls = [run(tool_registry.from_chat_tool_call(asked)) for asked in ASKED]
    cited = CitedResponse.of(answer("It closes at six [1]."), tool_calls=calls).install_citations()
    for chunk in cited.chunks:
        print(chunk.stub(), "--", chunk.content[:30])
    print("referenced:", *(citation.title for citation in cited.referenced))
    print("candidates:", *(citation.title for citation in cited.candidates))
    for mode in ("all", "deduplicate", "nonrefed"):
        report = cited.compress_chunks(mode).reports[-1]
        print(f"{mode}: {report.removed_chunks} chunks and {report.saved_characters} characters less")
    message = cited.annotate().response.output[0]
    print(message.content[0].annotations[0])


if __name__ == "__main__":
    main()
