"""Python client of the REST service: `Client("http://127.0.0.1:8400").submit(request)`.

Answers are the service's own JSON as dicts; what a field means stands in /api/v1/openapi.json. Only httpx is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

PREFIX = "/api/v1"
TERMINAL_EVENTS = frozenset({"succeeded", "failed", "cancelled"})
RECONNECT_S = 0.5
BLOCK = 256 * 1024  # bytes of a file sent at once
READ_S = 7200  # the service reads a file before it answers, and gives up earlier than this
DERIVE_S = 180  # the service takes on what it can answer within two minutes, one derivation after the other
SILENCE_S = 45  # streams carry a comment every 15 s, so a longer silence means a dead connection


class ClientError(Exception):
    """The service refused: `code` is stable, the message is for people.

    Args:
        status: HTTP status.
        code: the problem's code, such as `wrong-state`.
        detail: one line.
        errors: field errors with JSON pointers.
        conflict: of `infeasible`, the fewest constraints that cannot be met together, with what could be.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        errors: list[dict[str, str]] | None = None,
        conflict: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.errors = errors or []
        self.conflict = conflict or []


class Unreachable(Exception):
    """Nothing answers at the address."""


class Client:
    """One service, one connection pool; use it in a `with` block or close it.

    Args:
        base_url: such as http://127.0.0.1:8400.
        token: bearer token, where the service asks for one.
        patience_s: how long an event stream tries to reconnect before it gives up.
        transport: another way to carry requests, for tests.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        patience_s: float = 60,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # trust_env off: a proxy from the environment must not see searches on loopback.
            self._http = httpx.Client(
                base_url=base_url, headers=headers, timeout=30, trust_env=False, transport=transport
            )
        except httpx.InvalidURL as error:
            raise Unreachable(f"{base_url!r} is no address of a service: {str(error).lower()}") from None
        self._patience_s = patience_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def submit(self, request: Mapping[str, Any], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Queue a search. A lost answer is asked for again under the same key, so that nothing is queued twice.

        Args:
            request: JSON of a search request.
            idempotency_key: of the caller, to make a retry across processes safe; None draws one.
        """
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        for wait_s in (0.5, 2.0):
            try:
                return self._json("POST", "/searches", json=request, headers=headers)
            except Unreachable:
                time.sleep(wait_s)
        return self._json("POST", "/searches", json=request, headers=headers)

    def estimate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What a request would take: space, trials, memory and time; nothing is queued."""
        return self._json("POST", "/searches:estimate", json=request)

    def get(self, search_id: str) -> dict[str, Any]:
        return self._json("GET", f"/searches/{search_id}")

    def list(self, *, state: str | None = None) -> Iterator[dict[str, Any]]:
        """All searches, newest first, page by page."""
        yield from self._pages("/searches", {"state": state} if state else {})

    def cancel(self, search_id: str) -> dict[str, Any]:
        return self._json("POST", f"/searches/{search_id}/cancel")

    def resume(self, search_id: str) -> dict[str, Any]:
        return self._json("POST", f"/searches/{search_id}/resume")

    def delete(self, search_id: str) -> None:
        self._send("DELETE", f"/searches/{search_id}")

    def trials(self, search_id: str) -> Any:
        return self._json("GET", f"/searches/{search_id}/trials")["items"]

    def reports(self, search_id: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """Rows of all trials by step; `trial`, `first_step`, `last_step` and `stride` choose among them."""
        yield from self._pages(f"/searches/{search_id}/reports", filters)

    def probabilities(self, search_id: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """softmax(alpha) and its z, one (slots x candidates) matrix a stored step each; filters as in `reports`.

        With `evidence=True` also updates and effects of each cell.
        """
        yield from self._pages(f"/searches/{search_id}/probabilities", filters)

    def warnings(self, search_id: str) -> Any:
        """Events of what the search warned of, oldest first; the newest 200."""
        return self._json("GET", f"/searches/{search_id}/warnings")["items"]

    def derive(self, search_id: str, constraints: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        """The best architectures of each seed under other constraints, from what the search has stored; no training.

        Args:
            search_id: of a search that has reported, running or not.
            constraints: JSON of `nas.config.constraints.Constraints`; None: none.
            options: `objective` (probability or nats), `k`, `front` ({"cost", "points"}), `sample` and `seeds`.

        Raises:
            ClientError: of code `infeasible`, with `conflict`, where no architecture meets the constraints.
        """
        body = {**({} if constraints is None else {"constraints": constraints}), **options}
        return self._json("POST", f"/searches/{search_id}/derive", json=body, timeout=DERIVE_S)

    def architectures(self, search_id: str) -> Any:
        return self._json("GET", f"/searches/{search_id}/architectures")["items"]

    def architecture(self, architecture_id: str) -> dict[str, Any]:
        return self._json("GET", f"/architectures/{architecture_id}")

    def rules(self, search_id: str) -> Any:
        return self._json("GET", f"/searches/{search_id}/rules")["items"]

    def rule(self, rule_id: str) -> dict[str, Any]:
        return self._json("GET", f"/rules/{rule_id}")

    def apply_rule(self, rule_id: str, n_slots: int, **options: Any) -> dict[str, Any]:
        """The layout of a rule at any depth and width, what it costs, and the request that trains it.

        Args:
            rule_id: of a rule that a search found, or `par` or `sandwich`.
            n_slots: depth.
            options: `ratio`, `spacing` and `d_model`; `zone` of a found one; `search` of par and sandwich, whose space
                is meant.
        """
        return self._json("POST", f"/rules/{rule_id}/apply", json={"n_slots": n_slots, **options})

    def artifacts(self, search_id: str) -> Any:
        return self._json("GET", f"/searches/{search_id}/artifacts")["items"]

    def result(self, search_id: str) -> dict[str, Any]:
        """The result of a search that has succeeded: what result.json holds."""
        return self._json("GET", f"/searches/{search_id}/report")

    def report(self, search_id: str, *, format: str = "html") -> str:
        """A report of a search, complete or not: one HTML page, or `format="markdown"`."""
        return self._send("GET", f"/searches/{search_id}/report", params={"format": format}).text

    def catalog(self) -> dict[str, Any]:
        return self._json("GET", "/catalog")

    def log(self, search_id: str, *, tail: int = 20_000) -> str:
        """The end of what the search's runner has printed, at most `tail` bytes of it."""
        return self._send("GET", f"/searches/{search_id}/log", params={"tail": tail}).text

    def datasets(self) -> Any:
        return self._json("GET", "/datasets")["items"]

    def dataset(self, name: str) -> dict[str, Any]:
        return self._json("GET", f"/datasets/{quote(name, safe='')}")

    def remove_dataset(self, name: str) -> None:
        self._send("DELETE", f"/datasets/{quote(name, safe='')}")

    def add_dataset(
        self,
        name: str,
        source: Path | Iterable[bytes],
        *,
        progress: Callable[[int, int | None], None] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Upload a dataset or a tokenizer.json, block by block; the same content under the same name changes nothing.

        It returns once the service has read it, which takes a while for gigabytes.

        Args:
            name: what requests will call it.
            source: a file, or the bytes in blocks.
            progress: told of the bytes sent so far, and of all if that is known.
            options: how it is to be read: `format`, `compression`, `text`, `label` and the others that
                POST /api/v1/datasets has; `file` is the file's own name unless given.

        Raises:
            ClientError: the service refuses, such as `name-taken`, `bad-row` or `too-large`, or has received another
                file than was sent.
            OSError: the file cannot be read.
        """
        digest = hashlib.sha256()

        def watched(blocks: Iterable[bytes], total: int | None) -> Iterator[bytes]:
            sent = 0
            for block in blocks:
                digest.update(block)
                yield block
                sent += len(block)
                if progress is not None:
                    progress(sent, total)
            if progress is not None and total is None:
                progress(sent, sent)  # known at the end

        params = {"name": name, **{key: value for key, value in options.items() if value is not None}}
        headers = {"Content-Type": "application/octet-stream"}
        arguments: dict[str, Any] = {"timeout": httpx.Timeout(30, write=60, read=READ_S), "headers": headers}
        if isinstance(source, Path):
            params.setdefault("file", source.name)
            with source.open("rb") as file:
                total = os.fstat(file.fileno()).st_size
                headers["Content-Length"] = str(total)
                content = watched(iter(lambda: file.read(BLOCK), b""), total)
                answer = self._send("POST", "/datasets", params=params, content=content, **arguments)
        else:
            answer = self._send("POST", "/datasets", params=params, content=watched(source, None), **arguments)
        found = _object(answer)
        if answer.headers.get("Received-SHA256") != digest.hexdigest():
            raise ClientError(502, "broken-upload", f"sha256 of {name} differs; remove it and upload it again")
        return found

    def latency_tables(self) -> Any:
        return self._json("GET", "/latency-tables")["items"]

    def latency_table(self, table_id: str) -> dict[str, Any]:
        return self._json("GET", f"/latency-tables/{table_id}")

    def add_latency_table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        return self._json("POST", "/latency-tables", json=table)

    def version(self) -> dict[str, Any]:
        return self._json("GET", "/version", prefix="")

    def download(self, search_id: str, path: Path, *, kind: str = "export") -> Path:
        """Fetch an artifact of a search, check its sha256, and put it in place only when it is whole.

        Args:
            path: file to write, or a folder that gets the artifact under its own name.

        Raises:
            ClientError: the search has no such artifact yet, or what arrived is not what was announced.
        """
        artifacts = self.artifacts(search_id)
        found = [each for each in artifacts if each["kind"] == kind]
        if not found:
            others = ", ".join(sorted({each["kind"] for each in artifacts}))
            rest = f"; it has: {others}" if others else " yet; it comes when the search has succeeded"
            raise ClientError(404, "not-found", f"search {search_id} has no {kind}{rest}")
        artifact = found[-1]
        # Its last part alone: whoever answers must not choose the folder.
        target = path / Path(artifact["name"]).name if path.is_dir() else path
        partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
        digest = hashlib.sha256()
        try:
            with self._http.stream("GET", f"{PREFIX}/artifacts/{artifact['id']}") as answer, partial.open("wb") as file:
                if not answer.is_success:
                    answer.read()
                    raise _refusal(answer)
                for block in answer.iter_bytes():
                    digest.update(block)
                    file.write(block)
            if digest.hexdigest() != artifact["sha256"]:
                raise ClientError(502, "broken-download", f"sha256 of {artifact['name']} differs; download it again")
            partial.replace(target)
        except httpx.TransportError as error:
            raise Unreachable(f"the download broke off: {error or type(error).__name__}") from None
        finally:
            partial.unlink(missing_ok=True)
        return target

    def events(self, search_id: str, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every event beyond number `after`, as it happens, until the search ends.

        A broken connection is taken up again after the last number seen: nothing is missed, nothing comes twice.

        Raises:
            Unreachable: no connection for `patience_s`.
            ClientError: the service refuses, such as for an unknown id.
        """
        alive_at = time.monotonic()

        def alive() -> None:
            nonlocal alive_at
            alive_at = time.monotonic()

        while True:
            try:
                for event in self._stream(search_id, after, alive):
                    if event is None:
                        return
                    after = event["number"]
                    yield event
                    alive()  # however long the caller took
                    if event["type"] in TERMINAL_EVENTS and self.get(search_id)["last_event"] == after:
                        return
            except (httpx.TransportError, Unreachable) as error:
                if time.monotonic() - alive_at > self._patience_s:
                    raise Unreachable(f"no connection for {self._patience_s:.0f} s: {error}") from None
            except ClientError as error:
                if error.status != 503 or time.monotonic() - alive_at > self._patience_s:
                    raise
            time.sleep(RECONNECT_S)

    def _stream(self, search_id: str, after: int, alive: Callable[[], None]) -> Iterator[dict[str, Any] | None]:
        """One connection's events; None says that the search is over and nothing is left to send.

        Each line, of a ping too, says by `alive` that the service is there: a search may tell nothing for minutes.
        """
        url = f"{PREFIX}/searches/{search_id}/events"
        headers = {"Last-Event-ID": str(after)}
        with self._http.stream("GET", url, headers=headers, timeout=httpx.Timeout(30, read=SILENCE_S)) as answer:
            if answer.status_code == httpx.codes.NO_CONTENT:
                yield None
                return
            if not answer.is_success:
                answer.read()
                raise _refusal(answer)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise _foreign(answer)
            data: list[str] = []
            alive()
            for line in answer.iter_lines():
                alive()
                if line.startswith("data: "):
                    data.append(line[6:])
                elif not line and data:
                    event: dict[str, Any] = json.loads("\n".join(data))
                    data = []
                    yield event

    def _pages(self, path: str, filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        params = dict(filters)
        while True:
            page = self._json("GET", path, params=params)
            yield from page["items"]
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

    def _json(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        return _object(self._send(method, path, **arguments))

    def _send(self, method: str, path: str, *, prefix: str = PREFIX, **arguments: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, prefix + path, **arguments)
        except httpx.TransportError as error:
            raise Unreachable(f"nothing answers at {self._http.base_url}: {error or type(error).__name__}") from None
        if not answer.is_success:
            raise _refusal(answer)
        return answer


def _refusal(answer: httpx.Response) -> ClientError:
    try:
        problem = answer.json()
        return ClientError(
            answer.status_code, problem["code"], problem["detail"], problem.get("errors"), problem.get("conflict")
        )
    except (ValueError, KeyError, TypeError):  # not our service, or a proxy before it
        return ClientError(answer.status_code, "http-error", f"answer {answer.status_code} from {answer.url}")


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _foreign(answer)
    return value


def _foreign(answer: httpx.Response) -> ClientError:
    return ClientError(answer.status_code, "http-error", f"what answers at {answer.url} is no Blockwright")
