from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from api.routes.searches import planned_steps
from api.watching import Display, Picture
from nas.config.method import Method
from nas.config.request import SearchRequest
from tests.api.running import TINY

REQUEST = SearchRequest.model_validate(TINY | {"trials": {"n_seeds": 2}}).model_dump(mode="json")
SEARCHING = 2 * Method(n_steps=20).most_steps
PLANNED = SEARCHING + 3 * 2 * 10
ROW = {
    "phase": "search", "train_loss": 2.5, "val_loss": None, "val_loss_soft": 2.25, "val_loss_sampled": 2.125,
    "val_loss_argmax": 2.0, "null_gaps": [0.1, 0.1],
}  # fmt: skip
MATRIX = [[0.8, 0.1, 0.1], [0.34, 0.33, 0.33]]


def rows(trial: str, *steps: int) -> dict[str, Any]:
    return {"trial": trial, "reports": [{**ROW, "step": step, "probabilities": MATRIX} for step in steps]}


def test_the_picture_counts_steps_over_trials_and_estimates_the_time_left() -> None:
    picture = Picture(REQUEST, now=lambda: 1000.0)
    assert picture.progress() == (0, PLANNED)
    assert picture.seconds_left() is None
    picture.tell("started", {}, at=100.0)
    picture.tell("stage", {"stage": "searching"}, at=101.0)
    for number, name in enumerate(("a", "b")):
        picture.tell("trial", {"trial": name, "kind": "search", "seed": number, "state": "running"}, at=101.0)
        picture.tell("reports", rows(name, 0), at=101.0)
    picture.tell("reports", rows("a", 5, 10), at=110.0)
    assert picture.progress() == (10, PLANNED)
    assert picture.seconds_left() == 10.0 * (PLANNED - 10) / 10
    assert "seed 0: search, train 2.500 soft 2.250 sampled 2.125 argmax 2.000 nats" in picture.line()
    assert picture.line().endswith("A?")
    assert "at most " in picture.line(), "the parsimony pass may end sooner"
    (row,) = rows("a", 15)["reports"]
    held = {"phase": "prune", "path": [2, 1], "effect_nats": [[None, 0.5, 0.0], [None, 0.0, 0.1]]}
    errors = {"effect_se": [[None, 0.1, 0.0], [None, 0.0, 0.2]]}
    picture.tell("reports", {"trial": "a", "reports": [{**row, **held, **errors}]}, at=120.0)
    assert "seed 0: prune, train" in picture.line()
    assert ".F?" in picture.line().split("  ")
    picture.tell("stage", {"stage": "retraining"}, at=121.0)
    assert "about " in picture.line()


def test_retrainings_replace_the_guess_once_they_are_known() -> None:
    picture = Picture(REQUEST, now=lambda: 0.0)
    picture.tell("stage", {"stage": "retraining"}, at=0.0)
    assert picture.progress() == (SEARCHING, PLANNED)
    for seed in (0, 1):
        picture.tell("trial", {"trial": f"retrain-0-{seed}", "kind": "retrain", "state": "queued"}, at=1.0)
    assert picture.progress() == (SEARCHING, SEARCHING + 2 * 10)
    picture.tell("trial", {"trial": "retrain-0-0", "state": "succeeded"}, at=2.0)
    assert picture.progress() == (SEARCHING + 10, SEARCHING + 20)
    picture.tell("succeeded", {}, at=3.0)
    assert picture.progress() == (SEARCHING + 20, SEARCHING + 20)


