"""Images in groups, from the column of a list to tables, result files and comparisons."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import cleanset
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.compare.result_files import parse_results
from cleanset.evaluation.compare.results import compare_results
from cleanset.evaluation.function import Results
from cleanset.evaluation.image_lists import open_list
from cleanset.evaluation.measured_models import results_content
from cleanset.evaluation.rendering import leaderboard_for_paper
from cleanset.statistics.groups import Units, paired_interval, paired_p, share_interval
from cleanset.statistics.shares import wilson
from tests.ten_images import drawn_image

GROUPS = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10]
FIRST = [1] * 20 + [0] * 4
SECOND = [0] * 4 + [1] * 16 + [0] * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("groups")
    for place in range(len(GROUPS)):
        drawn_image(12, 12, seed=place).save(found / f"{place:02}.png")
    return found


def listed(folder: Path, groups: Sequence[object] | None) -> Path:
    path = folder / ("plain.csv" if groups is None else "grouped.csv")
    rows = [f"{place:02}.png,3" for place in range(len(GROUPS))]
    if groups is None:
        path.write_text("\n".join(["file,class_index", *rows]) + "\n")
    else:
        lines = [f"{row},{group}" for row, group in zip(rows, groups, strict=True)]
        path.write_text("\n".join(["file,class_index,group", *lines]) + "\n")
    return path


def measured(folder: Path, correct: Sequence[int], groups: Sequence[object] | None, name: str = "one") -> Results:
    predictions = np.array([3 if each else 4 for each in correct])
    return cleanset.evaluate(predictions, listed(folder, groups), edition=folder, name=name)


def test_the_interval_is_by_groups(folder: Path) -> None:
    plain = measured(folder, FIRST, None)
    grouped = measured(folder, FIRST, [f"patient {each}" for each in GROUPS])
    assert plain.interval == wilson(20, 24)
    assert grouped.interval == share_interval(FIRST, Units(np.array(GROUPS)))
    assert grouped.interval[0] < plain.interval[0]
    text = str(grouped)
    assert "24 images, 1 class, 11 groups" in text
    assert "Intervals and tests are by 11 groups, as images of one group are not independent." in " ".join(text.split())


def test_few_groups_are_reported(folder: Path) -> None:
    text = " ".join(str(measured(folder, FIRST, [each // 2 for each in GROUPS])).split())
    assert "by 6 groups, as images of one group are not independent; so few may not show how much groups differ" in text


@pytest.mark.parametrize("groups", [[""] * 24, list(range(24))])
def test_images_without_a_shared_group_are_measured_as_ever(folder: Path, groups: Sequence[object]) -> None:
    plain = measured(folder, FIRST, None)
    other = measured(folder, FIRST, groups)
    texts = [json.dumps(results_content(each.images, [each.model])) for each in (plain, other)]
    assert texts[0] == texts[1].replace("grouped.csv", "plain.csv")


def test_results_carry_the_groups_and_are_compared_by_them(folder: Path) -> None:
    one = measured(folder, FIRST, GROUPS, "one")
    two = measured(folder, SECOND, GROUPS, "two")
    units = Units(np.array(GROUPS))
    pair = one.compare(two)
    assert pair.p == paired_p(FIRST, SECOND, units) == 1.0
    assert (pair.low, pair.high) == paired_interval(FIRST, SECOND, units)
    assert pair.groups == 11
    contents = [results_content(each.images, [each.model]) for each in (one, two)]
    assert contents[0]["interval"] == "Wilson by 11 groups, 95 %"
    assert len(set(contents[0]["groups"].values())) == 11
    found = compare_results([parse_results(content, name) for content, name in zip(contents, ("a", "b"), strict=True)])
    (again,) = found.pairs
    assert (again.p, again.low, again.high) == (pair.p, pair.low, pair.high)


def test_results_by_groups_and_by_images_are_not_comparable(folder: Path) -> None:
    results = [measured(folder, FIRST, groups) for groups in (GROUPS, None)]
    contents = [results_content(each.images, [each.model]) for each in results]
    found = compare_results([parse_results(content, name) for content, name in zip(contents, ("a", "b"), strict=True)])
    (left_out,) = found.left_out
    assert (left_out.field, left_out.value, left_out.its_value) == ("interval.kind", "Wilson", "Wilson by 11 groups")


def test_a_table_for_a_paper_says_the_unit(folder: Path) -> None:
    one, two = (measured(folder, correct, GROUPS, name) for correct, name in ((FIRST, "one"), (SECOND, "two")))
    notes = dict(leaderboard_for_paper(one.images, [one.model, two.model]).notes)
    assert notes["intervals"] == (
        "95 %, Wilson by 11 groups; confidence: Student's t; ECE has none: 15 bins, debiased; "
        "differences: Newcombe's for pairs"
    )
    assert notes["tests"] == "p of McNemar's exact test by 11 groups, two-sided, against one"
    assert "Intervals and tests are by 11 groups" in notes["limits"]


def test_one_group_has_an_accuracy_and_no_interval(folder: Path) -> None:
    found = measured(folder, FIRST, ["p"] * 24)
    content = results_content(found.images, [found.model])
    model = content["models"][0]
    assert (model["accuracy"], model["interval"]) == (20 / 24, None)
    text = str(found)
    assert "24 images, 1 class, 1 group\n" in text
    assert "No intervals: nearly all images are of one of 1 group," in text
    assert repr(found).startswith("Results(one: 0.8333 (no interval) on ")
    json.dumps(content, allow_nan=False)


def test_groups_in_a_result_file_are_checked(folder: Path) -> None:
    found = measured(folder, FIRST, GROUPS)
    content = results_content(found.images, [found.model]) | {"groups": {"3 0": 1}}
    with pytest.raises(CleansetError, match=r"groups \{'3 0': 1\}; expected the group of each image"):
        parse_results(content, "results.json")


def test_names_of_groups_are_normalised(folder: Path) -> None:
    groups = [f" patient  {each} " if place % 2 else f"patient {each}" for place, each in enumerate(GROUPS)]
    found = open_list(listed(folder, groups), Edition(folder), None)
    assert found.units is not None
    assert found.units.codes.tolist() == GROUPS
