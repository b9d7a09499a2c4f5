import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from cleanset import errors as installation

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (
            {"url": "https://host/cleanset.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"pip install 'cleanset[evaluate] @ git+https://host/cleanset.git@{COMMIT}'",
        ),
        (
            {"url": "file:///a%20b/cleanset", "dir_info": {"editable": True}},
            "pip install --editable '/a b/cleanset[evaluate]'",
        ),
        ({"url": "file:///a/cleanset", "dir_info": {}}, "pip install 'cleanset[evaluate] @ file:///a/cleanset'"),
        (
            {"url": "https://host/c.zip", "archive_info": {}, "subdirectory": "python"},
            "pip install 'cleanset[evaluate] @ https://host/c.zip#subdirectory=python'",
        ),
        ({}, "pip install 'cleanset[evaluate]'"),
    ],
)
def test_the_source_is_that_of_the_installation(
    source: dict[str, Any], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "installed_from", lambda: source)
    assert installation.install_command("evaluate") == command
    *options, last = shlex.split(command)[2:]
    if not options:
        assert Requirement(last).extras == {"evaluate"}


def test_what_pip_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a folder of installed packages has it, which comes first on the path."""
    folder = tmp_path / "cleanset-9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: cleanset\nVersion: 9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installation.installed_from() == {}
    (folder / "direct_url.json").write_text(json.dumps({"url": "file:///a", "dir_info": {}}))
    assert installation.installed_from() == {"url": "file:///a", "dir_info": {}}
