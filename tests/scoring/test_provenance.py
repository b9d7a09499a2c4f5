"""The code that a record of scores names is the code that scores reach."""

import pytest

from cleanset.edition.pipelines.modules import Definition, reached

pytestmark = pytest.mark.slow

ROOTS = {
    "cleanset.images.codec": "decode",
    "cleanset.scoring.decoding": "SharedBatches",
    "cleanset.scoring.models": "load_model",
    "cleanset.scoring.scorer": "Scorer",
}
PLUMBING = {
    "cleanset.dataset.ilsvrc",  # the numbering of the classes
    "cleanset.edition", "cleanset.validation",  # params
    "cleanset.errors", "cleanset.progress",  # messages
    "cleanset.files", "cleanset.parsing", "cleanset.tables",
    "cleanset.scoring.downloads",  # fetches weights, which are checked by SHA-256
}  # fmt: skip


def test_the_modules_are_those_that_scores_reach() -> None:
    from cleanset.scoring.provenance import MODULES

    roots = [Definition(module, name) for module, name in ROOTS.items()]
    assert sorted(module.__name__ for module in MODULES) == reached(roots, PLUMBING)
