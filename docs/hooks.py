"""What MkDocs asks while it builds the site: the pages outside docs/, and the reference, made from the code."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from cleanset import tables
from cleanset.edition.params import PROTOCOLS, Params
from cleanset.tables import Table

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
"""Pages of the repository's root, and their names in the site."""
OTHER_FILES = ("CITATION.cff", "LICENSE")
"""Files of the root that these pages link to."""
MARKER = re.compile(r"<!-- (\w+): filled in from the code .*-->")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files of the repository's root, with their links as seen from docs/."""
    for name, in_site in PAGES.items():
        files.append(File.generated(config, in_site, content=seen_from_docs((ROOT / name).read_text("utf-8"))))
    for name in OTHER_FILES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to the root's pages to their copies, and fill in what is made from the code."""
    up = "../" * page.file.src_uri.count("/")
    for name, in_site in PAGES.items():
        markdown = markdown.replace(f"](../{up}{name}", f"]({up}{in_site}")
    return MARKER.sub(lambda marker: REFERENCE[marker[1]](), markdown)


def seen_from_docs(text: str) -> str:
    """A page of the root with its links as seen from docs/."""
    for name, in_site in PAGES.items():
        text = text.replace(f"]({name}", f"]({in_site}")
    return text.replace("](docs/", "](")


def commands() -> str:
    """Every command with its help, as typer writes it; the lists of commands with whole sentences, not cut off."""
    program = [sys.executable, "-m", "typer", "cleanset.cli", "utils", "docs", "--name", "cleanset"]
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout.partition("\n")[2]
    summaries = dict(re.findall(r"(?m)^##+ `cleanset (.+)`\n\n((?:.+\n)+)", text))

    def whole(entry: re.Match[str]) -> str:
        group = [name for start, name in groups if start < entry.start()][-1:]
        name = " ".join([*group, entry[1]])
        name = name if name in summaries else entry[1]
        return f"* [`{name}`](#cleanset-{name.replace(' ', '-')}): {' '.join(summaries[name].split())}"

    groups = [(found.start(), found[1]) for found in re.finditer(r"(?m)^## `cleanset (.+)`$", text)]
    return re.sub(r"(?m)^\* `([a-z][\w-]*)`: .*$", whole, text)


def params() -> str:
    """The keys of params.yaml: a section for each of the file's, with its values and defaults."""
    schema = Params.model_json_schema()
    sections = {name: _resolved(field, schema["$defs"]) for name, field in schema["properties"].items()}
    top = {name: field for name, field in sections.items() if "properties" not in field}
    text = _documented(schema["description"]) + _keys("", top, schema["required"])
    protocols = "\n".join(
        f"| `{name}` | " + ", ".join(f"`{section}.{key}: {value}`" for section, keys in given.items()
        for key, value in keys.items()).replace("'", "") + " |"
        for name, given in PROTOCOLS.items()
    )  # fmt: skip
    text += f"\n\n| PROTOCOLS | what it gives |\n|---|---|\n{protocols}"
    for name, section in sections.items():
        inner, prefix = section, name
        if isinstance(section.get("additionalProperties"), dict):
            inner, prefix = _resolved(section["additionalProperties"], schema["$defs"]), f"{name}.<role>"
        if "properties" in inner:
            keys = {key: _resolved(field, schema["$defs"]) for key, field in inner["properties"].items()}
            text += f"\n\n## {name}\n\n{_documented(inner['description'])}"
            text += _keys(f"{prefix}.", keys, inner.get("required", []))
    return text


def _resolved(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A field's schema with what it refers to put in."""
    reference = field.get("$ref", "").removeprefix("#/$defs/")
    return {**definitions[reference], **field} if reference else dict(field)


def _documented(docstring: str) -> str:
    """A docstring, with the keys that it explains as a list."""
    return re.sub(r"(?m)^(`\w+`(?:,? and `\w+`)?(?: \(.+?\))?:)", r"\n\1", docstring) + "\n\n"


def _keys(prefix: str, fields: Mapping[str, Mapping[str, Any]], required: Iterable[str]) -> str:
    rows = [
        (f"`{prefix}{name}`", _values(field), "(needed)" if name in required else f"`{_yaml(field.get('default'))}`")
        for name, field in fields.items()
    ]
    return _table(("key", "values", "default"), rows)


def _values(field: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "anyOf" in field:
        return " or ".join(_values(each) for each in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    kind = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`",
            "null": "nothing", "array": "list", "object": "a section for each model's role"}[field["type"]]  # fmt: skip
    if kind == "list":
        return f"list of {_values(field['items'])}"
    if "type" in (field.get("additionalProperties") or {}):
        kind = f"{_values(field['additionalProperties'])}, by model's role"
    if "minimum" in field:
        return f"{kind} from {field['minimum']:,} to {field['maximum']:,}"
    return f"{kind} as in `{field['pattern']}`".replace("|", "\\|") if "pattern" in field else kind


def _yaml(value: object) -> str:
    """A default as params.yaml has it."""
    return value if isinstance(value, str) and value else json.dumps(value).replace('"', "" if value else '"')


def all_tables() -> str:
    """The columns of every table, with type and values."""
    text = ""
    for name, table in vars(tables).items():
        if isinstance(table, Table):
            rows = [
                (f"`{column}`", f"`{kind.type}`", kind.expected + (", or null" if kind.nullable else ""))
                for column, kind in table.columns.items()
            ]  # fmt: skip
            text += f"## {name.lower()}\n\nSorted by {', '.join(f'`{key}`' for key in table.key)}.\n\n"
            text += _table(("column", "type", "values"), rows) + "\n\n"
    return text


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


REFERENCE: dict[str, Callable[[], str]] = {"commands": commands, "params": params, "tables": all_tables}
