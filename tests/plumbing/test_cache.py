"""The cache folder, and the message for a user without a home."""

import os
import re
from importlib import import_module
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import failed_package
from cleanset.plumbing.cache import cache_folder

NO_UID = 4_000_000_123


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a uid that passwd lacks."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("CLEANSET_CACHE", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: NO_UID)


def test_without_a_home_the_variable_is_reported(homeless: None, monkeypatch: pytest.MonkeyPatch) -> None:
    message = rf"^the cache: no home folder \(HOME is not set, and uid {NO_UID} is not in passwd\); .* CLEANSET_CACHE"
    with pytest.raises(CleansetError, match=message):
        cache_folder()
    monkeypatch.setenv("CLEANSET_CACHE", "/data/cache")
    assert cache_folder() == Path("/data/cache")


def test_only_a_download_asks_for_the_cache(homeless: None, tmp_path: Path) -> None:
    for models in ([], ["mine:make"], ["command:true"]):
        specs, _, _ = Arguments("set", models, predictions=["a=b.csv"]).models_to_run(Edition(tmp_path))
        assert [spec.text for spec in specs] == models
    with pytest.raises(CleansetError, match="no home folder"):
        Arguments("set", ["timm:resnet18.a1_in1k"]).models_to_run(Edition(tmp_path))


def test_the_package_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pyarrow does with another NumPy than it was built for."""
    (tmp_path / "unbuilt.py").write_text("raise AttributeError('_ARRAY_API not found')\n")
    (tmp_path / "above.py").write_text("import unbuilt\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("unbuilt", "above"):
        with pytest.raises(AttributeError) as raised:
            import_module(name)
        assert failed_package(raised.value) == name
    with pytest.raises(TypeError) as other:
        re.compile(1)  # type: ignore[call-overload]
    assert failed_package(other.value) == "re"
