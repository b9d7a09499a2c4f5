"""Starting a command where it sees nothing but its own files, the images, and the programs of this machine.

The command is the first process of a process namespace, so that everything that it starts ends with it, and has a
network namespace without a network. Its root folder is an empty one in memory, with these folders for reading: the
system's programs and libraries, its interpreter, its own files as /defence, the images as /images.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

# with a user namespace (--map-root-user), because the others alone need root
_NAMESPACES = ("unshare", "--map-root-user", "--mount", "--pid", "--fork", "--ipc", "--net", "--kill-child", "--")
_WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net", "--")
_SCRIPT = r"""
set -e
root=$1 images=$2 folder=$3 others=$4
shift 4
mount -t tmpfs -o mode=755,size=1g tmpfs "$root"
cd "$root"
mkdir -p proc dev tmp home old
readable() {
  mkdir -p "./$2"
  mount --rbind "$1" "./$2"
  # a mount keeps the flags that it has outside: they have to be named again
  for flags in ro ro,nosuid,nodev ro,noatime ro,nosuid,nodev,noatime ro,nosuid,nodev,noexec; do
    if mount -o "remount,bind,$flags" "./$2" 2> /dev/null; then return; fi
  done
  echo "cannot mount $1 for reading only" >&2
  exit 1
}
for path in /bin /sbin /lib /lib32 /lib64 /libx32; do
  if [ -L "$path" ]; then ln -s "$(readlink "$path")" ".$path"; elif [ -d "$path" ]; then readable "$path" "$path"; fi
done
for path in /usr /etc/alternatives /nix/store; do
  if [ -d "$path" ]; then readable "$path" "$path"; fi
done
mkdir -p etc
if [ -e /etc/ld.so.cache ]; then cp /etc/ld.so.cache etc; fi
for path in /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/nvidia*; do
  if [ -c "$path" ]; then touch ".$path"; mount --bind "$path" ".$path"; fi
done
mkdir dev/shm
printf '%s\n' "$others" | while read -r path; do
  if [ -n "$path" ]; then readable "$path" "$path"; fi
done
readable "$folder" /defence
readable "$images" /images
mount -t proc proc proc
pivot_root . old
umount -l /old
rmdir /old
cd /defence
exec setpriv --no-new-privs --bounding-set -all --inh-caps -all -- "$@" /images
"""


@functools.cache
def is_possible() -> bool:
    """Whether this machine allows a command to be confined."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            command = confined(["true"], Path(scratch), Path(scratch), Path(scratch))
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def confined(command: Sequence[str], folder: Path, images: Path, scratch: Path) -> list[str]:
    """The command, run in `folder` with the path of `images` added, as one that sees nothing else.

    `scratch`: an empty folder; its subfolder `root` is made. HOME and TMPDIR have to be /home and /tmp.
    """
    root = scratch / "root"
    root.mkdir()
    others = "\n".join(_interpreters(command[0], folder.resolve()))
    places = (str(root), str(images.resolve()), str(folder.resolve()), others)
    return [*_NAMESPACES, "sh", "-c", _SCRIPT, "sh", *places, *command]


@functools.cache
def without_network() -> tuple[str, ...]:
    """The prefix of a command that takes the network from it; empty where the machine does not allow that."""
    try:
        done = subprocess.run([*_WITHOUT_NETWORK, "true"], capture_output=True, check=False)
    except OSError:
        return ()
    return _WITHOUT_NETWORK if done.returncode == 0 else ()


def _interpreters(program: str, folder: Path) -> Iterator[str]:
    """The folders of a program and of Python, where they are not the system's; none that has `folder` in it."""
    found: set[Path] = set()
    for name in (program, "python3", "python"):
        path = shutil.which(name)
        for each in () if path is None else (Path(path).absolute(), Path(os.path.realpath(path))):
            prefix = each.parent.parent
            # of a folder such as ~/bin nothing is shown: its parent is no installation but somebody's home
            if each.parent.name == "bin" and (prefix / "lib").is_dir() and not folder.is_relative_to(prefix):
                found.add(prefix)
    yield from sorted(str(each) for each in found if each != Path("/") and not each.is_relative_to("/usr"))
