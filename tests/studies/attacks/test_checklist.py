"""A point of the checklist that depends on signs: seen, not looked for, and those that cannot be told."""

import pytest

from cleanset.studies.attacks.checklist import Evidence
from cleanset.studies.attacks.signs import SeenSign
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.warnings import WarningRecord

SEEN = SeenSign("flat", "3 of 8 images have no gradient")
UNCLEAR = SeenSign("transfer", "there is no other model")


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        (("flat",), ("not met", "3 of 8 images have no gradient")),
        (("transfer",), ("not met", "cannot be told: there is no other model")),
        (("noise",), ("met", "not seen on 8 images")),
        (("noise", "transfer"), ("not met", "cannot be told: there is no other model")),
        (("flat", "transfer"), ("not met", "3 of 8 images have no gradient")),
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
    assert evidence.without("flat") == ("not met", "signs of gradient masking were not looked for")
