"""What `cleanset doctor` finds and repairs: what killed runs and failing disks leave in an edition."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from cleanset.edition.locks import repair_locks
from cleanset.edition.rot import Rotten, Unchecked, rotten_files
from cleanset.errors import CleansetError


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found; paths are those of the edition's folder as given.

    `repaired`: what was put back or removed, a line each. `hashed`: how many files were hashed; None in the quick form.
    `rotten`: files with other bytes than dvc.lock says. `unchecked`: folders that differ, in a file that only DVC's
    missing list would tell.
    `leftovers`: temporary files of killed runs.
    """

    repaired: list[str]
    hashed: int | None
    rotten: list[Rotten]
    unchecked: list[Unchecked]
    leftovers: list[Path]

    @property
    def is_healthy(self) -> bool:
        """Whether every file that was hashed has the bytes that dvc.lock says."""
        return not self.rotten


def examine(edition: Path, quick: bool) -> Findings:
    """Repair what DVC cannot read; then, unless `quick`, hash every out and cached object that dvc.lock names."""
    if not (edition / ".dvc").is_dir():
        raise CleansetError(f"{edition}: no DVC project; expected the folder of an edition: run it there")
    repaired = repair_locks(edition)
    if quick:
        return Findings(repaired, None, [], [], [])
    cache = cache_folder(edition)
    hashed, rotten, unchecked = rotten_files(edition, cache)
    return Findings(repaired, hashed, rotten, unchecked, leftovers(edition))


def cache_folder(edition: Path) -> Path:
    """The folder of DVC's cache that has the objects by MD5."""
    from dvc.config import Config

    folder = Config(dvc_dir=str(edition / ".dvc"))["cache"].get("dir")
    return (Path(folder) if folder else edition / ".dvc" / "cache") / "files" / "md5"


def leftovers(edition: Path) -> list[Path]:
    """Temporary files and folders that killed runs left. The next run of the same stage replaces them."""
    found = [path for path in edition.rglob("*.partial") if not path.relative_to(edition).parts[0].startswith(".")]
    return sorted(path for path in found if not any(parent in found for parent in path.parents))


def as_json(findings: Findings) -> str:
    """The findings for programs."""
    return json.dumps(asdict(findings), indent=2, default=str)


def as_text(findings: Findings) -> str:
    """The findings for people, a line each."""
    lines = list(findings.repaired)
    lines += [f"{bad.path}: MD5 {bad.found}, expected {bad.expected}: {bad.repair}" for bad in findings.rotten]
    lines += [
        f"{folder.path}: differs from dvc.lock; {folder.listed_in}, DVC's list of its files, is missing: "
        f"{folder.remedy}"
        for folder in findings.unchecked
    ]
    lines += [f"{path}: left over from a run that was killed; may be removed" for path in findings.leftovers]
    if findings.hashed is not None:
        lines.append(f"{findings.hashed} files hashed, {len(findings.rotten)} with other bytes than dvc.lock says")
    return "\n".join(lines)
