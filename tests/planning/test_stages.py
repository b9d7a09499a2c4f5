"""What DVC says of stages."""

import pytest

from cleanset.planning.stages import StageStates

DELETED = {"changed outs": {"data/runs/one": "deleted"}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([DELETED], True),
        ([{"changed outs": {"data/runs/one": "modified"}}], False),
        ([{"changed outs": {"data/runs/one": "deleted", "costs/one.json": "modified"}}], False),
        ([{"changed deps": {"data/division.csv": "modified"}}, DELETED], False),
        ([DELETED, "changed command"], False),
        (["always changed"], False),
    ],
)
def test_only_outputs_are_missing(changes: list[object], expected: bool) -> None:
    """DVC's cache may then have them."""
    states = StageStates(changed={"train@one": changes})
    assert states.lacks_only_outputs("train@one") is expected
    assert (states.state("train@one"), states.state("train@two")) == ("needed", "finished")
    assert not states.lacks_only_outputs("train@two")
    assert not StageStates(changed=None).lacks_only_outputs("train@one")
