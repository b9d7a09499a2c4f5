"""The list of commands, by what people do with them."""

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from cleanset.cli import PANELS, app
from tests.evaluation.compare.command import cleanset, says


def test_every_command_is_in_one_panel() -> None:
    """A command without a panel, or a name in a panel without a command, would make the list untrue."""
    listed = [name for names in PANELS.values() for name in names]
    groups = [group.name for group in app.registered_groups]
    commands = [each.name or getattr(each.callback, "__name__", "") for each in app.registered_commands]
    assert sorted(listed) == sorted(map(str, [*commands, *groups]))


def test_the_help_begins_with_what_most_people_do() -> None:
    done = subprocess.run(["cleanset", "--help"], capture_output=True, text=True, check=True)
    panels = [title.strip() for title in re.findall(r"╭─ (.+?) ─", done.stdout)]
    assert panels == ["Options", *PANELS]
    first = done.stdout.partition("Get a finished set")[2].split()
    assert first.index("published") < first.index("verify") < first.index("evaluate") < first.index("review")


def test_no_paragraph_of_the_help_breaks_in_mid_line() -> None:
    """Line breaks of a docstring are kept: lines longer than 78 characters break again on 80 columns."""

    def too_long(commands: typer.Typer) -> list[str]:
        texts = [inspect.getdoc(each.callback) or "" for each in commands.registered_commands]
        paragraphs = [each.splitlines() for text in texts for each in text.split("\n\n")]
        found = [line for lines in paragraphs for line in lines[:-1] if len(line) > 78]
        groups = [each.typer_instance for each in commands.registered_groups]
        return found + [line for each in groups if each for line in too_long(each)]

    assert too_long(app) == []


def test_python_m_starts_the_same_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "cleanset", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(version("cleanset"))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("models --robustbench --pin", "models --robustbench: goes with THREAT alone; leave others out"),
        ("models Linf", "models Linf: goes with --robustbench; leave it out"),
        (
            "compare --format latex a.parquet b.parquet",
            "compare --format: goes with results of cleanset evaluate, robustness evaluate or attacks evaluate",
        ),
        (
            "edition own --accept --git",
            "edition --accept: goes with a folder, --labels, --names, --scores, --card and --renamed alone; leave "
            "others out",
        ),
    ],
)
def test_options_that_do_not_go_together(command: str, message: str, tmp_path: Path) -> None:
    assert says(cleanset(*command.split(), cwd=tmp_path)) == (1, "", f"error: {message}\n")
