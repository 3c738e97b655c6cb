"""Uploads of datasets and tokenizers: received, read by a process of its own, then kept, or refused without a trace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import fields
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import ClientDisconnect

from api import dataset_schemas, views
from api.deps import AppSettings, Database, Uploads, tagged
from api.errors import ApiError
from api.routes.datasets import is_built_in
from api.upload import Upload, stored_at, too_large
from db import datasets
from db.engine import reading, transaction
from db.errors import NameTaken, NotFound
from nas.errors import DataError
from nas.ingest.card import Card
from nas.ingest.options import Compression, Dtype, Format, Options
from nas.text import NAME

router = APIRouter(prefix="/api/v1/datasets", tags=["datasets"])
log = logging.getLogger("blockwright.api")

MEDIA_TYPES = ("text/plain", "application/octet-stream")
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")  # what curl's -F and -d send
BLOCK = 256 * 1024
RECEIVED = "Received-SHA256"  # header of an answer: what arrived, so that a client can tell whether it is what it sent
_BODY = {"schema": {"type": "string", "format": "binary"}}
Field = Annotated[str | None, Query(min_length=1, max_length=200)]
FileName = Annotated[
    str | None, Query(max_length=255, description="the file's name, which tells format and compression where they do")
]


def _options(
    file: FileName = None,
    format: Annotated[Format, Query(description="auto: by the file's name or first bytes")] = "auto",
    compression: Annotated[Compression, Query(description="auto: by the file's name or first bytes")] = "auto",
    text: Annotated[Field, Query(description="field of the rows that holds a document; default: text")] = None,
    pair: Annotated[Field, Query(description="field that holds a second text, as in paraphrases")] = None,
    label: Annotated[
        Field, Query(description="field that holds the document's label; default: label, where rows have it")
    ] = None,
    words: Annotated[Field, Query(description="field that holds a list of words, instead of a text")] = None,
    labels: Annotated[Field, Query(description="field that holds a label for each word")] = None,
    corpus: Annotated[Field, Query(description="standard corpus whose conventions hold, such as enwik8")] = None,
    ends: Annotated[
        str | None,
        Query(
            pattern=r"^\d{1,15},\d{1,15}$",
            description="of a text: byte offsets at which its training and its validation part end, as 900,950",
        ),
    ] = None,
    dtype: Annotated[Dtype | None, Query(description="of tokens, little-endian")] = None,
    vocab_size: Annotated[int | None, Query(ge=2, le=2**32, description="of tokens: ids are below it")] = None,
    eos_id: Annotated[int | None, Query(ge=0, lt=2**32, description="of tokens: the id that ends a document")] = None,
    part: Annotated[
        Field,
        Query(description="part that all rows belong to: train, validation or test; default: as their field says"),
    ] = None,
) -> Options:
    """How the file is to be read. Raises: WrongOptions: they do not go together."""
    guessed = Options.guess(file or "")
    options = Options(
        format=guessed.format if format == "auto" else format,
        compression=guessed.compression if compression == "auto" else compression,
        text=text,
        pair=pair,
        label=label,
        words=words,
        labels=labels,
        corpus=corpus,
        ends=None if ends is None else _two(ends),
        dtype=dtype,
        vocab_size=vocab_size,
        eos_id=eos_id,
        part=part,
    )
    options.check()
    return options


def _two(ends: str) -> tuple[int, int]:
    first, _, second = ends.partition(",")
    return int(first), int(second)


@router.post(
    "",
    status_code=201,
    response_model=dataset_schemas.Dataset,
    max_body_size=2**62,  # in place of the service's: `max_dataset_bytes` holds here, at once and while it is read
    responses={200: {"model": dataset_schemas.Dataset, "description": "the name stands for this very content already"}},
    openapi_extra={"requestBody": {"required": True, "content": dict.fromkeys(MEDIA_TYPES, _BODY)}},
)
async def add_dataset(
    name: Annotated[str, Query(pattern=NAME, description="what requests will call it")],
    options: Annotated[Options, Depends(_options)],
    request: Request,
    engine: Database,
    settings: AppSettings,
    uploads: Uploads,
    file: FileName = None,
) -> Response:
    """Upload a dataset or a tokenizer.json: the file is the body itself, with a length or in chunks.

    A text in UTF-8; rows as JSON lines, CSV, TSV or Parquet; token ids; gzip and zstd of these. It is read before the
    answer comes, which can take minutes for gigabytes. A name means one content until it is removed.
    """
    _check_parameters(request)
    _check_media_type(request)
    declared = _declared_length(request)
    if declared is not None and declared > settings.max_dataset_bytes:
        raise too_large(settings.max_dataset_bytes, declared)
    if is_built_in(name):
        raise NameTaken(f"dataset {name!r} is built in; take another name")
    with uploads.one():
        upload = await run_in_threadpool(Upload, settings.data_dir, settings.max_dataset_bytes, options)
        try:
            async for block in _blocks(request, settings.upload_patience_s):
                is_first = not upload.n_bytes
                await run_in_threadpool(upload.write, block)
                if is_first and upload.is_plain and declared is not None and options.ends is None:
                    await run_in_threadpool(_refuse_another_length, engine, name, declared)
            await run_in_threadpool(upload.finish)
            card = await _read(request, upload, settings.read_timeout_s)
            added = await run_in_threadpool(_keep, engine, name, upload, card)
        except DataError as error:
            raise ApiError(422, error.code, _of_file(file, str(error))) from None
        except ApiError as error:
            error.detail = _of_file(file, error.detail) if error.status == 422 else error.detail
            raise
        finally:
            upload.discard()  # here and now: where the api is stopping, no thread is to be had
    answer = tagged(request, views.dataset(name, added.dataset, n_uses=0))
    answer.status_code = 201 if added.is_new else 200
    answer.headers["Location"] = f"/api/v1/datasets/{name}"
    answer.headers[RECEIVED] = upload.sha256
    return answer


def _of_file(file: str | None, detail: str) -> str:
    """With the file's name before it, in which a client may have put anything."""
    name = "".join(each if each.isprintable() else "?" for each in PurePath(file or "").name)
    return f"{name}: {detail}" if name else detail


