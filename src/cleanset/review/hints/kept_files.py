"""Files on disk by the SHA-256 of the image that they are about."""

from contextlib import suppress
from pathlib import Path

from cleanset.files import read_bytes, remove_abandoned, write_bytes


class KeptFiles:
    """JSON files in a folder, by the SHA-256 of an image's bytes.

    Several processes may use one folder at a time. A file that cannot be written is left out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._is_tidy = False

    def read(self, digest: str) -> bytes:
        """The content for the image with this SHA-256. Raises OSError or CleansetError without one."""
        return read_bytes(self._path(digest))

    def keep(self, digest: str, content: bytes) -> None:
        """Keep this for the image with this SHA-256, if the disk allows it."""
        with suppress(OSError):
            if not self._is_tidy:
                # what a server that was killed while writing has left
                remove_abandoned(self.folder)
                self._is_tidy = True
            write_bytes(self._path(digest), content)

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.json"
