"""Golden numbers: RobustBench's 12 models on 5,000 images of ImageNet-C; its JSON files agree to 2 decimals."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.evaluation.measures import Measure
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.answer_arrays import Answers
from cleanset.studies.robustness.corruptions.measures import (
    ALEXNET_CLEAN_ERROR,
    ALEXNET_ERRORS,
    ALEXNET_ERRORS_3DCC,
    CorruptionStudy,
)
from cleanset.studies.robustness.corruptions.params import (
    CORRUPTIONS,
    IMAGENET_C,
    SEVERITIES,
    CorruptionMeasures,
    Corruptions,
)
from cleanset.studies.robustness.results import ALL, StudiedImages
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED

IMAGES = 5000
ACCURACY_AND_MCE = {
    "Standard_R50": (39.4829, 76.3774),
    "Erichson2022NoisyMix": (52.4696, 60.4575),
    "Erichson2022NoisyMix_new": (53.2840, 59.4280),
    "Hendrycks2020Many": (52.9048, 60.0374),
    "Hendrycks2020AugMix": (49.3285, 64.1742),
    "Geirhos2018_SIN": (39.9248, 76.6713),
    "Geirhos2018_SIN_IN": (45.7584, 68.6734),
    "Geirhos2018_SIN_IN_IN": (42.0035, 73.1860),
    "Salman2020Do_50_2_Linf": (36.0925, 80.0039),
    "Tian2022Deeper_DeiT-S": (62.9051, 47.6145),
    "Tian2022Deeper_DeiT-B": (67.5544, 41.6951),
    "AlexNet": (21.1181, 100.0),
}
PUBLISHED_ALEXNET_MCE = {
    "Standard_R50": 76.3673,
    "Erichson2022NoisyMix": 60.4623,
    "Erichson2022NoisyMix_new": 59.4309,
}
CLEAN_AND_RELATIVE_MCE = {
    "Standard_R50": (0.7672, 107.3101),
    "Erichson2022NoisyMix": (0.7698, 71.7183),
    "Erichson2022NoisyMix_new": (0.7690, 69.0587),
}
ALEXNET_CLEAN_ACCURACY = 0.5624
MEAN_OF_RATIOS = 75.1500
"""What a mean over the severities of the ratios would give for Standard_R50, instead of the ratio of the sums."""
AVERAGES = (
    0.886428, 0.894468, 0.922640, 0.819880, 0.826268, 0.785948, 0.798360, 0.866816, 0.826572, 0.819324,
    0.564592, 0.853204, 0.646056, 0.717840, 0.606500, 0.845388, 0.787108, 0.717512, 0.658248,
)  # fmt: skip
"""AlexNet's mean errors as google-research/augmix lists them, and the validation corruptions'."""


Lines = dict[tuple[str, str, str], Measure]


def first(count: float, images: int) -> np.ndarray:
    """Flags of the first `count` of some images, which must be a whole number but for rounding."""
    assert count == pytest.approx(round(count), abs=1e-6)
    return np.arange(images) < round(count)


def answers(errors: pd.DataFrame, unchanged: float, images: int) -> Answers:
    """Answers of a model with these errors, corruptions x severities, and this error on unchanged images."""
    shares = {CLEAN: [0.0], UNCHANGED: [unchanged], **dict(zip(errors.index, errors.to_numpy().tolist(), strict=True))}
    found = {}
    for name, of_steps in shares.items():
        # all with the confidence and the loss 0
        found[name] = np.zeros((images, len(of_steps), 3), np.float32)
        found[name][..., 0] = np.stack([first(each * images, images) for each in of_steps], axis=1)
    return found


def measured(
    models: Mapping[str, tuple[pd.DataFrame, float]],
    reference: str,
    images: int = IMAGES,
    trained_on: dict[str, list[str]] | None = None,
) -> Lines:
    """What stage measure reports of models with these errors, by model, measure and corruption."""
    corruptions = next(iter(models.values()))[0].index.tolist()
    found = {name: answers(errors, unchanged, images) for name, (errors, unchanged) in models.items()}
    studied = StudiedImages(
        class_indices=np.zeros(images, np.int64),
        sets=[[]] * images,
        roles=list(models),
        bootstrap=Bootstrap(resamples=2),
        selections=(ALL,),
        classes=imagenet(),
    )
    wanted = Corruptions.model_validate({"names": corruptions, "published": "folder"})
    measures = CorruptionMeasures.model_validate({"reference": reference, "trained_on": trained_on or {}})
    lines = CorruptionStudy(studied, found, wanted, measures).lines()
    return {(each.model, each.measure, each.change): each for each in lines}


def table(errors: Mapping[str, list[float]]) -> pd.DataFrame:
    return pd.DataFrame(list(errors.values()), list(errors), list(SEVERITIES))


def percent(value: float) -> float:
    return round(100 * value, 4)


@pytest.fixture(scope="session")
def robustbench(real: Path) -> dict[str, pd.DataFrame]:
    """The errors of each model, corruptions x severities."""
    table = pd.read_csv(real / "robustbench_imagenet_c.csv", header=[0, 1], index_col=0)
    errors = {str(model): 1 - row.unstack().rename(columns=int) for model, row in table.iterrows()}
    return {model: each.loc[list(CORRUPTIONS), list(SEVERITIES)] for model, each in errors.items()}


@pytest.fixture(scope="session")
def clean_errors() -> dict[str, float]:
    """The errors on unchanged images; none for models without published ones in RobustBench."""
    published = {model: 1 - clean for model, (clean, _) in CLEAN_AND_RELATIVE_MCE.items()}
    return dict.fromkeys(ACCURACY_AND_MCE, 0.0) | published | {"AlexNet": 1 - ALEXNET_CLEAN_ACCURACY}


@pytest.fixture(scope="session")
def by_alexnet(robustbench: dict[str, pd.DataFrame], clean_errors: dict[str, float]) -> Lines:
    """The measures with AlexNet, as RobustBench measured it, as the reference."""
    return measured({name: (errors, clean_errors[name]) for name, errors in robustbench.items()}, "AlexNet")


def test_the_golden_numbers_are_of_all_models(robustbench: dict[str, pd.DataFrame]) -> None:
    assert sorted(robustbench) == sorted(ACCURACY_AND_MCE)


@pytest.mark.parametrize("model", ACCURACY_AND_MCE)
def test_robustbenchs_accuracy_and_mce(by_alexnet: Lines, model: str) -> None:
    error, mce = by_alexnet[model, "mean_error", ""], by_alexnet[model, "mce", ""]
    assert (percent(1 - error.value), percent(mce.value)) == ACCURACY_AND_MCE[model]
    assert mce.problem == ""


@pytest.mark.parametrize("model", CLEAN_AND_RELATIVE_MCE)
def test_relative_mce(by_alexnet: Lines, model: str) -> None:
    assert percent(by_alexnet[model, "relative_mce", ""].value) == CLEAN_AND_RELATIVE_MCE[model][1]


def test_a_mean_of_ratios_is_another_number(robustbench: dict[str, pd.DataFrame]) -> None:
    assert percent(float((robustbench["Standard_R50"] / robustbench["AlexNet"]).to_numpy().mean())) == MEAN_OF_RATIOS


def test_measures_by_the_published_alexnet(
    robustbench: dict[str, pd.DataFrame], clean_errors: dict[str, float]
) -> None:
    """mCE is published; relative mCE from sums in plain Python."""
    found = measured({name: (robustbench[name], clean_errors[name]) for name in PUBLISHED_ALEXNET_MCE}, "alexnet")
    for model, mce in PUBLISHED_ALEXNET_MCE.items():
        assert percent(found[model, "mce", ""].value) == mce
        relative = [
            (robustbench[model].loc[name].sum() - 5 * clean_errors[model])
            / sum(each - ALEXNET_CLEAN_ERROR for each in ALEXNET_ERRORS[name])
            for name in CORRUPTIONS
        ]
        assert found[model, "relative_mce", ""].value == pytest.approx(sum(relative) / 15)


def test_the_published_errors_of_alexnet() -> None:
    assert tuple(ALEXNET_ERRORS) == IMAGENET_C
    assert [float(np.mean(errors)) for errors in ALEXNET_ERRORS.values()] == pytest.approx(AVERAGES, abs=1e-6)
    by_severity = np.sum(list(ALEXNET_ERRORS.values()), axis=0)
    assert by_severity.tolist() == pytest.approx([11.71052, 13.73628, 15.07044, 16.36976, 17.32876], abs=1e-9)
    assert np.mean([ALEXNET_ERRORS[name] for name in CORRUPTIONS]) == pytest.approx(0.788993, abs=5e-7)
    assert round(1 - ALEXNET_CLEAN_ERROR, 5) == 0.56522
    found = measured(
        {"a": (table({name: list(each) for name, each in ALEXNET_ERRORS.items()}), 0.43478)}, "alexnet", 50_000
    )
    for name in IMAGENET_C:
        assert found["a", "ce", name].value == pytest.approx(1)
    assert found["a", "mce", ""].value == pytest.approx(1)
    assert found["a", "relative_mce", ""].value == pytest.approx(1)


def test_alexnets_errors_on_3dcc() -> None:
    """Its mean accuracy of 28.47 % is RobustBench's; errors of whole images of 5,000; each of its own CE is 1."""
    errors = np.array(list(ALEXNET_ERRORS_3DCC.values()))
    assert errors.shape == (12, 5)
    assert round(100 * (1 - errors.mean()), 2) == 28.47
    assert np.allclose(errors * 5000, np.rint(errors * 5000), rtol=0, atol=1e-9)
    given = table({name: list(each) for name, each in ALEXNET_ERRORS_3DCC.items()})
    found = measured({"a": (given, 0.4376)}, "alexnet")
    assert found["a", "mce_3dcc", ""].value == pytest.approx(1)


