"""What is measured of stored results."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from cleanset.statistics.bootstrap import Bootstrap
from cleanset.statistics.groups import Units, share_interval
from cleanset.statistics.shares import wilson
from cleanset.studies.attacks.autoattack import SquareAttack
from cleanset.studies.attacks.base import Ball, Parameters
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.changes import GuessAttack, NoAttack, SpatialGridAttack
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.results import (
    Attacked,
    ProbedImages,
    Trust,
    attack_measures,
    probe_text,
    threat_measures,
    worst_case,
)
from cleanset.studies.attacks.study import threat_models
from cleanset.studies.attacks.threats import ThreatModel

RESULTS = pd.DataFrame(
    {
        "class_index": [1, 1, 1, 1, 2, 2, 2, 2],
        "was_correct": [True, True, True, True, True, True, False, False],
        "is_error": [True, True, False, False, True, False, True, False],
        "queries": [10, 20, 30, 40, 10, 20, 30, 40],
        "l0": [5, 7, 900, 900, 9, 900, 900, 900],
        "l2": [1.0, 2.0, 9.0, 9.0, 6.0, 9.0, 9.0, 9.0],
        "linf": [0.5] * 8,
        "ssim": [0.5] * 8,
        "lpips": [0.25, None, 9.0, 9.0, 0.75, 9.0, 9.0, 9.0],
        "from_center": [None] * 8,
        "is_converged": [None] * 8,
    }
)


def lines(results: pd.DataFrame = RESULTS) -> dict[str, tuple[int, float, float, float]]:
    found = attack_measures("pgd", "standard", results, Bootstrap(resamples=200))
    return {line.measure: (line.images, line.value, line.low, line.high) for line in found}


def test_values() -> None:
    found = lines()
    assert {name: values[:2] for name, values in found.items()} == {
        "clean_error": (8, 0.25),
        "error": (8, 0.5),
        "success": (6, 0.5),
        "queries": (8, 25),
        "l0": (3, 7),
        "l2": (3, 3),
        "linf": (3, 0.5),
        "ssim": (3, 0.5),
        "lpips": (2, 0.5),
        "from_center": (0, pytest.approx(np.nan, nan_ok=True)),
        "converged": (0, pytest.approx(np.nan, nan_ok=True)),
        "reached": (0, pytest.approx(np.nan, nan_ok=True)),
    }


def test_the_distance_reached_is_over_all_attacked_images() -> None:
    """Correct ones, successes or not: (1 + 2 + 3 + 2) / 4. Of the successes alone: (1 + 2) / 2."""
    found = lines(RESULTS.assign(from_center=[1.0, 2.0, 3.0, np.nan, np.nan, 2.0, 9.0, 9.0]))
    assert found["reached"][:2] == (4, 2)
    assert found["from_center"][:2] == (2, 1.5)


def test_the_share_that_converged_is_of_those_that_tell_it() -> None:
    found = lines(RESULTS.assign(is_converged=pd.array([True, False, None, None, True, True, False, False], "boolean")))
    # Wilson's interval of 3 of 4, as R's prop.test(3, 4, correct = FALSE) gives it
    assert found["converged"] == pytest.approx((4, 0.75, 0.3006418, 0.9544127), abs=1e-6)


def test_shares_and_means_are_by_groups() -> None:
    files = list("abcdefgh")
    groups = dict(zip(files, "xxyyzz..", strict=True)) | {"g": "", "h": ""}
    rows = RESULTS.assign(file=files)
    plain, grouped = (
        {each.measure: each for each in attack_measures("pgd", "standard", rows, Bootstrap(resamples=200), group_of)}
        for group_of in ({}, groups)
    )
    units = Units.of([groups[file] for file in files])
    assert units is not None
    assert grouped["error"].interval == pytest.approx(share_interval(rows["is_error"], units), abs=1e-8)
    correct = rows["was_correct"].to_numpy(bool)
    success = share_interval(rows["is_error"][correct], units.only(correct))
    assert grouped["success"].interval == pytest.approx(success, abs=1e-8)
    assert [each.value for each in grouped.values()] == pytest.approx(
        [each.value for each in plain.values()], nan_ok=True
    )
    assert grouped["queries"].interval != plain["queries"].interval
    assert plain["error"].interval == pytest.approx(wilson(4, 8), abs=1e-8)


def test_intervals() -> None:
    found = lines()
    for images, value, low, high in found.values():
        assert np.isnan(value) or images > 0
        assert np.isnan(low) or low <= value <= high
    assert found["success"][2] < 0.5 < found["success"][3]
    assert np.isnan(found["linf"][2:]).all()
    assert np.isnan(found["from_center"][2:]).all()
    assert repr(lines()) == repr(found)


@pytest.mark.parametrize(("is_error", "ends"), [(True, (0.6096657, 1)), (False, (0, 0.3903343))])
def test_all_or_none_of_few_images_is_not_certain(is_error: bool, ends: tuple[float, float]) -> None:
    """Wilson's intervals of 6 and 0 of 6, as R's prop.test(6, 6, correct = FALSE) gives them."""
    assert lines(RESULTS.assign(is_error=is_error))["success"] == pytest.approx((6, float(is_error), *ends))


def test_a_share_of_one_image_has_an_interval_and_a_mean_has_none() -> None:
    found = lines(RESULTS.iloc[:1])
    assert found["error"] == pytest.approx((1, 1, 0.2065493, 1))
    assert found["queries"][1] == 10
    assert np.isnan(found["queries"][2:]).all()


def attacked(files: str, correct: str, error: str, distance: float | None = None) -> pd.DataFrame:
    """A row for each letter of `files`; `correct` and `error` name those that are."""
    return pd.DataFrame(
        {
            "file": list(files),
            "class_index": [ord(each) for each in files],
            "was_correct": [each in correct for each in files],
            "is_error": [each in error for each in files],
            "from_center": distance,
        }
    )


LINF = Ball("Linf", 4 / 255)


def threat(*attacks: str, ball: Ball | None = LINF, is_searched: bool = True) -> ThreatModel:
    return ThreatModel(name="Linf 4/255", attacks=attacks, ball=ball, is_searched_by_gradient=is_searched)


def probed(correct: str, errors: str, levels: float = 4) -> ProbedImages:
    """The probe's candidate near each image of `correct`, at a distance in levels."""
    rows = attacked(correct, correct, errors)[["file", "was_correct", "is_error"]]
    return ProbedImages(rows=rows.assign(linf=levels / 255, l2=1.0), ball=Ball("Linf", levels / 255))


