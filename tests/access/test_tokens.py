"""Access and refresh tokens (docs/security.md "Tokens and sessions")."""

import base64
import contextlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import jwt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from solisync.access.tokens import EXPIRY_MAX, TOKEN_MAX, Tokens, refresh_expiry
from solisync.errors import Unauthorized
from solisync.rules.sessions import RefreshRecord
from tests.harness.constants import PREVIOUS_SECRET
from tests.harness.constants import SECRET as CURRENT_SECRET
from tests.harness.service import refused, start
from tests.harness.strategies import costly, texts
from tests.harness.tokens import access_token, refresh_token

SECRET = b"s" * 32
NOW = datetime(2026, 11, 20, 12, 0, 0, 250_000, tzinfo=UTC)
USER, JTI = str(uuid4()), str(uuid4())
EXP = int(NOW.timestamp()) + 60

tokens = Tokens(SECRET)


def signed(claims, secret=SECRET, algorithm="HS256"):
    return jwt.encode(claims, secret, algorithm)


def claims_of(token):
    return jwt.decode(token, SECRET, ["HS256"], options={"verify_exp": False})


def test_access_token_has_exactly_these_claims():
    """The claims are sub, exp 24 hours ahead, and kind access."""
    exp = int(NOW.timestamp()) + 86_400
    assert claims_of(access_token(USER, NOW, SECRET)) == {"sub": USER, "exp": exp, "kind": "access"}


def test_refresh_token_has_exactly_these_claims():
    """The claims are sub, exp 30 days ahead, kind refresh, and jti. Its row expires in the same second."""
    exp = int(NOW.timestamp()) + 30 * 86_400
    assert claims_of(refresh_token(USER, JTI, NOW, SECRET)) == {"sub": USER, "exp": exp, "kind": "refresh", "jti": JTI}
    assert refresh_expiry(NOW).timestamp() == exp


def test_pair_and_its_record_agree():
    """Both tokens have one user, the id of the record, and the expiry that storing the record has chosen."""
    issuer = Tokens(SECRET, new_id=lambda: JTI)
    record = issuer.record(NOW, "a game")
    pair = issuer.pair(USER, record._replace(access_expiry=record.access_expiry - 7))
    access, refresh = claims_of(pair.access_token), claims_of(pair.refresh_token)
    assert access == {"sub": USER, "exp": int(NOW.timestamp()) + 86_400 - 7, "kind": "access"}
    assert refresh == {"sub": USER, "exp": int(record.expires.timestamp()), "kind": "refresh", "jti": record.jti}
    assert record == (RefreshRecord(JTI, refresh_expiry(NOW), int(NOW.timestamp()) + 86_400, "a game"))


def test_token_is_valid_until_the_instant_before_its_expiry():
    """The check has no leeway in either direction."""
    token = access_token(USER, NOW, SECRET)
    expiry = NOW.replace(microsecond=0) + timedelta(hours=24)
    assert tokens.read_access(token, expiry - timedelta(microseconds=1)) == (USER, expiry.timestamp())
    with pytest.raises(Unauthorized):
        tokens.read_access(token, expiry)


def spellings(token):
    """Return other texts of the signature for Python's base64: padded, spaced, and with other last bits."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(token[-1])
    yield from (token + "=" * length for length in (1, 2, 3, 4, 1_000))
    yield from (token[:-5] + skipped + token[-5:] for skipped in (" ", "\n", "~", "=", "*", "é"))
    yield from (f" {token}", f"{token} ", f"{token}\n", f"{token}\0")
    yield from (token[:-1] + alphabet[last + bits] for bits in (1, 2, 3))
    if {"-", "_"} & set(token.rpartition(".")[2]):
        head, _, signature = token.rpartition(".")
        yield f"{head}.{signature.replace('-', '+').replace('_', '/')}"


@given(st.uuids(version=4).map(str))
def test_token_has_one_spelling(user_id):
    """Other spellings of a signature are refused, so that they can't fill the memory."""
    ours = Tokens(SECRET)
    access, refresh = access_token(user_id, NOW, SECRET), refresh_token(user_id, JTI, NOW, SECRET)
    assert ours.read_access(access, NOW).user_id == user_id
    assert ours.read_refresh(refresh, NOW).user_id == user_id
    for spelled in spellings(access):
        with pytest.raises(Unauthorized):
            ours.read_access(spelled, NOW)
    for spelled in spellings(refresh):
        with pytest.raises(Unauthorized):
            ours.read_refresh(spelled, NOW)
    assert ours._read_access.cache_info().currsize == 1


