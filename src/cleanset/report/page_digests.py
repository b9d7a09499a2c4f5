"""The SHA-256 of the report's pages, by what they are made from: a page that is in the report already is not drawn.

A report has a page for each class, of which one verdict changes one, and drawing all takes most of its time.
"""

from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cleanset.cache import PACKAGE, cache_folder, code_digest
from cleanset.errors import CleansetError
from cleanset.files import sha256


@dataclass(frozen=True, slots=True)
class PageDigests:
    """The SHA-256 of the text of a page, by the digest of what it is made from, a file each.

    A file that is damaged has the digest of no page, and one that is missing or cannot be written is left out: then the
    page is drawn again.
    """

    folder: Path | None
    """None: nothing is kept."""

    def known(self, made_from: str) -> str:
        """The digest of a page; empty if it is not known."""
        if self.folder is None:
            return ""
        try:
            return (self.folder / made_from).read_text()
        except (OSError, ValueError):
            return ""

    def keep(self, made_from: str, text: str) -> None:
        """Note what the text of a page is made from."""
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / made_from).write_text(sha256(text.encode()))


def usual_page_digests(package: Path = PACKAGE) -> PageDigests:
    """The digests that all editions on this machine share; without a home or CLEANSET_CACHE, none.

    Their folder is named after all code and templates of the package, since most of it may appear on a page.
    """
    files = sorted(path for pattern in ("*.py", "*/templates/*") for path in package.rglob(pattern) if path.is_file())
    libraries = f"{version('jinja2')} {version('markupsafe')}"
    made_by = code_digest([path.relative_to(package).as_posix() for path in files], libraries, package)
    try:
        return PageDigests(cache_folder() / "pages" / made_by[:16])
    except CleansetError:  # no home
        return PageDigests(None)
