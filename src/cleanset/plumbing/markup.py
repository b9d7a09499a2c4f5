"""Texts that a stranger wrote, as parts of Markdown: they are shown, and begin no tag, link, code or cell of a table.

Only what would begin one is escaped, so that a usual name stays unchanged. The templates of pages escape HTML,
`evaluation/table.py` LaTeX.
"""

import re

_MEANS_SOMETHING = re.compile(r"[\\`|]|<(?=[A-Za-z/!?]|$)|\](?=[(\[:]|$)|&(?=#?\w+;)")
_AS_ENTITY = {"<": "&lt;", "&": "&amp;"}
_BACKTICKS = re.compile("`+")
MIN_FENCE = 3
"""Backticks of the shortest fence of Markdown."""


def markdown_text(text: str) -> str:
    """A line of text as a part of a line of Markdown."""
    return _MEANS_SOMETHING.sub(lambda found: _AS_ENTITY.get(found[0], f"\\{found[0]}"), text)


def markdown_code(text: str) -> str:
    """A line of text as code in a line of Markdown."""
    ticks = "`" * (_longest_run(text) + 1)
    # a blank at both ends is not shown
    blank = " " if len(ticks) > 1 else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


def markdown_fence(text: str) -> str:
    """The line above and below a block of code with this text."""
    return "`" * max(MIN_FENCE, _longest_run(text) + 1)


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
