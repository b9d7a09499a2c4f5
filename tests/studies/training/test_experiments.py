"""EX1 compared with EX2, tables 2 and 3 and grids, of counts that are written down."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.evaluation.measures import measures_frame
from cleanset.studies.robustness.scenarios.params import ORIGINAL
from cleanset.studies.training.accuracies import accuracy_interval, fold_accuracies, in_order, mean_accuracies
from cleanset.studies.training.experiments import (
    GAIN_COLUMNS,
    deviations,
    gains,
    inner_section,
    pairs,
    table_2,
    trained_scores,
)
from cleanset.studies.training.finished import FinishedFold, FinishedRun
from cleanset.studies.training.pages import experiments_context
from cleanset.studies.training.params import grid_runs
from cleanset.studies.training.results import Summary
from cleanset.studies.training.run_params import AMOUNTS_TO, Run
from tests.studies.training.finished_study import record_of

CLASSES = (3, 8)
NOTHING = pd.DataFrame()


def counted(counts: Mapping[tuple[str, str], Sequence[int]], images: int = 10) -> pd.DataFrame:
    """A test table: by run and scenario, the correct ones of each fold's class 3; class 8 has as many."""
    rows = [
        (run, f"fold_{fold:02d}", scenario, index, images, correct, 1.0)
        for (run, scenario), by_fold in counts.items()
        for fold, correct in enumerate(by_fold, start=1)
        for index in CLASSES
    ]
    return pd.DataFrame(rows, columns=["run", "fold", "scenario", "class_index", "images", "correct", "loss"])


def run_of(name: str, scenario: str, **changed: object) -> FinishedRun:
    """A run on a scenario, of the same network and settings as the others."""
    given = {"network": {"name": "test"}, "protocol": "as_coded", "scenario": scenario, "rate": 0.1, **changed}
    trained_on = list(AMOUNTS_TO.get(scenario, ()))
    run = Run.model_validate({"trained_on": trained_on, **given})
    return FinishedRun(name, run, [FinishedFold("fold_01", record_of(7), NOTHING, NOTHING)])


RUNS = [run_of("one", "original"), run_of("two", "blur_object"), run_of("three", "random_background")]
COUNTS = {
    ("one", "original"): (9, 9, 9),
    ("one", "blur_object"): (6, 7, 8),
    ("one", "random_background"): (1, 2, 3),
    ("two", "blur_object"): (8, 8, 8),
    ("three", "random_background"): (6, 6, 6),
}
BY_FOLD = fold_accuracies(counted(COUNTS))
MEANS = mean_accuracies(BY_FOLD, 3)


def test_accuracies_over_folds() -> None:
    cell = MEANS["one", "blur_object"]
    assert (cell.folds, cell.images, cell.correct) == (3, 60, 42)
    assert (cell.value, cell.spread) == pytest.approx((0.7, 0.1))
    # over folds it is .7 +- 4.3027 * sqrt(.01 * 5 / 6) and wider than over images
    assert cell.interval == pytest.approx((0.3072236, 1.0))
    # folds that agree have Wilson's interval of the images: 54 of 60
    assert MEANS["one", "original"].interval == pytest.approx((0.7985, 0.9534), abs=1e-4)


def test_few_folds_of_many_parts_share_less_of_their_training_images() -> None:
    """Each of three folds tests a twelfth: .75 +- 4.3027 * .05 * sqrt(1 / 3 + 1 / 11), as far as images allow."""
    interval = accuracy_interval(np.array([0.7, 0.8, 0.75]), 750_000, 1_000_000, 12)
    assert interval == pytest.approx((0.6099, 0.8901), abs=1e-4)


def test_one_fold_has_no_spread() -> None:
    (cell,) = mean_accuracies(fold_accuracies(counted({("one", "original"): (9,)})), 3).values()
    assert math.isnan(cell.spread)
    assert cell.interval == pytest.approx((0.6990, 0.9721), abs=1e-4)


