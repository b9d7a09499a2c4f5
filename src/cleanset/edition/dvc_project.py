"""A DVC project as DVC reads it, but without the settings of its .dvc/config, which may be a stranger's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.errors import CleansetError, reason
from cleanset.files import check_no_links
from cleanset.validation import shown

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.stage import Stage


@contextmanager
def dvc_stages(pipeline: Path) -> Iterator[Sequence["Stage"]]:
    """The stages of a dvc.yaml, while its project is locked.

    DVC keeps pickled objects in `core.site_cache_dir`, and runs programs that a remote's settings name: neither is
    taken from the project. Raises CleansetError for a project that DVC cannot read, and for a stage with anything but
    files of this machine and params, where DVC would ask an address; ModuleNotFoundError without dvc.
    """
    from dvc.config import Config
    from dvc.dirs import site_cache_dir
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    # DVC keeps its locks there
    check_no_links(pipeline.parent, pipeline.parent / ".dvc" / "tmp")
    own_cache = site_cache_dir(Config(validate=False).get("core", {}).get("site_cache_dir"))
    try:
        with Repo(str(pipeline.parent), config={"core": {"site_cache_dir": own_cache}}) as repo, repo.lock:
            repo.config["remote"] = {}
            stages = repo.stage.load_all(str(pipeline.resolve()))
            for entry in (entry for stage in stages for entry in (*stage.deps, *stage.outs)):
                if not _is_local(entry):
                    raise CleansetError(
                        f"{pipeline}: {shown(str(entry))}; expected files alone, and no address: edit it"
                    )
            yield stages
    except DvcException as error:  # no project of DVC, no git, a file that it cannot read
        raise CleansetError(
            f"{pipeline}: DVC cannot read it ({reason(error)}); expected a project of DVC: see dvc status"
        ) from None


def _is_local(entry: "Output") -> bool:
    from dvc.dependency import Dependency, ParamsDependency
    from dvc.output import Output

    # exactly: another kind is of a database, another repository or a registry of data sets
    return type(entry) in (Dependency, ParamsDependency, Output) and entry.fs.protocol == "local"
