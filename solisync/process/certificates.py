"""The certificates of an `ssl:` endpoint: all of its file, and read again without a restart.

Twisted sends no more than the first certificate of the file, and reads it once.
"""

from typing import Any

from OpenSSL import SSL
from twisted.internet.endpoints import _parse, serverFromString
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from zope.interface import implementer


@implementer(IOpenSSLServerConnectionCreator)
class Certificates:
    """The key and the certificates that new connections get."""

    def __init__(self, description: str) -> None:
        self._description = description
        self.read()

    def read(self) -> None:
        """Read the files. Raises ValueError with the reason in one line, and keeps what was read before."""
        try:
            options: Any = serverFromString(None, self._description)
            context = options._sslContextFactory.getContext()
        except Exception as error:  # of a file that is missing, or neither a key nor a certificate
            raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None
        chain = _chain(self._description)
        if chain is not None:
            try:
                context.use_certificate_chain_file(chain)
            except SSL.Error:
                raise ValueError(f"a certificate in {chain} can't be read") from None
        self._context = context

    def serverConnectionForTLS(self, protocol: object) -> SSL.Connection:
        """Make the TLS of a connection, for Twisted."""
        return SSL.Connection(self._context, None)


def _chain(description: str) -> str | None:
    """The file with all certificates, of which Twisted would send no more than the first.

    None if the description has a file with the other certificates, which Twisted sends too.
    """
    (_, *values), named = _parse(description)
    named |= zip(("port", "privateKey", "certKey"), values, strict=False)
    if "extraCertChain" in named:
        return None
    return str(named.get("certKey") or named.get("privateKey", "server.pem"))