def test_loss_is_weighted_by_images() -> None:
    tests = counted({("one", "original"): (9,)}).assign(images=[10, 30], loss=[1.0, 2.0])
    assert fold_accuracies(tests)["loss"].tolist() == [1.75]


def test_pairs_differ_in_the_scenario_alone() -> None:
    others = [run_of("slow", "blur_object", rate=0.2), run_of("hard", "original", recipe="adversarial")]
    (pair,) = pairs([*RUNS, *others])
    assert pair.ex1.name == "one"
    assert {name: run.name for name, run in pair.ex2.items()} == {"blur_object": "two", "random_background": "three"}


def test_a_run_that_is_there_twice() -> None:
    with pytest.raises(CleansetError, match="runs two and again: the same settings; expected one of them"):
        pairs([*RUNS, run_of("again", "blur_object")])


def test_gains_over_folds() -> None:
    """.2, .1, .0 of blurred objects: mean .1, s .1, so the half width is 4.3027 * sqrt(.01 * 5 / 6)."""
    blurred, random = gains(pairs(RUNS), BY_FOLD, 3)
    assert (blurred.value, random.value) == pytest.approx((0.1, 0.4))
    assert blurred.interval == pytest.approx((0.1 - 0.3927764, 0.1 + 0.3927764))
    assert (blurred.other, blurred.model, blurred.folds, blurred.over) == ("one", "two", 3, "folds")


def test_the_gain_of_one_fold_is_over_images() -> None:
    counts = {("one", "blur_object"): (6,), ("two", "blur_object"): (9,)}
    (row,) = gains(pairs(RUNS[:2]), fold_accuracies(counted(counts)), 3)
    # 18 of 20 minus 12 of 20: Wilson's ends are .6990 .9721 and .3866 .7812
    assert row.value == pytest.approx(0.3)
    low = 0.3 - math.hypot(0.9 - 0.69896, 0.78123 - 0.6)
    assert row.low == pytest.approx(low, abs=1e-4)
    assert row.over == "images"


def test_only_common_folds_are_compared() -> None:
    counts = {("one", "blur_object"): (6, 7, 8), ("two", "blur_object"): (8, 8)}
    (row,) = gains(pairs(RUNS[:2]), fold_accuracies(counted(counts)), 3)
    assert row.folds == 2
    with pytest.raises(CleansetError, match="runs one and two: no fold in common that is tested on blur_object"):
        gains(pairs(RUNS[:2]), fold_accuracies(counted({("one", "blur_object"): (6,)})), 3)


def test_table_2() -> None:
    table = table_2(pairs(RUNS), MEANS)
    assert table["trained_on"].tolist() == ["original"] * 2 + ["scenario"] * 2
    assert table["run"].tolist() == ["one", "one", "two", "three"]
    assert table["accuracy"].tolist() == pytest.approx([0.7, 0.2, 0.8, 0.6])


def test_table_3() -> None:
    """From .9 on originals: .04 and .49 external, .01 and .09 internal; over n - 1, and the root over n."""
    found = pairs(RUNS)
    table = deviations(found, MEANS)
    assert table["squared_deviation"].tolist() == pytest.approx([0.04, 0.49, 0.01, 0.09])
    published, written = trained_scores(found, MEANS).to_numpy().tolist()
    assert published[6:9] == pytest.approx((0.53, 0.1, 0.37))
    external, internal = math.sqrt(0.53 / 2), math.sqrt(0.1 / 2)
    assert written[6:9] == pytest.approx((external, internal, 1 - external - internal))


