"""Whether a page of this service itself sent a request (docs/security.md "Logins of browsers")."""

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
def test_a_page_of_this_host_and_port_may(host, origin):
    """Ports that are the scheme's own may be left out, and case doesn't matter; the scheme itself isn't compared."""
    assert asked(host, [origin])
    assert asked(host, [origin], ["same-origin"])


@pytest.mark.parametrize(("host", "origin"), OTHER)
@pytest.mark.parametrize("sites", [(), ("same-origin",)])
def test_a_page_of_elsewhere_may_not(host, origin, sites):
    """Another name, another port, no page at all, or two origins in one line; whatever the other header says."""
    assert not asked(host, [origin], sites)


@pytest.mark.parametrize(
    "site", ["cross-site", "same-site", "none", "", "Same-Origin", "same-origin, same-origin", "x"]
)
def test_one_header_alone_can_refuse(site):
    """Whoever says that the request comes from elsewhere is believed, whatever Origin says."""
    assert not asked("a", ["https://a"], [site])
    assert not asked("a", [], [site])


def test_one_of_the_two_must_be_there():
    """Browsers send at least one of them with what is no GET; what sends neither is no browser that we know."""
    assert not asked("a")
    assert asked("a", [], ["same-origin"])
    assert asked("a", ["http://a"])


def test_a_header_that_comes_twice_counts_as_wrong():
    """No browser sends two lines of these."""
    assert not asked("a", ["http://a", "http://a"])
    assert not asked("a", [], ["same-origin", "same-origin"])
    assert not asked("a", ["http://a"], types=[JSON, JSON])
    one_host = {"content_types": [JSON], "origins": ["http://a"], "fetch_sites": ["same-origin"]}
    assert not is_same_origin(hosts=["a", "a"], **one_host)
    assert not is_same_origin(hosts=[], **one_host)


@pytest.mark.parametrize(("media_type", "right"), MEDIA_TYPES.items())
def test_it_is_json_by_its_type(media_type, right):
    """A form or a script of another origin can send only what is no JSON by its type, unless it is allowed to."""
    assert asked("a", ["http://a"], types=[media_type]) is right
    assert asked("a", [], ["same-origin"], types=[media_type]) is right


def test_a_type_must_be_there():
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
def test_it_is_the_same_exactly_where_host_and_port_are(host, other, scheme, port, other_port):
    """Of any two names and ports."""
    default = {"http": 80, "https": 443}[scheme]
    origin = f"{scheme}://{host}" + (f":{port}" if port else "")
    expected = (host, port or default) == (other, other_port or default)
    assert asked(other + (f":{other_port}" if other_port else ""), [origin]) is expected


@given(anything, anything, anything)
def test_no_bytes_get_through_or_break_it(host, origin, site):
    """It answers for any text that a header can hold; and what it lets through names the host in both."""
    if asked(host, [origin], ["same-origin"]):
        assert origin.lower().partition("://")[2].partition(":")[0] == host.lower().partition(":")[0]
    assert asked(host, [], [site]) is (site == "same-origin")


@pytest.mark.parametrize(
    ("origins", "secure"),
    [(["https://a"], True), (["HTTPS://a"], True), (["http://a"], False), ([], False), (["https://a"] * 2, False)],
)
def test_it_is_secure_where_the_page_came_over_https(origins, secure):
    """Without Origin nobody knows: then it is not."""
    assert is_secure(origins) is secure