def test_each_kind_of_token_has_its_own_use():
    """A refresh token opens no route, and an access token refreshes nothing."""
    with pytest.raises(Unauthorized):
        tokens.read_access(refresh_token(USER, JTI, NOW, SECRET), NOW)
    with pytest.raises(Unauthorized):
        tokens.read_refresh(access_token(USER, NOW, SECRET), NOW)


def unsigned(claims):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."


GOOD = {"sub": USER, "exp": EXP, "kind": "access"}


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("", id="empty"),
        pytest.param("a.b.c", id="no JWT"),
        pytest.param("." * 10_000, id="dots"),
        pytest.param("ü.ü.ü", id="not ASCII"),
        pytest.param(signed(GOOD | {"more": "x" * TOKEN_MAX}), id="longer than any"),
        pytest.param(signed(GOOD, b"t" * 32), id="other secret"),
        pytest.param(signed(GOOD, SECRET * 2, "HS512"), id="other algorithm, other secret"),
        pytest.param(signed(GOOD, b"s" * 64, "HS512"), id="other algorithm"),
        pytest.param(unsigned(GOOD), id="no signature"),
        pytest.param(signed(GOOD)[:-2], id="cut signature"),
        pytest.param(signed({"sub": USER, "kind": "access"}), id="no exp"),
        pytest.param(signed({"sub": USER, "exp": EXP}), id="no kind"),
        pytest.param(signed({"exp": EXP, "kind": "access"}), id="no sub"),
        pytest.param(signed(GOOD | {"exp": EXP + 0.5}), id="fractional exp"),
        pytest.param(signed(GOOD | {"exp": str(EXP)}), id="exp as text"),
        pytest.param(signed(GOOD | {"exp": True}), id="exp as boolean"),
        pytest.param(signed(GOOD | {"exp": int(NOW.timestamp())}), id="expired"),
        pytest.param(signed(GOOD | {"exp": EXPIRY_MAX + 1}), id="after the year 9999"),
        pytest.param(signed(GOOD | {"exp": 2**63}), id="exp is no bigint"),
        pytest.param(signed(GOOD | {"sub": "ann"}), id="sub is no UUID"),
        pytest.param(signed(GOOD | {"kind": "Access"}), id="kind in another case"),
        pytest.param(signed(GOOD | {"kind": ["access"]}), id="kind is a list"),
    ],
)
def test_invalid_access_tokens_get_the_same_error(token):
    with pytest.raises(Unauthorized):
        tokens.read_access(token, NOW)


@pytest.mark.parametrize(("expiry", "valid"), [(EXPIRY_MAX, True), (EXPIRY_MAX + 1, False), (2**63, False)])
def test_token_is_valid_until_the_year_9999_at_most(expiry, valid):
    """Another program with the secret may sign tokens of any expiry."""
    for kind, read in (("access", tokens.read_access), ("refresh", tokens.read_refresh)):
        token = signed({"sub": USER, "exp": expiry, "kind": kind, "jti": JTI})
        with contextlib.nullcontext() if valid else pytest.raises(Unauthorized):
            assert read(token, NOW).user_id == USER


@pytest.mark.parametrize("jti", [None, "", "x", 5, ["a"]])
def test_refresh_token_without_a_valid_jti_is_refused(jti):
    """Tokens from before rotation had no jti."""
    claims = {"sub": USER, "exp": EXP, "kind": "refresh"} | ({} if jti is None else {"jti": jti})
    with pytest.raises(Unauthorized):
        tokens.read_refresh(signed_any(claims), NOW)


