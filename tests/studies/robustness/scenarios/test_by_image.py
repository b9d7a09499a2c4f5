"""The effects of model, scenario and class by image, against other programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.anova import AnovaRM

from cleanset.studies.robustness.scenarios.by_image import between_test, by_image, within_test
from cleanset.studies.robustness.scenarios.regression import FACTORS

CLASSES = np.array([3, 3, 3, 3, 5, 5, 5, 9, 9, 9, 9])
LEVELS = (["b", "a"], ["unchanged", "x", "y", "z"], [5, 3, 9])


@pytest.fixture(scope="module")
def correct() -> npt.NDArray[np.bool_]:
    """Images x models x scenarios: a hard image is hard in all cells."""
    random = np.random.default_rng(4)
    hard = random.normal(size=(11, 1, 1)) + (CLASSES == 9)[:, None, None]
    return np.asarray(random.normal(size=(11, 2, 4)) + np.arange(4) / 3 + hard < 1)


@pytest.fixture(scope="module")
def found(correct: npt.NDArray[np.bool_]) -> dict[str, pd.DataFrame]:
    return by_image(correct, CLASSES, LEVELS, FACTORS)


def frame(means: npt.NDArray[np.float64]) -> pd.DataFrame:
    images, levels = np.indices(means.shape)
    return pd.DataFrame({"image": images.ravel(), "level": levels.ravel(), "value": means.ravel()})


@pytest.mark.parametrize(("source", "axis"), [("model", 2), ("scenario", 1)])
def test_within_images_as_statsmodels(
    correct: npt.NDArray[np.bool_], found: dict[str, pd.DataFrame], source: str, axis: int
) -> None:
    means = correct.mean(axis=axis)
    row: Any = found["by_image_anova"].set_index("source").loc[source]
    expected = AnovaRM(frame(means), "value", "image", within=["level"]).fit().anova_table.iloc[0]
    assert row["f"] == pytest.approx(expected["F Value"])
    assert [row["df"], row["residual_df"]] == [expected["Num DF"], expected["Den DF"]]
    # Greenhouse and Geisser's epsilon from the entries of the covariance, as B. J. Winer writes it
    s = np.cov(means.T)
    k = len(s)
    above = k**2 * (np.trace(s) / k - s.mean()) ** 2
    below = (k - 1) * ((s**2).sum() - 2 * k * (s.mean(axis=1) ** 2).sum() + k**2 * s.mean() ** 2)
    epsilon = above / below
    assert row["epsilon"] == pytest.approx(epsilon)
    assert row["p"] == pytest.approx(stats.f.sf(row["f"], epsilon * row["df"], epsilon * row["residual_df"]))
    if k > 2:
        assert epsilon < 0.99


def test_between_images_as_scipy(correct: npt.NDArray[np.bool_], found: dict[str, pd.DataFrame]) -> None:
    means = correct.mean(axis=(1, 2))
    row: Any = found["by_image_anova"].set_index("source").loc["class_index"]
    expected = stats.f_oneway(*(means[each == CLASSES] for each in (3, 5, 9)))
    assert (row["f"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert (row["df"], row["residual_df"], row["epsilon"]) == (2, 8, 1)


def test_terms_as_scipy(correct: npt.NDArray[np.bool_], found: dict[str, pd.DataFrame]) -> None:
    terms = found["by_image"].set_index(["factor", "level"])
    assert list(terms.index) == [
        ("model", "a"), ("scenario", "x"), ("scenario", "y"), ("scenario", "z"), ("class_index", 3), ("class_index", 9),
    ]  # fmt: skip
    for place, name in enumerate("xyz", start=1):
        means = correct.mean(axis=1)
        paired: Any = stats.ttest_rel(means[:, place], means[:, 0])
        row: Any = terms.loc[("scenario", name)]
        assert (row["t"], row["p"], row["df"]) == pytest.approx((paired.statistic, paired.pvalue, 10))
        assert (row["low"], row["high"]) == pytest.approx(tuple(paired.confidence_interval()))
        assert row["estimate"] == pytest.approx(correct[:, :, place].mean() - correct[:, :, 0].mean())
    # the variance is that of all classes: of two alone it is scipy's
    two = np.isin(CLASSES, [3, 5])
    pair: dict[str, Any] = by_image(correct[two], CLASSES[two], (*LEVELS[:2], [5, 3]), FACTORS)
    expected: Any = stats.ttest_ind(*(correct.mean(axis=(1, 2))[each == CLASSES] for each in (3, 5)))
    assert pair["by_image"].iloc[-1]["p"] == pytest.approx(expected.pvalue)


def test_holm_is_over_the_levels_of_a_factor(found: dict[str, pd.DataFrame]) -> None:
    for _, rows in found["by_image"].groupby("factor"):
        order = np.argsort(rows["p"].to_numpy())
        steps = rows["p"].to_numpy()[order] * np.arange(len(rows), 0, -1)
        assert rows["p_holm"].to_numpy()[order] == pytest.approx(np.minimum(1, np.maximum.accumulate(steps)))


@pytest.mark.parametrize(
    ("change", "of"),
    [
        (np.zeros_like, {"model", "scenario", "class_index"}),
        (lambda each: each[:, :1], {"scenario", "class_index"}),
    ],
)
def test_what_images_do_not_tell_has_no_p(
    correct: npt.NDArray[np.bool_], change: Callable[[npt.NDArray[np.bool_]], npt.NDArray[np.bool_]], of: set[str]
) -> None:
    changed = change(correct)
    levels = (LEVELS[0][: changed.shape[1]], *LEVELS[1:])
    tables = by_image(changed, CLASSES, levels, FACTORS)
    assert set(tables["by_image_anova"]["source"]) == of
    assert tables["by_image_anova"]["p"].isna().all() == (not changed.any())
    assert tables["by_image"]["p_holm"].isna().all() == (not changed.any())


def test_one_image_a_class_tells_nothing_between_classes(correct: npt.NDArray[np.bool_]) -> None:
    tables = by_image(correct[[0, 4, 7]], CLASSES[[0, 4, 7]], LEVELS, FACTORS)
    row: Any = tables["by_image_anova"].set_index("source").loc["class_index"]
    assert (row["residual_df"], np.isnan(row["f"]), np.isnan(row["p"])) == (0, True, True)


def test_equal_classes_are_found_different_as_often_as_promised() -> None:
    """In 400 data sets with the paper's design; the published regression finds differences in nearly all."""
    random = np.random.default_rng(0)
    classes = np.repeat(np.arange(12), 6)
    rejected = 0
    for _ in range(400):
        image = random.normal(size=(72, 1, 1))
        correct = random.random((72, 6, 12)) < 1 / (1 + np.exp(-(0.3 + image + 0.7 * random.normal(size=12))))
        rejected += between_test("class_index", correct.mean(axis=(1, 2)), classes).p < 0.05
    # 20 are expected; 10 to 32 have a probability of .99
    assert 10 <= rejected <= 32


def test_equal_models_are_found_different_as_often_as_promised() -> None:
    random = np.random.default_rng(1)
    found = [within_test("model", random.normal(size=(20, 4)) @ np.diag([1, 1, 1, 4])).p < 0.05 for _ in range(1000)]
    assert 35 <= sum(found) <= 70


def test_images_that_vary_by_rounding_alone_have_no_test() -> None:
    """Two models and three scenarios: the second is correct in one more scenario on each image."""
    correct = np.tile(np.array([[True, False, False], [True, True, False]]), (6, 1, 1))
    tables = by_image(correct, np.repeat([3, 8], 3), (("a", "b"), ("s", "t", "u"), (3, 8)), FACTORS)
    of_models = tables["by_image"][tables["by_image"]["factor"] == "model"]
    assert of_models["p"].isna().all()
    assert tables["by_image_anova"].set_index("source").loc["model", ["f", "p", "epsilon"]].isna().all()