def measured(asked: ThreatModel, found: Attacked) -> dict[str, tuple[int, float]]:
    """Images and value of each share that is defined."""
    lines = [line for line in threat_measures(asked, "mine", found) if line.measure != "reached"]
    return {line.measure: (line.images, round(line.value, 3)) for line in lines if line.is_defined}


class TestWorstCase:
    """Six images: f is misclassified at once; one attack breaks a and b, another, on three of them, b and c."""

    results: ClassVar = {"pgd": attacked("abcdef", "abcde", "abf", 2.0), "square": attacked("dcb", "dcb", "bc", 3.0)}

    def test_it_is_of_the_images_that_every_attack_was_tried_on(self) -> None:
        found = worst_case(self.results)
        assert dict(zip(found["file"], found["is_robust"], strict=True)) == {"b": False, "c": False, "d": True}

    def test_fewer_images_of_one_attack(self) -> None:
        """One of three withstands both; a bound of all six has no interval: a, b, c and f are lost."""
        found = Attacked(self.results)
        lines = {line.measure: line for line in threat_measures(threat("pgd", "square"), "mine", found)}
        assert measured(threat("pgd", "square"), found) == {
            "clean_accuracy": (3, 1.0), "robust_accuracy": (3, 0.333), "robust_low": (3, 0.333),
            "robust_high": (3, 0.333), "robust_at_most": (6, 0.333),
        }  # fmt: skip
        # the larger distance of both attacks, on three correctly classified images
        assert (lines["reached"].images, lines["reached"].value) == (3, 3.0)
        # Wilson's interval of 1 of 3, as R's prop.test(1, 3, correct = FALSE) gives it
        assert lines["robust_accuracy"].interval == pytest.approx((0.0614919, 0.7923404), abs=1e-6)
        assert [lines[name].interval for name in ("robust_low", "robust_high", "robust_at_most")] == [None] * 3
        assert {(line.change, line.model) for line in lines.values()} == {("Linf 4/255", "mine")}
        assert measured(threat("pgd"), found) == {
            "clean_accuracy": (6, 0.833), "robust_accuracy": (6, 0.5), "robust_low": (6, 0.5), "robust_high": (6, 0.5),
        }  # fmt: skip

    def test_nothing_without_an_attack(self) -> None:
        assert measured(threat("spsa"), Attacked(self.results)) == {}
        assert measured(threat("pgd"), Attacked({})) == {}

    def test_of_an_untrusted_model_nothing_is_known_but_bounds(self) -> None:
        found = Attacked(self.results, trust=Trust(checked=frozenset(), untrusted=None))
        assert measured(threat("pgd"), found) == {
            "clean_accuracy": (6, 0.833), "robust_low": (6, 0), "robust_high": (6, 0.5)
        }  # fmt: skip

    def test_an_image_by_itself_is_not_trusted(self) -> None:
        """c, d and e withstand; d has a gradient that misleads; e was checked or not."""
        seen = frozenset({"d", "a"})
        found = Attacked(self.results, trust=Trust(checked=frozenset("abcde"), untrusted=seen))
        assert measured(threat("pgd"), found) == {
            "clean_accuracy": (6, 0.833), "robust_low": (6, 0.333), "robust_high": (6, 0.5)
        }  # fmt: skip
        few = Attacked(self.results, trust=Trust(checked=frozenset("abcd"), untrusted=seen))
        assert measured(threat("pgd"), few)["robust_low"] == (6, 0.167)
        # of one that is broken anyway it does not matter
        broken = Attacked(self.results, trust=Trust(checked=frozenset("abcdef"), untrusted=frozenset("ab")))
        assert measured(threat("pgd"), broken)["robust_accuracy"] == (6, 0.5)

    def test_without_a_gradient_there_is_an_upper_bound(self) -> None:
        found = measured(threat("square", is_searched=False), Attacked(self.results))
        assert found == {"clean_accuracy": (3, 1), "robust_high": (3, 0.333)}

    def test_the_probe_breaks_what_the_attacks_do_not(self) -> None:
        """It searched near a to d, and breaks d: the images that all were tried on are b, c and d."""
        found = Attacked(self.results, probed("abcd", "ad"))
        assert measured(threat("pgd", "square"), found) == {
            "clean_accuracy": (3, 1), "robust_accuracy": (3, 0), "robust_low": (3, 0), "robust_high": (3, 0),
            "robust_at_most": (6, 0.167),
        }  # fmt: skip
        assert measured(threat("pgd"), found)["robust_at_most"] == (6, 0.333)
        assert probe_text(found, [threat("pgd", "square")]) == (
            "the probe breaks 2 of 4 correctly classified images in Linf 4/255; 1 of them withstood every attack in "
            "Linf 4/255 and now count as broken there"
        )

    def test_a_probe_on_the_same_images_follows_the_gradient(self) -> None:
        square = threat("square", is_searched=False)
        assert "robust_accuracy" in measured(square, Attacked(self.results, probed("bcd", "b")))
        # on fewer images, in a smaller ball, or in another kind of change it does not
        assert "robust_accuracy" not in measured(square, Attacked(self.results, probed("bc", "b")))
        assert "robust_accuracy" not in measured(square, Attacked(self.results, probed("bcd", "b", levels=2)))

    def test_a_candidate_of_the_probe_counts_in_every_ball_that_holds_it(self) -> None:
        outside = Attacked(self.results, probed("abcde", "abcde", levels=8))
        assert measured(threat("pgd"), outside)["robust_accuracy"] == (6, 0.5)
        inside = Attacked(self.results, probed("abcde", "abcde", levels=2))
        assert measured(threat("pgd"), inside)["robust_accuracy"] == (5, 0)
        assert measured(threat("pgd", ball=None), inside)["robust_accuracy"] == (6, 0.5)


def test_threat_models() -> None:
    """One ball around the image is one; a ball around a moved image, the nearest image and a grid are others."""
    attacks: dict[str, Parameters] = {
        "none": NoAttack(),
        "boundary": BoundaryAttack(after=None),
        "square": SquareAttack(eps=8 / 255),
        "spatial_grid": SpatialGridAttack(),
        "pgd": PgdAttack(eps=8 / 255),
        "spsa": SpsaAttack(eps=8 / 255),
        "spsa_alone": SpsaAttack(eps=8 / 255, after=None),
        "far": PgdAttack(norm="L2", eps=0.5),
        "guess": GuessAttack(),
    }
    found = {each.name: (each.attacks, each.ball, each.is_searched_by_gradient) for each in threat_models(attacks)}
    assert found == {
        "boundary": (("boundary",), None, False),
        "Linf 8/255": (("square", "pgd", "spsa_alone"), Ball("Linf", 8 / 255), True),
        "spatial_grid": (("spatial_grid",), None, True),
        "spsa": (("spsa",), None, False),
        "L2 0.5": (("far",), Ball("L2", 0.5), True),
    }
    assert [each.metric for each in threat_models(attacks)][1] == "Linf_8_255"
