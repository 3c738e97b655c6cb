"""Convergence: three checks in a row at which three of four leaders stand, and an alpha that has made up its mind."""

from nas.stability import Stability


def test_three_checks_in_a_row_and_low_entropy_end_a_search() -> None:
    stable = Stability([True] * 4)
    assert [stable.check([0, 1, 2, 0], 0.3) for _ in range(4)] == [False, False, False, True]


def test_one_slot_of_four_may_change_and_two_may_not() -> None:
    stable = Stability([True] * 4)
    leaders = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert [stable.check(each, 0.3) for each in leaders] == [False, False, False, True]
    assert not stable.check([0, 0, 1, 0], 0.3)
    assert stable.in_a_row == 0


def test_an_undecided_alpha_goes_on_however_its_leaders_stand() -> None:
    stable = Stability([True] * 2)
    assert not any(stable.check([0, 1], 0.5) for _ in range(9))
    assert stable.check([0, 1], 0.49)


def test_counting_goes_on_where_it_was_saved() -> None:
    one, other = Stability([True] * 2), Stability([True] * 2)
    for _ in range(3):
        one.check([0, 1], 0.3)
    other.restore(one.state())
    assert other.check([0, 1], 0.3)


def test_a_slot_without_a_choice_does_not_count_among_those_that_stand() -> None:
    stable = Stability([False, False, False, True])
    assert not any(stable.check([0, 1, 0, turn % 2], 0.3) for turn in range(9))  # the only free slot turns each time
    assert [stable.check([0, 1, 0, 1], 0.3) for _ in range(4)] == [False, False, False, True]


def test_where_no_slot_has_a_choice_there_is_nothing_to_wait_for() -> None:
    stable = Stability([False, False])
    assert [stable.check([0, 1], 0.0) for _ in range(4)] == [False, False, False, True]
