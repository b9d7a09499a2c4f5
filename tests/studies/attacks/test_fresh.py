"""The process that judges files again: the message when it ends without an answer."""

import pytest

from cleanset.errors import CleansetError
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.fresh import FreshModel, _on_earlier_disk
from cleanset.studies.attacks.targets import Searching
from tests.studies.attacks.networks import CPU, loaded, random_linear


def linear() -> LoadedModel:
    return loaded(random_linear())


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("exit 3", "^the fresh process that judges the attacked files ended with exit code 3; expected 0: see what it"),
        ("exit 137", "^the fresh process that judges the attacked files was killed; expected memory"),
        ("kill -KILL $$", "^the fresh process that judges the attacked files was killed; expected memory"),
    ],
)
def test_a_process_that_gives_no_answer(program: str, message: str) -> None:
    fresh = FreshModel(load=linear, how=Searching(CPU, "float64", 4), files={}, attacked_at=None)
    with pytest.raises(CleansetError, match=message):
        _on_earlier_disk(["sh", "-c", program], fresh, [])
