"""Downloads of weights: complete or absent, and nothing written anywhere else.

huggingface_hub, and gdown, which RobustBench uses, download in a process of their own: both keep caches
and cookies in the home folder, so that process gets another home, inside a folder that is removed at the end.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cleanset.plumbing.file_locks import folder_lock
from cleanset.plumbing.files import sha256_of, write_text
from cleanset.plumbing.interpreter import python_command
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.retries import retried
from cleanset.plumbing.validation import SHA256_FORM

# time without a byte after which a download is given up; gdown has no timeout of its own
STALL_SECONDS = 60


class Hub(NamedTuple):
    """A file in a repository of the Hugging Face hub."""

    repository: str
    file: str

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"https://huggingface.co/{self.repository}/resolve/main/{self.file}"


class Drive(NamedTuple):
    """A file on Google Drive."""

    id: str

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"https://drive.google.com/uc?id={self.id}"


class Web(NamedTuple):
    """A file at an address; `digest`: how its SHA-256 begins, empty if that is not known."""

    url: str
    digest: str = ""


Origin = Hub | Drive | Web


def fetch(origin: Origin, path: Path) -> None:
    """Download to `path`, unless the file exists; a second process that wants it waits for the first.

    If the download fails, a copy in the user's own cache of the Hugging Face hub or of torch is used, as timm and
    torchvision do. Leftovers of a killed run are removed. Raises ValueError with the reason if there is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    workspace = path.with_name(path.name + ".partial")
    with folder_lock(path.parent):
        if path.is_file():
            return
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.mkdir()
        try:
            fetched = workspace / path.name
            _download_or_copy(origin, fetched)
            if (other := what_instead_of_weights(fetched)) is not None:
                raise ValueError(f"{other} received instead of weights")
            # first: after a kill in between, the file is downloaded again
            write_text(digest_file(path), f"{sha256_of(fetched)}  {path.name}\n")
            fetched.replace(path)
        finally:
            shutil.rmtree(workspace, ignore_errors=True)


def digest_file(path: Path) -> Path:
    """The file next to downloaded weights that sha256sum -c reads; weights put there by hand lack it."""
    return path.with_name(f"{path.name}.sha256")


def what_instead_of_weights(path: Path) -> str | None:
    """A description of a file without weights, such as `a web page ("Quota exceeded")`; None for any other file."""
    with path.open("rb") as file:
        start = file.read(4096)
    if not start:
        return "an empty file"
    text = start.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        title = re.search(r"<title[^>]*>(.*?)</title>", start.decode(errors="replace"), re.DOTALL | re.IGNORECASE)
        return f'a web page ("{" ".join(title[1].split())}")' if title else "a web page"
    return None


def _download_or_copy(origin: Origin, path: Path) -> None:
    """Download to `path`; where that fails, copy what the user's cache has. Raises ValueError if it has nothing."""
    try:
        _run(origin, path)
    except ValueError as error:
        cached = cached_copy(origin)
        if cached is None:
            raise
        shutil.copyfile(cached, path)
        print_notice(f"{cached}: used because the download failed ({error})")


def cached_copy(origin: Origin) -> Path | None:
    """The whole file in the user's cache of the hub or of torch, if it has one whose name or origin contains a digest.

    The hub's cache names a large file by its SHA-256, and torchvision's weights have the beginning of theirs.
    """
    if isinstance(origin, Hub):
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(origin.repository, origin.file)
        path = Path(found).resolve() if isinstance(found, str) else None
        digest = path.name if path is not None and SHA256_FORM.fullmatch(path.name) else ""
    elif isinstance(origin, Web):
        from torch.hub import get_dir

        path = Path(get_dir(), "checkpoints", origin.url.rpartition("/")[2])
        digest = origin.digest
    else:
        return None
    is_whole = path is not None and path.is_file() and digest and sha256_of(path).startswith(digest)
    return path if is_whole else None


def _run(origin: Origin, path: Path) -> None:
    """Download to `path` in a process whose home is the folder of `path`. Raises ValueError if it fails."""
    switches = ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_IMPLICIT_TOKEN")
    folders = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_XET_CACHE")
    # Xet bypasses proxies and HF_ENDPOINT
    environment = os.environ | dict.fromkeys(folders, str(path.parent)) | dict.fromkeys(switches, "1")
    arguments = (str(STALL_SECONDS), type(origin).__name__, *origin, str(path))
    command = python_command("-m", "cleanset.scoring.downloads", *arguments)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stdout.strip() or f"the download ended with code {done.returncode}")


def _from_web(url: str, digest: str, path: Path) -> None:
    import httpx

    with httpx.stream("GET", url, follow_redirects=True, timeout=STALL_SECONDS) as response, path.open("wb") as file:
        response.raise_for_status()
        file.writelines(response.iter_bytes())
    if not (found := sha256_of(path)).startswith(digest):
        what = what_instead_of_weights(path) or f"SHA-256 {found}"
        raise ConnectionError(f"{what} arrived; expected a SHA-256 that begins with {digest}")


def _from_hub(repository: str, name: str, path: Path) -> None:
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    folder = path.parent / "hub"
    shutil.rmtree(folder, ignore_errors=True)  # left by an earlier attempt
    facts = get_hf_file_metadata(hf_hub_url(repository, name))
    # at the commit of the metadata: the repository may change between the two requests
    fetched = Path(hf_hub_download(repository, name, revision=facts.commit_hash, local_dir=folder))
    found = sha256_of(fetched)
    # the hub's ETag of a large file is its SHA-256
    if SHA256_FORM.fullmatch(facts.etag or "") and facts.etag != found:
        raise ConnectionError(what_instead_of_weights(fetched) or f"SHA-256 {found} arrived; the hub has {facts.etag}")
    fetched.replace(path)


def _from_drive(file_id: str, path: Path) -> None:
    import gdown
    import requests

    try:
        gdown.download(id=file_id, output=str(path), quiet=not sys.stderr.isatty(), use_cookies=False)
    except requests.RequestException as error:
        raise ConnectionError(str(error)) from None


def _give_up_when_stalled(folder: Path, seconds: float) -> None:
    """End this process, with the reason, once nothing in `folder` has grown for `seconds`."""
    size = found = 0
    since = time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(min(1, seconds / 4))
        with suppress(FileNotFoundError):  # renamed meanwhile
            found = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if found != size:
            size = found
            since = time.monotonic()
    print(f"no byte came for {seconds:g} seconds", flush=True)
    # sys.exit would end this thread only, while the main thread waits for the next byte
    os._exit(1)


def _main(stalled: str, kind: str, *words: str) -> None:
    """Download in this process; print the reason and exit with 1 if that fails."""
    path = Path(words[-1])
    fetchers: dict[str, Callable[..., None]] = {"Hub": _from_hub, "Web": _from_web, "Drive": _from_drive}
    threading.Thread(target=_give_up_when_stalled, args=(path.parent, float(stalled)), daemon=True).start()
    import httpx

    # the connection broke, so that another attempt may succeed; a server that refuses would refuse again
    # (huggingface_hub also resumes on its own)
    transient = (ConnectionError, TimeoutError, httpx.TransportError)
    try:
        retried(lambda: fetchers[kind](*words[:-1], path), *transient)
    except Exception as error:  # huggingface_hub, httpx and gdown raise their own
        print(_reason(error))
        sys.exit(1)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    text = text.removeprefix("Failed to retrieve file url: ").split(" You may still be able to", 1)[0]  # gdown's
    return f"{type(error).__name__}: {text if len(text) <= 300 else f'{text[:300]}…'}"


if __name__ == "__main__":
    _main(*sys.argv[1:])
