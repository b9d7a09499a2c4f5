"""The code blocks of README and docs/, and running them."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.checkouts import Checkout


@dataclass(frozen=True)
class Block:
    """A fenced code block: its page, its language ("" without one) and its text."""

    page: str
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]


GENERATED = "docs/reference/commands.md"
"""The page of all commands, whose blocks are the usage lines of their help."""


def pages(repository: Path) -> list[str]:
    """README and every page of docs/, relative to the repository."""
    return ["README.md", *sorted(path.relative_to(repository).as_posix() for path in repository.glob("docs/**/*.md"))]


def all_blocks(repository: Path) -> list[Block]:
    """Every fenced block, page by page."""
    return [
        Block(page, language, text)
        for page in pages(repository)
        if page != GENERATED
        for language, text in re.findall(
            r"^```(\w*)\n(.*?)^```$", (repository / page).read_text(), re.DOTALL | re.MULTILINE
        )
    ]


def blocks(repository: Path, language: str, page: str | None = None) -> list[str]:
    """The blocks of a language, of all pages or of one."""
    return [block.text for block in all_blocks(repository) if block.language == language and page in (None, block.page)]


def block(repository: Path, first_lines: str) -> str:
    """The one block of shell commands that begins with a line, or several."""
    (found,) = (text for text in blocks(repository, "sh") if text.startswith(f"{first_lines}\n"))
    return found


def block_of(repository: Path, language: str, beginning: str, page: str | None = None) -> str:
    """The one block of a language that begins so, of all pages or of one."""
    (found,) = (text for text in blocks(repository, language, page) if text.startswith(beginning))
    return found


def shell(
    checkout: Checkout, commands: str, cwd: str | Path = ".", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a block as a person would type it."""
    return subprocess.run(
        ["bash", "-e"], input=commands, capture_output=True, text=True, check=False,
        cwd=checkout.folder / cwd, env=checkout.environment() | variables,
    )  # fmt: skip
