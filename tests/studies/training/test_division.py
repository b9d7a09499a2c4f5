"""Folds of equal classes, from literal classes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.studies.training.division import (
    ImagesToDivide,
    fold_numbers,
    folds_table,
    rows_of_fold,
    set_aside,
    split_as_coded,
    split_names,
)
from tests.properties import examples

CLASSES = [1, 1, 1, 1, 1, 301, 301, 301, 301, 301, 301]


def images_of(classes: list[int], groups: list[str] | None = None) -> ImagesToDivide:
    """Images of ImageNet's classes."""
    return ImagesToDivide(np.array(classes), imagenet(), groups)


def test_literal_folds() -> None:
    assert fold_numbers(images_of(CLASSES), 3, 0).tolist() == [1, 3, 1, 2, 2, 3, 2, 1, 2, 3, 1]


def test_literal_split() -> None:
    names = split_names(images_of(CLASSES), 0)
    assert [place for place, name in enumerate(names) if name == "test"] == [4, 5]


def test_the_split_of_ximagenet_12s_script() -> None:
    """The files that splitfolders 0.6.1 puts into val, with the script's seed and ratio, of 7, 10 and 13."""
    rows = [(f"{name}/{name}_{number:02d}.JPEG", name) for name in ("b", "a", "c") for number in range(13)]
    rows = [row for row in rows if int(row[0][-7:-5]) < {"a": 7, "b": 10, "c": 13}[row[1]]]
    files, names = zip(*rows, strict=True)
    found = split_as_coded(files, ["abc".index(name) for name in names])
    assert sorted(file[2:-5] for file, part in zip(files, found, strict=True) if part == "test") == [
        "a_04", "a_06", "b_08", "b_09", "c_05", "c_08", "c_09",
    ]  # fmt: skip


def test_another_seed_divides_otherwise() -> None:
    assert fold_numbers(images_of(CLASSES), 3, 1).tolist() != fold_numbers(images_of(CLASSES), 3, 0).tolist()


def test_a_class_with_fewer_images_than_folds_is_reported() -> None:
    with pytest.raises(
        CleansetError, match=r"^n01443537: 5 images to train on; expected at least 6, one for each fold"
    ):
        fold_numbers(images_of(CLASSES), 6, 0)


def test_a_class_of_one_image_cannot_be_split() -> None:
    with pytest.raises(CleansetError, match="n02165456: 1 image to train on; expected at least 2"):
        split_names(images_of([1, 1, 301]), 0)


@examples(100)
@given(st.lists(st.integers(4, 30), min_size=1, max_size=5), st.integers(2, 4), st.integers(0, 99))
def test_every_fold_has_its_share_of_every_class(sizes: list[int], folds: int, seed: int) -> None:
    classes = [index for index, size in enumerate(sizes) for _ in range(size)]
    table = pd.crosstab(classes, fold_numbers(images_of(classes), folds, seed))
    assert table.shape == (len(sizes), folds)
    assert (table.max(axis=1) - table.min(axis=1)).max() <= 1
    assert table.sum().max() - table.sum().min() <= 1
    tests = (
        pd.Series(split_names(images_of(classes), seed)).groupby(classes).apply(lambda names: (names == "test").sum())
    )
    assert np.abs(tests.to_numpy() - 0.2 * np.array(sizes)).max() <= 0.8


def test_the_order_of_files_does_not_matter() -> None:
    files = [f"{number:02d}.jpg" for number in range(len(CLASSES))]
    there = folds_table(files, images_of(CLASSES), 3, 0)
    assert there.equals(folds_table(files[::-1], images_of(CLASSES[::-1]), 3, 0))


def test_rows() -> None:
    table = folds_table([f"{number:02d}.jpg" for number in range(len(CLASSES))], images_of(CLASSES), 3, 0)
    training, left_out = rows_of_fold(table, 3, "fold_02")
    assert left_out.tolist() == [3, 4, 6, 8]
    assert sorted([*training, *left_out]) == list(range(11))
    assert rows_of_fold(table, 1, "fold_01")[1].tolist() == [4, 5]
    assert [len(rows) for rows in rows_of_fold(table, 0, "all")] == [11, 0]


def table_of(sizes: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"class_index": [index for index, size in enumerate(sizes) for _ in range(size)]})


@examples(50)
@given(st.lists(st.integers(2, 60), min_size=1, max_size=5), st.integers(0, 99))
def test_a_tenth_of_each_class_is_set_aside(sizes: list[int], seed: int) -> None:
    images = table_of(sizes).assign(file=lambda table: table.index)
    training, validation = set_aside(images, imagenet(), seed, "fold_01")
    assert sorted([*training["file"], *validation["file"]]) == list(range(sum(sizes)))
    counts = validation.groupby("class_index").size()
    assert counts.tolist() == [max(1, round(0.1 * size)) for size in sizes]
    assert validation.equals(set_aside(images, imagenet(), seed, "fold_01")[1])


