"""Access control of local pages by tokens and cookies: an ASGI middleware that every request and handshake passes.

Against DNS rebinding the Host must be one that the server was started for. Against foreign pages
the Origin, where a browser sends one, must be that same host, and a browser's Sec-Fetch-Site must
not say that another site asked.

The person is the first part of the path, so that no tab becomes another person's, whatever is opened next to it or
started after it. Against other users, of this machine too, a token is needed: once in the address, afterwards as a
cookie named by port and person.

Behind a reverse proxy, or a forwarded port, a browser knows the page by another address, the public one: its Host and
Origin are allowed, too. A proxy may pass the Host on or name its own target there.
"""

import hmac
import html
import ipaddress
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown

_FROM_HERE = ("same-origin", "none")
"""Values of Sec-Fetch-Site: the page itself, or a person (typed, a bookmark, another program)."""

PERSON = "person"
"""Key of an ASGI scope: the person whose page is asked for."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    # not no-referrer, with which a form's Origin would be null
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Nothing is loaded from elsewhere, nobody may frame or embed the pages."""


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
        name = parts.hostname
        port = parts.port
    except ValueError:
        name = None
        port = None
        parts = urlsplit("")
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
    """Lets through requests from the page itself, and answers everything else with 403.

    `hosts`: the allowed values of Host; None: any, which only a token makes safe. `people`: the token of each by name.
    Each has the pages below /NAME/, and is in the scope under PERSON there. None: the pages are everybody's, as of a
    study whose people a recruiting service sends. `command`: the command that started the server. `public`: the Origin
    of the public address, whose host is allowed, too.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str] | None,
        people: Mapping[str, str] | None,
        command: str = "cleanset review",
        public: str | None = None,
    ) -> None:
        if people is not None and not (people and all(people.values())):
            raise ValueError("a page without a token")
        if hosts is None and people is None:
            raise ValueError("any host without a token")
        self._app = app
        self._is_everybodys = people is None
        self._people = people or {}
        self._command = command
        self._public = public
        self._hosts = hosts if hosts is None or public is None else {*hosts, urlsplit(public).netloc}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or handshake."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        problem = self._wrong_place(scope, headers)
        if problem is not None:
            answer: Response | None = self._refusal(problem)
        else:
            answer = None if self._is_everybodys else self._of_somebody(scope, headers)
        if answer is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()  # the handshake; a close before accepting it is answered with 403
            await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
        else:
            await answer(scope, receive, _with_headers(send))

    def _wrong_place(self, scope: Scope, headers: Headers) -> str | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or (self._hosts is not None and hosts[0].lower() not in self._hosts):
            return "This server does not accept this address (unknown Host)."
        origins = headers.getlist("origin")
        if any(origin.lower() not in (f"http://{hosts[0].lower()}", self._public) for origin in origins):
            return "Only the page itself may send requests (another Origin)."
        if scope["type"] == "websocket" and not origins:
            return "Only the page itself may send requests (no Origin)."
        site = headers.get("sec-fetch-site", "none")
        is_page = scope.get("path") in ("/", *(f"/{person}/" for person in self._people))
        opened = is_page and headers.get("sec-fetch-mode") == "navigate"
        if site not in _FROM_HERE and not (opened and headers.get("sec-fetch-dest") == "document"):
            return "Only the page itself may send requests (sent by another site)."
        return None

    def _of_somebody(self, scope: Scope, headers: Headers) -> Response | None:
        """Enter the person into the scope; or what is answered instead."""
        kept = cookie_parser(headers.get("cookie", ""))
        query = scope.get("query_string", b"").decode("latin-1")
        asked = parse_qs(query).get("token", [""])[0]
        # each token is compared, so that the time reveals nothing
        holding = [name for name, token in self._people.items() if _same(kept.get(_cookie(headers, name), ""), token)]
        linked = [name for name, token in self._people.items() if _same(asked, token)]
        person, _, rest = scope["path"].removeprefix("/").partition("/")
        if not person and len(known := linked or holding) == 1:
            return RedirectResponse(f"/{known[0]}/{query and '?'}{query}", status_code=303)
        if not person and not linked and holding and scope["type"] == "http":
            return _whose(holding)
        if person in linked and not rest and scope["type"] == "http":
            if holding and person not in holding and scope["method"] != "POST":
                return _question(person, holding)
            return self._let_in(headers, person, query)
        if person not in holding:
            return self._refusal("There is no page of this name, or the link's token is missing or no longer valid.")
        scope[PERSON] = person
        scope["root_path"] = f"/{person}"
        return None

    def _let_in(self, headers: Headers, person: str, query: str) -> Response:
        """Keep the token as a cookie, and take it alone out of the address."""
        others = urlencode([each for each in parse_qsl(query, keep_blank_values=True) if each[0] != "token"])
        response = RedirectResponse(f"/{person}/{others and '?'}{others}", status_code=303)
        name = _cookie(headers, person)
        secure = self._public is not None and self._public.startswith("https:")
        # not strict: a browser leaves that out of the redirect which follows a link in a file, or in a mail
        response.set_cookie(name, self._people[person], httponly=True, samesite="lax", secure=secure)
        return response

    def _refusal(self, problem: str) -> Response:
        return _page(
            "This address does not open the page",
            f"<p>{html.escape(problem)}</p><p>Please open the whole link that you were sent, up to its last character. "
            "If it is refused again, ask the sender for the new link, which is printed where "
            f"<code>{html.escape(self._command)}</code> was started.</p>",
        )


def _cookie(headers: Headers, person: str) -> str:
    """Cookies are shared by all ports of a host: the port is a part of the name."""
    port = headers["host"].rpartition(":")[2]
    return f"cleanset-{port if port.isdecimal() else 80}-{person}"


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _question(person: str, holding: Iterable[str]) -> Response:
    """The page that asks whoever opens another person's link; its form sends the same address back."""
    others = "".join(f'<p><a href="{_link(name)}">Stay {html.escape(name)}</a></p>' for name in holding)
    asked = html.escape(person)
    return _page(
        f"Continue as {person}?",
        f"<p>This browser has been used by {_names(holding)}. The link belongs to {asked}: what is done there is "
        f'saved under this name.</p><form method="post"><button>Continue as {asked}</button></form>{others}',
    )


def _whose(holding: Iterable[str]) -> Response:
    """The page at the bare address for a browser that several people have used: their links."""
    links = "".join(f'<p><a href="{_link(name)}">Continue as {html.escape(name)}</a></p>' for name in holding)
    return _page("Who are you?", f"<p>This browser has been used by {_names(holding)}.</p>{links}")


def _link(name: str) -> str:
    return f"/{quote(name, safe='')}/"


def _names(people: Iterable[str]) -> str:
    return html.escape(", ".join(people))


def _page(title: str, content: str) -> Response:
    return HTMLResponse(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><style>'
        "body { font: 17px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #f4f4f2 }"
        "main { max-width: 40em; margin: 3em auto; padding: 0 20px } button { font: inherit; padding: 10px 14px }"
        f"</style></head><body><main><h1>{html.escape(title)}</h1>{content}</main></body></html>\n",
        403,
    )


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_with_headers
