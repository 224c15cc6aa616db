"""Certificates for tests of TLS."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Issued:
    """A certificate with its key, issued by another one, or by itself."""

    def __init__(self, name, issuer=None, *, is_authority):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signing, now = issuer or self, datetime.now(UTC)
        by = signing.key.public_key()
        self.certificate = (
            x509.CertificateBuilder(signing.name, self.name, self.key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.KeyUsage(True, *[False] * 4, is_authority, *[False] * 3), critical=True)
            .sign(signing.key, hashes.SHA256())
        )
        self.pem = self.certificate.public_bytes(Encoding.PEM)
        self.key_pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