def test_ce_is_the_ratio_of_the_sums() -> None:
    errors = table({"fog": [0.0, 0.1, 0.2, 0.3, 0.4], "snow": [0.5] * 5})
    reference = table({"fog": [0.1, 0.1, 0.1, 0.1, 0.1], "snow": [0.2, 0.4, 0.6, 0.8, 1.0]})
    found = measured({"a": (errors, 0.0), "other": (reference, 0.0)}, "other", 100)
    assert found["a", "ce", "fog"].value == pytest.approx(2)
    assert found["a", "ce", "snow"].value == pytest.approx(2.5 / 3)


def with_all(**given: list[float]) -> pd.DataFrame:
    """Errors of the 15 test corruptions, half of all images but for the given ones."""
    return table(dict.fromkeys(CORRUPTIONS, [0.5] * 5) | given)


def test_a_corruption_on_which_the_reference_hardly_errs_has_no_ce() -> None:
    """Nine errors of the reference in all, and ten."""
    reference = with_all(fog=[0.0, 0.01, 0.02, 0.03, 0.03], snow=[0.0, 0.01, 0.03, 0.03, 0.03])
    models = {"a": (with_all(fog=[0.1] * 5, snow=[0.1] * 5), 0.0), "strong": (reference, 0.0)}
    found = measured(models, "strong", 100, {"a": ["fog"], "strong": ["noise", "blur", "weather", "digital"]})
    assert math.isnan(found["a", "ce", "fog"].value)
    assert found["a", "ce", "fog"].problem == "the reference makes too few errors"
    assert found["a", "ce", "snow"].value == pytest.approx(5)
    for measure, word in (("mce", ""), ("relative_mce", "relative ")):
        assert math.isnan(found["a", measure, ""].value)
        assert found["a", measure, ""].problem == f"no {word}mCE: 1 of 15 corruptions have no {word}CE: fog"
    assert found["a", "mce_unseen", ""].value == pytest.approx((5 + 13) / 14)
    assert math.isnan(found["strong", "mce_unseen", ""].value)
    assert found["strong", "mce_unseen", ""].problem == "no mCE: no corruptions to take the mean over"


