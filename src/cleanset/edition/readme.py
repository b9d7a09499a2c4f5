"""The README.md of a new edition: what it is, its commands, its inputs, and where its reviewers are."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cleanset.edition.params import Model, Params
from cleanset.edition.versions import installed_version
from cleanset.plumbing.markup import markdown_code, markdown_text

_TEMPLATES = Path(__file__).parent / "templates"


def readme(params: Params, name: str) -> str:
    """The text of README.md in Markdown; `name`: the heading, if nobody has given the set a title."""
    about = params.export.about
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["code"] = markdown_code
    return environment.get_template("readme.jinja").render(
        title=markdown_text(about.title if about else name),
        version=installed_version("cleanset"),
        dataset=params.dataset,
        needs_about=params.dataset.is_own and about is None,
        models={role: _described(model) for role, model in params.models.items()},
        has_unpinned_weights=any(not model.is_pinned for model in params.models.values()),
        role=next(iter(params.models)),
    )


def _described(model: Model) -> str:
    """The source of a model, in a phrase; empty of a random order."""
    if model.is_random:
        return ""
    if model.file is not None:
        return f"{markdown_code(model.name)} in {markdown_code(model.file)}"
    if model.module is not None:
        where = "the code in this folder" if model.module_sha256 else "an installed module"
        return f"{markdown_code(model.name)}, a network of {where}"
    zoo = f"{model.source} {model.threat_model}" if model.threat_model else model.source
    weights = f", weights {markdown_code(model.weights)}" if model.weights else ""
    return f"{markdown_code(model.name)} ({zoo}){weights}"
