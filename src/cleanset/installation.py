"""The pip command that adds an extra to this package, from the source that it was installed from."""

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit

PACKAGE = "cleanset"


def install_command(extra: str) -> str:
    """The command to type: the package is on no registry, so it names the repository, folder or file of its source."""
    return f"pip install {_requirement(f'{PACKAGE}[{extra}]', installed_from())}"


def installed_from() -> dict[str, Any]:
    """The source that pip has recorded (PEP 610, direct_url.json); empty where it has recorded none."""
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}


def _requirement(name: str, source: dict[str, Any]) -> str:
    """A requirement as pip takes it, quoted for a shell; `source` is the content of direct_url.json."""
    url = source.get("url", "")
    if source.get("dir_info", {}).get("editable"):
        folder = unquote(urlsplit(url).path)
        return f"--editable {shlex.quote(folder + name.removeprefix(PACKAGE))}"
    if not url:
        return shlex.quote(name)
    if vcs := source.get("vcs_info"):
        # the same commit, because another one may differ from what is installed
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    part = source.get("subdirectory")
    return shlex.quote(f"{name} @ {url}{f'#subdirectory={part}' if part else ''}")
