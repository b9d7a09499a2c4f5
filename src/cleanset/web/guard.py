"""Access control of local pages: an ASGI middleware that every request and websocket handshake passes.

Against DNS rebinding the Host must be one that the server was started for. Against foreign pages
the Origin, where a browser sends one, must be that same host, and a browser's Sec-Fetch-Site must
not say that another site asked. Off loopback a token is needed as well: once in the address, from
then on as a cookie.

Behind a reverse proxy, or a forwarded port, a browser knows the page by another address, the public one: its Host and
Origin are allowed, too. A proxy may pass the Host on or name its own target there.
"""

import hmac
import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleanset.errors import CleansetError
from cleanset.validation import shown

_FROM_HERE = ("same-origin", "none")
"""Values of Sec-Fetch-Site: the page itself, or a person (typed, a bookmark, another program)."""

PERSON = "person"
"""Key of an ASGI scope: whom the token of a request lets in."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Nothing is loaded from elsewhere, nobody may frame or embed what is served."""


def is_loopback(host: str) -> bool:
    """Whether an address or name that the server binds to is this machine's alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def own_hosts(host: str, port: int) -> frozenset[str]:
    """The values of Host, in small letters, under which a browser reaches a server bound to `host` and `port`.

    At port 80 browsers leave the port out.
    """
    names = {_in_address(name) for name in ({host, "localhost"} if is_loopback(host) else {host})}
    return frozenset({f"{name}:{port}" for name in names} | (names if port == 80 else set()))


def public_origin(url: str) -> str:
    """The Origin that browsers send for a public address: scheme, name, and the port if it is not the usual one.

    Raises CleansetError for a path, a query or anything else that an address of a whole site does not have.
    """
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError:
        name, port, parts = None, None, urlsplit("")
    bare = f"{parts.scheme}://{parts.netloc}"
    if parts.scheme not in ("http", "https") or not name or "@" in parts.netloc or url not in (bare, f"{bare}/"):
        raise CleansetError(
            f"--public-url {shown(url)}: expected the address that people open, without a path, such as "
            "https://study.example.org"
        )
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{_in_address(name)}{f':{port}' if port not in (None, usual) else ''}"


def _in_address(name: str) -> str:
    """A name or address as browsers write it: small letters, IPv6 in its short form and in brackets."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name.lower()
    return f"[{address}]" if address.version == 6 else str(address)


class Guard:
    """Lets through what comes from the page itself, and answers everything else with 403.

    `hosts`: the allowed values of Host; None: any, which only a token makes safe. `command`: what started the server.
    `public`: the Origin of the public address, whose host is allowed, too. `tokens`: what each lets in, by token; it is
    in the scope under PERSON then.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str] | None,
        tokens: Mapping[str, str],
        command: str = "cleanset review",
        public: str | None = None,
    ) -> None:
        if hosts is None and not tokens:
            raise ValueError("any host without a token")
        self._app, self._tokens, self._command, self._public = app, tokens, command, public
        self._hosts = hosts if hosts is None or public is None else {*hosts, urlsplit(public).netloc}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or handshake."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._wrong_place(scope, headers)
        if refused is None and self._tokens:
            kept, asked = self._known(self._cookie_of(headers)), self._known(_asked_token(scope))
            # the link of another person, opened in the same browser, counts more than what it kept
            if scope["type"] == "http" and asked is not None and asked != kept:
                await self._let_in(headers, asked)(scope, receive, send)
                return
            if kept is None:
                refused = f"a token is needed: open the address that {self._command} printed"
            else:
                scope[PERSON] = self._tokens[kept]
        if refused is not None:
            await _refuse(self._command, refused, scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(send))

    def _wrong_place(self, scope: Scope, headers: Headers) -> str | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or (self._hosts is not None and hosts[0].lower() not in self._hosts):
            return f"unknown Host: open the address that {self._command} printed"
        origins = headers.getlist("origin")
        if any(origin.lower() not in (f"http://{hosts[0].lower()}", self._public) for origin in origins):
            return "another Origin: only the page itself may ask"
        if scope["type"] == "websocket" and not origins:
            return "no Origin: only the page itself may ask"
        site = headers.get("sec-fetch-site", "none")
        opened = scope.get("path") == "/" and headers.get("sec-fetch-mode") == "navigate"
        if site not in _FROM_HERE and not (opened and headers.get("sec-fetch-dest") == "document"):
            return "asked by another site: only the page itself may ask"
        return None

    def _cookie_of(self, headers: Headers) -> str:
        return cookie_parser(headers.get("cookie", "")).get(self._cookie(headers), "")

    def _known(self, given: str) -> str | None:
        """The token that is the same as the one given; each is compared, so that the time tells nothing."""
        same = [token for token in self._tokens if hmac.compare_digest(given.encode(), token.encode())]
        return same[0] if same else None

    def _let_in(self, headers: Headers, token: str) -> Response:
        """Keep the token as a cookie, and take it out of the address."""
        response = RedirectResponse("/", status_code=303)
        secure = self._public is not None and self._public.startswith("https:")
        response.set_cookie(self._cookie(headers), token, httponly=True, samesite="lax", secure=secure)
        return response

    @staticmethod
    def _cookie(headers: Headers) -> str:
        """Cookies are shared by all ports of a host: the port is a part of the name."""
        port = headers["host"].rpartition(":")[2]
        return f"cleanset-{port if port.isdecimal() else 80}"


def _asked_token(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


async def _refuse(command: str, reason: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()  # the handshake; a close before accepting it is answered with 403
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
    else:
        await PlainTextResponse(f"{command}: {reason}\n", 403)(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_with_headers
