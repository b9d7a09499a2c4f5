"""Work that is split covers every class, and some classes by everyone."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import parse_ranges
from cleanset.edition.params import ReviewPolicy
from cleanset.errors import CleansetError
from cleanset.review.commands import check_reviewers
from cleanset.review.page.shares import Share, common_classes, share_in_team, share_of
from tests.evaluation.compare.command import cleanset, says

CLASSES = [1, 5, 9, 100, 101, 102, 103, 104, 105, 999]


def test_a_third_and_the_common_classes() -> None:
    assert common_classes(CLASSES, 0.2) == {101, 999}
    assert share_of(CLASSES, "1/3", 0.2) == Share(frozenset({1, 100, 104, 101, 999}), frozenset({101, 999}))
    assert share_of(CLASSES, "2/3", 0.2).classes == {5, 102, 105, 101, 999}
    assert share_of(CLASSES, "1/1", 0).classes == set(CLASSES)


@given(st.integers(1, 60), st.integers(1, 9), st.floats(0, 1))
def test_every_class_is_in_a_share_and_once_unless_common(count: int, parts: int, overlap: float) -> None:
    classes = list(range(3, 3 + count))
    shares = [share_of(classes, f"{part}/{parts}", overlap) for part in range(1, parts + 1)]
    common = shares[0].common
    assert len(common) in (int(count * overlap), int(count * overlap + 1e-9))
    for class_index in classes:
        holders = sum(class_index in share.classes for share in shares)
        assert holders == (parts if class_index in common else 1)
    sizes = [len(share.classes) for share in shares]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 8), st.floats(0, 1))
def test_each_class_has_as_many_reviewers_of_a_team_as_it_needs(
    count: int, size: int, needed: int, overlap: float
) -> None:
    classes = list(range(3, 3 + count))
    team = [f"r{number}" for number in range(size)]
    policy = ReviewPolicy(policy="majority", min_reviewers=needed, overlap=overlap)
    shares = [share_in_team(classes, name, [*team, "board"], policy) for name in reversed(team)]
    assert share_in_team(classes, "board", team, policy) == Share(frozenset(classes), frozenset())
    for class_index in classes:
        holders = sum(share is not None and class_index in share.classes for share in shares)
        assert holders == (size if class_index in common_classes(classes, overlap) else min(needed, size))


def test_assigned_classes() -> None:
    policy = ReviewPolicy(assign={"ada": "0-99, 999-999", "ben": "100-999"}, overlap=0.1)
    without_overlap = policy.model_copy(update={"overlap": 0})
    assert share_in_team(CLASSES, "ada", (), policy) == Share(frozenset({1, 5, 9, 999}), frozenset({999}))
    assert share_in_team(CLASSES, "ben", ("ada", "ben"), without_overlap) == Share(frozenset(CLASSES[3:]), frozenset())
    assert share_in_team(CLASSES, "board", (), policy) == Share(frozenset(CLASSES), frozenset())
    assert share_in_team(CLASSES, "eve", (), ReviewPolicy(overlap=0.1)) == Share(frozenset(CLASSES), frozenset())
    with pytest.raises(CleansetError, match=r"reviewer 'eve': not in review\.assign .*; expected one of ada, ben"):
        share_in_team(CLASSES, "eve", (), policy)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "a/b", "1/1001", "-1/3", "1/3/2"])
def test_a_share_that_is_none(text: str) -> None:
    with pytest.raises(CleansetError, match=re.escape("expected K/N with 1 <= K <= N <= 1,000, such as 1/3")):
        share_of(CLASSES, text, 0.05)


def test_ranges_of_four_digits() -> None:
    """A dataset of your own may have 5,000 classes."""
    assert parse_ranges("998-1001, 4998-4999") == {998, 999, 1000, 1001, 4998, 4999}


@pytest.mark.parametrize("text", ["", "5", "9-5", "0-10000", "a-b", "0-5,,7-8"])
def test_ranges_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected ranges of class indices such as 0-499"):
        parse_ranges(text)


@pytest.mark.parametrize(
    ("team", "alone", "message"),
    [
        (["ana", "ana"], None, "--reviewer ana: given twice; expected each reviewer once"),
        (["ana", "ben"], "--share", "--share: with 2 reviewers; expected one: start a server for each"),
        (["ana", "ben"], "audit", "audit: with 2 reviewers; expected one: start a server for each"),
    ],
)
def test_what_a_team_is_not_asked(team: list[str], alone: str | None, message: str) -> None:
    with pytest.raises(CleansetError, match=f"^{message}$"):
        check_reviewers(team, alone)
    check_reviewers(team[:1], alone)


TWICE = "ana: given twice; expected each reviewer once"


@pytest.mark.parametrize(
    ("command", "team", "message"),
    [
        (("serve",), ("ana", "ana"), TWICE),
        (("serve", "--share", "1/2"), ("ana", "ben"), "--share: with 2 reviewers"),
        (("audit", "5"), ("ana", "ben"), "audit: with 2 reviewers"),
        (("labels",), ("ana", "ana"), TWICE),
        (("status",), ("ana", "ana"), TWICE),
    ],
)
def test_each_command_asks_for_its_team_before_anything_else(
    command: tuple[str, ...], team: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    """Here even before it misses the edition."""
    people = [f"--reviewer={name}" for name in team]
    code, printed, errors = says(cleanset("review", *command, *people, cwd=tmp_path))
    assert (code, printed) == (1, "")
    assert message in errors
