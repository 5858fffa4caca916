"""Describes bytes that are not JSON, for error messages."""

from __future__ import annotations

from typing import Final

from crosswalk.lazy import pattern

_SIGNATURES: Final = (
    (b"\x1f\x8b", "gzip, to be unpacked first"),
    (b"\x28\xb5\x2f\xfd", "zstd, to be unpacked first"),
    (b"BZh", "bzip2, to be unpacked first"),
    (b"\xfd7zXZ\x00", "xz, to be unpacked first"),
    (b"PK\x03\x04", "a ZIP archive, to be unpacked first"),
    (b"%PDF-", "a PDF"),
    (b"PAR1", "Parquet"),
    (b"\xff\xfe", "UTF-16, to be written as UTF-8"),
    (b"\xfe\xff", "UTF-16, to be written as UTF-8"),
)
_ZLIB: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_HTTP: Final = pattern(rb"HTTP/[0-9.]+ [0-9]{3}|[A-Za-z-]{2,40}: [^\r\n]*\r\n[A-Za-z-]{2,40}: ")
_HTML: Final = pattern(rb"<(?:!doctype html|html|head|body|!--)", 0x2)  # whatever the case
_BASE64: Final = pattern(rb"(?:[A-Za-z0-9+/_-]{4}){6,}[A-Za-z0-9+/_-]*={0,2}\s*")


def looks_like(data: bytes) -> str | None:
    """Return a short description of *data* with advice, or ``None`` if nothing is recognized.

    It quotes no data. Pass only data that is not JSON.
    """
    start = data[:1024]
    for signature, name in _SIGNATURES:
        if start.startswith(signature):
            return name
    if start.startswith(_ZLIB):
        return "zlib (deflate), to be unpacked first"
    if b"\0" in start[:4] and start[:200].count(b"\0") * 3 > len(start[:200]):
        return "UTF-16, to be written as UTF-8"
    text = start.lstrip()
    if _HTTP.match(text):
        return "HTTP headers before a body"
    if _HTML.match(text):
        return "HTML, a page of a proxy perhaps"
    if text.startswith(b"<"):
        return "XML"
    return "base64, to be decoded first" if _BASE64.fullmatch(text) else None
