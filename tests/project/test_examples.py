"""The examples in the docstrings of the public API: on the sample, with the results that are there."""

from doctest import DocTestFinder, DocTestRunner

import numpy as np
import pytest

import cleanset
from tests.checkouts import Checkout


@pytest.mark.parametrize("name", ["load", "table", "evaluate"])
def test_the_examples_of_the_public_functions_run(
    name: str, built: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(built.folder)
    [example] = DocTestFinder(recurse=False).find(getattr(cleanset, name), name, globs={"cleanset": cleanset, "np": np})
    outcome = DocTestRunner().run(example)
    assert outcome.attempted > 1
    assert not outcome.failed, capsys.readouterr().out
