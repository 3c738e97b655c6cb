from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from api import cli, client
from api.version import installed
from db import events, latency_tables, revision, searches
from db.engine import transaction
from db.reports import NewReport
from db.reports import insert as insert_reports
from nas.config.request import SearchRequest
from nas.config.task import ServeMode
from nas.cost import LatencyEntry, LatencyTable, entry_key
from nas.presets import PRESETS
from nas.specs.backbone import network_parameters
from tests.api.running import TINY, Claimed, Running, record
from tests.api.test_client import store
from tests.api.test_show import RESULT


class Done(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Done]
URL = "http://127.0.0.1:9"  # nobody answers there


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command line in this process, with the data folder of the test."""
    monkeypatch.setenv("BLOCKWRIGHT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")

    def command(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["blockwright", *arguments])
        capfd.readouterr()
        try:
            with patch.dict(os.environ):  # `dispatch` changes what its children inherit
                cli.main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        found = capfd.readouterr()
        return Done(status, found.out, found.err)

    return command


@pytest.fixture
def served(run: Run, service: Running) -> Run:
    """The command line beside a running service, whose address it finds in the data folder."""
    (service.data_dir / "address").write_text(f"{service.url}\n")
    return run


def write(path: Path, value: Any) -> str:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version") == Done(0, f"blockwright {installed()}\n", "")


def test_help_names_every_command(run: Run) -> None:
    text = run("--help").out
    service = ["serve", "api", "dispatch", "migrate"]
    searches = ["submit", "watch", "list", "show", "cancel", "resume", "delete", "download", "search", "presets"]
    machine = ["ray-node", "health", "doctor", "rule", "rules", "derive"]
    for command in service + searches + machine:
        assert f" {command} " in text


def test_a_search_is_submitted_listed_shown_and_cancelled(served: Run, tmp_path: Path) -> None:
    submitted = served("submit", write(tmp_path / "request.json", TINY))
    search_id = submitted.out.strip()
    assert submitted.status == 0
    listed = served("list").out
    assert search_id in listed
    assert "queued" in listed
    assert json.loads(served("list", "--json").out)[0]["id"] == search_id
    assert f"tiny  {search_id}  queued" in served("show").out
    assert json.loads(served("show", search_id, "--json").out)["id"] == search_id
    assert "cancelled" in served("cancel", search_id).out
    assert "queued" in served("resume", search_id).out
    served("cancel")
    assert served("delete", search_id).out == f"deleted {search_id}\n"
    assert served("list").out == "there is no search; submit one with `blockwright submit FILE`\n"


def test_a_request_comes_from_standard_input_too(served: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(TINY).encode())))
    assert served("submit", "-").status == 0


def test_presets_are_listed_with_their_size_and_printed_whole(run: Run) -> None:
    listed = run("presets")
    lines = {line.split()[0]: line.split() for line in listed.out.splitlines() if line.strip()}
    assert set(PRESETS) <= set(lines)
    assert lines["transformer-xl-base"][1:3] == ["32", "512"]
    request = SearchRequest.model_validate({"preset": "gmlp-base"})
    units = request.network_config(["sgu"] * 48, 257)  # no attention, no FFN: its first candidate in all slots
    assert lines["gmlp-base"][3:5] == [f"{network_parameters(units) / 1e6:.1f}", "M"]
    whole = json.loads(run("presets", "bert-base").out)
    assert whole == SearchRequest.model_validate({"preset": "bert-base"}).model_dump(mode="json")


def test_a_preset_is_submitted_as_it_is_or_with_a_file_over_it(served: Run, tmp_path: Path) -> None:
    assert served("submit", "--preset", "gmlp-small").status == 0
    request = json.loads(served("show", "--json").out)["request"]
    assert request == json.loads(served("presets", "gmlp-small").out) | {"task": request["task"]}  # names the text
    file = write(tmp_path / "request.json", {"name": "wider", "space": {"d_model": 128}, "preset": None})
    assert served("submit", file, "--preset", "gmlp-small").status == 0
    request = json.loads(served("show", "--json").out)["request"]
    assert (request["name"], request["preset"]) == ("wider", "gmlp-small")
    assert (request["space"]["d_model"], request["space"]["n_slots"]) == (128, 8)


def test_a_text_is_uploaded_for_a_preset_that_reads_it(served: Run, tmp_path: Path) -> None:
    text = write(tmp_path / "novels.txt", "A man walked. " * 5000)
    refused = served("submit", "--preset", "decoder", "--data", f"novels={text}").err
    assert "--data novels is not what the request reads" in refused
    file = write(tmp_path / "request.json", {"task": {"dataset": "novels"}})
    assert served("submit", file, "--preset", "decoder", "--data", f"novels={text}").status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["presets", "bert"], "unknown preset 'bert'; known: quickstart, decoder, "),
        (["submit", "--preset", "bert"], "/preset: unknown preset 'bert'; known: quickstart, decoder, "),
        (["search", "--local", "--preset", "bert"], "/preset: unknown preset 'bert'; known: quickstart, decoder, "),
        (["submit"], "give a FILE with the request, or --preset NAME; `blockwright presets` lists the names"),
        (["search", "--local"], "give a FILE with the request, or --preset NAME"),
        (["search", "--preset", "par"], "a service takes `blockwright submit --preset par`"),
        (
            ["submit", "mine.json", "--preset", "par"],
            "--preset par is not the preset of mine.json, 'decoder'",
        ),
    ],
    ids=" ".join,
)
def test_a_preset_that_cannot_be_used_is_one_line(
    served: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "mine.json", {"preset": "decoder"})
    done = served(*arguments)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_running_search_shows_its_probabilities_and_the_leaders(served: Run, claimed: Claimed) -> None:
    claimed.report([0, 5, 10])
    text = served("show", claimed.id).out
    assert "probabilities of seed 0 after 10 steps" in text
    assert text.split("\n")[2].split() == ["slot", "A", "attention", "F", "ffn", ".", "identity"]
    assert text.split("\n")[3].split() == ["1", "0.750", "-4.5", "0.125", "+0.5", "0.125", "+2.0"]
    assert "undecided" in text
    assert " A  ? " in text


def test_a_search_under_way_shows_its_warnings_and_what_each_block_buys(
    served: Run, service: Running, claimed: Claimed
) -> None:
    claimed.report([0])
    space = SearchRequest.model_validate(TINY).space
    serve = ServeMode(batch=1, query_length=16)
    entries = {
        entry_key(candidate, space, serve): LatencyEntry(
            block=candidate.block, options=candidate.options, median_ms=ms, iqr_ms=0, n_runs=1
        )
        for candidate, ms in zip(space.candidates, (0.5, 0.25, 0.0), strict=True)
    }
    table = LatencyTable(
        device={}, serve=serve, entries=entries, offset_ms=1, scale=1, error_median=0, error_p95=0, n_networks=1
    )
    pruned = replace(
        record(20),
        phase="prune",
        path=[0, 1],
        effect_nats=[[0.0, 0.0625, 0.125], [None, 0.0, 0.001]],
        effect_se=[[0.0, 0.01, 0.01], [None, 0.0, 0.002]],
        warning="slot 1: ranking flipped",
    )
    foreseen = {"memory_bytes": 210_000_000, "seconds": 85.2, "prune_seconds": 0.0}
    with transaction(service.engine) as connection:
        events.append(connection, claimed.lease, [("estimate", foreseen)])
        latency_tables.put(connection, claimed.lease, table_id=table.id, key="k", body=table.model_dump(mode="json"))
        insert_reports(connection, claimed.lease, [NewReport(claimed.trial, pruned)])
    without = served("show", claimed.id).out
    with transaction(service.engine) as connection:
        request = searches.get(connection, claimed.id).request
        searches.set_inputs(connection, claimed.lease, request=request, latency_table_id=table.id, slot_ms=[])
    text = served("show", claimed.id).out
    assert "warning: slot 1: ranking flipped" in text
    assert "\nabout 85 s and 210 MB a trial\n" in text
    assert "what each block of seed 0 buys after 20 steps" in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "1 A attention +0.1250 ± 0.0100 +0.500 -4.5 identity" in rows
    assert "2 F ffn +0.0010 ± 0.0020 +0.250 +0.0 identity undecided" in rows
    assert "A F?" in rows
    assert "1 A attention +0.0625 ± 0.0100 - -4.5 ffn" in [" ".join(line.split()) for line in without.splitlines()]


def test_watching_ends_with_the_result(served: Run, service: Running, claimed: Claimed) -> None:
    claimed.report([0, 5])
    with transaction(service.engine) as connection:
        searches.set_result(connection, claimed.lease, RESULT)
        searches.finish(connection, claimed.lease, "succeeded")
    done = served("watch")
    assert done.status == 0
    assert "succeeded" in done.out
    assert "cannot tell: the interval holds both better and worse" in done.out
    assert "cannot tell" in served("show").out


def test_watching_a_search_that_fails_ends_with_its_reason_and_status_1(
    served: Run, service: Running, claimed: Claimed
) -> None:
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "failed", reason="nothing moved beyond noise")
    done = served("watch", claimed.id)
    assert done.status == 1
    assert "failed: nothing moved beyond noise" in done.out


def test_a_reason_gives_no_orders_to_a_terminal(served: Run, service: Running, claimed: Claimed) -> None:
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "failed", reason="ray said \x1b[31mno\x1b[0m\x1b]0;title\x07")
    assert served("show").out.splitlines()[0].endswith(": ray said no]0;title")


def test_submitting_may_watch_at_once(
    served: Run, service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "request.json", TINY)
    original = client.Client.submit

    def submit_and_cancel(self: client.Client, body: Any, **options: Any) -> Any:
        found = original(self, body, **options)
        self.cancel(found["id"])
        return found

    monkeypatch.setattr(client.Client, "submit", submit_and_cancel)
    done = served("submit", path, "--watch")
    assert done.status == 1
    assert "cancelled" in done.out


def test_an_export_is_downloaded(served: Run, service: Running, claimed: Claimed, tmp_path: Path) -> None:
    assert "has no export yet" in served("download", claimed.id, str(tmp_path)).err
    store(service, claimed, b"zip" * 100)
    target = tmp_path / "here"
    target.mkdir()
    done = served("download", claimed.id, str(target))
    assert (done.status, done.out.strip()) == (0, str(target / "export.zip"))
    refused = served("download", claimed.id, str(tmp_path / "missing" / "x.zip"))
    assert refused.status == 2
    assert f"cannot write {tmp_path}/missing/x.zip: no such file or directory" in refused.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"space": {"candidates": ["sgux"]}},
            "unknown candidate block 'sgux'; known: attention, ffn, identity, mgk, sgu",
        ),
        ({"space": {"n_slots": 0}}, "/space/n_slots: input should be greater than or equal to 1, got 0"),
        ({"space": {"n_slots": 10000}}, "/space/n_slots: input should be less than or equal to 512, got 10000"),
        ({"space": {"n_heads": 3}}, "d_model 64 is not divisible by n_heads 3"),
        ({"depth": 3}, "/depth: unknown field 'depth'"),
        ('{"name": NaN}', "NaN is not JSON; numbers must be finite"),
        ("[]", "holds no JSON object"),
        ("{", "not JSON: expecting property name enclosed in double quotes at line 1 column 2"),
    ],
)
@pytest.mark.parametrize("command", ["submit", "search"])
def test_a_bad_request_is_one_line_and_status_2(
    served: Run, tmp_path: Path, command: str, content: Any, message: str
) -> None:
    local = ["--local"] if command == "search" else []
    done = served(command, write(tmp_path / "request.json", content), *local)
    assert done.status == 2
    assert done.err.startswith("blockwright: ")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert not (tmp_path / "searches").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submit", "missing.json"], "cannot read missing.json: no such file or directory"),
        (["show", "x"], "no service runs on the data folder"),
        (["show", "./folder", "--url", URL], "'./folder' is no id of a search; `blockwright list` shows them"),
        (["cancel", "a\nb", "--url", URL], "'a\\nb' is no id of a search"),
        (["delete", "../version", "--url", URL], "'../version' is no id of a search"),
        (["list", "--url", "http://127.0.0.1:x"], "'http://127.0.0.1:x' is no address of a service: invalid port: 'x'"),
        (["serve", "--data-dir", "/dev/null/x"], "cannot use /dev/null/x: not a directory"),
        (["dispatch", "--data-dir", "/dev/null/x"], "cannot use /dev/null/x: not a directory"),
        (["list", "--url", "http://127.0.0.1:9"], "nothing answers at http://127.0.0.1:9"),
        (["list", "--url", "127.0.0.1:9"], "'127.0.0.1:9' is no address of a service"),
        (["search", "missing.json"], "a service takes `blockwright submit missing.json`"),
        (["serve", "--host", "0.0.0.0"], "refusing to listen on 0.0.0.0 without a token; set BLOCKWRIGHT_TOKEN"),
        (["api", "--port", "70000"], "/port: input should be less than or equal to 65535, got 70000"),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, list) else "",
)
def test_a_command_that_cannot_work_says_why_in_one_line(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    if arguments[0] == "submit":
        write(tmp_path / "address", "http://127.0.0.1:9")
    done = run(*arguments)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_no_search_to_show_says_how_to_make_one(served: Run) -> None:
    assert served("show").err == "blockwright: there is no search yet; submit one with `blockwright submit FILE`\n"


def test_a_wrong_state_is_one_line(served: Run, service: Running, claimed: Claimed) -> None:
    with transaction(service.engine) as connection:
        searches.finish(connection, claimed.lease, "succeeded")
    done = served("cancel", claimed.id)
    assert done.status == 2
    assert "succeeded" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "novels"], "--data 'novels' is not NAME=FILE"),
        (["--data", "No=x"], "--data 'No=x' is not NAME=FILE"),
        (["--data", "novels=missing.txt"], "--data novels: no file 'missing.txt'"),
        (["--data", "novels=missing.csv?text=body"], "--data novels: no file 'missing.csv'"),
        (["--data", f"novels={__file__}?body"], "--data novels: 'body' says nothing; behind FILE may stand ?OPTION"),
        (
            ["--data", f"novels={__file__}?texts=body"],
            "--data novels: unknown option 'texts'; behind FILE may stand "
            "?OPTION=VALUE, joined by &, of format, text, pair, label, words, labels, part",
        ),
        (["--table", "missing.json"], "cannot read missing.json"),
    ],
)
def test_a_local_search_refuses_files_that_are_none(run: Run, tmp_path: Path, options: list[str], message: str) -> None:
    done = run("search", write(tmp_path / "request.json", TINY), "--local", *options)
    assert done.status == 2
    assert message in done.err


def test_migrating_twice_is_harmless(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert "database is at revision" in run("migrate", "--data-dir", str(tmp_path / "new")).err


@pytest.mark.parametrize("command", ["serve", "api", "dispatch"])
@pytest.mark.parametrize(
    ("database", "message"),
    [
        ("mysql://x/y", "unknown database 'mysql'; known: sqlite, postgresql"),
        ("secret", "the database URL cannot be read; it looks like sqlite:////var/lib/blockwright.db"),
    ],
)
def test_a_database_that_is_none_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, database: str, message: str
) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_DATABASE_URL", database)
    done = run(command)
    assert done.status == 2
    assert done.err.startswith(f"blockwright: {message}")
    assert done.err.count("\n") == 1
    assert "secret" not in done.err


def test_a_database_that_does_not_answer_stops_the_dispatcher_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_DATABASE_URL", "postgresql://user:secret@127.0.0.1:9/name")
    done = run("dispatch")
    assert done.status == 2
    assert done.err.startswith("blockwright: cannot read the database: ")
    assert done.err.count("\n") == 1
    assert "secret" not in done.err


def test_a_database_that_cannot_be_migrated_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOCKWRIGHT_DATABASE_URL", "mysql://x/y")
    done = run("migrate")
    assert done.status == 2
    assert "cannot migrate the database: unknown database 'mysql'; known: sqlite, postgresql" in done.err


def test_a_database_of_a_newer_version_is_one_line(run: Run, service: Running) -> None:
    with transaction(service.engine) as connection:
        connection.exec_driver_sql(f"UPDATE {revision.VERSION_TABLE} SET version_num = '9999'")
    done = run("migrate")
    assert done.status == 2
    assert done.err.startswith("blockwright: cannot migrate the database: the database is at revision 9999 of a newer")
    assert done.err.count("\n") == 1


def test_texts_are_added_listed_shown_and_removed(served: Run, tmp_path: Path) -> None:
    text = write(tmp_path / "novels.txt", "A man \x1b[31m walked. " * 500)
    assert served("datasets", "add", "novels", text) == Done(
        0, "novels: 10,000 bytes, 1 line, sha256 d15b9f70c29a\n", ""
    )
    assert served("datasets", "add", "novels", text).status == 0
    listed = served("datasets").out
    assert listed == served("datasets", "list").out
    assert "novels" in listed
    assert "10,000" in listed
    assert [each["name"] for each in json.loads(served("datasets", "--json").out) if not each["built_in"]] == ["novels"]
    shown = served("datasets", "show", "novels").out
    assert shown.startswith("novels  uploaded text, 10,000 bytes, 1 line\nsha256 d15b9f70c29a")
    assert "A man  walked." in shown
    assert "\x1b[31m" not in shown
    assert json.loads(served("datasets", "show", "novels", "--json").out)["n_bytes"] == 10_000
    assert "size known after its first use" in served("datasets", "show", "python-docs").out
    assert served("datasets", "remove", "novels") == Done(0, "removed novels\n", "")
    assert served("datasets", "remove", "novels").err == "blockwright: no dataset 'novels'\n"


def test_a_text_comes_from_standard_input(served: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"word " * 100)))
    assert served("datasets", "add", "words", "-").out.startswith("words: 500 bytes")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["add", "No!", "x"], "'No!' is no name of a dataset; names are lower-case letters, digits, '_', '.' and '-'"),
        (["show", "../x"], "'../x' is no name of a dataset; names are lower-case letters, digits, '_', '.' and '-'"),
        (["add", "x", "absent.txt"], "no file 'absent.txt'; give a file, a folder of text files, --hub or --from-disk"),
        (["add", "x"], "nothing to add; give one of PATH, --hub and --from-disk"),
        (["add", "x", "y", "--hub", "z"], "PATH and --hub to add; give one of PATH, --hub and --from-disk"),
        (["add", "x", "--hub", "z", "--as", "mrpc"], "--as mrpc is for a PATH with the published files; leave it out"),
        (
            ["add", "x", "short.txt", "--split", "train"],
            "--split train is for --hub and --from-disk; give --part for the part of a file's rows",
        ),
        (["add", "x", "--from-disk", "no"], "no folder 'no'; give one that Dataset.save_to_disk has written"),
        (
            ["add", "x", "short.txt", "--as", "enwik8"],
            "short.txt has 5 bytes, enwik8 has 100,000,000; give the published file, unpacked",
        ),
        (
            ["add", "x", "ids.bin"],
            'ids.bin: token ids need ids.json beside them, such as {"dtype": "uint16", "vocab_size": 50257, "eos_id": '
            "50256}; or give --dtype and --vocab-size",
        ),
        (["add", "x", "odd.bin"], "odd.json: unknown member 'vocab'; known: dtype, vocab_size, eos_id"),
        (["add", "x", "short.txt"], "short.txt: the text has 5 bytes; the smallest windows and batches need 100"),
        (["add", "x", "binary.txt"], "binary.txt: the file is binary: NUL byte at offset 1; give UTF-8 text"),
        (["add", "python-docs", "short.txt"], "dataset 'python-docs' is built in; take another name"),
        (["show", "novels"], "no dataset 'novels'"),
    ],
)
def test_a_text_that_cannot_be_used_is_one_line(
    served: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_bytes(b"words")
    (tmp_path / "binary.txt").write_bytes(b"a\0" * 100)
    for name in ("ids", "odd"):
        (tmp_path / f"{name}.bin").write_bytes(bytes(1000))
    (tmp_path / "odd.json").write_text('{"vocab": 9}')
    assert served("datasets", *arguments) == Done(2, "", f"blockwright: {line}\n")


def test_submit_tells_the_fields_of_the_rows_it_uploads_first(served: Run, tmp_path: Path) -> None:
    rows = "".join(f"{number % 2},{'a man walked ' * 9}{number}\n" for number in range(200))
    table = write(tmp_path / "novels.csv", "stars,body\n" + rows)
    request = write(tmp_path / "request.json", {**TINY, "task": {**TINY["task"], "dataset": "novels"}})
    refused = served("submit", request, "--data", f"novels={table}")
    assert "the header has no field 'text', it has: 'stars', 'body'" in refused.err
    assert served("submit", request, "--data", f"novels={table}?text=body&label=stars").status == 0
    assert "200 documents, 2 labels" in served("datasets", "show", "novels").out


def test_submit_uploads_the_text_first(served: Run, tmp_path: Path) -> None:
    text = write(tmp_path / "novels.txt", "A man walked. " * 500)
    request = write(tmp_path / "request.json", {**TINY, "task": {**TINY["task"], "dataset": "novels"}})
    search_id = served("submit", request, "--data", f"novels={text}").out.strip()
    shown = json.loads(served("datasets", "show", "novels", "--json").out)
    assert shown["in_use_by"] == [search_id]
    assert f"in use by {search_id}" in served("datasets", "show", "novels").out
    assert "name-taken" not in served("submit", request, "--data", f"novels={text}").err
    refused = served("submit", request, "--data", f"other={text}")
    line = "blockwright: --data other is not what the request reads; its task.dataset is 'novels'\n"
    assert refused == Done(2, "", line)


def test_a_log_is_printed(served: Run, service: Running, submitted: dict[str, Any]) -> None:
    folder = service.data_dir / "searches" / submitted["id"]
    folder.mkdir(parents=True)
    (folder / "runner.log").write_text("first\nsecond\n")
    assert served("log") == Done(0, "first\nsecond\n", "")
    assert served("log", submitted["id"], "--tail", "7").out == "second\n"
