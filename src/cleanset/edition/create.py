"""Making a new edition: a DVC project that runs the code of this checkout or of the installed package.

An edition of your own images has params of its own, and the pipeline of all editions with another first stage.

Outside of this checkout it gets links to the code, see `code_link`; where it begins a git repository, see `repository`.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from cleanset.dataset.folder import LabelledImages
from cleanset.dataset.pinned import pinned_text
from cleanset.edition.about import About
from cleanset.edition.code_link import CHECKOUT, LINKED, TEMPLATE, link_code, root_of
from cleanset.edition.models import Models, with_files_of, with_lists, with_models
from cleanset.edition.params import Export, checked_params
from cleanset.edition.readme import readme
from cleanset.edition.remote import with_remote
from cleanset.edition.repository import ATTRIBUTES, begin_repository, git_root
from cleanset.edition.yaml_edit import LayoutError, edited_text, flow_text
from cleanset.errors import CleansetError
from cleanset.images.codec import size_in_header
from cleanset.plumbing.files import new_folder, write_text
from cleanset.plumbing.validation import join_names
from cleanset.plumbing.yaml_files import data_beside, parse_yaml
from cleanset.selection.rule import ImagesPerClass

OF_OWN_IMAGES = Path(__file__).parent / "templates"
"""The files that an edition of your own images has instead."""
STUDY, ATTACKING, CONTEST, TRAINING = (f"studies/{name}" for name in ("robustness", "attacks", "contest", "training"))
PROJECTS = STUDY, ATTACKING, CONTEST, TRAINING
COPIED: dict[str, list[str]] = data_beside(__file__, "copied.yaml")
"""Files that a new edition takes from the ImageNet edition unchanged."""
GITIGNORE = "/data/*\n!/data/README.md\n/report/\nbuild/\ndvc_plots/\n*.partial\n.lock\n" + f"/{LINKED}/\n"
"""The .gitignore of a new edition."""
PINNED = "images.sha256"
"""The digests of your own images, which stages depend on in place of their folder."""
MIN_CROP_PIXELS = 32
"""The shortest edge of a crop, where the images are large enough."""
_SELECT = """\
# order of the tiers in which a class is filled: those that all models classify correctly, then those that this one does
select: {candidates: 5, tiers: [top5, reserve]}"""
_SELECT_WITHOUT_MODEL = "select: {}  # the choice of a model's candidates: see cleanset docs reference/params"
"""The section `select` of an edition of your own images, with a model and without."""
_SHARED_CACHE = r"\[cache\]\n    dir = (?:\.\./)+\.dvc/cache\n"
"""The section of the ImageNet edition's .dvc/config, and its studies', that shares the checkout's cache."""
_OF_SCENARIOS = r"      - (?:\$\{data\.(?:masks|generated)\}|\.\./robustness/backgrounds)\n"
"""The deps of a training that only scenarios need."""


def make_edition(
    folder: Path,
    models: Models | None = None,
    *,
    images_per_class: ImagesPerClass | None = None,
    modules: Mapping[str, Path] | None = None,
    with_git: bool = False,
    remote: str | None = None,
    fill: Callable[[Path], None] | None = None,
) -> None:
    """Make `folder` an edition with the ImageNet edition's params, checksums and DVC remote, and with empty reviews.

    In it are its study of robustness, attacks, a contest and trainings, DVC projects of their own.

    `models` and `images_per_class`: by default the ImageNet edition's; `modules`: files of custom models, by their path
    in the edition; `with_git`: make it a git repository of its own; `remote`: the address of its DVC remote, by default
    the ImageNet edition's; `fill` puts more into the folder. Inside this checkout it shares the checkout's DVC cache.
    Everything is made, or nothing. Raises CleansetError if the folder is not empty.
    """
    check_folder(folder)
    params = _with_head("params.yaml", "# See cleanset docs curate for what to put where.\n")
    pipeline = _template("dvc.yaml")
    study = _with_head(f"{STUDY}/params.yaml", "# See cleanset docs robustness for what to put where.\n")
    params = _with_root(params, root_of(folder))
    if images_per_class is not None:
        params = _with_images_per_class(params, images_per_class)
    if models is not None:
        models = with_lists(models, folder)
        if any(model.is_list for model in models.values()):
            params = _for_lists(params)
        params = with_models(params, models)
        pipeline = with_files_of(pipeline, models)
        study = _without_models(study)
    texts = {
        "params.yaml": params,
        "dvc.yaml": pipeline,
        f"{STUDY}/params.yaml": study,
        f"{ATTACKING}/params.yaml": _with_head(f"{ATTACKING}/params.yaml", "# See cleanset docs attacks.\n"),
    }
    config = _dvc_config(folder, with_git=with_git)
    _write_edition(
        folder,
        config if remote is None else with_remote(config, remote),
        projects=PROJECTS,
        copied={**(modules or {}), **{name: TEMPLATE / name for name in COPIED["imagenet"]}},
        texts=texts,
        with_git=with_git,
        fill=fill,
    )


