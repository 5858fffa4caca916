"""Compaction: the small files of a finished job, put together into files of 256 MB with the same rows in the same order.

A new file is written beside the columns, then the manifest names it, then the files that it replaces are deleted, and it
is moved to its place. So no row is there twice at any moment, and a compaction that was killed is completed by the next run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from crosswalk.commands import Progress, UsageError
from crosswalk_batch.engines import StoppedError
from crosswalk_batch.inputs import MIB
from crosswalk_batch.manifest import Manifest, Part, manifest_at, read_manifest
from crosswalk_batch.parts import Output
from crosswalk_batch.places import Compacted
from crosswalk_batch.storage import Store, StoredFile

FILE_BYTES: Final = 256 * MIB
_ROW_GROUP: Final = 128 * MIB
"""The bytes of a row group in memory."""
_AGAIN: Final = "delete what is left of it, and run the job again, which writes it anew"
_DRAFT: Final = "compacting.parquet"


@attrs.frozen
class _Source:
    """A file to put together with others.

    Attributes:
        file: the file.
        rows: the files of parts in it and their numbers of rows, or empty if it is one of them.
    """

    file: StoredFile
    rows: list[tuple[str, int]]


def compact(output: Output) -> tuple[int, int]:
    """Put the files of *output*, of a finished job, together. Returns their number before and after.

    Raises:
        UsageError: the job is not done, or writes JSON Lines.
        StoppedError: a file is missing or damaged, or none can be written.
    """
    described, _ = read_manifest(output.folder)
    if described["output"]["format"] != "parquet":
        raise UsageError(f"{output.folder}: --compact is for Parquet; it holds JSON Lines")
    with manifest_at(output.folder, described) as manifest:
        if not manifest.total.is_done:
            raise UsageError(f"{output.folder}: its job is not done; run that first, then compact it")
        try:
            settle(output.store, manifest)
            if damage := next(output.damages(file for part in manifest.parts for file in part.files), None):
                raise StoppedError(f"{output.folder}: {damage}; {_AGAIN}")
            folders = _sources(manifest.parts)
            groups = [group for folder in folders for group in _groups(folder)]
            before = sum(map(len, folders))
            with Progress("compacting", sum(map(_size, groups)), in_bytes=True) as progress:
                for group in groups:
                    _put_together(group, output.store, manifest)
                    progress.advance(_size(group))
        except OSError as error:
            raise StoppedError(
                f"{output.folder}: {error.strerror or error}; the same command goes on"
            ) from None
    return before, before - sum(len(group) - 1 for group in groups)


def settle(store: Store, manifest: Manifest) -> None:
    """Complete a compaction that the manifest names, if there is one."""
    if (pending := manifest.pending) is not None:
        for name in pending.replaces:
            store.delete(name)
        if store.size(_DRAFT) is not None:
            store.move(_DRAFT, pending.file.name)
        manifest.settle()


def _sources(parts: list[Part]) -> list[list[_Source]]:
    """Return the files of *parts* in their order, for each folder."""
    folders: dict[str, list[_Source]] = {}
    for part in parts:
        for file in part.files:
            sources = folders.setdefault(file.name.rpartition("/")[0], [])
            if not sources or sources[-1].file != file.on_disk:
                sources.append(_Source(file.on_disk, []))
            if file.within is not None:
                sources[-1].rows.append((file.name, file.within.rows))
    return list(folders.values())


def _groups(sources: list[_Source]) -> Iterator[list[_Source]]:
    """Yield the consecutive *sources* that become one file."""
    group: list[_Source] = []
    for source in sources:
        if _size([*group, source]) > FILE_BYTES:
            if len(group) > 1:
                yield group
            group = []
        group.append(source)
    if len(group) > 1:
        yield group


def _size(sources: list[_Source]) -> int:
    return sum(source.file.size for source in sources)


def _put_together(sources: list[_Source], store: Store, manifest: Manifest) -> None:
    rows: list[tuple[str, int]] = []
    waiting: list[pa.Table] = []
    sink = pa.BufferOutputStream()
    writer: pq.ParquetWriter | None = None
    for source in sources:
        data = store.read(source.file.name)
        if StoredFile.of(source.file.name, data) != source.file:
            raise StoppedError(f"{source.file.name} is damaged; {_AGAIN}")
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            rows += source.rows or [(source.file.name, file.metadata.num_rows)]
            writer = writer or pq.ParquetWriter(sink, file.schema_arrow, compression="zstd")
            for number in range(file.num_row_groups):
                waiting.append(file.read_row_group(number, use_threads=False))
                if sum(table.nbytes for table in waiting) >= _ROW_GROUP:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting.clear()
    assert writer is not None
    if waiting:
        writer.write_table(pa.concat_tables(waiting))
    writer.close()
    whole = memoryview(sink.getvalue())
    store.write(_DRAFT, whole)
    replaces = tuple(source.file.name for source in sources)
    manifest.compact(Compacted(StoredFile.of(_name_of(rows), whole), tuple(rows), replaces))
    settle(store, manifest)


def _name_of(rows: list[tuple[str, int]]) -> str:
    """Return the name of a file with the rows of these files: ``compact-000000-000031.parquet``."""
    folder, _, first = rows[0][0].removesuffix(".parquet").rpartition("/part-")
    last = rows[-1][0].removesuffix(".parquet").rpartition("/part-")[2]
    return f"{folder}/compact-{first}-{last}.parquet"
