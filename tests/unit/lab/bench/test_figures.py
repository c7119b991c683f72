from __future__ import annotations

from tests.lab.bench.figures import Cell, Figures, middle, ratio


def test_a_ratio_is_taken_within_each_round() -> None:
    # The second round was slow for both.
    assert ratio([2.0, 40.0, 2.2], [1.0, 10.0, 1.1]) == 2.0
    assert ratio([], [1.0]) is None


def test_no_samples_have_no_middle() -> None:
    assert middle([]) is None
    assert middle([3.0, 1.0, 2.0]) == 2.0


def test_the_total_is_the_sum_of_the_steps_of_a_round() -> None:
    cell = Cell(
        subject="x", services=10, pure={"read": [1.0, 2.0], "emit": [10.0, 20.0]}, load=[100.0, 200.0]
    )
    assert cell.total == [111.0, 222.0]


def test_subjects_keep_their_order_and_sizes_ascend() -> None:
    cells = [Cell(subject=s, services=n) for n in (100, 10) for s in ("b", "a")]
    figures = Figures(machine={}, options={}, cells=cells)
    assert (figures.subjects(), figures.sizes()) == (["b", "a"], [10, 100])
    assert figures.cell("a", 10) is cells[3]
    assert figures.cell("a", 11) is None
