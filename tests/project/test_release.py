"""What a release is built of: one version, links of the README, and licence files."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml


@pytest.fixture(scope="module")
def build(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_release", repository / "release" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_are_those_of_pyproject(build: ModuleType, repository: Path) -> None:
    citation = yaml.safe_load((repository / "CITATION.cff").read_text())
    assert citation["version"] == build.project()["version"]


def test_links_of_a_package_page(build: ModuleType, repository: Path) -> None:
    text = "![a](docs/a.png) [b](docs/b.md#c) [d](https://e) [f](#g) [![h](docs/h.png)](LICENSE)"
    assert build.readme_of_package(text, "https://x/y", "1.2.3") == (
        "![a](https://x/y/raw/v1.2.3/docs/a.png) [b](https://x/y/blob/v1.2.3/docs/b.md#c) [d](https://e) [f](#g) "
        "[![h](https://x/y/raw/v1.2.3/docs/h.png)](https://x/y/blob/v1.2.3/LICENSE)"
    )
    readme = build.readme_of_package((repository / "README.md").read_text(), "https://x/y", "1.2.3")
    assert "](docs/" not in readme
    assert "](LICENSE" not in readme


def test_the_licence_files_are_there(build: ModuleType, repository: Path) -> None:
    files = build.project()["license-files"]
    assert [name for name in files if not (repository / name).is_file()] == []
    assert len(files) == 5
