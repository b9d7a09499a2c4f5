"""The commands `cleanset robustness …`."""

import pytest
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.errors import CleansetError


@pytest.mark.slow
def test_an_unknown_family_of_a_stage() -> None:
    words = ["robustness", "stage", "answers", "--model", "standard", "--family", "blur"]
    done = CliRunner().invoke(app, words)
    with pytest.raises(CleansetError, match=r"^unknown family 'blur'; expected one of corruptions, "):
        raise done.exception or AssertionError(done.output)
