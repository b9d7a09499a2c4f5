"""The colours and outlines of what is drawn, by name: tables.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def _fixed(value: Any) -> Any:
    """The value with tuples in place of lists."""
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


_TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
COLOURS: Mapping[str, Any] = {name: _fixed(value) for name, value in _TABLES["colours"].items()}
"""Colours, or pairs of them; one is drawn."""
OUTLINES: Mapping[str, Any] = {name: _fixed(value) for name, value in _TABLES["outlines"].items()}
"""Points, and other rows of numbers, in the square of an object."""