def test_table_3_of_the_paper() -> None:
    """DenseNet121's rows follow from table 2, mu 97.40 and 86.23, and n - 1, up to rounding."""
    names = (
        "blur_background", "blur_object", "image_g", "image_b", "image_grey", "image_r", "random_background",
        "segmented_image",
    )  # fmt: skip
    upper = dict(zip(names, (9377, 8892, 8739, 8733, 9323, 8821, 2641, 6967), strict=True))
    lower = dict(zip(names, (9079, 8657, 8892, 8996, 9044, 8737, 6958, 9160), strict=True))
    counts = {("one", "original"): (9740,), ("stopped", "original"): (8623,)}
    counts |= {("one", name): (correct,) for name, correct in upper.items()}
    counts |= {(name, name): (correct,) for name, correct in lower.items()}
    stopped = [run_of(name, name, early_stopping=5) for name in names]
    runs = [run_of("one", "original", test="table_2"), run_of("stopped", "original", early_stopping=5), *stopped]
    (pair,) = found = pairs(runs)
    assert (pair.ex1.name, pair.baseline.name) == ("one", "stopped")
    means = mean_accuracies(fold_accuracies(counted(counts, images=10_000)), 3)
    published, written = trained_scores(found, means).to_numpy().tolist()
    assert published[6:9] == pytest.approx((0.0885, 0.0052, 0.9062), abs=2e-4)
    assert inner_section(found, means)["one"]["original"] == 0.8623
    # the text has one mean: the root of the mean square from .9740
    squares = [(each / 10_000 - 0.9740) ** 2 for each in lower.values()]
    assert written[7] == pytest.approx(math.sqrt(sum(squares) / 8))


def test_without_a_run_like_ex2_on_originals_both_halves_have_one_mean() -> None:
    """Then EX1 is the only network on originals, though EX2 was stopped early."""
    runs = [run_of("one", "original", test="table_2"), run_of("two", "blur_object", early_stopping=5)]
    (pair,) = pairs(runs)
    assert (pair.ex1.name, pair.baseline.name, list(pair.ex2)) == ("one", "one", ["blur_object"])
    # each of two trainings on originals that are tested on scenarios goes with its own
    own = run_of("own", "original", test="table_2", early_stopping=5)
    (pair,) = pairs([*runs, own])
    assert (pair.ex1.name, pair.baseline.name) == ("own", "own")


def test_two_pairs_of_one_run_on_originals_have_their_own_scores() -> None:
    """EX2 stopped after three epochs, or five: .9 and .7, or .8 and .6; EX1 has .8 on originals, and .6 and .4."""
    given = {("one", "original"): 8, ("one", "blur_object"): 6, ("one", "random_background"): 4}
    given |= {("two", "blur_object"): 9, ("three", "random_background"): 7}
    given |= {("four", "blur_object"): 8, ("five", "random_background"): 6}
    series = [("two", "blur_object", 3), ("three", "random_background", 3)]
    series += [("four", "blur_object", 5), ("five", "random_background", 5)]
    stopped = [run_of(name, scenario, early_stopping=patience) for name, scenario, patience in series]
    found = pairs([run_of("one", "original", test="table_2"), *stopped])
    means = mean_accuracies(fold_accuracies(counted({key: (correct,) for key, correct in given.items()})), 3)
    scores = trained_scores(found, means)
    published = scores[scores["definition"] == "as_published"]
    assert published["external"].tolist() == pytest.approx([0.04 + 0.16] * 2)
    assert published["internal"].tolist() == pytest.approx([0.01 + 0.01, 0.04])
    table = table_2(found, means)
    assert table["run"].tolist() == ["one", "one", "two", "three", "four", "five"]
    assert table["pair"].tolist() == ["one"] * 2 + ["one, two"] * 2 + ["one, four"] * 2
    assert deviations(found, means)["pair"].tolist() == ["one, two"] * 4 + ["one, four"] * 4
    section = inner_section(found, means)
    assert list(section) == ["one, two", "one, four"]
    assert [each["blur_object"] for each in section.values()] == [0.9, 0.8]


