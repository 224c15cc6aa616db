"""The images that are accepted as avatars (docs/security.md "Uploads")."""

import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.errors import BadRequest
from solisync.rules.avatars import AVATAR_TYPES, FORMATS, PIXELS_MAX, check_avatar
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


def png(width, height):
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">LL", width, height) + b"\x08\2\0\0\0"


def jpeg(width, height, before=b"\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"):
    return b"\xff\xd8" + before + b"\xff\xc2\0\x11\x08" + struct.pack(">HH", height, width) + b"\3\1\x22\0"


def riff(kind, content):
    return b"RIFF" + struct.pack("<L", len(content) + 12) + b"WEBP" + kind + struct.pack("<L", len(content)) + content


def webp(width, height):
    """A lossy image; the two bits above its sizes are scales."""
    return riff(b"VP8 ", b"\x30\1\0\x9d\1\x2a" + struct.pack("<HH", width | 0x4000, height | 0xC000))


def lossless(width, height):
    return riff(b"VP8L", b"/" + struct.pack("<L", width - 1 | height - 1 << 14 | 1 << 28))


def canvas(width, height):
    sizes = ((side - 1).to_bytes(3, "little") for side in (width, height))
    return riff(b"VP8X", b"\x10\0\0\0" + b"".join(sizes))


def gif(width, height, *, frame=(1, 1), extensions=b""):
    """An image with a table of two colours, whose first frame ends at `frame`."""
    screen = struct.pack("<HHBBB", width, height, 0x80, 0, 0)
    place = struct.pack("<BHHHHB", 0x2C, 1, 1, frame[0] - 1, frame[1] - 1, 0)
    return b"GIF89a" + screen + bytes(6) + extensions + place


def framed(width, height):
    """An image whose first frame is larger than its screen."""
    return gif(1, 1, frame=(width, height), extensions=b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0!\xf9\4\0\0\0\0\0")


MAKERS = {
    "image/png": [png],
    "image/jpeg": [jpeg],
    "image/webp": [webp, lossless, canvas],
    "image/gif": [gif, framed],
}
sides = st.sampled_from([1, 255, 256, PIXELS_MAX - 1, PIXELS_MAX, PIXELS_MAX + 1]) | st.integers(1, 16_383)


@given(sides, sides)
def test_image_of_too_many_pixels_is_refused(width, height):
    """The error names the size, in every format."""
    for media_type, make in [(media_type, make) for media_type, makers in MAKERS.items() for make in makers]:
        image = make(width, height) + b"the rest"
        if max(width, height) <= PIXELS_MAX:
            assert check_avatar(media_type, image)
        else:
            with pytest.raises(BadRequest, match=f"at most 4,096 pixels a side, not {width:,} x {height:,}") as refused:
                check_avatar(media_type, image)
            assert refused.value.code == "avatar_too_large"


@pytest.mark.parametrize(
    "before",
    [
        b"\xff\xe1\0\x40" + jpeg(160, 120).ljust(62, b"x"),  # a thumbnail
        b"\xff\xe0\0\2" * 200_000,
        b"garbage\xff\xff\xff",
    ],
    ids=["thumbnail", "segments", "garbage"],
)
def test_jpeg_has_the_size_of_its_largest_frame(before):
    """Decoders find the frame behind whatever is before it."""
    assert check_avatar("image/jpeg", b"\xff\xd8\xff" + jpeg(4_096, 4_096, before))
    with pytest.raises(BadRequest, match="not 4,097 x 3"):
        check_avatar("image/jpeg", b"\xff\xd8\xff" + jpeg(4_097, 3, before))


@given(st.lists(st.lists(st.binary(min_size=1, max_size=255), max_size=4), max_size=4))
def test_first_frame_of_a_gif_is_found_behind_extensions(extensions):
    """Their blocks may have any length and any bytes."""
    spelled = [b"!\xfe" + b"".join(bytes([len(each)]) + each for each in blocks) + b"\0" for blocks in extensions]
    with pytest.raises(BadRequest, match="not 20,000 x 9"):
        check_avatar("image/gif", gif(7, 9, frame=(20_000, 8), extensions=b"".join(spelled)))


@pytest.mark.parametrize(
    ("media_type", "image", "length"),
    [
        ("image/png", png(9_999, 9_999), 23),
        ("image/png", png(9_999, 9_999).replace(b"IHDR", b"IDAT"), 40),
        ("image/jpeg", jpeg(9_999, 9_999), 29),
        ("image/jpeg", jpeg(9_999, 9_999).replace(b"\x11\x08", b"\x12\x08"), 40),
        ("image/webp", webp(9_999, 9_999), 29),
        ("image/webp", webp(9_999, 9_999).replace(b"\x9d", b"\x9e"), 30),
        ("image/webp", lossless(9_999, 9_999), 24),
        ("image/webp", canvas(9_999, 9_999), 29),
        ("image/gif", gif(9_999, 9_999), 12),
    ],
)
def test_image_whose_size_cannot_be_read_is_accepted(media_type, image, length):
    """The image ends within its size, or its size has a wrong length or sign before it."""
    assert check_avatar(media_type, image[:length])


@given(st.sampled_from(FORMATS), st.binary())
def test_any_bytes_have_a_size_or_none(image, content):
    signature = {"jpg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n", "webp": b"RIFFxxxxWEBP", "gif": b"GIF89a"}
    size = image.size(signature[image.extension] + content)
    assert size is None or all(0 <= side < 2**32 for side in size)


MIB = 2**20
HOSTILE = {
    "empty segments": ("image/jpeg", b"\xff\xd8" + b"\xff\xe0\0\2" * (MIB // 4)),
    "frames": ("image/jpeg", b"\xff\xd8\xff" + b"\xff\xc0\0\x11\x08\x10\0\x10\0\3" * (MIB // 10)),
    "broken frames": ("image/jpeg", b"\xff\xd8\xff" + b"\xff\xc0\0\x11\x08\x11\0\x10\0\5" * (MIB // 10)),
    "beginnings of frames": ("image/jpeg", b"\xff\xd8\xff" + b"\xff\xc0\0\x11\x08" * (MIB // 5)),
    "fill bytes": ("image/jpeg", b"\xff\xd8" + b"\xff" * MIB),
    "short blocks": ("image/gif", gif(1, 1, extensions=b"!\xfe" + b"\1x" * (MIB // 2) + b"\0")),
    "long blocks": ("image/gif", gif(1, 1, extensions=b"!\xfe" + (b"\xff" + bytes(255)) * (MIB // 256) + b"\0")),
    "empty extensions": ("image/gif", gif(1, 1, extensions=b"!\xfe\0" * (MIB // 3))),
    "endless blocks": ("image/gif", gif(1, 1, extensions=b"!\xfe" + b"\1x" * (MIB // 2))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_size_of_any_image_is_read_in_milliseconds(name, figure):
    """No image occupies the reactor: these take a loop over their parts a tenth of a second and more."""
    media_type, image = HOSTILE[name]
    check_avatar(media_type, image[:1000])
    least = 60.0
    for _ in range(5):
        began = time.process_time()
        check_avatar(media_type, image)
        least = min(least, time.process_time() - began)
    figure(f"{least * 1000:.1f} ms")
    assert least < 0.05


ID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    "text", ["", ID.upper(), ID.replace("-", ""), f"{{{ID}}}", f"urn:uuid:{ID}", f"{ID}\n", "g" + ID[1:]]
)
def test_avatar_id_has_one_spelling(text):
    """Python and PostgreSQL read other spellings of a UUID, but a path with one isn't found."""
    assert is_id(ID)
    assert not is_id(text)
