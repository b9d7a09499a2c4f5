"""The tar of a finished set, or its WebDataset shards, packed and unpacked; the set's signature, made and checked.

Tars are the same byte for byte on any machine. Signatures are OpenSSH's (`ssh-keygen -Y`), which is on every machine
already and which its authors keep. The signed file is `checksums.sha256`, which has the digests of all other
descriptions; the manifest among them has the images' digests. So one signature covers the set, and one flipped bit
anywhere breaks the chain.
"""

import base64
import binascii
import errno
import filecmp
import io
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from cleanset.classes import CLASSES_FILE, ClassTable
from cleanset.dataset.archives import check_member
from cleanset.errors import CleansetError, one_line, reason
from cleanset.plumbing.files import new_folder, read_text
from cleanset.plumbing.validation import shown
from cleanset.sets.folder import check_outside, read_image, read_set
from cleanset.sets.manifest import Entry
from cleanset.sets.manifest_checks import check_set
from cleanset.statistics.formats import counted

_REMEDY = "expected one of cleanset publish"
MEMBER_TIME = 315_576_000
"""The time of all files in a tar, in seconds since 1970: noon of 1980-01-01, which zip has in every time zone."""


def write_tar(folder: Path, out: Path) -> None:
    """Write the files of `folder`, sorted by path, into a tar, below a folder of the tar's name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    members = ((f"{folder.name}/{path.relative_to(folder).as_posix()}", path.read_bytes()) for path in files)
    # ustar has no room for the long names that other images than ImageNet's may have
    _write_members(out, members, tarfile.GNU_FORMAT if (folder / CLASSES_FILE).is_file() else tarfile.USTAR_FORMAT)


def _write_members(out: Path, members: Iterable[tuple[str, bytes]], form: int = tarfile.USTAR_FORMAT) -> None:
    """Write a tar. Not compressed: images do not shrink, and other versions of zlib write other bytes."""
    # not pax, the default of tarfile, which adds records of its own wherever a value does not fit
    with tarfile.open(out, "w", format=form) as tar:
        for name, data in members:
            # TarInfo has no owner and the mode 0644 by default: the same bytes on every machine
            member = tarfile.TarInfo(name)
            member.mtime = MEMBER_TIME
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@contextmanager
def unpack(path: Path, scratch: Path | None = None) -> Iterator[tuple[Path, bool]]:
    """The folder in a tar of write_tar, and whether the tar has the bytes that write_tar gives for that folder.

    It is in a new folder in `scratch`, by default the folder of temporary files; it is removed after the block.
    Raises CleansetError for anything but a tar with one folder of files.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as within:
        at = Path(within, "in")
        again = Path(within, "again")
        try:
            folder = _extracted(path, at)
            # unpacking hides a member twice, other headers, bytes behind the end: writing the tar again shows them
            write_tar(folder, again)
        except OSError as error:
            variable = "CLEANSET_CACHE" if scratch else "TMPDIR"
            raise CleansetError(
                f"{path}: cannot be unpacked into {scratch or tempfile.gettempdir()} ({reason(error)}); expected room "
                f"there for twice the tar: free some, or set {variable} to another folder"
            ) from None
        try:
            yield folder, filecmp.cmp(again, path, shallow=False)
        # the user knows the tar, not where it was unpacked
        except CleansetError as error:
            raise CleansetError(str(error).replace(f"{at}/", f"{path}, ")) from None
        except OSError as error:
            error.filename = str(error.filename or "writing").replace(f"{at}/", f"{path}, ")
            raise


def _extracted(path: Path, at: Path) -> Path:
    """The only folder in a tar, extracted into the new folder `at`. Raises OSError if the disk is full."""
    try:
        # "r:" and not "r", which would decompress, too: what publish writes is never compressed
        with tarfile.open(path, "r:") as tar:
            # not extractall: before Python 3.11.4 it has no filter for members that lead out of the folder
            for member in tar:
                check_member(f"{path}, member {shown(member.name)}", member, _REMEDY)
                _extract_member(tar, member, at / member.name)
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CleansetError(f"{path}: not a tar that can be read ({reason(error)}); {_REMEDY}") from None
    folders = list(at.iterdir()) if at.is_dir() else []
    if len(folders) != 1 or not folders[0].is_dir():
        raise CleansetError(f"{path}: entries at its top: {len(folders)}; expected one folder")
    return folders[0]


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    (path if member.isdir() else path.parent).mkdir(parents=True, exist_ok=True)
    data = tar.extractfile(member)
    if data is not None:
        with data, path.open("wb") as file:
            shutil.copyfileobj(data, file)


_SUFFIXES = {".jpeg": "jpg", ".jpg": "jpg", ".png": "png"}


def pack(folder: Path, out: Path, shard_size: int) -> str:
    """Write the images of an export into tars in `out`, `shard_size` in each, sorted by image id; return a summary.

    An image is three members: <key>.jpg or .png, .cls (the class index) and .json (its line of the manifest). The key
    is the image id, or of images that are not ImageNet's, <class index>_<rank>.
    The same export gives the same bytes. Raises CleansetError for a file that is not the one in the manifest.
    """
    check_outside(out, folder)
    found = read_set(folder)
    if problems := check_set(dict(enumerate(found.entries, start=2)), found.classes):
        raise CleansetError(f"{folder}: {problems[0]}; see cleanset verify {folder}")
    entries = sorted(found.entries, key=lambda entry: entry.image_id)
    shards = [entries[start : start + shard_size] for start in range(0, len(entries), shard_size)]
    with new_folder(out) as partial:
        partial.mkdir()
        for number, shard in enumerate(shards):
            members = (member for entry in shard for member in _members(folder, entry, found.classes))
            _write_members(partial / f"{shard[0].model}-{number:06d}.tar", members)
    return f"{out}: {counted(len(entries), 'image')} in shards: {len(shards)}"


