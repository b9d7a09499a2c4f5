"""A clone that tests change."""

from collections.abc import Iterator

import pytest

from tests.checkouts import Checkout


@pytest.fixture(scope="session")
def _clone(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return pristine.clone(tmp_path_factory.mktemp("clone") / "cleanset")


@pytest.fixture
def clone(_clone: Checkout) -> Iterator[Checkout]:
    """A clone of the project, in which nothing has run; each test gets it as committed."""
    yield _clone
    _clone.run("git", "checkout", "--quiet", "--", ".")
