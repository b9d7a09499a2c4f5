"""SCOOTER, "Data Processing": each sentence that states a rule, as a test."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import timm_info
from cleanset.dataset.labels import read_reassessed
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.image_ids import image_id
from cleanset.review.file_format import parse_reviews
from cleanset.selection.candidates import candidates, shared
from cleanset.selection.fill import fill
from cleanset.selection.rule import Rule
from tests.selection.by_hand import SNOWMOBILE, SNOWPLOW, filled, index_of, kept, removed, scores_of, still_open


def tiers(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["image_id"], table["tier"], strict=True))


def all_predict(*image_ids: str, class_index: int = SNOWMOBILE) -> pd.DataFrame:
    """A model that gives every image this class, with confidence 0.9."""
    return scores_of(dict.fromkeys(image_ids, (class_index, 0.9)))


# Reassessed ImageNet-Labels


def test_only_images_of_exactly_one_class() -> None:
    """Out of the 50,000 ImageNet validation images, we only keep images that resemble *exactly* one ImageNet class."""
    index = index_of({"one": [802], "two": [802, 803], "none": []})
    model = all_predict("one", "two", "none")
    assert shared(index, [model, model, model])["image_id"].tolist() == ["one"]


def test_a_image_of_no_class_is_never_a_candidate() -> None:
    """[…] many ImageNet instances depict multiple ImageNet objects at once or none. Both cases are suboptimal […]"""
    index = index_of({"one": [802], "none": []})
    model = all_predict("one", "none")
    table = candidates(index, shared(index, [model]), model, [SNOWMOBILE], Rule(5))
    assert table["image_id"].tolist() == ["one"]


@pytest.mark.parametrize("answer", [SNOWMOBILE, SNOWPLOW])
def test_snowmobile_and_snowplow_is_ambiguous_whatever_the_models_say(answer: int) -> None:
    """For example, an image may depict both a snowmobile (class 802) and a snowplow (class 803), but it is only
    labeled with one correct label (let's say 802). Would a modified instance of this image, which the model now
    classifies as class 803, be a legitimate adversarial example? Our opinion: **No**."""
    assert (imagenet().keys[802], imagenet().keys[803]) == ("n04252077", "n04252225")
    index = index_of({"both": [802, 803]})
    model = all_predict("both", class_index=answer)
    common = shared(index, [model, model, model])
    assert common.empty
    # it can only be in as relaxed, which is always flagged
    assert tiers(candidates(index, common, model, [SNOWMOBILE, SNOWPLOW], Rule(5))) == {"both": "relaxed"}


# Ensemble of Target Models


def test_easy_means_correct_with_high_confidence() -> None:
    """[…] we initially only keep images that are easily correctly classified (i.e., with high confidence) by a set of
    computer vision models."""
    index = index_of({"sure": [802], "misclassified": [802], "unsure": [802]})
    model = scores_of({"sure": (802, 0.9), "misclassified": (803, 0.99), "unsure": (802, 0.2)})
    table = candidates(index, shared(index, [model]), model, [SNOWMOBILE], Rule(1))
    assert tiers(table) == {"sure": "top5", "unsure": "reserve"}


def test_the_three_models(repository: Path) -> None:
    """We decided to consider the predictions of three different ResNet-50 models: (i) the pre-trained ResNet-50 model
    as provided by the Timm package and the most robust ResNet-50 models of RobustBench against (ii) norm-based
    ImageNet attacks (Salman et al., 2020) and (iii) corruption-based ImageNet attacks (Erichson et al., 2022)."""
    models = read_params(repository / "imagenet").models
    assert {role: (model.source, model.name, model.threat_model) for role, model in models.items()} == {
        "standard": ("timm", "resnet50.a1_in1k", None),
        "norm_robust": ("robustbench", "Salman2020Do_R50", "Linf"),
        "corruption_robust": ("robustbench", "Erichson2022NoisyMix_new", "corruptions"),
    }


def test_the_numbers_of_the_source(repository: Path) -> None:
    """[…] the five images with the highest prediction confidence of a model for each of the 1,000 classes.
    Our **goal** is to have **three images for each class** by the end of the data processing."""
    params = read_params(repository / "imagenet")
    assert params.dataset.expect_images == 50_000
    assert params.dataset.class_list(imagenet()) == list(range(1000))
    assert params.select.candidates == 5
    assert params.export.images_per_class == 3


def test_all_three_models_must_be_correct() -> None:
    """1. We keep images that all three models correctly classify."""
    index = index_of({"all": [802], "two_of_three": [802], "one_of_three": [802], "no_model": [802]})
    standard = scores_of(
        {"all": (802, 0.9), "two_of_three": (802, 0.9), "one_of_three": (802, 0.9), "no_model": (1, 0.9)}
    )
    norm = scores_of({"all": (802, 0.3), "two_of_three": (802, 0.9), "one_of_three": (1, 0.9), "no_model": (1, 0.9)})
    corruption = scores_of(
        {"all": (802, 0.5), "two_of_three": (1, 0.9), "one_of_three": (1, 0.9), "no_model": (1, 0.9)}
    )
    assert shared(index, [standard, norm, corruption]).to_dict("records") == [{"image_id": "all", "class_index": 802}]


def test_models_that_agree_on_another_class_are_not_correct() -> None:
    """1. We keep images that all three models *correctly* classify."""
    index = index_of({"p": [802]})
    assert shared(index, [all_predict("p", class_index=803)] * 3).empty


def test_the_five_of_highest_confidence_of_each_class() -> None:
    """2. From these "shared easy images," we pick out the five images with the highest prediction confidence of a
    model for each of the 1,000 classes."""
    predictions = {
        "a": (802, 0.7), "b": (802, 0.9), "c": (802, 0.5), "d": (802, 0.8), "e": (802, 0.4), "f": (802, 0.6),
        "g": (803, 0.1), "h": (803, 0.2),
    }  # fmt: skip
    index = index_of({image_id: [class_index] for image_id, (class_index, _) in predictions.items()})
    model = scores_of(predictions)
    table = candidates(index, shared(index, [model]), model, [802, 803], Rule(5))
    assert table[["image_id", "class_index", "tier", "rank"]].values.tolist() == [
        ["b", 802, "top5", 1],
        ["d", 802, "top5", 2],
        ["a", 802, "top5", 3],
        ["f", 802, "top5", 4],
        ["c", 802, "top5", 5],
        ["e", 802, "reserve", 6],
        ["h", 803, "top5", 1],
        ["g", 803, "top5", 2],
    ]


def test_equal_confidences_lower_image_id_first() -> None:
    """Not in the source, which is silent on ties: the lower image id goes first."""
    index = index_of({"b": [802], "c": [802], "a": [802]})
    model = all_predict("b", "c", "a")
    assert candidates(index, shared(index, [model]), model, [802], Rule(2))[["image_id", "tier"]].values.tolist() == [
        ["a", "top5"],
        ["b", "top5"],
        ["c", "reserve"],
    ]


def test_the_five_are_each_models_own() -> None:
    """2. […] the highest prediction confidence of *a model* […]: the same shared images, another choice per model."""
    index = index_of({"a": [802], "b": [802]})
    one, other = scores_of({"a": (802, 0.9), "b": (802, 0.1)}), scores_of({"a": (802, 0.2), "b": (802, 0.3)})
    common = shared(index, [one, other])
    assert tiers(candidates(index, common, one, [802], Rule(1))) == {"a": "top5", "b": "reserve"}
    assert tiers(candidates(index, common, other, [802], Rule(1))) == {"b": "top5", "a": "reserve"}


def test_a_class_may_have_less_than_five() -> None:
    """However, some classes have less than five images that all three models classify correctly."""
    index = index_of({"a": [802], "b": [802], "c": [802]})
    one, other = all_predict("a", "b", "c"), scores_of({"a": (802, 0.9), "b": (802, 0.8), "c": (1, 0.9)})
    table = candidates(index, shared(index, [one, other, other]), one, [802], Rule(5))
    assert tiers(table) == {"a": "top5", "b": "top5", "c": "reserve"}


# Getting Clean Top-3 Images of a Target Model


def test_modified_images_never_come_in() -> None:
    """However, within SCOOTER, we are only interested in images that do not depict modifications themselves!"""
    assert kept("top5 reject", "top5 reject", "reserve reject", "relaxed reject") == []


def test_nothing_comes_in_that_no_human_has_seen() -> None:
    """Hence, we have to filter out unsuitable images ***manually***."""
    assert kept("top5 undecided", "top5 clean", "reserve undecided") == ["p2"]


def test_three_of_each_class() -> None:
    """Our **goal** is to have **three images for each class** by the end of the data processing."""
    assert kept(*["top5 clean"] * 5, *["reserve clean"] * 5, *["relaxed clean"] * 5) == ["p1", "p2", "p3"]


# From Top-5 to Top-3


def test_top5_before_any_other_even_cropped() -> None:
    """We tried to ensure that most classes only contained images from a model's initial Top-5 while ensuring that none
    looked visibly modified."""
    assert kept("top5 crop", "top5 crop", "top5 crop", "reserve clean") == ["p1", "p2", "p3"]


def test_a_more_confident_image_outside_the_top5_does_not_come_first() -> None:
    """We tried to ensure that most classes only contained images from a model's initial Top-5 […]"""
    index = index_of({"shared": [802], "surer": [802]})
    model = scores_of({"shared": (802, 0.4), "surer": (802, 0.9)})
    other = scores_of({"shared": (802, 0.9), "surer": (1, 0.9)})
    table = candidates(index, shared(index, [model, other]), model, [802], Rule(5))
    assert table[["image_id", "tier", "rank"]].values.tolist() == [["shared", "top5", 1], ["surer", "reserve", 2]]


def test_case_1() -> None:
    """1. If the three easiest images contain no visible modifications: Remove the remaining two instances."""
    rest = {"p4": "not_needed", "p5": "not_needed"}
    assert kept(*["top5 clean"] * 5) == ["p1", "p2", "p3"]
    assert removed(*["top5 clean"] * 5) == rest


def test_case_1_needs_no_look_at_the_other_two() -> None:
    """1. If the three easiest images contain no visible modifications: Remove the remaining two instances."""
    words = ["top5 clean", "top5 clean", "top5 clean", "top5 undecided", "top5 undecided"]
    assert kept(*words) == ["p1", "p2", "p3"]
    assert removed(*words) == {"p4": "not_needed", "p5": "not_needed"}
    assert still_open(*words) == set()


@pytest.mark.parametrize(
    ("verdicts", "three"),
    [
        (["reject", "clean", "clean", "reject", "clean"], ["p2", "p3", "p5"]),
        (["reject", "reject", "clean", "clean", "clean"], ["p3", "p4", "p5"]),
        (["clean", "reject", "clean", "clean", "reject"], ["p1", "p3", "p4"]),
        (["crop", "clean", "crop", "clean", "clean"], ["p2", "p4", "p5"]),
    ],
)
def test_case_2(verdicts: list[str], three: list[str]) -> None:
    """2. If the class includes an assortment of three clean Top-3 and Top-5 instances: Keep the three clean images and
    remove the two modified instances."""
    assert kept(*(f"top5 {verdict}" for verdict in verdicts)) == three


@pytest.mark.parametrize(
    ("verdicts", "three"),
    [
        (["crop", "clean", "reject", "crop", "reject"], ["p2", "p1", "p4"]),
        (["crop", "crop", "crop", "crop", "reject"], ["p1", "p2", "p3"]),
        (["clean", "crop", "clean", "crop", "crop"], ["p1", "p3", "p2"]),
    ],
)
def test_case_3_1(verdicts: list[str], three: list[str]) -> None:
    """3.1. Keep any of the images whose modifications can be removed by simply cropping them (e.g., an image with a
    watermark in the bottom right corner)."""
    assert kept(*(f"top5 {verdict}" for verdict in verdicts)) == three


@pytest.mark.parametrize("line", ["", "    object_fully_visible: false\n"])
def test_case_3_1_the_object_remains_visible(line: str) -> None:
    """**Important:** After cropping the initial image, the class object must remain fully visible."""
    text = (
        "n04252077:\n  ILSVRC2012_val_00000001:\n    verdict: crop\n    reason: watermark\n"
        f"    crop: [0, 0, 480, 330]\n    sha256: {'a' * 64}\n"
    )
    with pytest.raises(CleansetError, match=r"object_fully_visible: true; the object must remain fully visible"):
        parse_reviews(text + line, "n04252077", "f", imagenet())
    [vote] = parse_reviews(text + "    object_fully_visible: true\n", "n04252077", "f", imagenet())
    assert vote.review.box == (0, 0, 480, 330)


def test_case_3_2() -> None:
    """3.2. Every other image that could not be "saved" must be removed!"""
    words = ["top5 reject", "top5 clean", "top5 reject", "top5 crop", "top5 reject"]
    assert kept(*words) == ["p2", "p4"]
    assert removed(*words) == {"p1": "watermark", "p3": "watermark", "p5": "watermark"}


# Additional Images


def test_additional_images_fill_the_class() -> None:
    """Unfortunately, some classes contained more than three unsalvageable ImageNet instances that we had to remove. We
    fill the affected classes with additional clean images outside of the Top-5 for these classes."""
    words = ["top5 reject", "top5 clean", "top5 reject", "top5 reject", "top5 reject"]
    assert kept(*words, "reserve clean", "reserve clean", "reserve clean") == ["p2", "p6", "p7"]


def test_a_class_that_is_not_affected_gets_none() -> None:
    """We fill the *affected* classes with additional clean images outside of the Top-5 for these classes."""
    words = ["top5 reject", "top5 clean", "top5 reject", "top5 clean", "top5 crop"]
    assert kept(*words, "reserve clean") == ["p2", "p4", "p5"]


def test_point_1_correct_by_the_target_model() -> None:
    """1. Some classes already contained less than three images correctly classified by the entire ensemble. Therefore,
    we only considered images correctly classified by the target model at hand (generally a larger image pool)."""
    index = index_of({"shared": [802], "mine": [802], "theirs": [802]})
    mine = scores_of({"shared": (802, 0.9), "mine": (802, 0.9), "theirs": (1, 0.9)})
    theirs = scores_of({"shared": (802, 0.9), "mine": (1, 0.9), "theirs": (802, 0.9)})
    common = shared(index, [mine, theirs])
    assert tiers(candidates(index, common, mine, [802], Rule(5))) == {"shared": "top5", "mine": "reserve"}
    assert tiers(candidates(index, common, theirs, [802], Rule(5))) == {"shared": "top5", "theirs": "reserve"}


def test_point_2_high_confidence_first() -> None:
    """2. We still prioritized high-confidence instances when choosing new images for each class."""
    index = index_of({"a": [802], "b": [802], "c": [802]})
    model = scores_of({"a": (802, 0.2), "b": (802, 0.9), "c": (802, 0.5)})
    nothing_shared = shared(index, [model, all_predict("a", "b", "c", class_index=1)])
    table = candidates(index, nothing_shared, model, [802], Rule(5))
    assert table[["image_id", "tier"]].values.tolist() == [["b", "reserve"], ["c", "reserve"], ["a", "reserve"]]
    assert kept("reserve reject", "reserve clean", "reserve clean", "reserve clean", images_per_class=2) == ["p2", "p3"]


def test_point_3_clean_before_cropped() -> None:
    """3. However, we wanted to avoid any modifications (even non-invasive cropping) when choosing images. For example,
    we preferred low-confidence instances that required no cropping to high-confidence images that required further
    changes."""
    words = ["top5 clean", "reserve crop", "reserve crop", "reserve clean", "reserve clean"]
    assert kept(*words) == ["p1", "p4", "p5"]


def test_point_3_cropped_when_there_are_not_enough_clean() -> None:
    """Only if there were not enough clean images in the larger image pool did we decide to add cropped images to the
    final dataset."""
    assert kept("top5 clean", "reserve crop", "reserve crop", "reserve clean") == ["p1", "p4", "p2"]


def test_several_labels_only_after_the_whole_larger_pool() -> None:
    """Not in the source: what images of one label cannot fill, a flagged image of several labels does."""
    assert kept("top5 clean", "reserve crop", "relaxed clean", "relaxed crop") == ["p1", "p2", "p3"]
    assert kept("relaxed crop", "relaxed clean", "reserve crop") == ["p3", "p2", "p1"]


# The numbers: timm's real list, and an ensemble that is always correct


@dataclass(frozen=True)
class RealList:
    """From the real list: the labels, all candidates of a perfect model, and the images correct for all models."""

    labels: list[list[int]]
    candidates: pd.DataFrame
    shared: pd.DataFrame

    def images_per_class(self, *allowed: str) -> dict[str, int]:
        """How many images each class gets, all of them found clean, from these tiers alone."""
        table = self.candidates[self.candidates["tier"].isin(allowed)]
        return by_wnid(fill(table.assign(verdict="clean", reason=None, crop=None), 3).selection)


def by_wnid(table: pd.DataFrame) -> dict[str, int]:
    """How many rows each of the 1,000 classes has."""
    counts = table["class_index"].value_counts()
    return {wnid: int(counts.get(class_index, 0)) for class_index, wnid in enumerate(imagenet().keys)}


@pytest.fixture(scope="module")
def real_list() -> RealList:
    path = timm_info("imagenet_real_labels.json")
    labels = read_reassessed(path.read_text(), str(path))
    index = index_of({image_id(number): of for number, of in enumerate(labels, start=1)})
    one_label = pd.Series([of[0] for of in labels if len(of) == 1]).value_counts()
    # the perfect model gives an image of several labels the one that has the fewest images of its own
    predictions = {
        image_id(number): (min(of, key=lambda label: int(one_label[label])) if of else 0, 0.9)
        for number, of in enumerate(labels, start=1)
    }
    perfect = scores_of(predictions)
    common = shared(index, [perfect, perfect, perfect])
    return RealList(labels, candidates(index, common, perfect, range(1000)), common)


def test_39394_images_have_one_label(real_list: RealList) -> None:
    """Hence, we should use Google's reassessed ImageNet labels to remove such ambiguous data points, which leaves us
    with ***39,394*** remaining images."""
    assert len(real_list.labels) == 50_000
    assert len(real_list.shared) == 39_394


def test_5000_is_out_of_reach(real_list: RealList) -> None:
    """This process should generally leave us with 5,000 images per model. However, some classes have less than five
    images that all three models classify correctly."""
    counts = by_wnid(real_list.candidates[real_list.candidates["tier"] == "top5"])
    assert sum(counts.values()) == 4_988
    assert {wnid: count for wnid, count in counts.items() if count < 5} == {
        "n04355933": 1,
        "n03832673": 2,
        "n04356056": 2,
        "n04152593": 3,
    }


def test_2996_is_the_most_from_one_label(real_list: RealList) -> None:
    """The above process should leave us with 3,000 clean images per model. (It cannot: three classes are too small.)"""
    counts = real_list.images_per_class("top5", "reserve")
    assert sum(counts.values()) == 2_996
    assert {wnid: count for wnid, count in counts.items() if count < 3} == {
        "n04355933": 1,
        "n03832673": 2,
        "n04356056": 2,
    }


def test_3000_with_relaxed(real_list: RealList) -> None:
    """The above process should leave us with 3,000 clean images per model."""
    counts = real_list.images_per_class("top5", "reserve", "relaxed")
    assert sum(counts.values()) == 3_000
    assert set(counts.values()) == {3}


def test_the_same_numbers_from_the_file_itself() -> None:
    """The same numbers counted from timm's file alone, without the code under test."""
    labels = json.loads(timm_info("imagenet_real_labels.json").read_text())
    counts = [0] * 1000
    for of in labels:
        if len(of) == 1:
            counts[of[0]] += 1
    assert sum(counts) == 39_394
    assert sum(min(count, 3) for count in counts) == 2_996
    assert sum(min(count, 5) for count in counts) == 4_988


def test_crops_keep_their_box_and_others_have_none() -> None:
    """3.1. Keep any of the images whose modifications can be removed by simply cropping them […]"""
    selection = filled("top5 crop", "top5 clean").selection
    assert selection[["image_id", "place", "crop"]].values.tolist() == [["p2", 1, None], ["p1", 2, (0, 0, 9, 9)]]
