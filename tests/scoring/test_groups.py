"""Two groups of classes: their logits, what is refused, and bird or bicycle's classes."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.scoring.logits import Groups, predicted_groups, stored_columns
from cleanset.statistics.coverage import CONFIDENCES, confidences
from tests.properties import examples
from tests.studies.contest.made import BIRD_OR_BICYCLE

GOLDFISH, LADYBUG, STARFISH = "n01443537", "n02165456", "n02317335"
STRAWBERRY, BANANA = "n07745940", "n07753592"
SAMPLE = {"creature": [GOLDFISH, LADYBUG, STARFISH], "fruit": [STRAWBERRY, BANANA]}


def test_the_logits_of_a_group() -> None:
    groups = Groups.of(SAMPLE, imagenet())
    assert groups.classes == ((1, 301, 327), (949, 954))
    logits = np.full((2, 1000), 50.0)  # classes of no group count for nothing
    logits[:, [1, 301, 327, 949, 954]] = [[1, 2, 3, 3, 2.5], [800, 0, 0, 0, 799]]
    expected = [[math.log(math.e + math.e**2 + math.e**3), math.log(math.e**3 + math.e**2.5)], [800, 799]]
    assert groups.logits(logits) == pytest.approx(np.array(expected))
    assert predicted_groups(groups.logits(logits)).tolist() == [
        1,
        0,
    ]  # the classes of the second sum to more than the first's


def test_the_group_of_a_class() -> None:
    groups = Groups.of(SAMPLE, imagenet())
    assert [groups.group_of(index) for index in (301, 954, 0)] == [0, 1, None]


def test_equal_logits_are_the_first_group() -> None:
    assert predicted_groups(np.array([[1.0, 1], [1, 2], [2, 1]])).tolist() == [0, 1, 0]


@given(st.lists(st.floats(-50, 50), min_size=5, max_size=5))
@examples(100)
def test_the_softmax_of_two_groups_is_that_of_their_classes(values: list[float]) -> None:
    logits = np.full((1, 1000), -1e9)
    logits[0, [1, 301, 327, 949, 954]] = values
    first, second = Groups.of(SAMPLE, imagenet()).logits(logits)[0]
    exponentials = [math.exp(value) for value in values]
    assert 1 / (1 + math.exp(second - first)) == pytest.approx(sum(exponentials[:3]) / sum(exponentials), rel=1e-9)


def test_confidences_of_two_groups() -> None:
    answers = pd.DataFrame(stored_columns(np.array([[1.0, 3]])))
    found = [confidences(answers, kind)[0] for kind in CONFIDENCES]
    assert found == pytest.approx([3, 1 / (1 + math.exp(-2)), 2, math.log(math.e + math.e**3)])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"creature": [GOLDFISH]}, r"classes: 1 groups; expected 2, each with a name and its wnids"),
        ({"a": [GOLDFISH], "b": [LADYBUG], "c": [BANANA]}, "classes: 3 groups"),
        ({"creature": [GOLDFISH], "fruit": []}, "classes.fruit: empty group; expected at least one wnid"),
        ({"a": [GOLDFISH], "b": ["n00000000"]}, "classes.b: unknown class 'n00000000'; expected a wnid of ILSVRC2012"),
        ({"a": [GOLDFISH], "b": [BANANA, GOLDFISH]}, "n01443537 is in both groups, a and b; expected each class once"),
        ({"a": [GOLDFISH, GOLDFISH], "b": [BANANA]}, "n01443537 is twice in a; expected each class once"),
    ],
)
def test_refused_groups(groups: dict[str, list[str]], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        Groups.of(groups, imagenet())


def test_refused_logits() -> None:
    with pytest.raises(ValueError, match="a logit is NaN or infinite"):
        Groups.of(SAMPLE, imagenet()).logits(np.full((1, 1000), np.nan))


def test_bird_or_bicycle() -> None:
    """59 birds and 2 bicycles; the classes around the three ranges are other animals."""
    groups = Groups.of(BIRD_OR_BICYCLE, imagenet())
    assert groups.names == ("bicycle", "bird")  # BICYCLE = 0, BIRD = 1
    assert [len(members) for members in groups.classes] == [2, 59]
    bicycles = {imagenet().names[index].name for index in groups.classes[0]}
    assert bicycles == {"bicycle-built-for-two", "mountain bike"}
    names = {each.key: each.name for each in imagenet().names}
    ends = [names[imagenet().keys[index]] for index in (7, 24, 80, 100, 127, 146)]
    assert ends == ["cock", "great grey owl", "black grouse", "black swan", "white stork", "albatross"]
    beside = [names[imagenet().keys[index]] for index in (6, 25, 79, 101, 126, 147)]
    assert beside == ["stingray", "European fire salamander", "centipede", "tusker", "isopod", "grey whale"]
    assert {"n04509417": "unicycle", "n04482393": "tricycle"}.items() <= names.items()
    assert not {"n04509417", "n04482393"} & set(BIRD_OR_BICYCLE["bicycle"])
