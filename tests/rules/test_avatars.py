"""Which images are accepted (docs/security.md "Uploads")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.avatars import AVATAR_TYPES, FORMATS, check_avatar
from solisync.rules.shapes import is_id
from tests.harness.payloads import DECLARED, IMAGES, OTHER_TYPES

# For each way to declare an image: which contents it may have, and the extension that it gets.


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("name", IMAGES)
def test_an_image_begins_as_it_is_declared(declared, name):
    """Of all contents exactly those of the declared type pass."""
    accepted, extension = DECLARED[declared]
    if name in accepted:
        assert check_avatar(declared, IMAGES[name]) == extension
    else:
        with pytest.raises(BadRequest, match="does not begin like image/"):
            check_avatar(declared, IMAGES[name])


@pytest.mark.parametrize("declared", OTHER_TYPES)
def test_no_other_type_is_an_avatar(declared):
    """The refusal names the four types, whatever the content."""
    for content in IMAGES.values():
        with pytest.raises(BadRequest) as refused:
            check_avatar(declared, content)
        assert all(media_type in str(refused.value) for media_type in AVATAR_TYPES)


@given(st.sampled_from(["png", "jpeg", "gif89a", "webp"]), st.integers(0, 11), st.integers(0, 255))
def test_every_byte_of_a_signature_counts(name, at, byte):
    """A changed byte, or a beginning that is too short, is another format or none."""
    content = IMAGES[name]
    (image,) = [image for image in FORMATS if image.signature.match(content)]
    length = image.signature.match(content).end()
    changed = content[:at] + bytes([byte]) + content[at + 1 :]
    counts = at < length and not (name == "webp" and 4 <= at < 8) and (name, at, byte) != ("gif89a", 4, ord("7"))
    assert bool(image.signature.match(changed)) == (not counts or changed == content)
    assert not image.signature.match(content[: min(at, length - 1)])


ID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    "text", ["", ID.upper(), ID.replace("-", ""), f"{{{ID}}}", f"urn:uuid:{ID}", f"{ID}\n", "g" + ID[1:]]
)
def test_only_the_canonical_spelling_is_an_id(text):
    """Other spellings of a UUID, which Python and PostgreSQL both read, are none in a path."""
    assert is_id(ID)
    assert not is_id(text)