def make_own_edition(
    folder: Path,
    images: Path,
    found: LabelledImages,
    models: Models,
    tables: Mapping[str, Path | None],
    digests: Mapping[str, str],
    about: About | None = None,
    *,
    images_per_class: ImagesPerClass | None = None,
    modules: Mapping[str, Path] | None = None,
    with_git: bool = False,
    remote: str | None = None,
    fill: Callable[[Path], None] | None = None,
) -> None:
    """Make `folder` an edition of the images that were `found` in the folder `images`, which is outside of it.

    `tables`: the files labels, names and scores as given, which are copied; `digests`: the SHA-256 of each image;
    `about` goes into the params, as does `images_per_class`, by default that of `Export`; `modules`: files of custom
    models, by their path in the edition; `with_git`: make it a git repository of its own; `remote`: the address of its
    DVC remote; `fill` puts more into the folder. Everything is made, or nothing. Raises CleansetError if the folder is
    not empty, or is among the images.
    """
    if folder.resolve().is_relative_to(images.resolve()):
        raise CleansetError(f"{folder}: among the images in {images}; expected a new folder outside of it")
    check_folder(folder)
    check_none_empty(found)
    given = {key: path for key, path in tables.items() if path is not None}
    names = {key: f"{key}{path.suffix}" for key, path in given.items()}
    values = {
        "root": root_of(folder),
        "images": _relative(images, folder),
        "labels": names.get("labels"),
        "names": names.get("names"),
        "images_per_class": Export().images_per_class if images_per_class is None else images_per_class,
        "min_crop_pixels": _min_crop_pixels(found),
        "wrong_after_crop": "accept" if any(model.is_list for model in models.values()) else "reject",
        "accuracy": all(not model.is_random for model in models.values()),
    }
    entries = "\n".join(
        f"  {flow_text(role)}: {flow_text(model.model_dump(exclude_none=True))}" for role, model in models.items()
    )
    said = {"about": about.model_dump(exclude_unset=True) if about else None}
    block = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=10_000).rstrip("\n")
    params = _template("own_params.yaml", OF_OWN_IMAGES).format(
        **{key: flow_text(value) for key, value in values.items()},
        select=_SELECT if any(not model.is_random for model in models.values()) else _SELECT_WITHOUT_MODEL,
        splits="  classes_are_folders: true  # even such as train and test\n" * found.classes_are_folders,
        models=entries,
        about=indent(block, "  "),
    )
    # before anything is written: what was given may make params that no stage reads
    checked_params(parse_yaml(params, "params.yaml"), "params.yaml")
    training = _template("own_training_params.yaml", OF_OWN_IMAGES).format(
        images=flow_text(_relative(images, folder / TRAINING)),
        labels=flow_text(f"../../{names['labels']}" if "labels" in names else None),
    )
    inputs = [PINNED, *(names[key] for key in ("labels", "names") if key in names)]
    texts = {
        PINNED: pinned_text(digests),
        "params.yaml": params,
        "dvc.yaml": with_files_of(_own_pipeline(inputs), models),
        f"{TRAINING}/params.yaml": training,
        f"{TRAINING}/dvc.yaml": _own_training_pipeline(has_labels="labels" in names),
    }
    copied = {**(modules or {}), **{name: TEMPLATE / name for name in COPIED["own"]}}
    copied |= {names[key]: path for key, path in given.items()}
    config = _dvc_config(folder, with_git=with_git)
    config = _substituted(r"    remote = .*\n|\['remote(?s:.*)\Z", "", config, ".dvc/config", places=2)
    if remote is not None:
        config = with_remote(config, remote)
    _write_edition(folder, config, projects=[TRAINING], copied=copied, texts=texts, with_git=with_git, fill=fill)


