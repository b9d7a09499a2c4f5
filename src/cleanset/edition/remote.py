"""The DVC remote of an edition: the address in its .dvc/config and those of its projects that sets are read from."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from cleanset.errors import CleansetError
from cleanset.plumbing.files import is_there, read_text, write_together
from cleanset.plumbing.validation import shown

_UNWRITABLE = re.compile(r"[\"'#\x00-\x1f\x7f]|^\s|\s$|^$")
_URL = re.compile(r"(?m)^(\['remote \"origin\"'\]\n(?:[ \t].*\n)*?[ \t]+url[ \t]*=[ \t]*).*$")
_DEFAULT = re.compile(r"(?m)^([ \t]+remote[ \t]*=[ \t]*).*$")


def check_remote(address: str) -> str:
    """The address of a DVC remote; a local folder gets its absolute path, since each project has a folder of its own.

    Raises CleansetError for one that .dvc/config cannot hold, or that has a password.
    """
    if _UNWRITABLE.search(address):
        raise CleansetError(
            f"--remote {shown(address)}: quotes, # or blanks at an end; expected an address such as https://host/dvc, "
            "s3://bucket/dvc, ssh://you@host/dvc or a folder"
        )
    try:
        password = urlsplit(address).password
    except ValueError:
        password = None
    if password is not None:
        raise CleansetError(
            "--remote: an address with a password, which git would keep; expected one without: dvc remote modify "
            "--local origin password …"
        )
    return address if "://" in address else str(Path(address).expanduser().resolve())


def with_remote(config: str, address: str) -> str:
    """The text of a .dvc/config whose remote, origin, has an address; other settings of origin stay."""
    text = config if config.endswith("\n") or not config else f"{config}\n"
    if _URL.search(text):
        text = _URL.sub(lambda found: f"{found[1]}{address}", text)
    else:
        text += f"['remote \"origin\"']\n    url = {address}\n    verify = true\n    jobs = 32\n"
    if _DEFAULT.search(text):
        return _DEFAULT.sub(lambda found: f"{found[1]}origin", text, count=1)
    return text.replace("[core]\n", "[core]\n    remote = origin\n", 1)


def set_remote(edition: Path, address: str) -> list[Path]:
    """Give an edition and its projects a remote; returns the changed files. All are changed, or none."""
    paths = (edition / ".dvc" / "config", *sorted(edition.glob("studies/*/.dvc/config")))
    texts = {path: read_text(path, "save it as UTF-8") for path in paths if is_there(path)}
    changed = {path: after for path, text in texts.items() if (after := with_remote(text, address)) != text}
    write_together(changed)
    return list(changed)
