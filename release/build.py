"""Build a release: sdist and wheel in dist/, checked, from the files of a commit (`make release`; docs/release.md).

The address of the repository is in pyproject.toml alone (`project.urls`, Repository), and so is the version. The links
of the README, which are relative, become links to the files of this version there, so that they work on a package page.
"""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()(?!https?://|#|mailto:)([^)\s]+)(\))")
IMAGE = re.compile(r"(!\[[^\]]*\]\()(?!https?://)([^)\s]+)(\))")
DIST = ROOT / "dist"


def project() -> dict[str, object]:
    """The table project of pyproject.toml."""
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def repository() -> str | None:
    """The address of the repository, without a slash at its end; None if it is not set yet."""
    urls = project().get("urls")
    found = urls.get("Repository") if isinstance(urls, dict) else None
    return None if found is None else str(found).rstrip("/")


def problems(version: str) -> list[str]:
    """What a release of this version lacks, in sentences."""
    found = []
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    if citation != version:
        found.append(f"CITATION.cff: version {citation}; expected {version}, as in pyproject.toml")
    if f"## [{version}]" not in (ROOT / "CHANGELOG.md").read_text():
        found.append(f"CHANGELOG.md: no section [{version}]; expected one with its date: rename Unreleased")
    if repository() is None:
        found.append("pyproject.toml: no project.urls with Repository; expected the address of this repository")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        found.append("uncommitted changes; expected a clean checkout: commit them")
    return found


def readme_of_package(text: str, address: str, version: str) -> str:
    """The README for a package page: links and images are those of this version in the repository."""
    text = IMAGE.sub(rf"\g<1>{address}/raw/v{version}/\g<2>\g<3>", text)
    return LINK.sub(rf"\g<1>{address}/blob/v{version}/\g<2>\g<3>", text)


def copied(folder: Path, version: str) -> None:
    """Copy the files of HEAD into a folder, with the README of a package page."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="tar")
    address = repository()
    if address is not None:
        readme = folder / "README.md"
        readme.write_text(readme_of_package(readme.read_text(), address, version))


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; a failure ends the release."""
    subprocess.run(command, cwd=cwd, check=True)


def main(arguments: Sequence[str]) -> int:
    """Build and check; with `--dry-run` what a release lacks is printed, and ends nothing."""
    version = str(project()["version"])
    found = problems(version)
    for each in found:
        print(f"{'note' if '--dry-run' in arguments else 'error'}: {each}", file=sys.stderr)
    if found and "--dry-run" not in arguments:
        return 1
    source = ROOT / "build" / "release"
    run("rm", "-rf", str(source), str(DIST))
    source.mkdir(parents=True)
    copied(source, version)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), ".", cwd=source)
    files = sorted(DIST.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
    (wheel,) = DIST.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        for line in archive.read(metadata).decode().splitlines():
            if line.startswith(("Version", "License", "Project-URL", "Requires-Python")):
                print(line)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
