"""Changing an entry of a YAML file that people write: all else stays byte for byte, or the change is refused."""

import io
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.tokens import CommentToken


class _Representer(RoundTripRepresenter):
    """A representer that writes null as `null` instead of leaving the value empty."""


_Representer.add_representer(type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null"))


class LayoutError(ValueError):
    """The file's layout would not survive a change."""


def edit_text(text: str, change: Callable[[Any], None]) -> str:
    """The text after `change` has worked on its content, comments and layout included.

    Raises LayoutError if the text is not in the layout that ruamel.yaml writes (lists indented by two, a list or
    table in brackets on one line), or if a comment on a line of its own would no longer stand above its line.
    """
    # ruamel.yaml writes \n only
    newline = "\r\n" if "\r\n" in text else "\n"
    plain = text.replace(newline, "\n")
    yaml = _yaml()
    try:
        content = yaml.load(plain)
        # a layout that does not survive this would be rewritten outside of the change, too
        if _dumped(yaml, content) != plain:
            raise LayoutError
        change(content)
        result = _dumped(yaml, content)
    # `change` expects sections and keys that any file may lack
    except (YAMLError, AttributeError, LookupError, TypeError, ValueError):
        raise LayoutError from None
    if _comments(result) != _comments(plain):
        raise LayoutError
    return result.replace("\n", newline)


def _yaml() -> YAML:
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    # else ruamel.yaml folds long lines
    yaml.width = 2**31
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dumped(yaml: YAML, content: Any) -> str:
    out = io.StringIO()
    yaml.dump(content, out)
    return out.getvalue()


def _comments(text: str) -> list[tuple[str, str]]:
    """The comments on lines of their own, each with the key or item that comes next, "" at the end."""
    found, waiting = [], list[str]()
    for line in [*filter(str.strip, text.splitlines()), ""]:
        if line.lstrip().startswith("#"):
            waiting.append(line)
        else:
            found += [(comment, line.partition(":")[0]) for comment in waiting]
            waiting = []
    return found


def move_what_follows(table: CommentedMap, source: str, target: str) -> None:
    """Move the comments and blank lines below entry `source`, as ruamel.yaml keeps them, below entry `target`."""
    holder, key = _last_line(table, source)
    # ruamel.yaml keeps what follows a key in the third of four slots: a comment and all lines below it
    token = holder.ca.items.get(key, [None] * 4)[2]
    at_its_end, _, below = token.value.partition("\n") if token else ("", "", "")
    if below:
        token.value = f"{at_its_end}\n"
        holder, key = _last_line(table, target)
        slots = holder.ca.items.setdefault(key, [None, None, None, None])
        own = slots[2].value if slots[2] else "\n"
        slots[2] = CommentToken(own + below, CommentMark(slots[2].column if slots[2] else 0))


def _last_line(table: CommentedMap, key: str) -> tuple[CommentedMap, str]:
    """The innermost table, and its key, that the last line of an entry belongs to."""
    value = table[key]
    while isinstance(value, CommentedMap) and value and not value.fa.flow_style():
        table, key = value, list(value)[-1]
        value = table[key]
    return table, key