def check_folder(folder: Path) -> None:
    """Raise CleansetError for a folder whose path has braces, at which DVC fails with an error of its own."""
    path = str(folder.resolve())
    if "{" in path or "}" in path:
        raise CleansetError(f"{folder}: braces in its path {path}; expected one without, since DVC fails there")


def _write_edition(
    folder: Path,
    config: str,
    *,
    projects: Iterable[str],
    copied: Mapping[str, Path],
    texts: dict[str, str],
    with_git: bool,
    fill: Callable[[Path], None] | None,
) -> None:
    """Write an edition with what `fill` puts into its folder, or nothing.

    `config`: its .dvc/config, from which those of the `projects` in it are made.
    """
    params = checked_params(parse_yaml(texts["params.yaml"], "params.yaml"), "params.yaml")
    configs = {f"{project}/.dvc/config": _project_config(config, folder.resolve(), project) for project in projects}
    # git does not keep an empty folder
    common = {
        ".dvc/config": config,
        ".gitattributes": ATTRIBUTES,
        ".gitignore": GITIGNORE,
        "README.md": readme(params, folder.resolve().name),
        "reviews/.gitkeep": "",
    }
    with new_folder(folder) as partial:
        (partial / "data" / ("raw" if "raw.md5" in copied else "")).mkdir(parents=True)
        for name, source in copied.items():
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, partial / name)
        for name, text in (common | configs | texts).items():
            write_text(partial / name, text)
        if params.root == LINKED:
            link_code(partial)
        if fill is not None:
            fill(partial)
        if with_git and git_root(folder) is None:
            begin_repository(partial)


def _for_lists(params: str) -> str:
    """The text of the ImageNet edition's params.yaml with the values that published lists need (see Params)."""
    content: Any = parse_yaml(params, "params.yaml")
    content["protocol"] = "as_published"
    content["review"]["wrong_after_crop"] = "accept"
    # the protocol decides them
    del content["select"]["tiers"]
    content["count"] = {"accuracy": False, **content["count"]}
    return _edited(params, content, "params.yaml")


def _with_root(params: str, root: str) -> str:
    """The text of the ImageNet edition's params.yaml with another path to the folder that holds `src`."""
    content: Any = parse_yaml(params, "params.yaml")
    return _edited(params, content | {"root": root}, "params.yaml")


def _with_images_per_class(params: str, images_per_class: ImagesPerClass) -> str:
    """The text of the ImageNet edition's params.yaml with another number of images of a class."""
    content: Any = parse_yaml(params, "params.yaml")
    content["export"]["images_per_class"] = images_per_class
    return _edited(params, content, "params.yaml")


def _without_models(study: str) -> str:
    """The text of a study's params.yaml for unknown models.

    Neither what they were trained with, nor which of them is the reference.
    """
    where = f"{STUDY}/params.yaml"
    # as text: with the values go their comments, and the others keep their column
    study = _substituted(r"(?m)^    trained_on:.*\n(?:      .*\n)*", "    trained_on: {}\n", study, where)
    return _substituted(r"(?m)^    reference: (?!alexnet)\w+ +#", "    reference: null               #", study, where)


def _edited(text: str, wanted: Mapping[str, object], name: str) -> str:
    try:
        return edited_text(text, wanted, name)
    except LayoutError:
        raise _unexpected_layout(name) from None


def _substituted(pattern: str, new: str, text: str, name: str, *, places: int | None = 1) -> str:
    """The text with `new` for every match of a pattern; `places`: how many there are, None for any number from 1.

    Raises CleansetError, naming the file of the ImageNet edition, for another number of matches.
    """
    after, found = re.subn(pattern, lambda _: new, text)
    if found == 0 or (places is not None and found != places):
        raise _unexpected_layout(name)
    return after


def _unexpected_layout(name: str) -> CleansetError:
    return CleansetError(
        f"{TEMPLATE / name}: not in the layout that a new edition is made from; expected the file of this version of "
        "cleanset: git checkout it, or install cleanset again"
    )


