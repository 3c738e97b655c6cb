"""The rule line says where attention was placed and how little that proves."""

import dataclasses
import subprocess
import sys

import pytest

from nas.architecture import Architecture
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.rules import RuleStatement, describe, held_against, of_today
from nas.statements import state
from nas.verdicts import judge

CANDIDATES = SearchSpace().candidates
LETTERS = {candidate.letter: candidate.label for candidate in CANDIDATES}


def architecture(letters: str, undecided: tuple[int, ...] = ()) -> Architecture:
    return Architecture(tuple(LETTERS[letter] for letter in letters), CANDIDATES, undecided)


@pytest.mark.parametrize(
    ("seeds", "line"),
    [
        (
            ["SSAASSSS", "SSSAASSS"],
            "1 search, 2 seeds: suggested; attention in slots 3-5 of 8 (all blocks : attention blocks 4.0 : 1)",
        ),
        (
            ["AFAFAFAF"],
            "1 search, 1 seed: suggested; attention in slots 1, 3, 5, 7 of 8 (all blocks : attention blocks 2.0 : 1)",
        ),
        (
            ["FFAFFF", "FFAAFF"],
            "1 search, 2 seeds: suggested; attention in slots 3-4 of 6 "
            "(all blocks : attention blocks 4.0 : 1, by seed 3.0 to 6.0)",
        ),
        (
            ["FAFS", "FFSS"],
            "1 search, 2 seeds: suggested; attention in slot 2 of 4 "
            "(all blocks : attention blocks 8.0 : 1, 1 seed without any)",
        ),
        (
            ["SS.M", "SSSF"],
            "1 search, 2 seeds: suggested; no attention in any of 4 slots "
            "(ffn in slot 4, mgk in slot 4, sgu in slots 1-3)",
        ),
        (["...."], "1 search, 1 seed: suggested; no attention in any of 4 slots (all are skipped)"),
        (["S"], "1 search, 1 seed: suggested; no attention in any of 1 slot (sgu in slot 1)"),
    ],
    ids=["agreeing", "one seed", "other ratios", "one without", "none", "skipped", "one slot"],
)
def test_line_tells_searches_seeds_slots_and_ratio(seeds: list[str], line: str) -> None:
    assert describe([architecture(letters) for letters in seeds]).statement == line


def test_ratio_counts_all_blocks_to_attention_blocks_and_no_skipped_slots() -> None:
    found = describe([architecture("A.FFF.S.")])
    assert found.ratio == 5.0
    assert found.blocks == (5,)
    assert found.attention_slots == ((0,),)


def test_mgk_is_a_family_of_its_own() -> None:
    assert describe([architecture("MAFF")]).attention_slots == ((1,),)


def test_undecided_slots_are_counted_in_the_line() -> None:
    found = describe([architecture("AFF.", (1, 2)), architecture("AFFF", (0,))])
    assert found.statement.endswith("; 3 slots undecided")
    assert found.undecided == 3
    assert describe([architecture("AFF.", (1,))]).statement.endswith("; 1 slot undecided")


@pytest.mark.parametrize(
    ("seeds", "verdict", "reason"),
    [
        (["AFFF"] * 3, "suggested", "1 of 3 statements about attention that are tested can be suggested"),
        (["AFFF"], "not supported", "none of 3 statements about attention that are tested can be suggested"),
        (["SSFF"] * 3, "suggested", "3 of 3 statements about it that are tested can be suggested"),
        (
            ["SSSSSAFF"] * 2 + ["SSSSSFFF"],
            "not supported",
            "none of 4 statements about attention that are tested can be",
        ),
        (["FFFF"] * 3, "not supported", "nothing about it could have come out otherwise, so nothing is tested"),
    ],
    ids=["some hold", "one seed", "no attention", "of others only", "nothing tested"],
)
def test_a_description_is_no_better_than_what_was_tested(seeds: list[str], verdict: str, reason: str) -> None:
    architectures = [architecture(letters) for letters in seeds]
    statements = judge(state([each.families for each in architectures]))
    found = held_against(describe(architectures), statements, {"n_slots": 4})
    assert found.verdict == verdict
    assert found.reason.startswith(reason)
    assert found.found_at == {"n_slots": 4}
    assert f": {verdict}; " in found.statement
    assert RuleStatement.from_json(dataclasses.asdict(found)) == found


def test_verdict_is_suggested_however_many_seeds_agree() -> None:
    found = describe([architecture("AFFF")] * 64, n_searches=32)
    assert found.verdict == "suggested"
    assert found.statement.startswith("32 searches, 64 seeds: suggested; ")
    assert (found.n_searches, found.n_seeds, found.n_slots) == (32, 64, 4)


def test_a_rule_of_an_older_version_is_suggested() -> None:
    line = "1 search, 2 seeds: not confirmed; attention in slot 1 of 2"
    today = {"statement": "1 search, 2 seeds: suggested; attention in slot 1 of 2", "verdict": "suggested"}
    assert of_today({"statement": line, "verdict": "not confirmed"}) == today
    assert of_today(today) == today


def test_no_architecture_is_no_rule() -> None:
    with pytest.raises(InvalidInput, match=r"^a rule needs at least one derived architecture; there is none$"):
        describe([])


def test_architectures_of_two_depths_have_no_common_rule() -> None:
    with pytest.raises(InvalidInput, match=r"^architectures of 2 and of 4 slots have no rule in common$"):
        describe([architecture("AFAF"), architecture("AF")])


def test_rules_and_comparison_load_no_torch() -> None:
    code = "import sys, nas.rules, nas.compare, nas.data.corpora; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
