"""For some planted mistakes, the check that finds each and what it says."""

from __future__ import annotations

FOUND = [
    ("rows: log probabilities are rounded", "digits kept", "the log probability -0.12 is not a number of the payload"),
    ("rows: a log probability of 0 is none", "digits kept", "0.0 in its place is not read as a log probability"),
    ("rows: every zone is taken for one", "times kept", "the time in another zone, is read as"),
    ("rows: fractions of times are cut", "times kept", "the time with a fraction, is read as"),
    ("named: milliseconds are taken for microseconds", "times kept", "the time is read in a wrong unit"),
    ("named: empty arguments are text", "arguments told apart", "the arguments {} are read as 'null', and not marked"),
    ("rows: too many requests is the server's fault", "failures are errors", "HTTP 429 is read as server"),
    ("rows: too many requests is not to be repeated", "failures are errors", "HTTP 429 is read as an error that may not be retried"),
    ("named: a missing key is to be repeated", "failures are errors", "HTTP 401 is read as an error that may be retried"),
    ("named: a failure in a 200 is an answer", "failures are errors", "in a 200, it ends as stop"),
    ("rows: cached tokens are not in the prompt", "parts within wholes", "3, and the parts that it includes are 6"),
    ("binary: the checksum is not looked at", "own framing is exact", "another byte changes nothing"),
    ("binary: what follows a frame is passed over", "own framing is exact", "bytes that are not a frame behind the answer"),
    ("binary: a cut frame is passed over", "own framing is exact", "half a frame behind the answer"),
    ("binary: large frames are refused", "own framing is exact", "a frame of 150000 bytes is refused"),
    ("binary: bytes that are no UTF-8 are dropped", "own framing is exact", "bytes in it that are not UTF-8 are dropped"),
    ("named: thoughts are the text", "text as it was sent", "reasoning is given as the text of the answer"),
    ("lookalike: the cached tokens are left", "counts are the provider's", "it is not counted in usage.cached_tokens"),
    ("binary: what is not known is dropped", "nothing lost", "an unknown field of the object changes nothing"),
    ("rows: a failure is passed over", "never silently wrong", 'its line in the manifest says "complete": false'),
    ("lookalike: the tokens of log probabilities are stripped", "digits kept", "the token 'There' is not a text of the payload"),
    ("lookalike: milliseconds are taken for seconds", "times kept", "the time of the answer is left in the extensions"),
    ("rows: the text is a thought", "text as it was sent", "the text of an answer that ended by itself is given as reasoning"),
    ("lookalike: thoughts are joined by a line", "text as it was sent", "between it and the next one, '\\n' is put in"),
    ("binary: payloads are stripped", "own framing is exact", "a frame with another text is refused"),
]  # fmt: skip
