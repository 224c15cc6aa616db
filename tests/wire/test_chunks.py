"""The decoder of chunked bodies, and the bounds of its work (docs/security.md "Bounds")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.web.wire.body import CHUNK_BYTES, CHUNKS, CHUNKS_PER_TURN, Chunks, MalformedChunks
from solisync.web.wire.parse import MAX_HEADERS
from tests.wire.sockets import parse

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
ONE = b"1\r\nx\r\n"


def chunk(size):
    return b"%x\r\n%b\r\n" % (size, b"x" * size)


def decoded(coded, sizes=()):
    """Return the parts of the body and the bytes after the end; the bytes arrive in pieces of these sizes."""
    bodies, after, at = [], b"", 0
    chunks = Chunks()
    for size in (*sizes, len(coded)):
        piece, at = coded[at : at + size], at + size
        while piece and not chunks.ended:
            body, piece = chunks.decode(piece)
            bodies += [body] if body else []
        after += piece
    return bodies, after if chunks.ended else None


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.sampled_from([b"", b";a", b' ; a="b;c" \t;d= e', b';a="\\"b\\\\"', b";" + b"a" * 900]),
    st.sampled_from([b"", b"X-A: b\r\n", b"X-A:\r\nX-B: \xff\r\n"]),
    st.lists(st.integers(1, 30)),
)
def test_body_is_decoded_from_any_chunks_in_any_pieces(parts, extension, trailers, sizes):
    """The decoder returns the bytes of all chunks, and leaves the bytes after the body alone."""
    coded = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
    bodies, after = decoded(coded + b"0" + extension + b"\r\n" + trailers + b"\r\nGET /", sizes)
    assert b"".join(bodies) == b"".join(parts)
    assert after == b"GET /"


def test_chunks_that_arrive_together_are_one_call():
    """One read of the socket costs one call, however many chunks it brings."""
    assert decoded(ONE * (CHUNKS_PER_TURN - 1) + END) == ([b"x" * (CHUNKS_PER_TURN - 1)], b"")


@pytest.mark.parametrize("sizes", [(), (5,) * 2_000, (4_001, 1_000)])
@pytest.mark.parametrize(
    ("first", "after"),
    [
        (ONE * CHUNKS, ONE),
        (chunk(CHUNK_BYTES - 1) * CHUNKS, ONE),
        (chunk(60_000) + ONE * (CHUNKS - 1), ONE),
        (chunk(1_000) * CHUNKS + ONE * CHUNKS, ONE),
        (b"0\r\n" + b"a:\r\n" * MAX_HEADERS, b"a:\r\n"),
    ],
)
def test_many_small_chunks_are_refused(first, after, sizes):
    """CHUNKS in a row pass. One more is refused unless these had CHUNK_BYTES on average; so are many trailers."""
    decoded(first + (END if after == ONE else b"\r\n"), sizes)
    with pytest.raises(MalformedChunks):
        decoded(first + after, sizes)


@pytest.mark.parametrize(
    "chunks", [chunk(CHUNK_BYTES) * 16_000, (chunk(CHUNK_BYTES * CHUNKS) + ONE * (CHUNKS - 1)) * 16]
)
def test_chunks_of_64_bytes_pass(chunks):
    """Bodies of any allowed size may have chunks of 64 bytes on average."""
    bodies, after = decoded(chunks + END, (65_536,) * 20)
    assert (sum(map(len, bodies)) >= 1_000_000, after) == (True, b"")


@pytest.mark.parametrize("path", [b"/", b"/unwanted"])
def test_request_of_many_small_chunks_gets_a_400(bench, path):
    """The connection is closed, whether the handler reads the body or not."""
    channel, transport = bench.connect(HEAD.replace(b"/ ", path + b" ", 1) + ONE * CHUNKS)
    bench.clock.advance(0)
    assert transport.value() == b""
    channel.dataReceived(ONE)
    (answer,) = parse(transport.value())
    assert (answer.status, answer.headers["error-code"], answer.headers["connection"]) == (400, "bad_request", "close")


def test_connections_with_many_chunks_take_turns(bench):
    """A connection decodes CHUNKS_PER_TURN chunks when it reads, and as many in each of its turns."""
    read = []
    bench.connections.unfinished.hold = lambda channel, size: read.append((channel, size))
    channels = [bench.connect(HEAD + ONE * CHUNKS_PER_TURN * 3)[0] for _ in range(2)]
    bench.clock.advance(0)
    sizes = (CHUNKS_PER_TURN * turns - 1 for turns in (1, 2, 3))
    assert read[:6] == [(channel, size) for size in sizes for channel in channels]


def test_next_request_is_answered_after_many_chunks(bench):
    """The end of a body in many chunks arrives together with the next request."""
    request = HEAD + ONE * CHUNKS + END
    _, transport = bench.connect(request * 3)
    bench.clock.advance(0)
    assert [answer.status for answer in parse(transport.value())] == [200] * 3