def _check_parameters(request: Request) -> None:
    """A misspelt `label` would be a dataset without labels, and nobody told."""
    known = ("name", "file", *(each.name for each in fields(Options)))
    for name in request.query_params:
        if name not in known:
            raise ApiError(422, "invalid-request", f"unknown parameter {name[:60]!r}; known: {', '.join(known)}")


def _check_media_type(request: Request) -> None:
    media_type, _, parameters = request.headers.get("content-type", MEDIA_TYPES[0]).lower().partition(";")
    if media_type.strip() not in MEDIA_TYPES:
        detail = f"the body must be {' or '.join(MEDIA_TYPES)}, not {media_type.strip()[:60] or 'nothing'}"
        if media_type.strip() in FORMS:
            detail += "; send the file itself as the body, as `curl -T FILE -X POST` does"
        raise ApiError(415, "unsupported-media-type", detail)
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(' "')
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise ApiError(415, "unsupported-media-type", f"the text must be UTF-8, not {charset[:60]}")
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        detail = f"the file must be sent as it is, not {encoding[:60]}; a compressed file is told by ?compression="
        raise ApiError(415, "unsupported-media-type", detail)


def _declared_length(request: Request) -> int | None:
    """Content-Length, which the server has checked to be a number; None for a body in chunks."""
    length = request.headers.get("content-length")
    return int(length) if length is not None and "transfer-encoding" not in request.headers else None


def _refuse_another_length(engine: Engine, name: str, n_bytes: int) -> None:
    """Said before gigabytes are sent: a file of another length is another file."""
    with reading(engine) as connection:
        try:
            taken = datasets.get(connection, name)
        except NotFound:
            return
    if taken.n_bytes != n_bytes:
        raise NameTaken(
            f"dataset {name!r} holds other content, {taken.n_bytes:,} bytes; take another name, or remove it first"
        )


async def _blocks(request: Request, patience_s: float) -> AsyncIterator[bytes]:
    """The body in blocks; only the last one is shorter than BLOCK."""
    chunks = request.stream()
    n_bytes, block, more = 0, bytearray(), True
    while more:
        try:
            async with asyncio.timeout(patience_s):
                while more and len(block) < BLOCK:
                    chunk = await anext(chunks, None)
                    more = chunk is not None
                    block += chunk or b""
        except TimeoutError:
            detail = f"less than {BLOCK} bytes came in {patience_s:g} s, after {n_bytes} bytes; send the file again"
            raise ApiError(408, "upload-incomplete", detail) from None
        except ClientDisconnect:
            raise _broken_off(n_bytes + len(block)) from None
        n_bytes += len(block)
        yield bytes(block)
        block.clear()


async def _read(request: Request, upload: Upload, timeout_s: float) -> Card:
    """Have it read, for as long as somebody waits for the answer."""
    work = asyncio.ensure_future(run_in_threadpool(upload.read, timeout_s))
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise _broken_off(upload.n_bytes)
        return work.result()
    finally:
        gone.cancel()
        if not work.done():
            upload.stop()
            await asyncio.wait((work,))  # its files are its own until then
            work.exception()  # that it was stopped is known


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _broken_off(n_bytes: int) -> ApiError:
    detail = f"the connection broke off after {n_bytes} bytes; send the file again"
    return ApiError(400, "upload-incomplete", detail)


def _keep(engine: Engine, name: str, upload: Upload, card: Card) -> datasets.Added:
    """The row and the file, both or neither. (Killed in between, a file stays that no name leads to.)"""
    try:
        with transaction(engine) as connection:
            return datasets.add(
                connection,
                name=name,
                fingerprint=card.fingerprint,
                n_bytes=card.n_bytes,
                path=stored_at(card),
                card=card.to_json(),
                put_in_place=lambda: upload.put_in_place(card),
            )
    except (SQLAlchemyError, ApiError):
        _take_back(engine, upload, card)
        raise


def _take_back(engine: Engine, upload: Upload, card: Card) -> None:
    """Remove the file unless a row names it: a commit may have gone through though its answer was lost, and another
    upload of the same content may have come between. Where that cannot be known, the file stays."""
    try:
        with transaction(engine) as connection:
            if datasets.unused(connection, card.fingerprint):
                upload.take_back()
    except SQLAlchemyError as error:
        log.warning("the file of a refused upload is kept: %s", str(error).splitlines()[0])
