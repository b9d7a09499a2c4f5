"""The commands `cleanset robustness …`: commands and options that have moved answer with their place today."""

import pytest
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.errors import CleansetError


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("corruptions --model standard", r"by hand: robustness stage answers --family corruptions$"),
        ("further --model=other", r"by hand: robustness stage answers$"),
        ("attack-results", r"by hand: robustness stage attack-results$"),
        ("table . --out=table.tex", "^robustness table --out: not an option any more; add > FILE"),
        ("masks one two --other-format coco", "write FORMAT:FOLDER, such as coco:masks/drawn$"),
        ("stage answers --model standard --family blur", "^unknown family 'blur'; expected one of corruptions, "),
    ],
)
@pytest.mark.slow
def test_what_has_moved_says_where_it_is(words: str, answer: str) -> None:
    done = CliRunner().invoke(app, ["robustness", *words.split()])
    assert isinstance(done.exception, CleansetError)
    with pytest.raises(CleansetError, match=answer):
        raise done.exception


STAGES = ("images", "digests", "measure", "pages", "attacks", "attack-results", "attack-warnings", "attack-pages")


@pytest.mark.parametrize("name", ["answers", *STAGES])
def test_every_stage_that_is_named_is_there(name: str) -> None:
    assert CliRunner().invoke(app, ["robustness", "stage", name, "--help"]).exit_code == 0
