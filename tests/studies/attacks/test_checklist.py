"""A point of the checklist that depends on signs: seen, not looked for, and those that are undecided."""

import pytest

from cleanset.studies.attacks.baselines import AtRadius, Baselines, BySearch
from cleanset.studies.attacks.checklist import Evidence, checklist
from cleanset.studies.attacks.signs import SeenSign
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.warnings import WarningRecord

SEEN = SeenSign("flat", "3 of 8 images have no gradient")
UNCLEAR = SeenSign("transfer", "there is no other model")


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        (("flat",), ("not seen", "3 of 8 images have no gradient")),
        (("transfer",), ("undecided", "there is no other model")),
        (("noise",), ("seen", "no sign against it on 8 images")),
        (("noise", "transfer"), ("undecided", "there is no other model")),
        (("flat", "transfer"), ("not seen", "3 of 8 images have no gradient")),
    ],
)
def test_without_signs(signs: tuple[str, ...], expected: tuple[str, str]) -> None:
    record = WarningRecord(role="mine", images=8, parameters={}, warnings=(SEEN,), not_told=(UNCLEAR,))
    evidence = Evidence(
        params=AttackParams.model_construct(), model="mine", measures={}, record=record, models=["mine"]
    )
    assert evidence.without(*signs) == expected


def test_without_a_search_for_signs() -> None:
    evidence = Evidence(params=AttackParams.model_construct(), model="mine", measures={}, record=None, models=["mine"])
    assert evidence.without("flat") == ("undecided", "signs of gradient masking were not looked for")


@pytest.mark.parametrize(
    ("broken", "not_told", "expected"),
    [
        ((0, 0, 0), (UNCLEAR,), "undecided"),
        ((0, 0, 0), (SeenSign("smaller_ball_better", "PGD breaks 0 of 8 images up to Linf 16/255"),), "undecided"),
        ((2, 3, 8), (), "seen"),
        ((3, 3, 8), (), "undecided"),
        ((8, 8, 8), (), "undecided"),
    ],
)
def test_more_success_needs_some(broken: tuple[int, int, int], not_told: tuple[SeenSign, ...], expected: str) -> None:
    """For balls and steps alike; the whole cube alone shows nothing about the balls."""
    radii = (2 / 255, 16 / 255, 1.0)
    searches = {"pgd of 10 steps": broken[1], "pgd of 1 step": broken[0], "random points": 0}
    found = Baselines(
        images=8,
        by_radius=tuple(AtRadius(eps=eps, broken=count) for eps, count in zip(radii, broken, strict=True)),
        by_search=tuple(BySearch(search=search, broken=count) for search, count in searches.items()),
        noise_points=100,
        noise_broken=0,
    )
    record = WarningRecord(
        role="mine", images=8, parameters={}, warnings=(), not_told=not_told, baselines=found, files=("a",)
    )
    evidence = Evidence(
        params=AttackParams.model_construct(attacks={}), model="mine", measures={}, record=record, models=["mine"]
    )
    by_text = {point.text: point for point in checklist(evidence)}
    larger = by_text["A larger perturbation budget increases success"]
    assert larger.state == expected
    assert f"PGD of a few steps breaks {broken[0]} in Linf 2/255, {broken[1]} in Linf 16/255" in larger.why
    iterative = by_text["Iterative attacks perform better than single-step ones"]
    assert iterative.state == expected
    assert f"pgd of 10 steps breaks {broken[1]}, pgd of 1 step breaks {broken[0]}" in iterative.why
