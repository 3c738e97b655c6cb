"""Rows of a parquet file, batch by batch; pyarrow is imported here alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nas.ingest.errors import BadRow, Damaged
from nas.ingest.fields import Fields, doubled, find_fields
from nas.ingest.options import Options
from nas.ingest.rows import Rows
from nas.ingest.stream import BLOCK
from nas.text import NotUtf8, TooShort

_MOST_ROWS = 256  # of a batch: values that the file holds once, and names in many rows, are many in memory
_BATCH = 4 << 20  # bytes of a batch, by the file's own account
_WANTED = {
    "text": "strings",
    "label": "strings, integers or booleans",
    "words": "lists of strings",
    "labels": "lists of strings, integers or booleans",
}


def parquet_rows(raw: Path, options: Options, progress: Callable[[int], None] | None = None) -> tuple[Fields, Rows]:
    """The columns that the options name, as dicts of plain values.

    Raises:
        BadRow: there is no such column, two of one name, or one of another type.
        Damaged: no parquet, or corrupt; also while the rows are drawn, as
        NotUtf8: a string that is none.
        TooShort: no row.
    """
    import pyarrow.parquet as parquet

    with _damage():  # column chunks are read by the block: a group of rows may be as large as the file
        file = parquet.ParquetFile(raw, buffer_size=BLOCK, pre_buffer=False)
        schema = file.schema_arrow
    if (name := doubled(schema.names)) is not None:
        raise BadRow(f"the file has two columns {name!r:.80}; give each column a name of its own")
    fields = find_fields(schema.names, options, "the schema")
    _check_types(fields, schema)
    if not file.metadata.num_rows:
        raise TooShort("the file has columns but no rows; give one document a row")
    return fields, _rows(file, fields, raw.stat().st_size, progress)


def _check_types(fields: Fields, schema: Any) -> None:
    roles = {"text": fields.text, "pair": fields.pair, "label": fields.label, "words": fields.words}
    for role, name in {**roles, "labels": fields.labels, "part": fields.part}.items():
        if name is None:
            continue
        found = schema.field(name).type
        wanted = "text" if role in ("pair", "part") else role
        if not _fits(found, wanted):
            raise BadRow(f"column {name!r} holds {found!s:.80}; {role} wants {_WANTED[wanted]}: convert the column")


def _fits(found: Any, wanted: str) -> bool:
    from pyarrow import types

    if wanted in ("words", "labels"):
        is_list = types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found)
        return is_list and _fits(found.value_type, "text" if wanted == "words" else "label")
    if types.is_dictionary(found):
        return _fits(found.value_type, wanted)
    is_text = types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    return bool(is_text or (wanted == "label" and (types.is_integer(found) or types.is_boolean(found))))


def _rows(file: Any, fields: Fields, size: int, progress: Callable[[int], None] | None) -> Rows:
    metadata = file.metadata
    n_bytes = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    batch_rows = max(1, min(_MOST_ROWS, _BATCH * metadata.num_rows // max(n_bytes, 1)))
    names = list(fields.names)
    n_rows = 0
    with _damage(), file:
        for batch in file.iter_batches(batch_rows, columns=names, use_threads=False):
            columns = [_values(batch.column(name), name, n_rows) for name in names]
            for number, values in enumerate(zip(*columns, strict=True), n_rows + 1):
                yield number, dict(zip(names, values, strict=True))
            n_rows += batch.num_rows
            if progress is not None:
                progress(size * n_rows // metadata.num_rows)


def _values(column: Any, name: str, before: int) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        number = before + 1 + next(index for index in range(len(column)) if not _is_unicode(column[index]))
        raise NotUtf8(f"column {name!r} of row {number:,} is not UTF-8; save it as UTF-8") from None
    return values


def _is_unicode(value: Any) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _damage() -> Iterator[None]:
    """pyarrow's many errors as one."""
    import pyarrow

    try:
        yield
    except MemoryError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Damaged(f"the parquet file is damaged: {reason:.200}; copy or write it again") from None
