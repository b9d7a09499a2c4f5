"""The comments in the params files that a new edition gets: what they show can be typed verbatim."""

import re
from pathlib import Path

import pytest
from dvc.utils.serialize import parse_yaml

from cleanset.edition.code_link import TEMPLATE
from cleanset.edition.create import OF_OWN_IMAGES

EXAMPLE = re.compile(r"#.*\b(?:such as|like) (\"[^\"]*\"|\[[^\]]*\]|[^\s,;:.]+(?:\.[^\s,;:.]+)*)")
PARAMS = [*OF_OWN_IMAGES.glob("*params.yaml"), TEMPLATE / "params.yaml", *TEMPLATE.glob("studies/*/params.yaml")]


def examples(text: str) -> list[str]:
    return [found[1] for line in text.splitlines() if (found := EXAMPLE.search(line))]


def is_plain(value: object) -> bool:
    """Whether DVC can write a value into dvc.lock."""
    if isinstance(value, list):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | int | float | bool)


@pytest.mark.parametrize("path", PARAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_dvc_reads_what_a_comment_shows(path: Path) -> None:
    for example in examples(path.read_text()):
        assert is_plain(parse_yaml(f"key: {example}", path.name)["key"]), example


def test_a_date_without_quotes_is_found() -> None:
    """As the comment in own_params.yaml showed it."""
    found = [examples(f"  date: ''  # a day such as {day}, once") for day in ("2026-01-31", '"2026-01-31"')]
    assert found == [["2026-01-31"], ['"2026-01-31"']]
    assert [is_plain(parse_yaml(f"key: {each}", "")["key"]) for (each,) in found] == [False, True]
    assert examples((OF_OWN_IMAGES / "own_params.yaml").read_text()) == ['"2026-01-31"']