def _members(folder: Path, entry: Entry, classes: ClassTable) -> Iterator[tuple[str, bytes]]:
    # WebDataset's key of a member ends at the first dot of its name, which other ids may have anywhere
    key = entry.image_id if classes.is_imagenet else f"{entry.class_index:04d}_{entry.rank:04d}"
    yield f"{key}.{_SUFFIXES[PurePosixPath(entry.file).suffix.lower()]}", read_image(folder, entry)
    yield f"{key}.cls", str(entry.class_index).encode()
    yield f"{key}.json", json.dumps(entry.record(classes)).encode()


SIGNATURE_NAMESPACE = "cleanset"
"""Purpose of a signature (ssh-keygen -n); one given for another purpose does not count."""

_ARMOUR = ("-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n")
# where ssh-keygen breaks the lines of a signature
_LINE_CHARACTERS = 70
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/]+=*( .*)?\s*")
_GOOD = re.compile(r'Good "[a-z-]+" signature (?:for (?P<who>.*) )?with (?P<key>\S+) key (?P<digest>\S+)')


class SignatureError(Exception):
    """A signature that is missing, of other content, or not by an allowed signer; the message says which."""


def sign(data: bytes, key: Path, namespace: str = SIGNATURE_NAMESPACE) -> bytes:
    """The signature of `data` by a private SSH key, or by the agent that holds the one of a public key."""
    if not key.is_file():
        raise CleansetError(f"{key}: missing; expected an SSH key, such as ~/.ssh/id_ed25519 (ssh-keygen makes one)")
    done = _ssh_keygen("sign", "-n", namespace, "-f", str(key), data=data)
    if done.returncode:
        raise CleansetError(f"{key}: not signed: {_last_line(done.stderr)}")
    return done.stdout


def signer(data: bytes, signature: bytes, signers: Path, namespace: str = SIGNATURE_NAMESPACE) -> str:
    """The signer of `data`, as "alice@example.org, ED25519 key SHA256:...".

    `signers` is a public key, or a list as ssh-keygen(1) describes under ALLOWED SIGNERS. Raises SignatureError for a
    signature that is not valid, and CleansetError if `signers` cannot be read.
    """
    _check_armour(signature)
    known = read_text(signers, "expected the signer's public key, or allowed signers")
    if _PUBLIC_KEY.fullmatch(known):
        # a list of signers begins each line with a name; * stands for any
        known = f"* {known}"
    elif "PRIVATE KEY" in known:
        raise CleansetError(f"{signers}: a private key; expected the public one, {signers.name}.pub")
    # ssh-keygen takes only the signed data from its standard input, signers and signature from files
    with tempfile.TemporaryDirectory() as folder:
        allowed = Path(folder, "allowed_signers")
        signed = Path(folder, "signature")
        allowed.write_text(known, encoding="utf-8")
        signed.write_bytes(signature)
        files = ("-f", str(allowed), "-s", str(signed))
        # verify asks for the name of the signer, which only the list of signers knows
        found = _ssh_keygen("find-principals", *files)
        if found.returncode:
            raise SignatureError(f"not by a signer in {signers.name} ({_last_line(found.stderr)})")
        who = found.stdout.decode().split("\n")[0]
        done = _ssh_keygen("verify", "-n", namespace, "-I", who, *files, data=data)
    good = _GOOD.search(done.stdout.decode())
    if done.returncode or good is None:
        raise SignatureError(f"not valid ({_last_line(done.stderr) or _last_line(done.stdout)})")
    return f"{'' if who == '*' else f'{who}, '}{good['key']} key {good['digest']}"


def _check_armour(signature: bytes) -> None:
    """Raise SignatureError unless these are the bytes that ssh-keygen writes; it reads others, too."""
    try:
        body = signature.decode("ascii").removeprefix(_ARMOUR[0]).removesuffix(_ARMOUR[1])
        encoded = base64.b64encode(base64.b64decode(body.replace("\n", ""), validate=True)).decode()
    except (UnicodeDecodeError, binascii.Error):
        raise SignatureError("not as ssh-keygen writes it") from None
    lines = (encoded[start : start + _LINE_CHARACTERS] for start in range(0, len(encoded), _LINE_CHARACTERS))
    if signature.decode("ascii") != _ARMOUR[0] + "".join(f"{line}\n" for line in lines) + _ARMOUR[1]:
        raise SignatureError("not as ssh-keygen writes it")


def _ssh_keygen(action: str, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    # looked up first: subprocess would raise an OSError that names no remedy
    program = shutil.which("ssh-keygen")
    if program is None:
        raise CleansetError("ssh-keygen: not installed; signatures need OpenSSH 8.2 or later: install openssh-client")
    return subprocess.run([program, "-Y", action, *arguments], input=data, capture_output=True, check=False)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1]) if lines else "ssh-keygen gives no reason"
