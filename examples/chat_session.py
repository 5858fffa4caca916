"""Store a conversation in a file and continue it from there: run it twice.

python examples/chat_session.py session.json "Hello!"                              (recorded answers, no model needed)
python examples/chat_session.py session.json "Hello!" ollama http://localhost:11434 llama3.2
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

from crosswalk import ChatMessage, ChatResponse, CrosswalkError
from crosswalk.agent import ChatAgent, ChatConfig, ChatSession, ChatStream
from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.testing import load_capture
from crosswalk.testing.replay import ReplayServer

RECORDED = Path(__file__).parent.parent / "tests/captures/vllm/reasoning_chat_think_stream.response.sse"


def chat(file: Path, text: str, endpoint: Endpoint) -> None:
    """Add *text* to the conversation in *file*, show the answer while it arrives, and store both."""
    session = ChatSession.load(file) if file.exists() else ChatSession([ChatMessage.system("Be brief.")])
    session.add_message(ChatMessage.user(text))
    with SyncLLMService(endpoint) as service:
        agent = ChatAgent(service, ChatConfig(temperature=0.0))
        session.add_response(shown(agent.stream_chat(session)))
    session.save(file)
    print(f"\n[{len(session)} turns, {session.usage}, kept in {file.name}]")


def shown(stream: ChatStream) -> ChatResponse:
    """Print the text as it arrives, and return the whole answer."""
    for delta in stream:
        # Model output must not control the terminal.
        text = "".join(
            c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
            for c in delta.content_delta or ""
        )
        print(text, end="", flush=True)
    return stream.response


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    if len(arguments) not in (2, 5):
        print(__doc__, file=sys.stderr)
        return 2
    file, text, *server = arguments
    with nullcontext() if server else ReplayServer().add(load_capture(RECORDED), times=None) as recorded:
        provider, url, model = server if recorded is None else ("vllm", recorded.url, "recorded")
        try:
            chat(Path(file), text, Endpoint(provider, base_url=url, model=model))
        except CrosswalkError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
