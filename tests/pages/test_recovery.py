"""Tests of lost passwords on pages: recovery codes are made, saved, printed and used, and reset links are used."""

import re
from pathlib import Path

import pytest

from solisync.rules.recovery import digest, new_reset_token
from tests.harness.constants import PASSWORD
from tests.harness.postgres import run_sql
from tests.pages.visitor import Game, until

NEW = "another horse"
CODE = r"[0-9A-Z]{4}(-[0-9A-Z]{4}){3}"


def make_codes(visitor):
    """Make recovery codes on the page, and return the codes that it shows."""
    visitor.page.fill("#codes-password", PASSWORD)
    visitor.page.click("#codes-form button")
    visitor.page.wait_for_selector(".codes li")
    visitor.settle()
    return visitor.page.locator(".codes li").all_inner_texts()


def told(text):
    """Return an expression that is true when the page says this about the remaining codes."""
    return f"document.getElementById('codes-left')?.textContent.includes({text!r})"


def recover(page, name, code):
    page.goto("/account")
    page.click("#forgot summary")
    page.fill("#recover-name", name)
    page.fill("#recover-code", code)
    page.fill("#recover-password", NEW)
    page.click("#recover-form button.main")


@pytest.fixture
def ann(visit):
    ann = visit()
    ann.register()
    ann.open("/account")  # from now on, codes need the password
    return ann


def test_registration_offers_codes_before_it_goes_on(visit):
    """The codes need no second password, and the page then leads to the game whose win made the player register."""
    bob = visit()
    page = bob.open("/account?next=%2Fplay%3Fdeal%3D42#register")
    page.fill("#new-name", "bob")
    page.fill("#new-password", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("#codes-next")
    assert page.evaluate("document.querySelector('#in > :first-child').id") == "codes"
    assert page.is_hidden("#codes-password")
    page.click("#codes-form button")
    page.wait_for_selector(".codes li")
    assert page.locator(".codes li").count() == 8
    assert page.is_visible("#codes-password")  # other codes need it
    page.click("#codes-next")
    page.wait_for_url("**/play?deal=42*")


def test_next_player_of_the_browser_gets_no_codes_by_the_password_before(visit, site):
    """Signing out forgets the password that registered."""
    Game(site, "ann")
    bob = visit()
    bob.register("bob")
    assert bob.page.is_hidden("#codes-password")
    bob.page.click("#sign-out")
    bob.page.wait_for_selector("#out:not([hidden])")
    bob.page.fill("#in-name", "ann")
    bob.page.fill("#in-password", PASSWORD)
    bob.page.keyboard.press("Enter")
    bob.page.wait_for_selector("#in:not([hidden])")
    assert bob.page.is_visible("#codes-password")


def test_codes_are_shown_once_to_save_and_to_print(ann):
    """The file has the codes, the player's name and the time they were made. The printed page has only these."""
    until(ann.page, told("You have no codes"))
    codes = make_codes(ann)
    assert len(codes) == 8
    assert all(re.fullmatch(CODE, code) for code in codes)
    until(ann.page, told("8 unused codes"))
    with ann.page.expect_download() as saving:
        ann.page.click("text=Save as text")
    text = Path(saving.value.path()).read_text("utf-8")
    assert saving.value.suggested_filename == "recovery-codes-ann.txt"
    assert text.splitlines()[2:] == codes
    assert re.match(r"Recovery codes of ann at \S+, created on \d+ \w+ \d{4} at \d\d:\d\d\.", text)
    ann.page.emulate_media(media="print")
    assert ann.page.is_visible(".codes")
    for hidden in ("header", "#password-form", "#codes-form button", "#devices", "#export", "#sign-out"):
        assert not ann.page.locator(hidden).first.is_visible(), hidden
    ann.page.emulate_media(media="screen")
    ann.open("/account")
    assert not ann.page.locator(".codes").count()


def test_recovery_code_sets_a_new_password(ann, visit):
    """The code works on another device: it signs in there and ends other sessions. A wrong code is reported."""
    code = make_codes(ann)[2]
    other = visit(width=390)
    recover(other.page, "ann", "0000-0000-0000-0000")
    other.page.wait_for_selector("#recover-form .refused")
    assert "code has been used" in other.page.inner_text("#recover-form .refused")
    assert other.page.evaluate("document.activeElement.id") == "recover-code"
    recover(other.page, "ann", f" {code.lower()} ")
    other.page.wait_for_selector("#in:not([hidden])")
    until(other.page, told("7 unused codes"))
    assert other.page.input_value("#recover-password") == ""
    again = visit()
    again.sign_in(password=NEW)


def test_reset_link_sets_a_password_once(ann, running, visit):
    """The link leads to the account and leaves no token in the browser. A second use is reported."""
    token = new_reset_token()
    put = "INSERT INTO reset_tokens SELECT id, %s, now() + interval '1 hour' FROM users"
    run_sql(running.dsn, put, (digest(token),))
    other = visit()
    for outcome in ("#in:not([hidden])", "#reset-form .refused"):
        other.page.goto("about:blank")
        other.open(f"/reset#{token}")
        other.page.fill("#reset-password", NEW)
        other.page.click("#reset-form button.main")
        other.page.wait_for_selector(outcome)
        other.settle()
        if outcome.startswith("#in"):
            assert other.page.url.endswith("/account")
            assert token not in other.page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    assert "has been used" in other.page.inner_text("#reset-form .refused")
    assert token not in running.log


def test_reset_link_without_its_token_is_reported(visitor):
    """The page hides its form while the address has no text after #."""
    visitor.open("/reset")
    assert visitor.page.is_visible("#incomplete")
    assert visitor.page.is_hidden("#reset-form")
    visitor.page.evaluate("location.hash = 'x'")
    until(visitor.page, "!document.getElementById('reset-form').hidden")
    assert visitor.page.is_hidden("#incomplete")


@pytest.mark.parametrize(
    ("address", "opening", "form"), [("/reset#x", None, "reset"), ("/account", "#forgot summary", "recover")]
)
def test_new_password_can_be_shown_while_it_is_typed(visitor, address, opening, form):
    """The form works like the sign-up form. The typed text and the hints for password managers don't change."""
    page = visitor.open(address)
    if opening:
        page.click(opening)
    page.fill(f"#{form}-password", NEW)
    for seen, kind in ((True, "text"), (False, "password")):
        page.locator(f"#{form}-form").get_by_label("Show password").set_checked(seen)
        assert page.get_attribute(f"#{form}-password", "type") == kind
    assert page.input_value(f"#{form}-password") == NEW
    assert page.get_attribute(f"#{form}-password", "autocomplete") == "new-password"