def test_folds_set_aside_other_images() -> None:
    images = table_of([40, 40]).assign(file=lambda table: table.index)
    one, other = (set_aside(images, imagenet(), 0, fold)[1]["file"].tolist() for fold in ("fold_01", "fold_02"))
    assert one != other
    assert one != set_aside(images, imagenet(), 1, "fold_01")[1]["file"].tolist()


def test_a_class_that_would_be_empty_is_reported() -> None:
    with pytest.raises(
        CleansetError,
        match=r"^n01440764: 1 image to train on; expected at least 2, one of them to validate on in fold_02",
    ):
        set_aside(table_of([1, 5]), imagenet(), 0, "fold_02")


@examples(100)
@given(
    st.lists(st.lists(st.integers(1, 6), min_size=4, max_size=9), min_size=1, max_size=4),
    st.integers(2, 4), st.integers(0, 99),
)  # fmt: skip
def test_no_division_splits_a_group(sizes: list[list[int]], folds: int, seed: int) -> None:
    """For any sizes of the groups of each class: whole groups, and some of each class in every part."""
    rows = [
        (index, f"{index} {number}") for index, of in enumerate(sizes) for number, size in enumerate(of)
        for _ in range(size)
    ]  # fmt: skip
    order = np.random.default_rng(seed).permutation(len(rows))
    classes, groups = [rows[row][0] for row in order], [rows[row][1] for row in order]
    files = [f"{number:03d}.jpg" for number in range(len(rows))]
    table = folds_table(files, images_of(classes, groups), folds, seed)
    assert table.groupby("group")[["split", "fold"]].nunique().eq(1).all(axis=None)
    assert pd.crosstab(table["class_index"], table["fold"]).gt(0).all(axis=None)
    assert pd.crosstab(table["class_index"], table["split"]).gt(0).all(axis=None)
    for count, name in ((1, "fold_01"), (folds, "fold_01")):
        training, tested = (table.iloc[part] for part in rows_of_fold(table, count, name))
        if training.groupby("class_index")["group"].nunique().min() < 2:
            continue
        training, validation = set_aside(training.reset_index(drop=True), imagenet(), seed, name)
        parts = [set(part["group"]) for part in (training, validation, tested)]
        assert all(parts)
        assert sum(map(len, parts)) == len(set(groups))


def test_groups_of_one_image_are_divided_as_images_are() -> None:
    files = [f"{number:02d}.jpg" for number in range(len(CLASSES))]
    there = folds_table(files, images_of(CLASSES, files), 3, 0)
    assert there.drop(columns="group").equals(folds_table(files, images_of(CLASSES), 3, 0))


def test_a_class_with_fewer_groups_than_folds_is_reported() -> None:
    groups = ["a", "a", "b", "b", "b", *"cdefgh"]
    with pytest.raises(
        CleansetError, match=r"^n01443537: 2 groups to train on; expected at least 3, one for each fold"
    ):
        fold_numbers(images_of(CLASSES, groups), 3, 0)
    with pytest.raises(
        CleansetError, match=r"^n01443537: 1 group to train on; expected at least 2, one of them to test on"
    ):
        split_names(images_of(CLASSES, ["a"] * 5 + ["b", *"cdefg"]), 0)


def test_groups_of_several_classes_stay_whole() -> None:
    """Literal folds: a patient with several lesions is in one of them, and no class is missing in any."""
    groups = ["p1", "p2", "p3", "p4", "p4", "p1", "p2", "p3", "p5", "p5", "p6"]
    assert fold_numbers(images_of(CLASSES, groups), 3, 0).tolist() == [1, 3, 1, 2, 2, 1, 3, 1, 2, 2, 3]
    assert [place for place, name in enumerate(split_names(images_of(CLASSES, groups), 0)) if name == "test"] == [1, 6]


@examples(100)
@given(
    st.lists(st.dictionaries(st.integers(0, 3), st.integers(1, 5), min_size=1, max_size=3), min_size=16, max_size=40),
    st.integers(2, 4), st.integers(0, 99),
)  # fmt: skip
def test_no_division_splits_a_group_of_several_classes(drawn: list[dict[int, int]], folds: int, seed: int) -> None:
    rows = [
        (index, f"{number:02d}") for number, of in enumerate(drawn) for index, size in of.items() for _ in range(size)
    ]
    classes, groups = (list(column) for column in zip(*rows, strict=True))
    if pd.DataFrame(rows).groupby(0)[1].nunique().min() < 2 * folds:
        return
    table = folds_table([f"{number:03d}.jpg" for number in range(len(rows))], images_of(classes, groups), folds, seed)
    assert table.groupby("group")[["split", "fold"]].nunique().eq(1).all(axis=None)
    assert pd.crosstab(table["class_index"], table["fold"]).gt(0).all(axis=None)
    assert pd.crosstab(table["class_index"], table["split"]).gt(0).all(axis=None)
