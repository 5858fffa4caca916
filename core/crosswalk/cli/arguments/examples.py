"""Examples of each command, for its help."""

from __future__ import annotations

from typing import Final

__all__ = ["EXAMPLES"]

EXAMPLES: Final = {
    "normalize": (
        "crosswalk normalize answer.response.json",
        "crosswalk normalize --provider openai log.jsonl > canonical.jsonl",
        "curl -s localhost:11434/api/chat -d @question.json | crosswalk normalize",
    ),
    "providers": ("crosswalk providers",),
    "check": ("crosswalk check --provider ollama captures/",),
    "explain": ("crosswalk explain answer.response.json",),
    "table": ("crosswalk table --html > crosswalk.html",),
    "parse": ("crosswalk parse answer.txt --schema my_module:Weather",),
    "diff": (
        "crosswalk normalize log/ --output stored/",
        "crosswalk diff log/ --stored stored/",
    ),
    "new-plugin": ("crosswalk new-plugin acme",),
    "convert": ("crosswalk convert answer.response.json --to openai-chat",),
    "ask": (
        'crosswalk ask --provider ollama --model llama3.2 "Why is the sky blue?"',
        "crosswalk ask --provider vllm --model m --base-url http://gpu:8000 - < question.txt",
    ),
    "chat": ("crosswalk chat --provider ollama --model llama3.2 --session talk.json",),
    "record": ('crosswalk record --provider ollama --model llama3.2 --output captures --name sky "Why?"',),
    "demo": ("crosswalk demo",),
    "report": (
        "crosswalk report log.jsonl --by model,day",
        "crosswalk report log.jsonl --html > report.html",
        "crosswalk report --demo",
    ),
    "samples": ("crosswalk samples samples/",),
    "completion": (
        "crosswalk completion bash > ~/.local/share/bash-completion/completions/crosswalk",
        "crosswalk completion zsh > ~/.zfunc/_crosswalk",
        "crosswalk completion fish > ~/.config/fish/completions/crosswalk.fish",
    ),
}
"""The lines to type, by command."""
