"""`robustness`, `attack` and `compare`: the commands of these names as functions, with models as names or as objects.

Each makes the request of its command and runs it: the numbers and the files are the same.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cleanset.api.results import MeasureResults, as_content
from cleanset.edition.paths import Edition
from cleanset.errors import InputError, needs_extra
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.function import Results
from cleanset.evaluation.specs import GivenModel, split_name
from cleanset.plumbing.validation import shown
from cleanset.scoring.own_code import forget_changed_modules
from cleanset.sets.image_set import ImageSet

EXPECTED_MODEL = (
    "expected a name as cleanset evaluate --model takes it, a torch.nn.Module, a model of foolbox or another callable, "
    "a list of names, or models by name in a dict, each perhaps as (model, transform)"
)


def robustness(
    model: Any,
    images: ImageSet | str | Path,
    *,
    families: str | Path | Sequence[str] | Mapping[str, Any] | None = None,
    transform: Callable[[Any], Any] | str | None = None,
    name: str | None = None,
    out: str | Path | None = None,
    precision: str | None = None,
    device: str | None = None,
    edition: str | Path = ".",
) -> MeasureResults:
    """Measure models on changed images, as `cleanset robustness evaluate` does: the same numbers, the same files.

    `model`: a name as on the command line (`timm:resnet50.a1_in1k`, `my_module:net`, a role), a torch.nn.Module, a
    model of foolbox, or a dict of several by name. A network gets pixels in 0..1, float of shape (n, 3, size, size),
    red first, and gives logits of shape (n, classes). `transform` makes them of a PIL image: uint8, or 0 to 1, or a
    Compose of torchvision that ends in ToTensor and Normalize, or a name such as `timm-bicubic-235-224`; by default
    that of `images`. `images`: what `cleanset.load` gives, the folder of a set, a folder of images by class.

    `families`: names of families or a file params.yaml, or its content: `{"corruptions": {"names": ["fog"],
    "severities": [3]}, "seed": 1}`; a list of names in place of a section is enough. By default the 15 corruptions and
    the 10 perturbations. `out`: a folder for answers and measures, where an interrupted call resumes; without one they
    last as long as the results. Raises CleansetError.
    """
    with _command("evaluate,robustness"), _folder(out) as (folder, kept):
        from cleanset.plumbing.file_locks import only_run
        from cleanset.studies.robustness import evaluation
        from cleanset.studies.robustness.pages import paper_table

        wanted = _arguments(model, images, transform, name, precision=precision, device=device)
        params = _params(families)
        with only_run(folder):
            evaluated = evaluation.run(evaluation.request_of(Edition(Path(edition)), wanted, folder, params))
        import pandas as pd

        measures = [pd.read_csv(folder / "measures" / f"{family}.csv") for family in evaluated.measured]
        rows = pd.concat(
            [table.assign(family=family) for family, table in zip(evaluated.measured, measures, strict=True)],
            ignore_index=True,
        ).fillna({"change": "", "problem": ""})
        return MeasureResults(
            name=f"robustness of {', '.join(wanted.all_names)} on {evaluated.images.name}",
            text=evaluation.as_text(evaluated),
            tables=[paper_table(folder, family, None, None) for family in evaluated.measured],
            rows=rows,
            content=as_content(evaluation.content(evaluated, evaluated.official)),
            folder=folder,
            _kept=kept,
        )


def attack(
    model: Any,
    images: ImageSet | str | Path,
    attacks: str | Sequence[str] | Mapping[str, Any] = "pgd",
    *,
    norm: str | None = None,
    eps: float | str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    transfer_from: Sequence[str] = (),
    warnings: bool = True,
    transform: Callable[[Any], Any] | str | None = None,
    name: str | None = None,
    out: str | Path | None = None,
    precision: str | None = None,
    device: str | None = None,
    edition: str | Path = ".",
) -> MeasureResults:
    """Attack models, as `cleanset attacks evaluate` does: the same judge, ball, intervals and files.

    `model`, `images`, `transform`, `out`: as for `robustness`. `attacks`: names, with commas between or in a list; a
    file as the params.yaml of studies/attacks; or attacks by name: parameters as there, `MODULE:NAME`, or an object:
    a callable of model, images and labels that gives images (pixels in 0..1, float of shape (n, 3, size, size), as
    torchattacks' attacks do), or an attack of foolbox. What it gives is projected onto the ball, stored in 8 bits and
    judged as all others are. `norm`: Linf or L2; `eps`: the radius, by default 4/255 in Linf. `limit`: images, spread
    over the classes. `warnings`: look for signs of gradient masking. What could not be attacked is in `problems`.
    Raises CleansetError.
    """
    with _command("evaluate,robustness,attacks"), _folder(out) as (folder, kept):
        from cleanset.evaluation.measures import measures_frame
        from cleanset.plumbing.file_locks import only_run
        from cleanset.studies.attacks import evaluation
        from cleanset.studies.attacks.evaluation_results import content_of
        from cleanset.studies.attacks.evaluation_tables import as_text, paper_table
        from cleanset.studies.attacks.request import AttackRequest, attack_params
        from cleanset.studies.attacks.results import MEASURE_COLUMNS

        if norm not in (None, "Linf", "L2"):
            raise InputError(f"norm {shown(norm)}; expected Linf or L2")
        wanted = _arguments(model, images, transform, name, precision=precision, device=device)
        named = attacks if isinstance(attacks, str | Mapping) else ",".join(attacks)
        params = attack_params(named, None if eps is None else str(eps), limit, norm, seed=seed)  # type: ignore[arg-type]
        request = AttackRequest.read(
            Edition(Path(edition)),
            wanted,
            params,
            folder,
            transfer_from=transfer_from,
            lpips_folder=Path(named).parent if isinstance(named, str) else Path(),
            warnings=warnings,
        )
        with only_run(folder):
            found = evaluation.run(request)
        return MeasureResults(
            name=f"attacks on {', '.join(wanted.all_names)}, images of {found.images.name}",
            text=as_text(found),
            tables=[paper_table(found)],
            rows=measures_frame(found.lines, MEASURE_COLUMNS),
            content=as_content(content_of(found)),
            folder=folder,
            problems={f"{model}, {of}": text for (of, model), text in found.problems.items()},
            _kept=kept,
        )


def compare(*results: "MeasureResults | Results | str | Path") -> MeasureResults:
    """Compare results of models, as `cleanset compare` does: one table of the comparable ones, the rest with reasons.

    Each result is what `evaluate`, `robustness` or `attack` gave, or the folder of `out`, or its results.json. Raises
    CleansetError.
    """
    from cleanset.evaluation.compare import compared_tables
    from cleanset.evaluation.compare.result_files import parse_results, read_results
    from cleanset.evaluation.compare.results import compare_results

    read = []
    for number, each in enumerate(results, start=1):
        if isinstance(each, Results | MeasureResults):
            # through JSON, as results are written and read
            read.append(parse_results(_through_json(each.as_dict()), f"result {number}"))
        else:
            read.append(read_results(Path(each)))
    if sum(len(of.models) for each in read for of in each.measured.values()) < 2:
        raise InputError(f"compare: {len(read)} results, of one model at most; expected two or more")
    compared = compare_results(read)
    import pandas as pd

    rows = [
        {
            "model": label,
            "measured": measured,
            "measure": measure,
            "value": value.value,
            "low": value.low,
            "high": value.high,
        }
        for label, row in zip(compared.names, compared.rows, strict=True)
        for (measured, measure), value in row.values.items()
    ]
    return MeasureResults(
        name=f"comparison of {', '.join(compared.names)}",
        text=compared_tables.as_text(compared),
        tables=[compared_tables.ranking_for_paper(compared)],
        rows=pd.DataFrame(rows),
        content=_through_json_text(compared_tables.as_json(compared)),
        problems={each.result: f"{each.field} {each.value}, but {each.its_value}" for each in compared.left_out},
    )


def _arguments(
    model: Any,
    images: ImageSet | str | Path,
    transform: Any,
    name: str | None,
    *,
    precision: str | None,
    device: str | None,
) -> Arguments:
    """What the command of a function would be asked."""
    place = str(images.folder if isinstance(images, ImageSet) else images)
    if transform is None and isinstance(images, ImageSet):
        transform = images.transform
    if isinstance(model, str):
        model = [model if name is None else f"{name}={model}"]
    if isinstance(model, list | tuple) and all(isinstance(each, str) for each in model):
        return Arguments(place, list(model), precision=precision, device=device)
    models = model if isinstance(model, Mapping) else {name or name_of(model): model}
    texts = []
    given = []
    for each, found in models.items():
        if isinstance(found, str):
            texts.append(f"{each}={found}")
            continue
        network, own = found if isinstance(found, tuple) and len(found) == 2 else (found, transform)
        if not callable(network):
            raise InputError(f"a value of type {type(network).__name__}; {EXPECTED_MODEL}")
        # the name is checked as one of the command line
        given.append(GivenModel(split_name(f"{each}=model")[0], network, own))
    return Arguments(place, texts, given=given, precision=precision, device=device)


def name_of(model: object) -> str:
    """The name of a model that was given without one: that of its function or class."""
    return str(getattr(model, "__name__", type(model).__name__))


def _params(families: Any) -> Path | dict[str, object] | None:
    if families is None:
        return None
    if isinstance(families, Path) or (isinstance(families, str) and families.endswith((".yaml", ".yml"))):
        return Path(families)
    if isinstance(families, str):
        families = [families]
    from cleanset.studies.robustness.families import family_named

    if isinstance(families, Mapping):
        return {
            key: {"names": list(each)} if isinstance(each, list | tuple) else each for key, each in families.items()
        }
    return {each: {"names": list(family_named(each).default_names)} for each in families}


@contextmanager
def _command(extra: str) -> Iterator[None]:
    """The context of a command: report missing libraries; workers do not run the user's script."""
    main = sys.modules.get("__main__")
    hidden = {key: getattr(main, key) for key in ("__file__", "__spec__") if getattr(main, key, None) is not None}
    with needs_extra(extra):
        forget_changed_modules()
        try:
            # else each of them would begin with the script of the user, and with this call
            for key in hidden:
                setattr(main, key, None)
            yield
        finally:
            for key, value in hidden.items():
                setattr(main, key, value)


@contextmanager
def _folder(out: str | Path | None) -> Iterator[tuple[Path, "TemporaryDirectory[str] | None"]]:
    """The folder of a call, a temporary one without `out`, and the object whose lifetime it shares."""
    if out is not None:
        yield Path(out), None
        return
    kept = TemporaryDirectory(prefix="cleanset-")
    yield Path(kept.name), kept


def _through_json(content: object) -> Any:
    import json

    return json.loads(json.dumps(content))


def _through_json_text(text: str) -> Any:
    import json

    return json.loads(text)