def signed_any(claims):
    """Sign claims that PyJWT itself refuses to sign."""
    return jwt.api_jws.encode(json.dumps(claims).encode(), SECRET, "HS256")


@given(texts(max_size=300))
def test_any_text_is_read_or_raises_unauthorized(text):
    with pytest.raises(Unauthorized):
        tokens.read_access(text, NOW)


@given(
    st.dictionaries(
        st.sampled_from(["sub", "exp", "kind", "jti", "nbf", "iat", "aud", "iss", "x"]),
        st.none() | st.booleans() | st.integers() | st.floats() | texts() | st.lists(st.integers(), max_size=2),
    )
)
def test_any_signed_claims_are_read_or_raise_unauthorized(claims):
    """A valid signature doesn't make odd claims raise another error."""
    with pytest.raises(Unauthorized):
        tokens.read_access(signed_any(claims), NOW)


def part(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def put_together(header, payload, secret):
    """Return a token of any header and payload, signed with HMAC-SHA256 whatever the header is."""
    signed = f"{header}.{payload}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), 'sha256'))}"


OUR_HEADER = signed({}).partition(".")[0]
HEADERS = st.sampled_from(
    [
        OUR_HEADER,
        OUR_HEADER[:-1],
        OUR_HEADER + "A",
        OUR_HEADER[:-1] + chr(ord(OUR_HEADER[-1]) + 1),
        *(
            part(header)
            for header in (
                b'{"typ":"JWT","alg":"HS256"}',
                b'{"alg":"HS256", "typ":"JWT"}',
                b'{"alg":"HS256"}',
                b'{"alg":"hs256","typ":"JWT"}',
                b'{"alg":"HS512","typ":"JWT"}',
                b'{"alg":"RS256","typ":"JWT"}',
                b'{"alg":"none","typ":"JWT"}',
                b'{"alg":["HS256"],"typ":"JWT"}',
                b'{"alg":"HS256","typ":"JWT","alg":"none"}',
                b'{"alg":"HS256","crit":["exp"],"typ":"JWT"}',
                b'{"alg":"HS256","b64":false,"crit":["b64"],"typ":"JWT"}',
                b'{"alg":"HS256","kid":7,"typ":"JWT"}',
                b'{"alg":"HS256","jwk":{"kty":"oct","k":""},"typ":"JWT"}',
                b"[]",
                b"nonsense",
            )
        ),
    ]
)
CLAIMS = st.dictionaries(
    st.sampled_from(["sub", "exp", "kind", "jti", "nbf", "iat", "aud", "iss", "x"]),
    st.sampled_from([USER, USER.upper(), JTI, EXP, EXP + 0.5, float(EXP), 10**30, "access", "refresh", "\ud800", None])
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts(),
)
CONTENTS = (
    (CLAIMS | st.builds(lambda more: GOOD | more, CLAIMS)).map(lambda claims: json.dumps(claims).encode())
    | st.builds(lambda more: json.dumps(GOOD | more, ensure_ascii=False).encode("utf-8", "surrogatepass"), CLAIMS)
    | st.sampled_from(["utf-8-sig", "utf-16", "utf-32-be", "latin-1"]).map(lambda name: json.dumps(GOOD).encode(name))
    | st.binary(max_size=60)
    | st.sampled_from(
        [
            json.dumps(GOOD).encode() + b"\n ",
            json.dumps(GOOD).encode() + b"x",
            json.dumps(GOOD).encode()[:-1] + b',"kind":"refresh","jti":"%b"}' % JTI.encode(),
            json.dumps(GOOD).encode()[:-1] + b',"exp":%b}' % (b"9" * 5_000),
            json.dumps(GOOD).encode()[:-1] + b',"x":1e999}',
            json.dumps(GOOD).encode()[:-1] + b',"x":"\xff"}',
            json.dumps(GOOD).encode()[:-1] + b',"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
            b"[" + json.dumps(GOOD).encode() + b"]",
        ]
    )
)
TOKENS = st.builds(
    put_together,
    HEADERS,
    CONTENTS.map(part) | st.text("ABCab019-_=+/. ", max_size=9),
    st.sampled_from([SECRET, b"p" * 32, b"t" * 32, b""]),
)
FORGED = st.builds(lambda token, at, text: token[:at] + text + token[at + 1 :], TOKENS, st.integers(0, 300), texts())


class WithoutShortWay(Tokens):
    """A token issuer that reads all tokens with PyJWT."""

    def _issued(self, token):
        return None


def outcome(read, token):
    try:
        return read(token, NOW)
    except Unauthorized:
        return None


@costly(500)
@given(TOKENS | FORGED | TOKENS.flatmap(lambda token: st.sampled_from([*spellings(token)])))
@example(put_together(OUR_HEADER, part(json.dumps(GOOD).encode()), SECRET))
@example(put_together(OUR_HEADER, part(json.dumps(GOOD | {"kind": "refresh", "jti": JTI}).encode()), b"p" * 32))
@example(put_together(OUR_HEADER, part(json.dumps(GOOD | {"x": float("nan")}).encode()), SECRET))
@example(f"{OUR_HEADER}.{part(json.dumps(GOOD).encode())}.{'A' * 43}")
def test_fast_path_reads_tokens_as_pyjwt_does(token):
    """Any header, claims and signature are read or refused as by PyJWT."""
    both = {"secret": SECRET, "previous": b"p" * 32}
    ours, reference = Tokens(**both), WithoutShortWay(**both)
    assert outcome(ours.read_access, token) == outcome(reference.read_access, token)
    assert outcome(ours.read_refresh, token) == outcome(reference.read_refresh, token)


@given(st.uuids(), st.uuids(), st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_issued_token_equals_the_one_of_pyjwt(user_id, jti, now):
    """Tokens of all versions must begin alike."""
    access, refresh = access_token(str(user_id), now, SECRET), refresh_token(str(user_id), str(jti), now, SECRET)
    assert access == signed({"sub": str(user_id), "exp": int(now.timestamp()) + 86_400, "kind": "access"})
    exp = int(now.timestamp()) + 30 * 86_400
    assert refresh == signed({"sub": str(user_id), "exp": exp, "kind": "refresh", "jti": str(jti)})


def test_secret_is_in_no_repr():
    assert "s" * 32 not in repr(tokens) + repr(vars(tokens).keys())


def test_previous_secret_verifies_and_never_signs():
    """Tokens of both secrets are accepted; new tokens are signed with the current one."""
    both = Tokens(SECRET, previous=b"p" * 32)
    assert both.read_access(access_token(USER, NOW, b"p" * 32), NOW).user_id == USER
    assert both.read_refresh(refresh_token(USER, JTI, NOW, b"p" * 32), NOW).jti == JTI
    issued = both.pair(USER, both.record(NOW, None)).access_token
    assert tokens.read_access(issued, NOW) == both.read_access(issued, NOW)
    for secret in (b"p" * 32, b"x" * 32):
        with pytest.raises(Unauthorized):
            tokens.read_access(access_token(USER, NOW, secret), NOW)
    with pytest.raises(Unauthorized):
        both.read_access(access_token(USER, NOW, b"x" * 32), NOW)


async def test_secret_can_be_changed_without_ending_sessions(reactor, shared_dsn):
    """A session from before the change continues, and needs only the new secret after a refresh."""
    old = await start(reactor, shared_dsn, settings={"JWT_SECRET": PREVIOUS_SECRET})
    changing = await start(reactor, shared_dsn, settings={"JWT_SECRET_PREVIOUS": PREVIOUS_SECRET})
    new = await start(reactor, shared_dsn)
    assert CURRENT_SECRET != PREVIOUS_SECRET
    try:
        client = await old.player(f"rotating_{uuid4().hex[:8]}")
        before, after = changing.client(), new.client()
        before.tokens = after.tokens = client.tokens
        assert await refused(after.me()) == (401, "unauthorized")
        me = await before.me()
        await before.refresh()
        after.tokens = before.tokens
        assert await after.me() == me
        await after.delete_account()
    finally:
        for running in (old, changing, new):
            await running.service.stopService()
