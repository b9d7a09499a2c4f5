"""The README's blocks, and running them."""

import re
import subprocess
from pathlib import Path

from tests.checkouts import Checkout


def blocks(repository: Path, language: str) -> list[str]:
    """The README's fenced blocks of a language, in their order."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (repository / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return [block for found, block in fenced if found == language]


def block(repository: Path, first_lines: str) -> str:
    """The README's block of shell commands that begins with a line, or several."""
    (found,) = (block for block in blocks(repository, "sh") if block.startswith(f"{first_lines}\n"))
    return found


def shell(checkout: Checkout, commands: str, cwd: str = ".", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a block as a person would type it."""
    return subprocess.run(
        ["bash", "-e"], input=commands, capture_output=True, text=True, check=False,
        cwd=checkout.folder / cwd, env=checkout.environment() | variables,
    )  # fmt: skip