def test_a_trial_that_ended_sooner_or_was_given_up_is_done_but_gives_no_speed() -> None:
    picture = Picture(REQUEST, now=lambda: 0.0)
    picture.tell("started", {}, at=0.0)
    for name in ("search-0-0", "search-0-1"):
        picture.tell("reports", rows(name, 0, 20), at=10.0)
    picture.tell("trial", {"trial": "search-0-0", "state": "succeeded"}, at=10.0)
    assert picture.progress() == (SEARCHING // 2 + 20, PLANNED)
    assert picture.seconds_left() == 10.0 * (PLANNED - SEARCHING // 2 - 20) / 40
    picture.tell("trial", {"trial": "search-0-1", "state": "cancelled", "reason": None}, at=11.0)
    assert picture.progress()[0] == SEARCHING // 2 + 20
    picture.tell("trial", {"trial": "search-0-1", "state": "cancelled", "reason": "pruned at step 20"}, at=11.0)
    assert picture.progress()[0] == SEARCHING


def test_what_was_done_before_a_restart_does_not_count_as_pace() -> None:
    picture = Picture(REQUEST, now=lambda: 0.0)
    picture.tell("started", {}, at=0.0)
    picture.tell("reports", rows("search-0-0", 0, 10), at=50.0)
    picture.tell("requeued", {}, at=60.0)
    picture.tell("started", {}, at=1000.0)
    picture.tell("reports", rows("search-0-0", 12), at=1004.0)
    assert picture.seconds_left() == 4.0 * (PLANNED - 12) / 2


def test_the_picture_plans_what_the_service_plans() -> None:
    for baselines in ([], ["interleaved"]):
        request = SearchRequest.model_validate(TINY | {"retrain": {"n_steps": 10, "baselines": baselines}})
        planned = Picture(request.model_dump(mode="json")).progress()[1]
        assert planned == planned_steps(request)


def test_a_local_run_tells_the_same_story() -> None:
    picture = Picture(REQUEST, now=lambda: 5.0)
    picture.tell("stage", {"stage": "searching"})
    picture.tell("trial", {"trial": "search-0-1", "state": "queued", "kind": "search", "n_steps": 20, "values": {}})
    picture.tell("reports", {"trial": "search-0-1", "record": {**ROW, "step": 10, "probabilities": MATRIX}})
    assert picture.progress()[0] == 10
    assert "seed 1: search, train 2.500" in picture.line()


def test_an_estimate_is_printed_once_and_stands_in_the_picture_until_trials_have_ended() -> None:
    out = io.StringIO()
    picture = Picture(REQUEST, now=lambda: 0.0)
    told = {"memory_bytes": 210_000_000, "seconds": 85.2, "prune_seconds": 40.4}
    with Display(picture, Console(file=out, width=200)) as display:
        display.tell("estimate", told, at=0.0)
        display.tell("stage", {"stage": "searching"}, at=1.0)
    line = "about 85 s and 210 MB a trial, parsimony pass about 40 s more"
    assert out.getvalue().splitlines()[0] == line
    assert out.getvalue().count(line) == 1

    def drawn() -> str:
        console = Console(record=True, width=140, file=io.StringIO())
        console.print(picture)
        return console.export_text()

    assert line in drawn()
    picture.tell("stage", {"stage": "deriving"}, at=2.0)
    assert line not in drawn()


def test_without_a_terminal_a_line_is_printed_at_each_stage() -> None:
    out = io.StringIO()
    with Display(Picture(REQUEST, now=lambda: 0.0), Console(file=out, width=200)) as display:
        display.tell("stage", {"stage": "measuring"}, at=0.0)
        display.tell("stage", {"stage": "searching"}, at=1.0)
        display.tell("reports", rows("a", 0), at=2.0)
        display.tell("warning", {"message": "[red]odd[/red]"}, at=3.0)
    assert out.getvalue().splitlines() == [
        f"measuring   step 0 of {PLANNED} (0%)",
        f"searching   step 0 of {PLANNED} (0%)",
        "warning: [red]odd[/red]",
    ]


def test_on_a_terminal_the_picture_is_drawn_in_place() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    with Display(Picture(REQUEST, now=lambda: 0.0), console) as display:
        display.tell("stage", {"stage": "searching"}, at=0.0)
        display.tell("trial", {"trial": "a", "kind": "search", "seed": 3, "state": "running"}, at=0.0)
        display.tell("reports", rows("a", 0, 7), at=2.0)
        display.tell("warning", {"message": "odd"}, at=3.0)
    shown = out.getvalue()
    for part in ("searching", "step 7 of", "search 3", "soft 2.250", "warning: odd"):
        assert part in shown


def test_what_retrainings_can_show_is_told_while_they_run() -> None:
    picture = Picture(REQUEST)
    picture.tell("stage", {"stage": "retraining"}, at=0.0)
    picture.tell("power", {"message": "retraining: 3 paired seeds show 0.03 bits per byte"}, at=1.0)
    console = Console(record=True, width=120)
    console.print(picture)
    assert "retraining: 3 paired seeds show 0.03 bits per byte" in console.export_text()


def test_trainings_that_hang_on_others_are_counted_before_they_are_planned() -> None:
    request = SearchRequest.model_validate(TINY | {"retrain": {"n_steps": 10, "n_seeds": 3, "baselines": ["random"]}})
    picture = Picture(request.model_dump(mode="json"))
    assert picture.progress()[1] == planned_steps(request)
    picture.tell("stage", {"stage": "retraining"}, at=0.0)
    picture.tell("trial", {"trial": "retrain-0-0", "kind": "retrain", "state": "queued"}, at=1.0)
    assert picture.progress()[1] == planned_steps(request)