def test_relative_ce_needs_ten_errors_more_than_on_unchanged_images() -> None:
    """Nine errors of the reference beyond those on unchanged images, and ten, in all five severities."""
    models = {"a": (with_all(), 0.1)}
    few = measured(models | {"strong": (with_all(fog=[0.12] * 4 + [0.11]), 0.1)}, "strong", 100)
    assert few["a", "relative_mce", ""].problem == "no relative mCE: 1 of 15 corruptions have no relative CE: fog"
    assert few["a", "mce", ""].problem == ""
    enough = measured(models | {"strong": (with_all(fog=[0.12] * 5), 0.1)}, "strong", 100)
    assert enough["a", "relative_mce", ""].value == pytest.approx((20 + 14) / 15)


def test_validation_corruptions_are_not_part_of_mce() -> None:
    errors = with_all(saturate=[0.0] * 5)
    found = measured({"a": (errors, 0.0), "b": (with_all(saturate=[0.5] * 5), 0.0)}, "b", 100)
    assert found["a", "mce", ""].value == 1
    assert found["a", "ce", "saturate"].value == 0
    fewer = measured({"a": (errors.drop("fog"), 0.0)}, "alexnet", 100)
    assert not [each for each in fewer if "mce" in each[1]]


def test_mce_over_the_corruptions_that_a_model_has_not_seen() -> None:
    """A corruption's error is a multiple of its place: the mean of CE is that of the places."""
    given = table({name: [(place + 1) / 100] * 5 for place, name in enumerate(CORRUPTIONS)})
    models = {"a": (given, 0.0), "b": (with_all(), 0.0)}
    found = measured(models, "b", 100, {"a": ["noise", "brightness", "saturate"]})
    places = [place + 1 for place in range(15) if CORRUPTIONS[place] != "brightness" and place > 2]
    assert len(places) == 11
    assert found["a", "mce_unseen", ""].value == pytest.approx(sum(places) / 11 / 50)
    assert found["b", "mce_unseen", ""].value == 1
