"""The check whether a page of this service sent a request (docs/security.md "Logins of browsers")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.rules.browser_sessions import is_same_origin, is_secure

JSON = "application/json"
SAME = [
    ("play.example.org", "https://play.example.org"),
    ("play.example.org:443", "https://play.example.org"),
    ("play.example.org", "https://play.example.org:443"),
    ("play.example.org", "http://play.example.org"),
    ("play.example.org:80", "http://play.example.org"),
    ("play.example.org:8443", "https://play.example.org:8443"),
    ("Play.Example.ORG", "HTTPS://play.example.org"),
    ("127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("[::1]:8080", "http://[::1]:8080"),
    ("[::1]", "https://[::1]:443"),
]
OTHER = [
    ("play.example.org", "https://evil.example.org"),
    ("play.example.org", "https://example.org"),
    ("play.example.org", "https://play.example.org.evil.example"),
    ("play.example.org", "https://play.example.org:8443"),
    ("play.example.org:80", "https://play.example.org"),
    ("play.example.org:443", "http://play.example.org"),
    ("play.example.org:8080", "http://play.example.org:80"),
    ("play.example.org", "https://play.example.org."),
    ("play.example.org", "https://play.example.org/"),
    ("play.example.org", "https://ann@play.example.org"),
    ("play.example.org", "https://play.example.org, https://play.example.org"),
    ("play.example.org", "https://play.example.org https://play.example.org"),
    ("play.example.org", "ftp://play.example.org"),
    ("play.example.org", "moz-extension://play.example.org"),
    ("play.example.org", "play.example.org"),
    ("play.example.org", "//play.example.org"),
    ("play.example.org", "null"),
    ("play.example.org", ""),
    ("", "null"),
    ("", "https://"),
    ("null", "null"),
    ("[::1]:8080", "http://::1:8080"),
    ("a:99999999", "http://a:99999999"),
]
MEDIA_TYPES = {
    JSON: True,
    "Application/JSON": True,
    "application/json; charset=utf-8": True,
    "application/json ;x=y": True,
    "text/plain": False,
    "text/plain; application/json": False,
    "text/plain, application/json": False,
    "application/json, text/plain": False,
    "application/x-www-form-urlencoded": False,
    "multipart/form-data; boundary=application/json": False,
    "application/json-patch+json": False,
    "application/jsonx": False,
    "": False,
}


def asked(host="a", origins=(), sites=(), types=(JSON,)):
    return is_same_origin(content_types=types, hosts=[host], origins=origins, fetch_sites=sites)


@pytest.mark.parametrize(("host", "origin"), SAME)
def test_page_of_this_host_and_port_passes(host, origin):
    """The scheme's default port may be left out, and case doesn't matter. The scheme isn't compared."""
    assert asked(host, [origin])
    assert asked(host, [origin], ["same-origin"])


@pytest.mark.parametrize(("host", "origin"), OTHER)
@pytest.mark.parametrize("sites", [(), ("same-origin",)])
def test_page_of_another_origin_is_refused(host, origin, sites):
    """Origin has another name, another port, no page, or two origins. The other header doesn't matter."""
    assert not asked(host, [origin], sites)


@pytest.mark.parametrize(
    "site", ["cross-site", "same-site", "none", "", "Same-Origin", "same-origin, same-origin", "x"]
)
def test_other_fetch_site_is_refused(site):
    """A header that names another site counts, whatever Origin has."""
    assert not asked("a", ["https://a"], [site])
    assert not asked("a", [], [site])


def test_request_without_both_headers_is_refused():
    """Known browsers send at least one of them with every request but GET."""
    assert not asked("a")
    assert asked("a", [], ["same-origin"])
    assert asked("a", ["http://a"])


def test_doubled_header_is_refused():
    """No browser sends two lines of these."""
    assert not asked("a", ["http://a", "http://a"])
    assert not asked("a", [], ["same-origin", "same-origin"])
    assert not asked("a", ["http://a"], types=[JSON, JSON])
    one_host = {"content_types": [JSON], "origins": ["http://a"], "fetch_sites": ["same-origin"]}
    assert not is_same_origin(hosts=["a", "a"], **one_host)
    assert not is_same_origin(hosts=[], **one_host)


@pytest.mark.parametrize(("media_type", "right"), MEDIA_TYPES.items())
def test_json_is_recognised_by_its_type(media_type, right):
    """A form or a script of another origin can't send this type without permission."""
    assert asked("a", ["http://a"], types=[media_type]) is right
    assert asked("a", [], ["same-origin"], types=[media_type]) is right


def test_request_without_a_type_is_refused():
    assert not asked("a", ["http://a"], types=[])


anything = st.text(st.characters(max_codepoint=255), max_size=20)
names = st.from_regex(r"[a-z0-9.-]{1,8}", fullmatch=True)


@given(
    names,
    names,
    st.sampled_from(["http", "https"]),
    st.none() | st.integers(1, 65535),
    st.none() | st.integers(1, 65535),
)
def test_origin_matches_exactly_if_host_and_port_match(host, other, scheme, port, other_port):
    """The test tries any two names and ports."""
    default = {"http": 80, "https": 443}[scheme]
    origin = f"{scheme}://{host}" + (f":{port}" if port else "")
    expected = (host, port or default) == (other, other_port or default)
    assert asked(other + (f":{other_port}" if other_port else ""), [origin]) is expected


@given(anything, anything, anything)
def test_any_header_text_gets_an_answer(host, origin, site):
    """A pair of headers that passes has the host in both."""
    if asked(host, [origin], ["same-origin"]):
        assert origin.lower().partition("://")[2].partition(":")[0] == host.lower().partition(":")[0]
    assert asked(host, [], [site]) is (site == "same-origin")


@pytest.mark.parametrize(
    ("origins", "secure"),
    [(["https://a"], True), (["HTTPS://a"], True), (["http://a"], False), ([], False), (["https://a"] * 2, False)],
)
def test_page_is_secure_if_it_came_over_https(origins, secure):
    """The scheme is unknown without Origin, and the page counts as insecure."""
    assert is_secure(origins) is secure
