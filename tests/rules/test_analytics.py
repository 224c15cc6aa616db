"""The rules of analytics events, and the reasons of refusals (docs/protocol.md "Analytics")."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.analytics import UndecodedBatch, canonical_uuid, contains_nul, splittable, validate
from solisync.rules.surrogates import without_lone_surrogates
from tests.harness.strategies import texts

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ID = "0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41"
MISSING = object()


def event(**changes):
    """Return the JSON of an event; a field that is MISSING is left out."""
    fields = {"id": ID, "event_type": "game_won", "payload": {}, "client_time": NOW.isoformat()} | changes
    return json.dumps({name: value for name, value in fields.items() if value is not MISSING}).encode()


def judged(*events, now=NOW, session=b'"s"', user=b"null"):
    """Return the result of a batch of events, each given as its JSON."""
    body = b'{"session_id": %b, "user_id": %b, "events": [%b]}' % (session, user, b", ".join(events))
    return validate(msgspec.json.decode(splittable(body), type=UndecodedBatch), now)


def reason(raw):
    """Return the reason why this event is rejected, or None."""
    rejected = judged(raw).rejected
    return rejected[0].error if rejected else None


NUL_OR_HALF = "event must not contain U+0000 or half of a surrogate pair"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (event(id=MISSING), "Object missing required field `id`"),
        (event(event_type=MISSING), "Object missing required field `event_type`"),
        (event(client_time=MISSING), "Object missing required field `client_time`"),
        (event(id=5), "Expected `str`, got `int` - at `$.id`"),
        (event(id="5"), "`id` must be a UUID"),
        (event(id=ID + "\n"), "`id` must be a UUID"),
        (event(id="-" + ID[1:]), "`id` must be a UUID"),
        (event(event_type=None), "Expected `str`, got `null` - at `$.event_type`"),
        (event(client_time="2026-11-20"), "Invalid RFC3339 encoded datetime - at `$.client_time`"),
        (
            event(client_time="2026-11-20T12:00:00"),
            "Expected `datetime` with a timezone component - at `$.client_time`",
        ),
        (
            event(client_time="2026-11-20T12:00:00+0100"),
            "`client_time`: a time must end in Z or an offset like +01:00",
        ),
        (event(client_time="2026-11-20T23:59:60Z"), "Invalid RFC3339 encoded datetime - at `$.client_time`"),
        (event(client_time="0001-01-01T00:00:00+02:00"), "`client_time` lies outside of the years 1 to 9999"),
        (event(payload="\0"), NUL_OR_HALF),
        (event(payload={"\0": 1}), NUL_OR_HALF),
        (event(payload=["\\\0"]), NUL_OR_HALF),
        (event(payload="\ud800"), NUL_OR_HALF),
        (event(payload={"a": ["\udc00\ud800"]}), NUL_OR_HALF),
        (event(later_field="\udfff"), NUL_OR_HALF),
        (event(event_type="a\0"), NUL_OR_HALF),
        (b"5", "Expected `object`, got `int`"),
        (b"null", "Expected `object`, got `null`"),
    ],
)
def test_rejected_event_has_a_reason(raw, error):
    """The reason names a field that is missing or has a wrong type."""
    assert reason(raw) == error


@pytest.mark.parametrize("name", ["a", "_", "a" * 64, "game_won2"])
def test_event_type_has_1_to_64_lower_case_letters_digits_and_underscores(name):
    """A digit can't come first."""
    assert reason(event(event_type=name)) is None


@pytest.mark.parametrize("name", ["", "a" * 65, "2a", "A", "a-b", "é", "a\n", "\na", "a " * 2, "a" * 64 + "\n"])
def test_other_event_types_are_rejected(name):
    """A line end at the end makes a type invalid too."""
    assert "at `$.event_type`" in reason(event(event_type=name))


@pytest.mark.parametrize("text", ["x" * 4094, "é" * 2047, "\\" * 2047])
def test_payload_has_at_most_4096_bytes_as_sent(text):
    """The limit counts escapes and white space, and the payload is stored as sent."""
    payload = json.dumps(text, ensure_ascii=False).encode()
    assert len(payload) == 4096
    raw = event(payload="?").replace(b'"?"', payload)
    (accepted,) = judged(raw).events
    assert bytes(accepted.payload) == payload
    longer = payload[:-1] + b'x"'
    assert reason(raw.replace(payload, longer)) == "`payload` must be at most 4096 bytes of JSON"


