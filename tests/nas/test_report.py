"""Reports over everything that a search may leave: whole, partial, of older versions, deep, hostile."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nas.report import words
from nas.report.compose import compose
from nas.report.data import Evidence, ReportData, Trial
from nas.report.document import Part, Picture, Table, refs
from nas.report.doubts import doubts
from nas.report.markdown import markdown
from nas.report.page import html
from nas.report.style import CSS, POLICY
from tests import reported
from tests.api.test_show import RESULT
from tests.parsed_html import Parsed

WHOLE = reported.everything()


def changed(data: ReportData, **result: Any) -> ReportData:
    """With other fields of its result; None takes one away."""
    found = {**data.found, **result}
    return dataclasses.replace(data, result={name: value for name, value in found.items() if value is not None})


def classification() -> ReportData:
    accuracy = {
        "name": "accuracy",
        "unit": "share",
        "lower_is_better": False,
        "derived": 0.91,
        "parent": 0.9,
        "majority": 0.5,
    }
    unit = "bits per label"
    return dataclasses.replace(
        changed(
            WHOLE,
            comparisons=[{**each, "unit": unit} for each in WHOLE.found["comparisons"]],
            quality={**WHOLE.found["quality"], "unit": unit},
            metrics=[accuracy],
            lengths=reported.lengths(unit),
        ),
        request=reported.request(6, objective="sequence_classification", dataset="reviews"),
    )


def older() -> ReportData:
    """A result of the first version, of which only some rows are there."""
    return ReportData("old", "old", "succeeded", "service", {"name": "old"}, RESULT)


def partial(state: str, **more: Any) -> ReportData:
    running = [dataclasses.replace(each, state="running") for each in WHOLE.trials if each.kind == "search"]
    return dataclasses.replace(
        WHOLE, state=state, result=None, trials=tuple(running), architectures=(), rules=(), **more
    )


def queued() -> ReportData:
    return ReportData(reported.SEARCH, "made up", "queued", "service", reported.request(6))


def alone() -> ReportData:
    """One seed, and no baseline asked for."""
    nothing = dict.fromkeys(
        ("advice", "comparisons", "retrained", "rules", "quality", "latency", "latencies", "parent", "samples")
    )
    return changed(reported.everything(n_seeds=1), **nothing)


def attacked() -> ReportData:
    def bad(value: Any) -> Any:
        return reported.hostile(value)

    return dataclasses.replace(
        WHOLE,
        name=bad(WHOLE.name),
        request=bad(WHOLE.request),
        result=bad(WHOLE.result),
        warnings=bad(WHOLE.warnings),
        trials=tuple(dataclasses.replace(each, state="failed", reason=reported.HOSTILE) for each in WHOLE.trials),
        architectures=tuple(dataclasses.replace(each, slots=bad(each.slots)) for each in WHOLE.architectures),
        rules=tuple(dataclasses.replace(each, statement=bad(each.statement)) for each in WHOLE.rules),
        tables=tuple(dataclasses.replace(each, body=bad(each.body)) for each in WHOLE.tables),
    )


def no_numbers() -> ReportData:
    return dataclasses.replace(
        WHOLE,
        result=reported.without_numbers(WHOLE.result),
        tables=tuple(dataclasses.replace(each, body=reported.without_numbers(each.body)) for each in WHOLE.tables),
    )


CASES = {
    "whole": WHOLE,
    "classification": classification(),
    "older": older(),
    "one seed": alone(),
    "not numbers": no_numbers(),
    "nothing in it": dataclasses.replace(WHOLE, result={"search": None, "probabilities": 3}, request={}, trials=()),
    "512 slots": reported.everything(512, 2),
    "one slot": reported.everything(1, 2),
    "running": partial("running", stage="searching"),
    "failed": partial("failed", reason="no seed has learnt anything"),
    "queued": queued(),
    "hostile": attacked(),
    "long name": dataclasses.replace(WHOLE, name="n" * 120),
    "folder": dataclasses.replace(WHOLE, origin="folder", search_id="local-1", created_at=None),
}
every_case = pytest.mark.parametrize("name", CASES)


@cache
def page_of(name: str) -> str:
    return html(CASES[name])


@cache
def text_of(name: str) -> str:
    return markdown(CASES[name])


@cache
def parsed(name: str) -> Parsed:
    return Parsed(page_of(name))


@every_case
def test_the_page_is_well_formed_and_refers_to_nothing_outside(name: str) -> None:
    page = parsed(name)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        assert tag not in ("script", "img", "link", "iframe", "object", "base", "form", "use", "image")
        for key, value in attributes.items():
            assert not key.startswith("on"), (tag, key)
            assert key not in ("src", "style", "xlink:href", "srcset", "action"), (tag, key)
            if key == "href":
                assert value.startswith("#")
                assert value[1:] in ids, value
            elif key == "aria-labelledby":
                assert set(value.split()) <= set(ids)


@every_case
def test_the_same_data_give_the_same_bytes(name: str) -> None:
    again = dataclasses.replace(CASES[name])
    assert html(again) == page_of(name)
    assert markdown(again) == text_of(name)


@every_case
def test_every_picture_is_named_and_described_and_has_its_numbers(name: str) -> None:
    text = page_of(name)
    page = parsed(name)
    assert all(each["title"] and each["desc"] for each in page.pictures)
    for figure in re.findall(r"<figure>.*?</figure>", text, re.DOTALL):
        assert figure.count("<svg ") == 1
        assert "<table>" in figure


@every_case
def test_every_id_that_is_told_is_one_of_the_data(name: str) -> None:
    told = set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", page_of(name)))
    assert told <= set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", repr(CASES[name])))


@every_case
def test_every_row_of_a_table_has_a_cell_for_each_column(name: str) -> None:
    for table in parsed(name).tables:
        assert len({len(row) for row in table.rows}) == 1, table.caption
    widths: set[int] = set()
    for line in text_of(name).split("\n"):
        if line.startswith("| "):
            widths.add(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)))
            assert len(widths) == 1, line
        else:
            widths = set()


@every_case
def test_no_number_is_shown_that_is_none(name: str) -> None:
    text = " ".join(parsed(name).words).split("The exact request")[0]
    assert not re.search(r"\b(nan|inf|None|True|False)\b", text)


def test_a_whole_report_has_every_section_in_order() -> None:
    found = re.findall(r'<section id="([a-z]+)"', html(WHOLE))
    assert found == [
        "comparisons", "architectures", "front", "probabilities", "buys", "rules", "lengths", "curves", "samples",
        "warnings", "doubts", "machine", "request", "origins",
    ]  # fmt: skip
    assert re.findall(r"^## (.*)$", markdown(WHOLE), re.MULTILINE) == [
        each.replace("&#x27;", "'") for each in re.findall(r"<h2>(.*?)</h2>", html(WHOLE))
    ]


def test_ids_stand_beside_figures_in_short_and_whole_at_the_end() -> None:
    page = Parsed(html(WHOLE))
    origins = {row[2]: row for row in page.table("every id in this report").rows[1:]}
    for trial in WHOLE.trials:
        assert origins[trial.id][3] == f"GET /api/v1/searches/{reported.SEARCH}/reports?trial={trial.id}"
    assert origins[reported.own_id(200)][3] == f"GET /api/v1/architectures/{reported.own_id(200)}"
    assert origins[reported.own_id(300)][3] == f"GET /api/v1/rules/{reported.own_id(300)}"
    assert origins[reported.TABLE][3] == f"GET /api/v1/latency-tables/{reported.TABLE}"
    shorts = [row[1] for row in origins.values()]
    assert len(shorts) == len(set(shorts))
    assert origins[reported.own_id(300)][1] == "0000012c"
    assert "GET /api/v1/searches/" + reported.SEARCH + "/probabilities?evidence=true" in markdown(WHOLE)


def tables_of(parts: Sequence[Part]) -> Iterator[Table]:
    for part in parts:
        if isinstance(part, Picture):
            yield from part.tables
        elif isinstance(part, Table):
            yield part


@every_case
def test_every_table_of_figures_has_the_ids_that_they_come_from(name: str) -> None:
    for section in compose(CASES[name]).sections[:-1]:
        for table in tables_of(section.parts):
            if table.figures:
                assert refs(table.caption) or all(map(refs, table.rows)), table.caption


def test_comparisons_latency_bounds_and_lengths_have_both_networks_beside_them() -> None:
    def short(*numbers: int) -> str:
        return ", ".join(reported.own_id(number)[-8:] for number in numbers)

    page, table = Parsed(html(WHOLE)), reported.TABLE[:8]
    assert [row[-1] for row in page.table("the first minus the second").rows[1:]] == [
        short(200, 201), short(200, 202), short(200, 203), short(204, 201)
    ]  # fmt: skip
    timed = page.table("timed in turns")
    assert f"milliseconds of derived and interleaved ({short(200, 201)})" in timed.caption
    assert [row[-1] for row in timed.rows[1:]] == [table]
    assert f"architecture ({short(200)}, {table}) does with them" in page.table("the budget's bounds").caption
    trials = [f"{name}: {short(200 + n, *range(1000 + 10 * n, 1006 + 10 * n))}"
              for n, name in enumerate(("derived", "interleaved"))]  # fmt: skip
    for caption in ("the field's own figures", "windows of each length", "loss by position"):
        assert page.table(caption).caption.endswith("; ".join(trials)), caption
    assert "mean over windows and 6 seeds" in page.table("loss by position").caption
    begins = text_of("whole").partition("## ")[0]
    assert f"6 paired seeds) (`{reported.own_id(204)[-8:]}`, `{reported.own_id(201)[-8:]}`)." in begins
    assert f"0.750 to 0.806) (`{reported.own_id(200)[-8:]}`, `{reported.own_id(201)[-8:]}`, `{table}`)." in begins


def test_what_has_no_id_of_its_own_is_of_the_search() -> None:
    page = Parsed(html(older()))
    assert page.table("the first minus the second").rows[1][-1] == "old"
    assert page.table("timed in turns").rows[1][-1] == words.NONE, "its one table has no id"


def test_each_serve_mode_has_its_own_table() -> None:
    first = {"mode": "prefill", "batch": 8, "query_length": 128, "memory_length": 0}
    second = {"mode": "decode", "batch": 1, "query_length": 8}
    listed = [{"id": reported.TABLE, "serve": first}, {"id": "b2" * 16, "serve": second}]
    timing = WHOLE.found["latency"]
    modes = [{"serve": second, **timing}, {"serve": first, **timing}, {"serve": {**second, "batch": 2}, **timing}]
    data = changed(WHOLE, search={**WHOLE.found["search"], "latency_tables": listed}, latencies=modes)
    rows = Parsed(html(data)).table("timed in turns").rows[1:]
    assert [row[-1] for row in rows] == ["b2b2b2b2", "a1a1a1a1", words.NONE]
    older_table = {**WHOLE.found["search"], "latency_table": "c3" * 16}
    data = dataclasses.replace(changed(WHOLE, search=older_table), tables=())
    assert [row[-1] for row in Parsed(html(data)).table("timed in turns").rows[1:]] == ["c3c3c3c3"]


def test_a_metric_has_an_interval_only_of_values_that_the_result_keeps() -> None:
    bits, accuracy = WHOLE.found["metrics"][0], classification().found["metrics"][0]
    table = Parsed(html(changed(WHOLE, metrics=[{**bits, "parent": 2.383}, accuracy]))).table("the field's own figures")
    assert table.rows[1][2:4] == ["2.371 (2.3610 to 2.3810)", "2.383 (2.3730 to 2.3930)"]
    assert table.rows[2][2:5] == ["0.91", "0.9", "+0.010"]
    told = "means of 6 seeds; in brackets a 95% t interval over the seeds, which says nothing of other test examples"
    assert f"{told}; none of one seed, nor where an older result keeps no value of each" in table.caption
    sure = {"derived_half": 0.012, "parent_half": 0.02, "difference": 0.01, "low": -0.004, "high": 0.024}
    whole = Parsed(html(changed(WHOLE, metrics=[{**accuracy, **sure}]))).table("the field's own figures")
    assert whole.rows[1][2:5] == ["0.91 (0.898 to 0.922)", "0.9 (0.880 to 0.920)", "+0.010 (-0.004 to +0.024)"]
    assert f"{told};" in whole.caption
    assert "an older result" not in whole.caption
    of_another = Parsed(html(WHOLE)).table("the field's own figures").rows[1]
    assert of_another[3] == "2.42", "the retrainings' mean is 2.383, so their interval is not of this figure"
    alone = Parsed(page_of("classification")).table("the field's own figures")
    assert "an older result keeps no value of each" in alone.caption


def test_a_folder_tells_the_files_of_each_section_and_of_each_statement() -> None:
    text = text_of("folder")
    for line in (
        "- Against the baselines: `result.json`",
        "- Architecture probabilities: `result.json`, `trials/search-*/reports.jsonl`",
        "- Curves: `trials/*/reports.jsonl`",
        "- The exact request: `request.json`",
    ):
        assert f"\n{line}\n" in text
    unfinished = markdown(dataclasses.replace(CASES["running"], origin="folder"))
    assert "\n- Architecture probabilities: `trials/search-*/reports.jsonl`\n" in unfinished
    assert "- Summary: `request.json`\n" in unfinished
    without = {name: value for name, value in reported.STATEMENTS[0].items() if name != "id"}
    own = dataclasses.replace(changed(CASES["folder"], rules=[without]), rules=())
    rows = Parsed(html(own)).table("statements over the seeds' derived stacks").rows
    assert rows[1][-1] == ", ".join(reported.own_id(100 + seed)[-8:] for seed in range(6))


def test_a_folder_is_referred_to_by_its_files() -> None:
    page = Parsed(html(CASES["folder"]))
    assert {row[3] for row in page.table("every id in this report").rows[1:]} == {
        "result.json", "table.json, tables/", *(f"trials/{trial.id}/reports.jsonl" for trial in WHOLE.trials)
    }  # fmt: skip
    assert "/api/v1" not in html(CASES["folder"])


SMALL = reported.everything(2, 1, 2)


@settings(max_examples=30)
@given(
    st.floats(-9, 9).map(lambda value: round(value, 8)),
    st.floats(0, 0.5),
    st.floats(0.5, 9),
    st.integers(1, 64),
)
def test_numbers_of_the_tables_are_those_of_the_result(difference: float, half: float, mean: float, seeds: int) -> None:
    told = reported.comparison("derived", "interleaved", difference, half, n_seeds=seeds)
    listed = [reported.retrained(name, n, mean + n, 5.0 + n, 6) for n, name in enumerate(("derived", "interleaved"))]
    page = Parsed(html(changed(SMALL, comparisons=[told], retrained=listed)))
    (row,) = page.table("the first minus the second").rows[1:]
    digits = len(row[3].partition(".")[2])
    close = pytest.approx(difference, abs=0.51 * 10**-digits)
    assert float(row[3]) == close
    low, _, high = row[4].partition(" to ")
    assert float(low) == pytest.approx(told["low"], abs=0.51 * 10**-digits)
    assert float(high) == pytest.approx(told["high"], abs=0.51 * 10**-digits)
    assert (row[5], row[7]) == (told["verdict"], str(seeds))
    for shown, kept in zip(page.table("each layout retrained").rows[1:], listed, strict=True):
        assert float(shown[1]) == pytest.approx(kept["mean"], abs=0.51e-4)
        assert float(shown[5]) == pytest.approx(kept["predicted_ms"], abs=0.51e-3)
        assert shown[6] == "1,234,567"


def test_probabilities_and_effects_of_the_tables_are_those_of_the_seeds() -> None:
    page = Parsed(html(WHOLE))
    own = WHOLE.found["probabilities"][3]
    rows = page.table("seed 3, probability").rows[1:]
    for row, values in zip(rows, own["probabilities"], strict=True):
        assert [float(cell.split()[0]) for cell in row[1:6]] == [pytest.approx(value, abs=0.51e-3) for value in values]
    buys = page.table("seed 3: nats per token").rows[1:]
    assert [row[2] for row in buys] == [
        "+0.0100 ± 0.0020", "+0.0110 ± 0.0020", words.NONE, "+0.0130 ± 0.0020", "+0.0140 ± 0.0020", "+0.0150 ± 0.0020"
    ]  # fmt: skip
    assert [row[3] for row in buys] == ["+2.000", "+1.500", words.NONE, "+1.750", "+2.500", "+2.000"]


def test_the_summary_says_what_to_take_and_where_that_is_from() -> None:
    line = "**So**: Take what was derived: it is better by 0.049 bits per byte"
    assert f"- {line} (`{reported.SEARCH[-8:]}`)." in markdown(WHOLE)
    assert "**So**" not in markdown(older())


def test_rules_are_told_with_verdict_reason_and_evidence() -> None:
    rows = Parsed(html(WHOLE)).table("statements over the seeds' derived stacks").rows[1:]
    assert [(row[2], row[8]) for row in rows] == [
        ("suggested", words.NONE),
        ("supported", "0.004"),
        ("not supported", "1"),
    ]
    assert rows[0][3:6] == ["it was found by 6 seeds and not retrained", "4", "3.25 to 4.75"]
    assert [row[6] for row in rows] == ["3 : 1 to none", words.NONE, words.NONE]
    assert "position, attention was retrained: difference -0.03, low -0.05, high -0.01, verdict better" in html(WHOLE)


def test_ratios_are_told_to_be_left_out_of_the_correction() -> None:
    ratio, *tests = reported.STATEMENTS
    left_out = "The correction is of the tests alone: the"
    assert f"{left_out} ratio has an interval of 95% and is left out of it." in text_of("whole")
    two = markdown(changed(WHOLE, rules=[ratio, ratio, *tests]))
    assert f"{left_out} 2 ratios are left out of it, each with a 95% interval of its own, and of so many one may" in two
    assert left_out not in markdown(changed(WHOLE, rules=tests))
    of_one_seed = {**ratio, "low": None, "high": None, "n_seeds": 1}
    assert left_out not in markdown(changed(WHOLE, rules=[of_one_seed, *tests])), "it has no interval"


def test_a_ratio_whose_interval_has_no_upper_end_goes_to_none() -> None:
    page = Parsed(html(changed(WHOLE, rules=[{**reported.STATEMENTS[0], "high": None}])))
    assert page.table("statements over the seeds' derived stacks").rows[1][5] == "3.25 to none"


def test_layouts_are_told_seed_by_seed_and_what_could_be_found_before() -> None:
    text = markdown(WHOLE)
    assert (
        "Told before the comparisons ran: 6 paired seeds find differences of 0.0300 bits per byte 8 times in 10."
        in text
    )
    rows = Parsed(html(WHOLE)).table("seed by seed").rows
    assert rows[0][1:3] == ["seed 0", "seed 1"]
    assert rows[1][1:3] == ["2.3660 / 2.3610", "2.3680 / 2.3620"]
    assert rows[1][-1] == ", ".join(reported.own_id(1000 + seed)[-8:] for seed in range(6))


def test_a_rule_of_an_older_version_is_suggested() -> None:
    text = markdown(older())
    assert "Rule: **suggested**: 1 search, 1 seed: attention in slot 1 of 2" in text
    assert "not confirmed;" not in text


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("running", "This report is partial: the search is running (searching)"),
        ("queued", "This report is partial: the search is queued"),
        ("failed", "It failed**: no seed has learnt anything"),
    ],
)
def test_a_search_that_has_not_succeeded_says_so_first(name: str, line: str) -> None:
    text = text_of(name)
    assert line in text.partition("##")[0]
    assert "nothing was compared with a baseline" in text
    assert "## Against the baselines" not in text


def test_hostile_texts_are_text() -> None:
    page = Parsed(html(attacked()))
    assert page.of("title")[0] == {}
    assert "<script>alert('x')</script>" in "".join(page.words)
    assert "\x1b" not in html(attacked())
    text = markdown(attacked())
    body = text.partition("```json")[0]
    for line in body.split("\n"):
        bare = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", line)  # code spans
        assert not re.search(r"(?<!\\)<", bare), line
        assert not re.search(r"(?<!\\)\]\(", bare), line
        assert "http://" not in bare, line
    assert "\u202e" not in body


@pytest.mark.parametrize("ticks", ["```", "````", "``````"])
def test_a_request_does_not_end_its_own_fence(ticks: str) -> None:
    text = markdown(dataclasses.replace(WHOLE, request={**WHOLE.request, "name": f"{ticks}\n# no heading"}))
    fence = ticks + "`"
    assert f"\n{fence}json\n" in text
    assert f"\n{fence}\n" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("- a", "\\- a"),
        ("1. a", "1\\. a"),
        ("# a", "\\# a"),
        ("> a", "\\> a"),
        ("a & b", "a &amp; b"),
        ("+ a", "\\+ a"),
    ],
)
def test_a_warning_begins_nothing_in_markdown(text: str, shown: str) -> None:
    assert f"\n- {shown}\n" in markdown(dataclasses.replace(WHOLE, warnings=(text, text)))


def test_the_policy_allows_the_page_its_own_style_sheet_alone() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", html(WHOLE), re.DOTALL)
    assert style == CSS
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in POLICY
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY


def test_a_deep_report_stays_small() -> None:
    assert len(page_of("512 slots")) < 3_000_000
    assert len(parsed("512 slots").table("seed 1, most probable candidate").rows) == 513


RATES = [
    {**WHOLE.found["retrained"][0], "name": name, "lr": lr}
    for name, lr in (("interleaved", 0.004), ("rule parent", 0.008))
]
WORSE = {
    **reported.STATEMENTS[1],
    "verdict": "not supported",
    "reason": "blocks placed by chance would hardly look like this, but its layout, retrained, is worse",
    "confirmation": {"placement": "worse"},
}
FROM_SUPERNET = (
    "every network began with the supernet's weights for its blocks, and the search trained those of what it derived "
    "most: the comparisons favour the derived architecture; retrain.start scratch does not"
)
ONE_SEED_CHOSE = (
    "one seed chose each layout's learning rate among 3: it can choose wrongly, and no interval holds what that costs; "
    "set retrain.lr_seeds to 3 or more"
)


def retraining(data: ReportData, **changes: Any) -> ReportData:
    """With other fields of retrain in its request."""
    return dataclasses.replace(
        data, request={**data.request, "retrain": {**data.request.get("retrain", {}), **changes}}
    )


DOUBTS: list[tuple[str, ReportData, str | None]] = [
    ("cannot tell", WHOLE, "derived against sandwich: the interval -0.0190 to +0.0210 holds both better and "
     "worse; with these "
     "seeds only 0.0300 or more would be found"),
    ("small", changed(WHOLE, comparisons=[reported.comparison("derived", "sandwich", -0.02, 0.01)]),
     "derived against sandwich: the difference is smaller than what these seeds find reliably (0.0300)"),
    ("many", WHOLE, "4 comparisons stand side by side, each with its own 95%: of so many, one may be off by chance"),
    ("one baseline", changed(WHOLE, comparisons=[reported.comparison("derived", "random 1", -0.2, 0.01)]), None),
    ("none", alone(), "no baseline was trained: nothing shows that the derived architecture is better than any other"),
    ("one seed", alone(), "one seed was searched: how much another seed would differ is not known; set "
     "trials.n_seeds to 5 "
     "or more"),
    ("two seeds", reported.everything(n_seeds=2), "2 seeds were searched, too few to tell how the next one "
     "would come out; 5 "
     "or more would"),
    ("lost seeds", reported.everything(n_seeds=2), "4 seeds of 6 derived no architecture; the warnings say why"),
    ("undecided", WHOLE, "slot 3 of the derived architecture is undecided: nothing shows that another block "
     "there would be "
     "worse; the cheapest tied one was taken"),
    ("few pairs", changed(WHOLE, comparisons=[reported.comparison("derived", "x", -0.2, 0.01, n_seeds=2)]),
     "comparisons rest on 2 paired seeds: an interval over so few is a lower bound of the doubt"),
    ("one lr", WHOLE, "every layout was trained at learning rate 0.002; another may suit one of them better"),
    ("two lrs", changed(WHOLE, retrained=RATES), "interleaved and rule parent are one network, for which some seeds "
     "chose learning rate 0.004 and others 0.008: which one suits it is open, and so is what a wrong one cost; set "
     "retrain.lr_seeds to 3 or more"),
    ("one seed chose", retraining(WHOLE, lrs=[0.5, 1, 2], lr_seeds=1), ONE_SEED_CHOSE),
    ("before lr_seeds", retraining(WHOLE, lrs=[0.5, 1, 2]), ONE_SEED_CHOSE),
    ("one seed there was", retraining(WHOLE, lrs=[0.5, 1, 2], lr_seeds=3, n_seeds=1), ONE_SEED_CHOSE),
    ("supernet", retraining(WHOLE, start="supernet"), FROM_SUPERNET),
    ("teacher", retraining(WHOLE, distil={"weight": 0.5, "temperature": 2}), "every network, interleaved too, learnt "
     "with 0.5 of its loss from a teacher, which is interleaved: which layout leads when it learns from the data alone "
     "is not shown"),
    ("no grid", older(), "all networks were trained at one learning rate; another may suit a baseline better "
     "(no grid was run)"),
    ("one length", changed(WHOLE, lengths=None),
     "quality was scored at one length of input (128): a layout found at one length can lose at another"),
    ("too long", WHOLE, "at 512 tokens the derived architecture has no figure: candidate 'sgu' cannot run "
     "there: it was made "
     "for 128 tokens"),
    ("data", WHOLE, "everything was trained and scored on python-stdlib: nothing says that the same holds on "
     "other data"),
    ("table", WHOLE, "the latency table is up to 8% off on whole networks (95% are nearer): predicted "
     "milliseconds closer than "
     "that are not told apart"),
    ("latency", changed(WHOLE, latencies=[{"ratio": 1.0, "low": 0.9, "high": 1.1}]),
     "latency against interleaved: the ratio's interval 0.900 to 1.100 holds both faster and slower"),
    ("rules", WHOLE, "1 rule of 3 is suggested only: not confirmed by retraining"),
    ("no rule", changed(WHOLE, rules=[reported.STATEMENTS[2]]),
     "no rule is supported: the seeds' stacks show nothing about placement that chance would not"),
    ("nothing to test", changed(WHOLE, rules=[{**reported.STATEMENTS[0], "verdict": "not supported"}]),
     "no rule is supported, and no placement could be tested against chance"),
    ("worse", changed(WHOLE, rules=[WORSE, reported.STATEMENTS[2]]), "the seeds agree on 1 rule of 2, but its layout, "
     "retrained, did worse than what it was held against: what seeds agree on is not shown to train better"),
    ("worse beside a supported one", changed(WHOLE, rules=[*reported.STATEMENTS[1:], WORSE, WORSE]), "the seeds agree "
     "on 2 rules of 4, but the layout of each, retrained, did worse than what it was held against: what seeds agree on "
     "is not shown to train better"),
    ("two suggested", changed(WHOLE, rules=[reported.STATEMENTS[0], *reported.STATEMENTS[:2]]),
     "2 rules of 3 are suggested only: not confirmed by retraining"),
    ("suggested", older(), "no rule is supported: what is suggested was not confirmed by retraining it against "
     "layouts of equal "
     "cost"),
    ("no pass", older(), "no parsimony pass is kept: what each block buys is not known, and alpha alone takes "
     "more than is "
     "needed"),
    ("cut short", WHOLE, "time was up for 1 trial: what a whole run would give is not known"),
    ("steps", WHOLE, "quality is that after 800 weight updates: which layout leads after longer training is not shown"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "sentence"), [each[1:] for each in DOUBTS], ids=[each[0] for each in DOUBTS])
def test_a_doubt_is_told_where_its_reason_is(data: ReportData, sentence: str | None) -> None:
    found = doubts(data)
    if sentence is None:
        assert not any("side by side" in each or "random" in each for each in found)
    else:
        assert sentence in found


def test_a_rule_that_did_worse_is_not_told_as_chance() -> None:
    found = doubts(changed(WHOLE, rules=[WORSE, reported.STATEMENTS[2]]))
    assert "no rule is supported" in found
    assert not any("that chance would not" in each for each in found)


def test_what_was_run_well_leaves_none_of_the_doubts_about_it() -> None:
    clear = [reported.comparison("derived", name, -0.2, 0.01) for name in ("interleaved",)]
    strong = changed(
        retraining(WHOLE, lrs=[0.5, 1, 2], lr_seeds=3, start="scratch", distil=None),
        comparisons=clear,
        derived={**WHOLE.found["derived"], "undecided": []},
        rules=[reported.STATEMENTS[1]],
        cut_short=[],
    )
    text = " ".join(doubts(strong))
    for part in (
        "seeds were searched",
        "undecided",
        "holds both",
        "no rule is",
        "time was up",
        "paired seeds",
        "one length",
        "learning rate",
        "began with",
        "learnt",
        "did worse",
    ):
        assert part not in text


def test_random_placements_are_told_by_the_rules_and_not_one_by_one() -> None:
    names = ("rule random 1", "rule parent")
    held = changed(WHOLE, comparisons=[reported.comparison("rule", name, -0.2, 0.01) for name in names])
    begins = markdown(held).split("## ")[0]
    assert "Rule against rule parent" in begins
    assert "rule random" not in begins


def test_seeds_that_differ_are_told_by_their_slots() -> None:
    entries = [dict(each) for each in WHOLE.found["architectures"]]
    entries[1]["slots"] = ["ffn", *entries[1]["slots"][1:]]
    told = doubts(changed(WHOLE, architectures=entries))
    assert "the seeds derived different families in slot 1 of 6: there, which block stands is one seed's answer" in told


def test_evidence_that_does_not_fit_the_probabilities_is_left_out() -> None:
    found = Evidence.of(
        {
            "step": 3,
            "probabilities": [[0.5, float("nan")]],
            "z": [[1.0]],
            "path": [2],
            "null_gaps": [1, 2],
            "effect_nats": 7,
        }
    )
    assert found == Evidence(3, ((0.5, None),))


def test_a_trial_that_failed_is_told_with_its_id() -> None:
    failed = Trial(reported.own_id(9), "search", 0, 7, "failed", reason="step 40: the loss is not a number")
    text = markdown(dataclasses.replace(WHOLE, trials=(*WHOLE.trials, failed)))
    assert "- search 0, seed 7 `00000009` failed: step 40: the loss is not a number" in text
