"""Whether a cache holds what the lock of a DVC project names, on which it depends which tests are long."""

from pathlib import Path

import pytest

from tests.checkouts import holds_data

LOCK = """
schema: '2.0'
stages:
  one:
    deps: [{path: src/a.py, md5: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}]
    outs:
    - {path: data/a.parquet, md5: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb}
    - {path: metrics/a.json, md5: cccccccccccccccccccccccccccccccc}
  two:
    outs: [{path: data/b, md5: dddddddddddddddddddddddddddddddd.dir}]
"""


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ((), False),
        (("bb/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",), False),
        (("bb/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "dd/dddddddddddddddddddddddddddddd.dir"), True),
    ],
)
def test_what_a_lock_has_in_data(stored: tuple[str, ...], expected: bool, tmp_path: Path) -> None:
    """Neither inputs nor what git holds."""
    (tmp_path / "dvc.lock").write_text(LOCK)
    for name in stored:
        path = tmp_path / "cache" / "files" / "md5" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert holds_data(tmp_path / "cache", tmp_path) is expected