@pytest.mark.parametrize(("spaces", "fits"), [(4094, True), (4095, False)])
def test_white_space_around_a_payload_is_not_counted(spaces, fits):
    """The payload begins and ends with the value."""
    raw = event(payload="?").replace(b'"?"', b"  [" + b" " * spaces + b"]  ")
    assert (reason(raw) is None) is fits


@pytest.mark.parametrize(
    "payload", [b"null", b"[1e100000, -0.0]", b'"\\ud83d\\ude00"', b'"\\\\u0000"', b'"\\\\ud800"', b'{"a":1,"a":2}']
)
def test_payload_may_be_any_json(payload):
    """Numbers beyond any range, escapes that only look forbidden and doubled keys stay as they are."""
    (accepted,) = judged(event(payload="?").replace(b'"?"', payload)).events
    assert bytes(accepted.payload) == payload


def test_absent_payload_is_an_empty_object():
    assert bytes(judged(event(payload=MISSING)).events[0].payload) == b"{}"


def test_event_is_at_most_24_hours_ahead():
    """The limit is exact to the microsecond. Events may have any age."""
    ahead = NOW + timedelta(hours=24)
    assert reason(event(client_time=ahead.isoformat())) is None
    assert reason(event(client_time="0001-01-01T00:00:00Z")) is None
    later = event(client_time=(ahead + timedelta(microseconds=1)).isoformat())
    assert reason(later) == "`client_time` is more than 24 hours ahead"
    assert reason(event(client_time="2026-11-21T21:00:00.1+09:00")) == "`client_time` is more than 24 hours ahead"


def test_batch_has_at_most_50_events():
    """Fifty-one events are refused together, whether they are good or bad."""
    assert len(judged(*[b"1"] * 50).rejected) == 50
    with pytest.raises(BadRequest, match=r"^batch may contain at most 50 events$"):
        judged(*[b"1"] * 51)


def test_bad_event_does_not_fail_the_batch():
    """The result has the rejected event's index. Of two events with one id the first counts; both are accepted."""
    other = ID.replace("0", "1")
    batch = judged(event(payload=1), event(payload="\ud800"), event(id=other), event(payload=2, id=ID.upper()))
    assert [(each.id, bytes(each.payload)) for each in sorted(batch.events, key=lambda each: each.id)] == [
        (ID, b"1"),
        (other, b"{}"),
    ]
    assert batch.accepted == 3
    assert [(each.index, each.error) for each in batch.rejected] == [(1, NUL_OR_HALF)]


@pytest.mark.parametrize("text", [b'"a\\u0000"', b'"\\ud800"'])
def test_session_or_user_that_is_not_text_fails_the_batch(text):
    """The whole batch is a bad request."""
    for part in ("session", "user"):
        with pytest.raises(BadRequest, match=f"^`{part}_id` must not contain U\\+0000"):
            judged(event(), **{part: text})


@pytest.mark.parametrize(
    "spelling",
    [ID, ID.upper(), f"urn:uuid:{ID}", f"URN:UUID:{ID}", f"{{{ID}}}", ID.replace("-", ""), f" {ID} "],
)
def test_uuid_as_a_name_has_one_spelling(spelling):
    """Deleting the account must find all its events."""
    assert judged(event(), user=json.dumps(spelling).encode()).name == ID


@pytest.mark.parametrize(
    ("user", "name"), [("ann", "ann"), (" ann\t", "ann"), ("Ann", "Ann"), ("  ", None), (None, None)]
)
def test_name_is_trimmed(user, name):
    """The username of a login is trimmed in the same way. Case counts."""
    assert judged(event(), user=json.dumps(user).encode()).name == name


@given(texts(max_size=40))
def test_other_text_is_not_a_uuid(text):
    """Text in an unknown spelling stays a username."""
    assert canonical_uuid(text) is None


points = st.characters(exclude_categories=[]) | st.sampled_from('\0\\u"d\ud800\udfff😀')


@given(st.lists(st.text(points, max_size=12), max_size=5))
def test_escapes_are_replaced_exactly_where_decoding_needs_it(texts):
    """Halves of surrogate pairs are replaced and U+0000 is found; everything else stays."""
    raw = json.dumps(texts).encode()
    mended = without_lone_surrogates(raw, instead=b"\\u0000")
    assert len(mended) == len(raw)
    whole = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    halves = any(0xD800 <= ord(point) < 0xE000 for text in json.loads(raw) for point in text)
    assert contains_nul(mended) == (halves or any("\0" in text for text in texts))
    if not halves:
        assert mended == raw
        assert msgspec.json.decode(mended) == whole