def test_the_page_has_a_row_for_each_of_two_pairs() -> None:
    """One network and protocol, so that the label has the pair's name."""
    slow = [run_of("slow", "original", rate=0.01), run_of("late", "blur_object", rate=0.01)]
    found = pairs([*RUNS, *slow])
    by_fold = fold_accuracies(counted(COUNTS | {("slow", "blur_object"): (5,) * 3, ("late", "blur_object"): (4,) * 3,
                                                ("slow", "original"): (9,) * 3}))  # fmt: skip
    means = mean_accuracies(by_fold, 3)
    tables = {
        "table_2": table_2(found, means),
        "gains": measures_frame(gains(found, by_fold, 3), GAIN_COLUMNS),
        "deviations": deviations(found, means),
    }
    context = experiments_context(Summary({**tables, "trained_scores": trained_scores(found, means)}, {}))
    cells = {
        pair: by_scenario["blur_object"]["accuracy"] for (pair, _), by_scenario in context["halves"][ORIGINAL].items()
    }
    assert cells == pytest.approx({"one": 0.7, "slow": 0.5})
    assert context["labels"][ORIGINAL] == {pair: ("timm:test", f"as coded, {pair}") for pair in ("one", "slow")}
    assert list(context["squares"]) == [(pair, part) for pair in ("one", "slow") for part in ("external", "internal")]
    assert context["labels_of_pairs"]["slow"] == ("timm:test", "as coded, slow")


def test_one_scenario_has_no_score() -> None:
    score = trained_scores(pairs(RUNS[:2]), MEANS).iloc[0]
    assert (math.isnan(score["score"]), score["problem"]) == (True, "1 scenario; a variance needs 2 or more")


def test_what_the_robustness_study_takes() -> None:
    section = inner_section(pairs(RUNS), MEANS)
    assert section == {"one": {"original": 0.9, "blur_object": 0.8, "random_background": 0.6}}


def test_order_of_scenarios() -> None:
    assert in_order(["other", "segmented_image", "image_r", "original"]) == [
        "original", "image_r", "segmented_image", "other",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"correct": [11, 9]}, "run one, fold_01, original, class 3: 11 of 10 images correct; expected a share"),
        ({"images": [0, 10]}, "run one, fold_01, original, class 3: 9 of 0 images correct"),
        ({"class_index": [8, 8]}, "run one, fold_01, original, class 8: counted twice; expected one row"),
    ],
)
def test_counts_that_cannot_be(changed: dict[str, list[int]], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        fold_accuracies(counted({("one", "original"): (9,)}).assign(**changed))


def test_grids() -> None:
    runs = ["ex1_a", "ex2_a_blur", "ex2_b_blur", "other"]
    grids = {"ex2": ["ex2_b_*", "ex2_a_blur"], "none": ["ex3_*"]}
    assert grid_runs(grids, runs, "ex2") == ["ex2_a_blur", "ex2_b_blur"]
    with pytest.raises(
        CleansetError, match=r"grids\.none: 'ex3_\*' fits no run; expected names or patterns of ex1_a, "
    ):
        grid_runs(grids, runs, "none")
    with pytest.raises(CleansetError, match="unknown grid 'ex9'; expected one of ex2, none"):
        grid_runs(grids, runs, "ex9")
    with pytest.raises(CleansetError, match=r"grids: missing in params\.yaml"):
        grid_runs({}, runs, "ex1")


def test_rows_in_another_order_give_the_same() -> None:
    tests = counted(COUNTS)
    mixed = tests.iloc[np.random.default_rng(0).permutation(len(tests))]
    found, expected = (
        measures_frame(gains(pairs(RUNS), by_fold, 3), GAIN_COLUMNS) for by_fold in (fold_accuracies(mixed), BY_FOLD)
    )
    pd.testing.assert_frame_equal(found, expected)


def test_folds_that_agree_have_an_interval_over_images() -> None:
    """24 of 30 minus 21 of 30 twice over: Newcombe's for 48 and 42 of 60."""
    counts = {("one", "blur_object"): (7, 7, 7), ("two", "blur_object"): (8, 8, 8)}
    (row,) = gains(pairs(RUNS[:2]), fold_accuracies(counted(counts)), 3)
    assert row.over == "images"
    assert row.low < 0 < 0.1 < row.high
