"""Recovery codes and reset tokens (docs/protocol.md "Lost passwords")."""

import re

import pytest
from hypothesis import given

from solisync.rules.recovery import CODE_DIGITS, CODES, digest, new_codes, new_reset_token, read_code
from tests.harness.strategies import texts

CODE = "7K3M-0QWE-1TYP-2S4D"
READ = CODE.replace("-", "")


@pytest.mark.parametrize(
    "typed",
    [
        CODE,
        READ,
        CODE.lower(),
        " 7k3m 0qwe\t1typ\n2s4d ",
        "7K3MOQWE-ITYP-2S4D",
        "7k3moqweltyp2s4d",
        "7K3M–0QWE‑1TYP—2S4D",
    ],
)
def test_code_may_be_typed_in_any_form(typed):
    """Case, hyphens and white space don't matter. O is read as 0, I and L as 1."""
    assert read_code(typed, CODE_DIGITS) == READ


@pytest.mark.parametrize(
    "typed", ["", READ[1:], READ + "0", READ.replace("7", "U"), READ.replace("S", "ſ"), "💥", "-" * 99]
)
def test_other_text_is_not_a_code(typed):
    """The text is too short or too long, or has a letter outside of the alphabet."""
    assert read_code(typed, CODE_DIGITS) is None


@given(texts())
def test_any_text_is_a_code_or_none(typed):
    code = read_code(typed, CODE_DIGITS)
    assert code is None or re.fullmatch("[0-9A-HJKMNP-TV-Z]{16}", code)


def test_new_codes_are_eight_different_ones():
    """Each has four groups of four, and is read as it is."""
    codes = new_codes() + new_codes()
    assert len(set(codes)) == 2 * CODES == 16
    assert all(re.fullmatch("[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}", code) for code in codes)
    assert all(read_code(code, CODE_DIGITS) == code.replace("-", "") for code in codes)
    assert len({character for code in codes for character in code}) > 20  # of 32 characters and the hyphen


def test_reset_token_has_256_bits():
    """Its 43 characters of base64url need no escapes in a link."""
    token = new_reset_token()
    assert re.fullmatch("[A-Za-z0-9_-]{43}", token)
    assert token != new_reset_token()
    assert len(digest(token)) == 32
