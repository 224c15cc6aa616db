"""The images that are accepted as avatars (docs/security.md "Uploads")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.avatars import AVATAR_TYPES, FORMATS, check_avatar
from solisync.rules.shapes import is_id
from tests.harness.payloads import DECLARED, IMAGES, OTHER_TYPES

# For each declared type: the contents that it may have, and the extension of the avatar.


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("name", IMAGES)
def test_image_content_must_match_its_declared_type(declared, name):
    accepted, extension = DECLARED[declared]
    if name in accepted:
        assert check_avatar(declared, IMAGES[name]) == extension
    else:
        with pytest.raises(BadRequest, match="does not begin like image/"):
            check_avatar(declared, IMAGES[name])


@pytest.mark.parametrize("declared", OTHER_TYPES)
def test_other_types_are_refused(declared):
    """The refusal lists the four types, whatever the content is."""
    for content in IMAGES.values():
        with pytest.raises(BadRequest) as refused:
            check_avatar(declared, content)
        assert all(media_type in str(refused.value) for media_type in AVATAR_TYPES)


@given(st.sampled_from(["png", "jpeg", "gif89a", "webp"]), st.integers(0, 11), st.integers(0, 255))
def test_every_byte_of_a_signature_counts(name, at, byte):
    """An image with a changed or missing byte has another format or none."""
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
def test_avatar_id_has_one_spelling(text):
    """Python and PostgreSQL read other spellings of a UUID, but a path with one isn't found."""
    assert is_id(ID)
    assert not is_id(text)
