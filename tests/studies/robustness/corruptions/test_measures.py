"""Golden numbers: RobustBench's 12 models on 5,000 images of ImageNet-C; its JSON files agree to 2 decimals."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.robustness.corruptions.measures import (
    ALEXNET,
    ALEXNET_ERRORS,
    MeanCE,
    Reference,
    ce,
    corruption_errors,
    error_table,
    mean_corruption_error,
    relative_ce,
    relative_corruption_errors,
    unseen_corruptions,
)
from cleanset.studies.robustness.corruptions.params import ALL_CORRUPTIONS, CORRUPTIONS, SEVERITIES
from tests.properties import examples

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


@pytest.fixture(scope="session")
def robustbench(real: Path) -> dict[str, pd.DataFrame]:
    """The errors of each model, corruptions x severities."""
    table = pd.read_csv(real / "robustbench_imagenet_c.csv", header=[0, 1], index_col=0)
    return {str(model): 1 - row.unstack().rename(columns=int) for model, row in table.iterrows()}


def percent(value: float) -> float:
    return round(100 * value, 4)


def test_the_golden_numbers_are_of_all_models(robustbench: dict[str, pd.DataFrame]) -> None:
    assert sorted(robustbench) == sorted(ACCURACY_AND_MCE)
    assert all(sorted(errors.index) == sorted(CORRUPTIONS) for errors in robustbench.values())


@pytest.mark.parametrize("model", ACCURACY_AND_MCE)
def test_robustbenchs_accuracy_and_mce(robustbench: dict[str, pd.DataFrame], model: str) -> None:
    errors = robustbench[model]
    reference = Reference("AlexNet", robustbench["AlexNet"], images=5000)
    mce = mean_corruption_error(corruption_errors(errors, reference))
    assert (percent(1 - float(errors.to_numpy().mean())), percent(mce.value)) == ACCURACY_AND_MCE[model]
    assert mce.problem is None


@pytest.mark.parametrize("model", PUBLISHED_ALEXNET_MCE)
def test_mce_by_the_published_alexnet(robustbench: dict[str, pd.DataFrame], model: str) -> None:
    mce = mean_corruption_error(corruption_errors(robustbench[model], ALEXNET))
    assert percent(mce.value) == PUBLISHED_ALEXNET_MCE[model]


@pytest.mark.parametrize("model", CLEAN_AND_RELATIVE_MCE)
def test_relative_mce(robustbench: dict[str, pd.DataFrame], model: str) -> None:
    clean, expected = CLEAN_AND_RELATIVE_MCE[model]
    reference = Reference("AlexNet", robustbench["AlexNet"], 1 - ALEXNET_CLEAN_ACCURACY, 5000)
    relative = relative_corruption_errors(robustbench[model], 1 - clean, reference)
    assert percent(mean_corruption_error(relative).value) == expected


def test_a_mean_of_ratios_is_another_number(robustbench: dict[str, pd.DataFrame]) -> None:
    errors, alexnet = robustbench["Standard_R50"], robustbench["AlexNet"]
    assert percent(float((errors / alexnet).to_numpy().mean())) == MEAN_OF_RATIOS
    ratio_of_sums = mean_corruption_error(corruption_errors(errors, Reference("AlexNet", alexnet))).value
    assert percent(ratio_of_sums) == 76.3774


def test_the_published_errors_of_alexnet() -> None:
    assert tuple(ALEXNET_ERRORS) == ALL_CORRUPTIONS
    assert [float(np.mean(errors)) for errors in ALEXNET_ERRORS.values()] == pytest.approx(AVERAGES, abs=1e-6)
    by_severity = np.sum(list(ALEXNET_ERRORS.values()), axis=0)
    assert by_severity.tolist() == pytest.approx([11.71052, 13.73628, 15.07044, 16.36976, 17.32876], abs=1e-9)
    assert np.mean([ALEXNET_ERRORS[name] for name in CORRUPTIONS]) == pytest.approx(0.788993, abs=5e-7)
    assert mean_corruption_error(corruption_errors(ALEXNET.errors, ALEXNET)) == MeanCE(1.0, CORRUPTIONS, ())


def test_the_errors_of_two_images() -> None:
    misclassified = np.zeros((2, 2, 3), bool)
    misclassified[0, 1] = True
    misclassified[1, 1, 2] = True
    errors = error_table(misclassified, ["fog", "snow"], [1, 2, 3])
    assert errors.to_dict("index") == {"fog": {1: 0.0, 2: 0.0, 3: 0.0}, "snow": {1: 0.5, 2: 0.5, 3: 1.0}}
    assert errors.mean(axis=1).to_dict() == {"fog": 0.0, "snow": pytest.approx(2 / 3)}


def table(errors: dict[str, list[float]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(errors, orient="index", columns=list(SEVERITIES))


def test_ce_is_the_ratio_of_the_sums() -> None:
    errors = table({"fog": [0.0, 0.1, 0.2, 0.3, 0.4], "snow": [0.5] * 5})
    reference = Reference("other", table({"snow": [0.2, 0.4, 0.6, 0.8, 1.0], "fog": [0.1, 0.1, 0.1, 0.1, 0.1]}))
    assert corruption_errors(errors, reference).to_dict() == {"fog": pytest.approx(2), "snow": pytest.approx(2.5 / 3)}


def test_the_order_of_columns_and_rows_does_not_matter() -> None:
    errors = table({"fog": [0.0, 0.1, 0.2, 0.3, 0.4]})
    reference = Reference("other", ALEXNET.errors.iloc[::-1, [4, 2, 0, 1, 3]])
    assert corruption_errors(errors, reference).equals(corruption_errors(errors, ALEXNET))


def test_a_corruption_on_which_the_reference_hardly_errs_has_no_ce() -> None:
    nine = [0.0, 0.01, 0.02, 0.03, 0.03]
    ten = [0.0, 0.01, 0.03, 0.03, 0.03]
    reference = Reference("strong", table({"fog": nine, "snow": ten}), 0.0, images=100)
    errors = table({"fog": [0.1] * 5, "snow": [0.1] * 5})
    found = corruption_errors(errors, reference)
    assert math.isnan(found["fog"])
    assert found["snow"] == pytest.approx(5)
    mce = mean_corruption_error(found, ["fog", "snow"])
    assert math.isnan(mce.value)
    assert mce.lacking == ("fog",)
    assert mce.problem == "no mCE: 1 of 2 corruptions have no CE: fog"
    assert mean_corruption_error(found, ["snow"]).value == pytest.approx(5)


def test_relative_ce_needs_ten_errors_more_than_on_clean_images() -> None:
    reference = Reference("strong", table({"fog": [0.12] * 4 + [0.11], "snow": [0.12] * 5}), 0.10, images=100)
    errors = table({"fog": [0.3] * 5, "snow": [0.3] * 5})
    found = relative_corruption_errors(errors, 0.1, reference)
    assert math.isnan(found["fog"])
    assert found["snow"] == pytest.approx(10)
    assert corruption_errors(errors, reference).notna().all()


def test_mce_is_missing_while_corruptions_are() -> None:
    mce = mean_corruption_error(corruption_errors(ALEXNET.errors.drop(["fog", "saturate"]), ALEXNET))
    assert math.isnan(mce.value)
    assert mce.lacking == ("fog",)


def test_validation_corruptions_are_not_part_of_mce() -> None:
    errors = ALEXNET.errors.copy()
    errors.loc["saturate"] = 0.0
    assert mean_corruption_error(corruption_errors(errors, ALEXNET)).value == 1


@pytest.mark.parametrize("severities", [[1, 2, 3], [1, 2, 3, 4, 5, 6], []])
def test_ce_needs_the_five_severities_and_errors_do_not(severities: list[int]) -> None:
    errors = error_table(np.ones((3, 1, len(severities)), bool), ["fog"], severities)
    found = ", ".join(str(each) for each in severities) or "none"
    with pytest.raises(CleansetError, match=f"errors: found severities {found}; expected 1 to 5 for CE; measure all"):
        corruption_errors(errors, ALEXNET)
    reference = Reference("weak", pd.DataFrame([[1.0] * len(severities)], ["fog"], severities))
    with pytest.raises(CleansetError, match=f"reference weak: found severities {found};"):
        corruption_errors(ALEXNET.errors, reference)


def test_a_reference_without_the_corruption_is_refused() -> None:
    reference = Reference("weak", ALEXNET.errors.drop(index=["fog", "snow"]), 0.4)
    with pytest.raises(CleansetError, match="reference weak: found no errors of snow, fog; expected those of every"):
        corruption_errors(ALEXNET.errors, reference)


def test_relative_ce_without_the_references_clean_error_is_refused() -> None:
    with pytest.raises(
        CleansetError, match="reference weak: found no error on clean images; expected one for relative"
    ):
        relative_corruption_errors(ALEXNET.errors, 0.4, Reference("weak", ALEXNET.errors))


def test_mce_over_the_corruptions_that_a_model_has_not_seen() -> None:
    unseen = unseen_corruptions(["noise", "brightness", "saturate"])
    assert len(unseen) == 11
    assert not {"gaussian_noise", "shot_noise", "impulse_noise", "brightness", "saturate"} & set(unseen)
    values = pd.Series(np.arange(15.0), index=CORRUPTIONS)
    expected = sum(place for place, name in enumerate(CORRUPTIONS) if name in unseen) / 11
    assert mean_corruption_error(values, unseen).value == pytest.approx(expected)
    assert unseen_corruptions([]) == CORRUPTIONS
    nothing = mean_corruption_error(values, unseen_corruptions(["noise", "blur", "weather", "digital"]))
    assert math.isnan(nothing.value)
    assert nothing.problem == "no mCE: no corruptions to take the mean over"
    with pytest.raises(CleansetError, match="unknown corruption 'nose'"):
        unseen_corruptions(["nose"])


@examples(50)
@given(st.integers(0, 2**32))
def test_draws_in_front_are_computed_each_by_itself(seed: int) -> None:
    generator = np.random.default_rng(seed)
    errors, reference = generator.random((2, 4, 3, 5))
    clean, reference_clean = generator.random((2, 4)) / 10

    def by_hand(own: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> list[list[float]]:
        return [[sum(a) / sum(b) for a, b in zip(x, y, strict=True)] for x, y in zip(own, other, strict=True)]

    assert ce(errors, reference) == pytest.approx(np.array(by_hand(errors, reference)))
    moved = errors - clean[:, None, None], reference - reference_clean[:, None, None]
    assert relative_ce(errors, clean, reference, reference_clean) == pytest.approx(np.array(by_hand(*moved)))
