"""Files over HTTP(S): one GET, retried after transient errors, whose redirects lead to no internal address.

An address is internal if only this machine or its network reaches it, such as 127.0.0.1, 10.0.0.1 or 169.254.169.254.
A stranger's server could otherwise have this machine ask a service there.
"""

import http.client
import ipaddress
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from cleanset.errors import CleansetError, InputError, UnreachableError, cut, reason
from cleanset.plumbing.files import BLOCK_BYTES
from cleanset.plumbing.retries import retried
from cleanset.plumbing.validation import shown

TIMEOUT_SECONDS = 30
MAX_ANSWER_CHARACTERS = 160
NAT64 = ipaddress.ip_network("64:ff9b::/96")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
# HTTP status codes after which another try may succeed
_PASSING = (408, 429, 500, 502, 503, 504)


class MissingError(Exception):
    """The remote answers, and has no such file."""


class NoAnswerError(Exception):
    """The remote does not answer, or refuses; its message says why."""


def is_internal(address: str) -> bool:
    """Whether the host of an address of the web has internal IP addresses alone."""
    found = _ips(address)
    return bool(found) and all(map(is_internal_ip, found))


def check_not_internal(address: str) -> None:
    """Raise CleansetError for an address whose host has an internal IP address."""
    if any(map(is_internal_ip, _ips(address))):
        raise _internal(address)


def is_internal_ip(text: str) -> bool:
    """Whether an IP address is internal; one of IPv6 may stand for one of IPv4, or have a zone."""
    ip = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return not ip.is_global
    # NAT64 and 6to4 lead to an address of IPv4, too
    within = ip.ipv4_mapped or ip.sixtofour or (_last_of_nat64(ip) if ip in NAT64 else None)
    return not (within or ip).is_global or ip.is_site_local


def _last_of_nat64(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(ip) % 2**32)


def _ips(address: str) -> set[str]:
    """The IP addresses of the host of an address; none if it has no host, or a name that is unknown here."""
    try:
        # urllib.request, too, takes %31 in a host for 1
        host = unquote(urlsplit(address).hostname or "")
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)} if host else set()
    except (OSError, ValueError):
        return set()


def _internal(address: str) -> CleansetError:
    return CleansetError(
        f"{shown_address(address)}: an address of this machine or its network, which a stranger's server or repository "
        "names; expected a public one, or one that you name yourself"
    )


def read_over_http(address: str, name: str, limit: int, *, allow_internal: bool) -> bytes:
    """The bytes at an address, called `name` in messages. Raises MissingError and NoAnswerError."""
    blocks = _Get(address, name, "a DVC remote", limit, allow_internal)
    return retried(lambda: b"".join(blocks), NoAnswerError)


def download(address: str, path: Path, limit: int, *, named: str) -> None:
    """Write the file at an address, at most `limit` bytes of it. Raises CleansetError if it cannot be downloaded.

    `named`: the address that the user has named, which led here: an internal one may lead to others.
    """
    name = shown_address(address)
    blocks = _Get(address, name, "a file", limit, is_internal(named))

    def write() -> None:
        with path.open("wb") as file:
            file.writelines(blocks)

    try:
        retried(write, NoAnswerError)
    except MissingError:
        raise UnreachableError(f"{name}: missing there; expected the address of a release") from None
    except NoAnswerError as error:
        raise UnreachableError(f"{name}: unreachable ({error}); check the network and run this again") from None


def redirected(address: str) -> str:
    """The address to which one redirects, itself if it does not; its answer, even a refusal, is not read.

    Raises CleansetError for an internal one, unless `address` is one itself.
    """
    try:
        with _opener(is_internal(address)).open(address, timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.geturl())
    except urllib.error.HTTPError as error:
        error.close()
        return error.geturl()
    except (OSError, http.client.HTTPException, ValueError):
        return address


class _Get:
    """The answer to a GET in blocks; another GET each time. It ends at the limit, which an endless one would pass."""

    def __init__(self, address: str, name: str, what: str, limit: int, allow_internal: bool) -> None:
        self._address = address
        self._name = name
        self._what = what
        self._limit = limit
        self._opener = _opener(allow_internal)

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            with self._opener.open(self._address, timeout=TIMEOUT_SECONDS) as answer:
                expected = answer.headers.get("Content-Length")
                while block := answer.read(min(BLOCK_BYTES, self._limit - size)):
                    size += len(block)
                    yield block
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise MissingError from None
            said = f"HTTP {error.code} {error.reason}"
            if error.code in _PASSING:
                raise NoAnswerError(said) from None
            raise UnreachableError(f"{self._name}: refused ({said}); expected {self._what} that you may read") from None
        except urllib.error.URLError as error:
            raise NoAnswerError(cause(error.reason)) from None
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswerError(cause(error)) from None
        except ValueError as error:  # brackets without an end, a host that IDNA refuses
            problem = f"not an address ({reason(error)}); expected the address of {self._what}"
            raise InputError(f"{self._name}: {problem}") from None
        if expected is not None and expected != str(size):  # read(n) does not look
            if size == self._limit:
                raise CleansetError(f"{self._name}: {shown(expected)} bytes; expected at most {self._limit:,}")
            raise NoAnswerError(f"the connection broke after {size:,} of {shown(expected)} bytes")


def without_credentials(text: str) -> str:
    """The text without the user names and passwords of addresses in it."""
    return _CREDENTIALS.sub("", text)


def shown_address(url: str) -> str:
    """An address for messages, without credentials and cut where it is long."""
    return cut(without_credentials(url), MAX_ANSWER_CHARACTERS)


def cause(error: object) -> str:
    """Why something does not answer, in a few words."""
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT_SECONDS} seconds"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return reason(error if isinstance(error, BaseException) else Exception(str(error)))


def _opener(allow_internal: bool) -> urllib.request.OpenerDirector:
    """A client of HTTP and HTTPS alone: build_opener would also open file:, ftp: and data:."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPRedirectHandler() if allow_internal else _PublicRedirects(),
        urllib.request.HTTPHandler() if allow_internal else _PublicHTTP(),
        urllib.request.HTTPSHandler() if allow_internal else _PublicHTTPS(),
    ):
        opener.add_handler(handler)
    return opener


class _PublicRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        address = urljoin(req.full_url, newurl)
        host = urlsplit(address).netloc
        # a proxy may take such a host for another one than is looked up here
        if re.search(r"[@\\%]|(^|\.)localhost\.?(:|$)", host, re.IGNORECASE):
            raise _internal(address)
        check_not_internal(address)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _PublicHTTP(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connection(http.client.HTTPConnection, req), req)


class _PublicHTTPS(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connection(http.client.HTTPSConnection, req), req)


def _connection(kind: type[http.client.HTTPConnection], request: urllib.request.Request) -> Callable[..., Any]:
    """A connection that is refused if it leads to an internal address, whatever its name was resolved to before.

    A proxy may be internal: it is the user's own.
    """
    if request.has_proxy() or getattr(request, "_tunnel_host", None):
        return kind

    class Public(kind):  # type: ignore[misc,valid-type]
        def connect(self) -> None:
            super().connect()
            if is_internal_ip(self.sock.getpeername()[0]):
                self.close()
                raise _internal(request.full_url)

    return Public
