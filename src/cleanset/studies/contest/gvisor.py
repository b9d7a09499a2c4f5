"""Commands confined by gVisor: a kernel of their own, in user space, to which their system calls go.

What it is given is a bundle in the form of the OCI runtime specification, version 1.0: a description and a root folder.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleanset.studies.contest.sandbox import (
    MAX_WRITTEN_BYTES,
    NOBODY,
    WRITABLE,
    Confined,
    Start,
    shown_places,
    system_links,
)


class Gvisor:
    """The program runsc. A command in it sees no GPU."""

    program = "runsc"

    @contextmanager
    def open(self, confined: Confined, scratch: Path) -> Iterator[Start]:
        """The start of a command; its bundle is written into `scratch`."""
        _write_bundle(confined, scratch)
        of_user = [] if os.getuid() == 0 else ["--rootless"]
        options = ["--network=none", "--ignore-cgroups", f"--root={scratch / 'state'}", *of_user]
        # its own process writes the memory of all: the limit of files is set inside
        yield Start(command=[self.program, *options, "run", f"--bundle={scratch}", f"cleanset-{os.getpid()}"])


def _write_bundle(confined: Confined, scratch: Path) -> None:
    root = scratch / "root"
    for link in system_links():
        _place_in(root, link.inside).symlink_to(link.outside)
    mounts = [_mount("/proc", "proc"), _mount("/dev", "tmpfs")]
    mounts += [_mount(each, "tmpfs", f"size={MAX_WRITTEN_BYTES}") for each in WRITABLE]
    for shown in shown_places(confined):
        place = _place_in(root, shown.inside)
        if shown.outside.is_dir():
            place.mkdir(exist_ok=True)
        else:
            place.touch()
        mounts.append(_mount(shown.inside, str(shown.outside), "ro", "rbind"))
    limit = {"type": "RLIMIT_FSIZE", "hard": confined.max_file_bytes, "soft": confined.max_file_bytes}
    process = {
        "user": {"uid": NOBODY, "gid": NOBODY}, "args": confined.arguments, "cwd": "/defence", "capabilities": {},
        "env": [f"{key}={text}" for key, text in confined.environment.items()], "noNewPrivileges": True,
        "rlimits": [limit],
    }  # fmt: skip
    namespaces = [{"type": each} for each in ("pid", "network", "ipc", "uts", "mount")]
    description = {
        "ociVersion": "1.0.0", "process": process, "root": {"path": root.name, "readonly": True},
        "hostname": "defence", "mounts": mounts, "linux": {"namespaces": namespaces},
    }  # fmt: skip
    (scratch / "config.json").write_text(json.dumps(description))


def _place_in(root: Path, inside: str) -> Path:
    place = root / inside.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _mount(inside: str, source: str, *options: str) -> dict[str, object]:
    """A mount of a folder, or of a file system of that name."""
    kind = "bind" if source.startswith("/") else source
    return {"destination": inside, "type": kind, "source": source, "options": options}
