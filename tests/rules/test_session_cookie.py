"""The cookie of a browser's session (docs/protocol.md "Sessions of browsers")."""

import re
from datetime import timedelta
from functools import partial
from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.browser_sessions import COOKIE, SessionCookie

LIFETIME = timedelta(days=30)
read = partial(SessionCookie.read, COOKIE, LIFETIME)

READ = {
    "alone": (["solisync=x"], "x"),
    "among others": (["a=b; solisync=x; c=d"], "x"),
    "without spaces": (["a=b;solisync=x;c=d"], "x"),
    "in a line of its own": (["a=b", "solisync=x"], "x"),
    "with = in it": (["solisync=x=y=="], "x=y=="),
    "empty": (["solisync="], ""),
    "twice": (["solisync=x; solisync=y"], None),
    "twice the same": (["solisync=x; solisync=x"], None),
    "twice in two lines": (["solisync=x", "solisync=y"], None),
    "none": ([], None),
    "an empty line": ([""], None),
    "a name alone": (["solisync"], None),
    "a value alone": (["=solisync"], None),
    "in other case": (["Solisync=x"], None),
    "a longer name": (["xsolisync=x; solisync2=y; __Host-solisync=z"], None),
    "the other one beside it": (["__Host-solisync=z; solisync=x"], "x"),
    "with other separators": (["a=b, solisync=x"], None),
    "inside of another": (['a="b; solisync=x"'], 'x"'),
}


@pytest.mark.parametrize(("lines", "token"), READ.values(), ids=READ)
def test_cookie_is_read_only_if_its_name_occurs_once(lines, token):
    """Names are compared letter by letter."""
    assert read(lines, secure=False).token == token


def test_https_cookie_has_another_name():
    """The service never reads one cookie in place of the other."""
    lines = ["solisync=plain; __Host-solisync=secure"]
    assert read(lines, secure=True).token == "secure"
    assert read(lines, secure=False).token == "plain"
    assert read(["solisync=plain"], secure=True).token is None


@pytest.mark.parametrize("secure", [True, False])
def test_cookie_that_is_set_can_be_read(secure):
    """The cookie lasts 30 days, for all paths of this host, hidden from scripts and other sites."""
    cookie = read([], secure=secure)
    pair, *attributes = cookie.holding("x.y-z_0").split("; ")
    assert read([pair], secure=secure).token == "x.y-z_0"
    expected = {f"Max-Age={30 * 24 * 60 * 60}", "Path=/", "HttpOnly", "SameSite=Strict"}
    assert set(attributes) == expected | ({"Secure"} if secure else set())
    assert len(attributes) == len(set(attributes))


@pytest.mark.parametrize("secure", [True, False])
def test_cookie_is_cleared_with_the_attributes_it_was_set_with(secure):
    """A browser would keep the cookie otherwise."""
    cookie = read([], secure=secure)
    assert cookie.cleared == re.sub(r"=x; Max-Age=\d+", "=; Max-Age=0", cookie.holding("x"))


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=40), max_size=3))
def test_any_cookie_header_gets_an_answer(lines):
    """The value that is read is in one of the lines."""
    token = read(lines, secure=False).token
    assert token is None or any(f"solisync={token}" in line for line in lines)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}|solisync", fullmatch=True), st.from_regex(r"[A-Za-z0-9.]{0,9}", fullmatch=True)
    )
)
def test_cookie_is_read_as_the_standard_library_reads_it(cookies):
    """The header has other cookies too."""
    line = "; ".join(f"{name}={value}" for name, value in cookies.items())
    parsed = SimpleCookie(line)
    expected = parsed["solisync"].value if "solisync" in parsed else None
    assert read([line], secure=False).token == expected
