"""What two dvc.lock files, the committed one and that of a rebuild, say about the code between them."""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Stage:
    """What a lock says about one stage: how it was run, and the MD5 of what it read and wrote, by path."""

    command: str
    params: Mapping[str, Any]
    deps: Mapping[str, str]
    outs: Mapping[str, str]

    @property
    def version(self) -> str | None:
        """The VERSION that the stage depends on."""
        return next((path for path in self.deps if posixpath.basename(path) == "VERSION"), None)


Lock = Mapping[str, Stage]
"""The stages by name, such as score@standard."""


def parse_lock(text: str, folder: str = ".") -> Lock:
    """Read the text of a dvc.lock in `folder`; its paths become relative to where `folder` is."""

    def digests(entry: Mapping[str, Any], kind: str) -> dict[str, str]:
        return {posixpath.normpath(posixpath.join(folder, file["path"])): file["md5"] for file in entry.get(kind, [])}

    return {
        name: Stage(entry["cmd"], entry.get("params", {}), digests(entry, "deps"), digests(entry, "outs"))
        for name, entry in (yaml.safe_load(text) or {}).get("stages", {}).items()
    }


def lock_problems(committed: Lock, rebuilt: Lock) -> list[str]:
    """Compare a rebuild with the committed lock: a line for each stage by which the two differ, with the remedy.

    The stage at which the difference begins is reported. One that only reads what another stage wrote differently is
    not.
    """
    written = {path for stage in rebuilt.values() for path in stage.outs}
    lines: dict[str, set[str]] = defaultdict(set)
    for name, after in rebuilt.items():
        before, kind = committed.get(name), name.partition("@")[0]
        if before is None:
            lines[f"dvc.lock lacks {kind}: run dvc repro and commit dvc.lock"].update(after.outs)
            continue
        changed_deps = set(changed(before.deps, after.deps))
        changed_outs = set(changed(before.outs, after.outs))
        declared = sorted(changed_deps - written)
        if (before.command, before.params) != (after.command, after.params):
            declared.append("its command or params")
        if declared:
            why = f"{kind} has other dependencies than the committed dvc.lock says ({', '.join(declared)})"
            lines[f"{why}: run dvc repro and commit dvc.lock"].add(name)
        elif changed_outs and not changed_deps & written:
            lines[undeclared_change(kind, after.version)].update(changed_outs)
    return [f"{line} ({', '.join(sorted(about))})" for line, about in lines.items()]


def undeclared_change(stage: str, version: str | None) -> str:
    """The line for a stage that writes other bytes although nothing that it declares has changed."""
    remedy = (
        f"raise {version}, then run dvc repro"
        if version
        else "add the module that changed to its deps in dvc.yaml, then run dvc repro"
    )
    return (
        f"{stage} writes other bytes, though neither its VERSION nor a named module changed: "
        f"{remedy} and commit dvc.lock"
    )


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[str]:
    """The paths that only one side has, or both with different digests."""
    return (path for path in sorted({*before, *after}) if before.get(path) != after.get(path))
