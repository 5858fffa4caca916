"""Every word that the official SDKs let a client say, sent to every server, and judged.

``FORMAT.jsonl`` has the rows of a format, one a line, and ``sdks.json`` what must be known of other SDKs. Both come from the
SDKs' own types: ``scripts/request_words.py`` writes them. The rest is written by hand, and uses nothing of the library but
``read_request`` and ``build_http_request``:

==============  ==========================================================================
``places.py``   what is the same meaning in several formats, and where each has it
``bodies.py``   what a body says, and who says it in the conversation
``shapes.py``   what the target's own types do not allow
``judge.py``    what became of a row before a target
``allowed.json``  how many cells may still be wrong; ``python -m request_matrix`` shows them
==============  ==========================================================================
"""