def _own_pipeline(inputs: Iterable[object]) -> str:
    """The dvc.yaml of all editions with a stage preprocess that reads these paths."""
    deps = "\n".join(f"      - {flow_text(each)}" for each in inputs)
    head = _template("own_pipeline_head.yaml", OF_OWN_IMAGES).format(deps=deps)
    text = _substituted(r"(?ms)\A.*?^stages:\n  preprocess:.*?\n\n", head, _template("dvc.yaml"), "dvc.yaml")
    text = _substituted("needs the archives", "needs the images", text, "dvc.yaml", places=None)
    # it has the checksums of archives, which do not exist
    return _substituted("      - raw[.]md5\n", "", text, "dvc.yaml", places=None)


def _own_training_pipeline(*, has_labels: bool) -> str:
    """The dvc.yaml of training studies without what scenarios need, and with the table of labels if there is any."""
    name = f"{TRAINING}/dvc.yaml"
    head = _template("own_training_head.yaml", OF_OWN_IMAGES)
    inputs = OF_TRAINING + "      - ${data.labels}\n" * has_labels
    text = _substituted(_OF_SCENARIOS, "", _template(name), name, places=None)
    text = _substituted(r"(?ms)\A.*?^vars:", f"{head}vars:", text, name)
    return _substituted(r"      - \$\{data\.images\}\n", inputs, text, name)


def training_with_labels(text: str, name: str) -> str | None:
    """The params.yaml of an edition's trainings with the table of labels; None if it names one already."""
    content: Any = parse_yaml(text, "params.yaml")
    if content["data"].get("labels") is not None:
        return None
    content["data"]["labels"] = f"../../{name}"
    return edited_text(text, content, "params.yaml")


OF_TRAINING = f"      - ../../{PINNED}\n"


def check_none_empty(found: LabelledImages) -> None:
    """Raise CleansetError that names empty files."""
    empty = [image_id for image_id, location in found.locations.items() if not location.size]
    if empty:
        raise CleansetError(f"empty files: {join_names(empty)}; expected images: fetch them again, or remove them")


def _min_crop_pixels(found: LabelledImages) -> int:
    """The shortest edge that a crop may have: 32 pixels, or half the shortest edge of any image if that is less."""
    shortest = 2 * MIN_CROP_PIXELS
    for location in found.locations.values():
        with suppress(OSError, ValueError):  # stage preprocess names what cannot be read
            shortest = min(shortest, *size_in_header(location.path))
    return max(1, shortest // 2)


def _with_head(name: str, head: str) -> str:
    """The text of a params file of the ImageNet edition with another first line."""
    return _substituted(r"\A#.*\n", head, _template(name), name)


def _relative(path: Path, folder: Path) -> str:
    """The path from a folder, which need not exist yet, to another."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _template(name: str, folder: Path = TEMPLATE) -> str:
    """The text of a file of the ImageNet edition, or of another folder of files."""
    return (folder / name).read_text("utf-8")


def _dvc_config(folder: Path, *, with_git: bool) -> str:
    """The `.dvc/config` of an edition in `folder`: what `dvc init` makes, with the remote of the ImageNet edition.

    Outside of any git repository DVC needs a setting for that; outside of this checkout the edition has its own cache.
    """
    folder = folder.resolve()
    config = _template(".dvc/config")
    root = git_root(folder)
    if root is None and not with_git:
        config = _substituted(r"\[core\]\n", "[core]\n    no_scm = true\n", config, ".dvc/config")
    cache = _cache_section(CHECKOUT / ".dvc" / "cache", folder)
    return _substituted(_SHARED_CACHE, cache if root == CHECKOUT else "", config, ".dvc/config")


def _project_config(config: str, folder: Path, project: str) -> str:
    """The `.dvc/config` of a project in the edition in `folder`, which shares the edition's cache."""
    shared = re.search(_SHARED_CACHE, config) is not None
    cache = _cache_section((CHECKOUT if shared else folder) / ".dvc" / "cache", folder / project)
    # an edition outside of this checkout has no such section
    alone, section, remotes = re.sub(_SHARED_CACHE, "", config).partition("['remote")
    return alone + cache + section + remotes


def _cache_section(cache: Path, project: Path) -> str:
    return f"[cache]\n    dir = {Path(os.path.relpath(cache, project / '.dvc')).as_posix()}\n"
