"""A published set as one tar: the same folder gives the same bytes, on any machine."""

import io
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleanset.errors import CleansetError, reason


def write_tar(folder: Path, out: Path) -> None:
    """Write the files of `folder`, sorted by path, into a tar in which they lie in a folder of the same name.

    Not compressed: images do not shrink, and other versions of zlib write other bytes.
    """
    with tarfile.open(out, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            member = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")  # of nobody, of 1970, 0644
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, bool]]:
    """The folder in a tar of write_tar, and whether the tar has the bytes that write_tar gives for that folder.

    It is gone after the block. Raises CleansetError for anything but a tar with one folder of files.
    """
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch, "in")
        try:
            with tarfile.open(path, "r:") as tar:
                tar.extractall(at, filter="data")
        except (tarfile.TarError, OSError, ValueError, EOFError) as error:
            raise CleansetError(
                f"{path}: not a tar that can be read ({reason(error)}); expected one of cleanset publish"
            ) from None
        folders = list(at.iterdir()) if at.is_dir() else []
        if len(folders) != 1 or not folders[0].is_dir():
            raise CleansetError(f"{path}: entries at its top: {len(folders)}; expected one folder")
        again = Path(scratch, "again")
        write_tar(folders[0], again)
        yield folders[0], again.read_bytes() == path.read_bytes()
