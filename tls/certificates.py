"""X.509 certificates with their keys: P-256, signed by an authority of ours or by themselves. The clock is passed in."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SKEW = dt.timedelta(minutes=5)
"""Valid from a little before now, for peers whose clock is behind."""


class CertificateError(ValueError):
    """What is wrong with a PEM document, in one sentence."""


class Use(StrEnum):
    """What a leaf is for (RFC 5280, 4.2.1.12)."""

    SERVER = "server"
    CLIENT = "client"


_EXTENDED = {Use.SERVER: ExtendedKeyUsageOID.SERVER_AUTH, Use.CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def cert_pem(self) -> bytes:
        """The certificate as PEM."""
        return self.cert.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as unencrypted PKCS #8 PEM."""
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when, both in UTC."""

    start: dt.datetime
    end: dt.datetime

    @classmethod
    def from_now(cls, now: dt.datetime, life: dt.timedelta) -> Validity:
        """Return the validity of what is made now and lives for `life`."""
        return cls(now - min(SKEW, life / 10), now + life)


def read_pair(cert_pem: bytes, key_pem: bytes) -> Pair:
    """Return a pair from PEM.

    Raises:
        CertificateError: a document does not parse, the key is not an elliptic curve's, or is another certificate's.
    """
    cert = read_certificate(cert_pem)
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"the private key is no unencrypted PEM key: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the private key is not an elliptic curve's")
    if key.public_key() != cert.public_key():
        raise CertificateError("the private key is not that of the certificate")
    return Pair(cert, key)


def read_certificate(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM document.

    Raises:
        CertificateError: it holds none that parses.
    """
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"no PEM certificate: {error}") from error


def bundle(certs: Sequence[x509.Certificate]) -> bytes:
    """Return certificates as one PEM document, in order."""
    return b"".join(cert.public_bytes(serialization.Encoding.PEM) for cert in certs)


def authority(name: str, validity: Validity) -> Pair:
    """Return a new authority that signs leaves only, under the common name `name`."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(name), _name(name), key.public_key(), validity)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return Pair(builder.add_extension(_usage(signs=True), critical=True).sign(key, hashes.SHA256()), key)


def leaf(
    signer: Pair,
    validity: Validity,
    name: str,
    *,
    hosts: Sequence[str] = (),
    use: Use = Use.SERVER,
    organizations: Sequence[str] = (),
) -> Pair:
    """Return a new leaf that `signer` signed; `hosts` are DNS names or addresses. It does not outlive its signer."""
    key = ec.generate_private_key(ec.SECP256R1())
    ends = Validity(validity.start, min(validity.end, signer.cert.not_valid_after_utc))
    builder = (
        _builder(_name(name, organizations), signer.cert.subject, key.public_key(), ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_EXTENDED[use]]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
    return Pair(builder.sign(signer.key, hashes.SHA256()), key)


def hosts(cert: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names and addresses that a certificate is for."""
    try:
        names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in names)


def signed_by(cert: x509.Certificate, signer: x509.Certificate) -> bool:
    """Tell whether `signer`'s key signed `cert`."""
    try:
        cert.verify_directly_issued_by(signer)
    except Exception:  # noqa: BLE001  InvalidSignature, ValueError or TypeError: whatever is wrong, it did not
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, validity: Validity
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), validity.start, validity.end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
