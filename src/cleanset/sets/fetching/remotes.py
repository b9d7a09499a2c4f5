"""The DVC remote that a repository names, and which of its settings are taken.

A stranger wrote them, and some run programs or read files when a library follows them: `configpath` and `profile` of
S3 lead to a `credential_process`, `bearer_token_command` of WebDAV is one. So only SETTINGS are taken, and only in
their form. Whoever needs others has a remote of the same url in the DVC configuration of their own account.
"""

import configparser
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cleanset.errors import CleansetError, reason
from cleanset.plumbing.validation import shown

_WEB_ADDRESS = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?"
_BOOLEAN = r"(?i:true|false)"
_LOCAL = ("", "file")

SETTINGS: Mapping[str, Mapping[str, str]] = {
    **{kind: {} for kind in (*_LOCAL, "http", "https", "webdav", "webdavs", "ssh", "hdfs", "webhdfs")},
    **{kind: {"version_aware": _BOOLEAN} for kind in ("gs", "azure", "oss", "gdrive")},
    "s3": {"endpointurl": _WEB_ADDRESS, "region": r"[a-z0-9-]{1,32}", "version_aware": _BOOLEAN},
}
"""By the kind of a remote, its settings next to `url` that are taken from a repository, and their form.

`endpointurl` of Google Cloud Storage is not: a token of the user's account would be sent there.
"""

_WITHOUT_EFFECT = {"verify", "jobs", "checksum_jobs"}
"""Settings of a remote that need not be mentioned: every file is verified, and how many come at a time changes none."""
_OF_DVC_ITSELF = {"core.analytics", "core.autostage", "core.check_update", "core.interactive", "core.no_scm"}
"""Settings of DVC's commands, which are never run."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
# a program that connects, such as the ProxyCommand of the user's own ssh, may be given the host by a shell
_HOST = re.compile(r"(\w[\w.%+~-]*(:[^@/]*)?@)?[\w\[][\w.:\]-]*", re.ASCII)
_MAX_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """The DVC remote that a repository names."""

    url: str
    root: str
    """The folder of the repository with `.dvc`, "." or a path, to which a relative url refers."""

    settings: dict[str, str] = field(default_factory=dict)
    """The taken ones of SETTINGS."""

    left_out: tuple[str, ...] = ()
    """Names of settings that were not taken."""

    @property
    def kind(self) -> str:
        """The scheme of the url; "" for a folder."""
        return kind_of(self.url)

    def notice(self) -> str | None:
        """A sentence on the settings that were left out; None without any."""
        if not self.left_out:
            return None
        named = ", ".join(self.left_out[:_MAX_NAMED])
        further = f" and {len(self.left_out) - _MAX_NAMED:,} others" if len(self.left_out) > _MAX_NAMED else ""
        return (
            f"left out of the repository's .dvc/config: {named}{further} (your own DVC configuration may have a remote "
            "with this url)"
        )


def kind_of(url: str) -> str:
    """The scheme of a remote's url, in small letters; "" for a folder."""
    scheme = _SCHEME.match(url.lower())
    return "" if scheme is None else scheme[1]


def default_remote(text: str, root: str, where: str) -> Remote:
    """The default remote in a .dvc/config, `where` in messages. Raises CleansetError for a setting that is not valid.

    `root`: the folder of the repository with `.dvc`.
    """
    # interpolation would take the % of an escaped address for a placeholder
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise CleansetError(f"{where}: not readable ({reason(error)}); expected DVC's settings") from None
    # DVC puts the name of a section in quotes, as in ['remote "storage"']
    sections = {
        _unquoted(name): {key: _unquoted(value) for key, value in parser[name].items()} for name in parser.sections()
    }
    name = sections.get("core", {}).get("remote", "")
    found = dict(sections.get(f'remote "{name}', {}))
    url = found.pop("url", "")
    if not url:
        raise CleansetError(f"{where}: no default remote; expected core.remote and its url, where the images are")
    _check_url(url, where)
    forms = SETTINGS[kind_of(url)]
    taken = {key: value for key, value in found.items() if key in forms}
    for key, value in taken.items():
        if not re.fullmatch(forms[key], value):
            raise CleansetError(f"{where}: {key} {shown(value)}; expected one that matches {forms[key]}")
    left_out = [_named(key) for key in found if key not in forms and key not in _WITHOUT_EFFECT]
    return Remote(url=url, root=root, settings=taken, left_out=(*left_out, *_of_other_sections(sections)))


def _unquoted(text: str) -> str:
    return text.strip("'\"")


def _check_url(url: str, where: str) -> None:
    """Raise CleansetError unless a url may be handed to a library: a known kind, with a plain host name."""
    expected = "expected an address or a folder"
    if not url.isprintable():
        raise CleansetError(f"{where}: url {shown(url)}; {expected}")
    kind = kind_of(url)
    if kind not in SETTINGS:
        raise CleansetError(f"{where}: url {shown(url)}; expected one of {', '.join(filter(None, sorted(SETTINGS)))}")
    if kind not in (*_LOCAL, "http", "https"):  # urllib.request checks hosts itself
        try:
            host = urlsplit(url).netloc
        except ValueError as error:
            raise CleansetError(f"{where}: url {shown(url)} ({reason(error)}); {expected}") from None
        if not _HOST.fullmatch(host):
            raise CleansetError(f"{where}: url {shown(url)}; expected letters, digits and . _ - in the host's name")


def _of_other_sections(sections: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The settings that would be about more than a remote, such as cache.dir."""
    names = (
        f"{section}.{key}"
        for section, settings in sections.items()
        if not section.startswith("remote ")
        for key in settings
    )
    return [_named(name) for name in names if name not in {"core.remote", *_OF_DVC_ITSELF}]


def _named(setting: str) -> str:
    """The name of a setting, which is any text, in a message."""
    return setting if re.fullmatch(r"[\w.]{1,40}", setting, re.ASCII) else shown(setting)
