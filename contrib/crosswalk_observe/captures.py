"""Recordings of any SDK's traffic as captures of the conformance kit."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from crosswalk import CrosswalkError
from crosswalk.testing import Recording, store_capture
from crosswalk_observe.record import ObservedExchange
from crosswalk_observe.secrets import MARK

__all__ = ["CaptureFolder"]


class CaptureFolder:
    """A sink that makes a capture of each exchange: the files of request and answer, and a line in ``MANIFEST.jsonl``.

    A case is called ``PROVIDER_ID``, and ``PROVIDER_ID_stream`` for a stream. What no file may hold is not recorded, and the
    watcher logs that: an exchange that quotes a credential of its request, or holds what looks like a key of anybody's.

    Args:
        folder: where they go; it is made where it is missing.
    """

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)

    def __call__(self, record: ObservedExchange) -> None:
        """Write *record*.

        Raises:
            CrosswalkError: it holds what no file may hold.
            OSError: it cannot be written; nothing of it is then there.
        """
        if record.status is None or not record.gives_answer:
            return
        request = record.request.body or b"null"
        recording = Recording(
            is_stream=record.is_stream,
            method=record.method,
            path=urlsplit(record.url).path,
            headers={},
            request=request,
            status=record.status,
            content_type=record.headers.get("content-type"),
            body=bytearray(record.body),
            is_complete=record.is_complete,
        )
        if recording.holds_key or MARK.encode() in record.body + request:
            raise CrosswalkError("it holds what looks like a key, and is not recorded")
        case = f"{record.provider}_{record.id[:12]}" + "_stream" * record.is_stream
        store_capture(self._folder, case, recording, provider=record.provider)
