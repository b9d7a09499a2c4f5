"""A study's params.yaml, and the images and answers that it is made of."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.scoring.scorer import Scored, to_table
from cleanset.studies.robustness.answers import (
    ANSWER_TABLES,
    ANSWERS,
    ReadAnswers,
    answer_columns,
    check_clean,
    with_family_step,
    with_step,
)
from cleanset.studies.robustness.corruptions.params import (
    IMAGENET_C,
    NAMED_GROUPS,
    Corruptions,
)
from cleanset.studies.robustness.families import family_named, read_study_params
from cleanset.studies.robustness.images import ChangeName, first_images, images_for, join_sets
from cleanset.studies.robustness.perturbations.params import ALL_PERTURBATIONS, PERTURBATION_GROUPS, Perturbations
from cleanset.studies.robustness.scenarios.params import SCENARIO_GROUPS, SCENARIOS, Scenarios
from cleanset.tables import read_table, write_table
from tests.studies.robustness.entries import entry

pytestmark = pytest.mark.slow

ROLES = ["standard", "robust"]


def study(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return path


def test_an_empty_section_has_the_defaults(tmp_path: Path) -> None:
    params = read_study_params(study(tmp_path, "seed: 7\ncorruptions: {}\n"), ROLES, imagenet())
    assert (params.images, params.jpeg, params.seed) == ("union", 85, 7)
    assert len(params.section(Corruptions).changes()) == 75
    assert params.section(Corruptions).changes()[:6] == [("gaussian_noise", s) for s in range(1, 6)] + [
        ("shot_noise", 1)
    ]


@pytest.mark.parametrize("more", ["", "published: folder"])
def test_a_section_has_the_names_of_the_benchmark_or_those_given(tmp_path: Path, more: str) -> None:
    """In every family: all of the published list without names, none with an empty list or without a section."""
    masks = "masks: [{folder: a, origin: person}]\n"
    found = read_study_params(
        study(tmp_path, masks + f"corruptions: {{{more}}}\nperturbations: {{{more}}}\nscenarios: {{{more}}}\n"),
        ROLES,
        imagenet(),
    )
    sections = (found.section(Corruptions), found.section(Perturbations), found.section(Scenarios))
    assert [len(each.names) for each in sections] == [15, 10, len(SCENARIOS)]
    found = read_study_params(study(tmp_path, "perturbations: {names: []}\n"), ROLES, imagenet())
    sections = (found.section(Corruptions), found.section(Perturbations), found.section(Scenarios))
    assert [each.names for each in sections] == [[], [], []]


def test_a_further_model_can_be_the_reference(tmp_path: Path) -> None:
    text = "{further_models: {more: {source: timm, name: a}}, measures: {perturbations: {reference: more}}}\n"
    params = read_study_params(study(tmp_path, text), ROLES, imagenet())
    assert params.models(ROLES) == ["standard", "robust", "more"]
    with pytest.raises(CleansetError, match="unknown model 'more'; expected one of standard, robust"):
        read_study_params(study(tmp_path, text), ROLES, imagenet(), further=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "corruptions: {names: [fogg]}",
            "corruptions.names: unknown corruption 'fogg'; expected one of gaussian_noise",
        ),
        (
            "corruptions: {published: a, names: []}",
            "corruptions: names: [], and published: a: nothing would be read; expected names, no names for",
        ),
        (
            "corruptions: {names: [fog, c_bar, 3dcc]}",
            "corruptions: published: null, and near_focus is of ImageNet-3DCC, whose corruptions are not made here",
        ),
        ("corruptions: {severities: [6]}", "corruptions.severities"),
        (
            "measures: {corruptions: {reference: vgg}}",
            "measures.corruptions.reference: unknown model 'vgg'; expected one of alexnet, standard, robust",
        ),
        (
            "measures: {corruptions: {trained_on: {vgg: [noise]}}}",
            "measures.corruptions.trained_on: unknown model 'vgg'; expected one of standard",
        ),
        ("measures: {corruptions: {trained_on: {robust: [grain]}}}", "unknown corruption 'grain'"),
        ("{images: own, measures: {corruptions: {reference: robust}}}", "sees other images than the models"),
        ("jpeg: 0", "jpeg"),
        (
            "perturbations: {names: [fog]}",
            "perturbations.names: unknown perturbation 'fog'; expected one of gaussian_n",
        ),
        ("perturbations: {difficulty: 4}", "perturbations.difficulty"),
        (
            "measures: {perturbations: {reference: vgg}}",
            "measures.perturbations.reference: unknown model 'vgg'; expected one of standard, robust",
        ),
        ("{images: own, measures: {perturbations: {reference: robust}}}", "expected no reference, or images: union"),
        ("masks: [{folder: ../a, origin: person}]", "masks.0.folder"),
        ("masks: [{folder: a, format: gif, origin: person}]", "unknown mask format 'gif'; expected one of png, coco"),
        ("masks: [{folder: a, origin: nobody}]", "masks.0.origin"),
        ("scenarios: {names: [image_pink]}", "scenarios.names: unknown scenario 'image_pink'"),
        ("scenarios: {names: [blur]}", "scenarios.names: scenarios need masks"),
        ("scenarios: {published: a, names: [In Rain]}", "scenarios.names: 'In Rain' cannot name a scenario"),
        ("scenarios: {published: a, names: [clean]}", "scenarios.names: 'clean' cannot name a scenario"),
        ("corruptions: {published: ''}", "corruptions.published"),
        ("corruptions: {published: a, names: [rain]}", "corruptions.names: unknown corruption 'rain'"),
        ("scenarios: {matte: pink}", "scenarios.matte: expected 'black', 'white', 'grey' or 'mean'; found 'pink'"),
        ("scenarios: {object_scales: [1.0, 0.5]}", "object_scales: [1.0, 0.5]; expected two factors above 0"),
        ("scenarios: {object_scales: [0.0, 0.5]}", "object_scales: [0.0, 0.5]; expected two factors above 0"),
        ("scenarios: {object_weight: 0.0}", "scenarios.object_weight"),
        ("scenarios: {object_weight: 1.1}", "scenarios.object_weight"),
        ("watermarks: {names: [logo]}", "watermarks.names.0: expected one of watermark; found 'logo'"),
        (
            "watermarks: {font: a.otf}",
            "font without font_sha256: changes would go unnoticed; add the output of sha256sum",
        ),
        ("watermarks: {font_sha256: 12}", "watermarks.font_sha256"),
        (f"watermarks: {{font_sha256: {'a' * 64}}}", "font_sha256 without font; expected both, or neither"),
        (
            "measures: {scenarios: {baselines: {model: vgg}}}",
            "measures.scenarios.baselines.model: unknown model 'vgg'; expected one of standard",
        ),
        (
            "{masks: [{folder: a, origin: person}], scenarios: {names: [blur]}, measures: {scenarios: {baselines: "
            "{scenario: image_r}}}}",
            "measures.scenarios.baselines.scenario: unknown scenario 'image_r'; expected one of unchanged, blur_",
        ),
        ("further_models: {robust: {source: timm, name: a}}", "further_models.robust: the edition has this role"),
        ("further_models: {alexnet: {source: timm, name: a}}", "alexnet names the published table"),
        (
            "{images: own, further_models: {more: {source: timm, name: a}}}",
            "more has no set of its own; expected images",
        ),
        ("further_models: {more: {source: tim, name: a}}", "further_models.more.source"),
        ("further_models: {more: 'x=nets:make'}", "'x=nets:make'; expected MODULE:CALLABLE, or a section with source"),
        ("images: both", "images"),
        ("pictures: union", "unknown key 'pictures'"),
        ("corruptions: {reference: alexnet}", "corruptions: unknown key 'reference'; expected published, names, sev"),
        ("measures: {blurs: {}}", "measures: unknown key 'blurs'; expected corruptions, perturbations, scenarios"),
        ("measures: {scenarios: {answer: all}}", "measures.scenarios: unknown key 'answer'; expected answers"),
        ("attack: {images: 7}", "unknown key 'attack'; expected images, jpeg, seed"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        read_study_params(study(tmp_path, text + "\n"), ROLES, imagenet())
    assert message in str(error.value)
    assert str(tmp_path / "params.yaml") in str(error.value)


@pytest.mark.parametrize(
    ("section", "known", "groups"),
    [
        ("corruptions", IMAGENET_C, NAMED_GROUPS),
        ("perturbations", ALL_PERTURBATIONS, PERTURBATION_GROUPS),
        ("scenarios", SCENARIOS, SCENARIO_GROUPS),
    ],
)
def test_an_unknown_name_is_reported_with_the_whole_list(
    tmp_path: Path, section: str, known: tuple[str, ...], groups: dict[str, tuple[str, ...]]
) -> None:
    with pytest.raises(CleansetError) as error:
        read_study_params(study(tmp_path, f"{section}: {{names: [rain]}}\n"), ROLES, imagenet())
    assert f"expected one of {', '.join(known)}" in str(error.value)
    assert f", or a group: {', '.join(groups)}; found ['rain']" in str(error.value)


def test_the_sets_are_joined() -> None:
    first, both, cropped = entry(1), entry(2), entry(3, crop=(0, 0, 50, 40))
    table = join_sets({"standard": [both, first], "robust": [cropped, both]})
    assert table["file"].tolist() == [
        "n01440764/ILSVRC2012_val_00000001.JPEG",
        "n01440764/ILSVRC2012_val_00000002.JPEG",
        "n01440764/ILSVRC2012_val_00000003.png",
    ]
    assert table["sets"].tolist() == [["standard"], ["standard", "robust"], ["robust"]]
    assert table["crop"].tolist() == [None, None, (0, 0, 50, 40)]
    assert images_for(table, "union", "robust")["file"].tolist() == table["file"].tolist()
    assert images_for(table, "own", "robust")["image_id"].str[-1].tolist() == ["2", "3"]


def test_one_file_that_is_two_images() -> None:
    with pytest.raises(CleansetError, match="another image in the set of robust than in the set of standard"):
        join_sets({"standard": [entry(1)], "robust": [entry(1, digest="b" * 64)]})


def test_no_images() -> None:
    with pytest.raises(CleansetError, match="the sets of standard, robust have no images"):
        join_sets({"standard": [], "robust": []})


def test_what_is_read_off() -> None:
    logits = np.full((2, 1000), -50.0)
    logits[0, [3, 7, 9]] = 2.0, 1.0, 0.5
    logits[1, [3, 9]] = 0.25, 4.0
    found = answer_columns(logits, [9, 7])
    assert found["top5_class"][:, 0].tolist() == [3, 9]
    assert found["largest_logit"].tolist() == [2.0, 4.0]
    assert found["second_logit"].tolist() == [1.0, 0.25]
    exact = [np.log(np.exp(row).sum()) for row in logits]
    assert found["log_sum_exp"].tolist() == pytest.approx(exact, rel=1e-6)
    assert found["class_of_edition"].tolist() == [7, 9]


def test_the_logit_of_an_images_class() -> None:
    logits = np.arange(3000.0).reshape(3, 1000)[:, ::-1]
    names = [ChangeName("b.png", "fog", 2), ChangeName("a b.png", "snow", 1), ChangeName("c.png", "clean", 0)]
    found = ReadAnswers([9, 7], {"a b.png": 0, "b.png": 999, "c.png": 7})(logits, names)
    assert found["class_logit"].tolist() == [0, 1999, 2992]
    assert found.keys() == ANSWERS.keys()
    assert answer_columns(logits, [9, 7]).keys() == ANSWERS.keys() - {"class_logit"}


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_a_number(broken: float) -> None:
    logits = np.zeros((2, 1000))
    logits[1, 4] = broken
    with pytest.raises(ValueError, match=r"^a logit is NaN or infinite$"):
        answer_columns(logits, [7])


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("corruptions", ["file", "change", "severity"]),
        ("perturbations", ["file", "change", "frame"]),
        ("scenarios", ["file", "change"]),
    ],
)
def test_names_become_columns(tmp_path: Path, family: str, keys: list[str]) -> None:
    name = ChangeName("n01440764/ILSVRC2012_val_00000001.JPEG", "fog", 4 if len(keys) > 2 else 0)
    rows = to_table([Scored([name], ReadAnswers([0, 1], {name.file: 5})(np.arange(1000.0)[None] % 7, [name]))])
    path = tmp_path / "answers.parquet"
    write_table(path, with_family_step(rows, family_named(family)), ANSWER_TABLES[family], imagenet())
    table = read_table(path, ANSWER_TABLES[family], imagenet())
    assert table.columns.tolist()[: len(keys) + 1] == [*keys, "top5_class"]
    assert tuple(table.iloc[0][keys]) == name[: len(keys)]
    again = with_step(table, family_named(family))
    assert again[[*ChangeName._fields]].iloc[0].tolist() == list(name)
    assert str(name) == f"n01440764/ILSVRC2012_val_00000001.JPEG fog 0{name.step}"


@pytest.mark.parametrize(
    ("count", "expected"),
    [(None, [0, 1, 2, 3, 4, 5]), (2, [0, 3]), (3, [0, 3, 5]), (5, [0, 1, 3, 4, 5]), (9, [0, 1, 2, 3, 4, 5])],
)
def test_the_first_images(count: int | None, expected: list[int]) -> None:
    images = pd.DataFrame({"file": list("abcdef"), "class_index": [1, 1, 1, 2, 2, 3]})
    assert first_images(images, count)["file"].tolist() == [list("abcdef")[place] for place in expected]


def test_frames_and_levels() -> None:
    names = ["noise", "translate", "speckle_noise"]
    wanted = Perturbations.model_validate({"names": names, "difficulty": 3})
    assert wanted.frame_counts() == {"gaussian_noise": 31, "shot_noise": 31, "translate": 41, "speckle_noise": 31}
    assert list(wanted.levels().values()) == [3, 3, 1, 3]
    assert len(wanted.changes()) == 134
    of_first_30 = Perturbations.model_validate({"names": names, "frames": "first_30"})
    assert set(of_first_30.frame_counts().values()) == {30}


def box(*edges: int) -> Any:
    """A column with one box."""
    return [edges]


CLEAN_IMAGES = pd.DataFrame({"file": ["a.JPEG", "b.png"], "image_id": ["a", "b"], "crop": [None, (0, 0, 5, 5)]})
CLEAN_ANSWERS = pd.DataFrame(
    {
        "top5_class": [np.arange(5), np.arange(1, 6)],
        "top5_probability": [np.linspace(0.5, 0.1, 5, dtype=np.float32)] * 2,
        "log_odds": np.array([1.5, 2.5], np.float32),
    }
)
WHOLE = CLEAN_ANSWERS.iloc[:1].assign(image_id=["a"])
CROPPED = CLEAN_ANSWERS.iloc[1:].assign(image_id=["b"], crop=box(0, 0, 5, 5))
FIFTH = pd.Series([np.array([0.5, 0.4, 0.3, 0.2, 0.05], np.float32)], WHOLE.index)


def test_clean_images_with_the_stored_scores() -> None:
    check_clean("standard", CLEAN_IMAGES, CLEAN_ANSWERS, WHOLE, CROPPED)


@pytest.mark.parametrize(
    ("whole", "cropped", "message"),
    [
        (
            {},
            {"log_odds": np.nextafter(CROPPED["log_odds"], np.float32(9))},
            r"b\.png: standard gives log_odds 2\.5, the stored scores 2\.50000024; expected the same bits: run dvc",
        ),
        (
            {"top5_probability": FIFTH},
            {},
            r"a\.JPEG: .* 0\.2\d* 0\.1\d*, the stored scores 0\.5 0\.4\d* 0\.3\d* 0\.2\d* 0\.05\d*; ",
        ),
        ({}, {"crop": box(0, 0, 5, 6)}, r"b\.png: standard has no stored scores of it"),
    ],
    ids=["a bit", "the fifth probability", "nothing stored"],
)
def test_clean_images_with_other_scores(whole: dict[str, Any], cropped: dict[str, Any], message: str) -> None:
    with pytest.raises(CleansetError, match=f"^{message}"):
        check_clean("standard", CLEAN_IMAGES, CLEAN_ANSWERS, WHOLE.assign(**whole), CROPPED.assign(**cropped))
