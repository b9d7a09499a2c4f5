"""Manifests of every format so far, kept in formats/<number>/: read, and written again byte for byte."""

from pathlib import Path
from typing import Annotated

import pytest

from cleanset.classes import ClassTable, class_table, imagenet
from cleanset.errors import CleansetError
from cleanset.sets.manifest import FORMAT, Entry, ManifestColumn, columns_of, form_of, manifest_csv
from cleanset.sets.manifest_checks import read_manifest

KEPT = Path(__file__).with_name("formats")
OWN = class_table([("cat", "cat"), ("dog", "Dog, big")], "here")


def test_one_is_kept_of_every_format_before_today() -> None:
    numbers = {folder.name for folder in KEPT.iterdir()}
    assert {"1", *map(str, range(1, FORMAT))} <= numbers


@pytest.mark.parametrize("path", sorted(KEPT.glob("*/*.csv")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_it_is_read(path: Path) -> None:
    classes: ClassTable = OWN if path.stem == "own" else imagenet()
    text = path.read_text()
    entries = read_manifest(text, path.name, classes)
    assert len(entries) == text.count("\n") - 1
    assert form_of(entries).format == int(path.parent.name)
    assert manifest_csv(entries, classes) == text


def test_an_empty_manifest_is_of_the_format_of_its_header() -> None:
    header = (KEPT / "1" / "imagenet.csv").read_text().partition("\n")[0]
    assert read_manifest(f"{header}\n", "manifest.csv", imagenet()) == []


def test_a_later_format_is_refused() -> None:
    text = (KEPT / "1" / "imagenet.csv").read_text()
    later = "\n".join(f"{line},{'weather' if place == 0 else 'fog'}" for place, line in enumerate(text.splitlines()))
    with pytest.raises(CleansetError, match=r"line 1: written by a newer version of cleanset: columns weather; "):
        read_manifest(f"{later}\n", "manifest.csv", imagenet())


class Undescribed(Entry):
    """With a field that is in no column."""

    width: int = 0


class WithoutEarlier(Entry):
    """With a field that an earlier manifest would have a value of."""

    width: Annotated[int, ManifestColumn("whole number", "Width.", since=2)] = 0


@pytest.mark.parametrize("entry", [Undescribed, WithoutEarlier])
def test_what_a_field_leaves_out(entry: type[Entry]) -> None:
    with pytest.raises(TypeError, match=r"Entry\.width: expected a ManifestColumn, and None by default if it came aft"):
        columns_of(entry)
