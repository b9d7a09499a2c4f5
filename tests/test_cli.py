"""The list of commands, by what people do with them."""

import re
import subprocess
import sys
from importlib.metadata import version

from cleanset.cli import PANELS, app


def test_every_command_is_in_one_panel() -> None:
    """Of a command without a panel, or a name in a panel without a command, the list would not be true."""
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


def test_python_m_starts_the_same_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "cleanset", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(version("cleanset"))
