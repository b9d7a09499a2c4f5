"""Every default of the keys of params, of files that people write and of records: a changed one changes results."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from cleanset.studies.attacks.study import ATTACKS

DEFAULTS = Path(__file__).with_name("defaults.yaml")


def sections(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for section in base.__subclasses__():
        yield section
        yield from sections(section)


def plain(value: object) -> object:
    """A default as YAML has it; a section whose keys all have their own defaults, which are listed, by its name."""
    if isinstance(value, BaseModel):
        is_default = value == type(value).model_construct()
        return type(value).__name__ if is_default else {key: plain(each) for key, each in value}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def full_name(section: type[BaseModel]) -> str:
    return f"{section.__module__.removeprefix('cleanset.')}.{section.__qualname__}"


def defaults_in(source: Path) -> dict[str, dict[str, object]]:
    """The defaults of every section, by module and class."""
    modules = [
        ".".join(path.relative_to(source).with_suffix("").parts)
        for path in source.rglob("*.py")
        if re.search(r"\bSection\b|\bBaseModel\b|\(Model\):", path.read_text())
    ]
    for module in modules:
        importlib.import_module(module)
    found = {}
    for section in set(sections(BaseModel)):
        fields: dict[str, Any] = {
            name: plain(field.get_default(call_default_factory=True))
            for name, field in section.model_fields.items()
            # a column of a later format is None in an earlier manifest, as columns_of checks
            if not (field.is_required() or any(getattr(each, "since", 1) > 1 for each in field.metadata))
        }
        # the attacks derive from sections, and are in modules of their own
        if fields and section.__module__.startswith(("cleanset.studies.attacks.", *modules)):
            found[full_name(section)] = fields
    return dict(sorted(found.items()))


def test_every_default_is_the_listed_one(repository: Path) -> None:
    expected = yaml.safe_load(DEFAULTS.read_text())
    # an attack that is in nobody's default run has its defaults in its own test
    own = {full_name(attack) for attack in ATTACKS.values() if not attack.in_defaults}
    everything = defaults_in(repository / "src")
    found = {name: fields for name, fields in everything.items() if name in expected or name not in own}
    assert list(found) == list(expected)
    for name, fields in found.items():
        assert (name, fields) == (name, expected[name])
