import datetime as dt

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from tls.certificates import (
    SKEW,
    CertificateError,
    Pair,
    Use,
    Validity,
    authority,
    bundle,
    hosts,
    leaf,
    read_certificate,
    read_pair,
    signed_by,
)

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
YEAR = dt.timedelta(days=365)
WEEK = dt.timedelta(days=7)
HOST = "numalign.numalign-system.svc"


@pytest.fixture(scope="module")
def signer() -> Pair:
    return authority("ca", Validity.from_now(NOW, YEAR))


@pytest.fixture(scope="module")
def served(signer: Pair) -> Pair:
    return leaf(signer, Validity.from_now(NOW, WEEK), "webhook", hosts=[HOST, "127.0.0.1"])


def verify(cert: x509.Certificate, trusted: list[x509.Certificate], at: dt.datetime, host: str = HOST) -> None:
    verifier = PolicyBuilder().store(Store(trusted)).time(at).build_server_verifier(x509.DNSName(host))
    verifier.verify(cert, [])


def test_a_leaf_verifies_for_its_hosts_while_it_lives(signer, served):
    verify(served.cert, [signer.cert], NOW + dt.timedelta(days=6))
    for at, host in ((NOW + WEEK + dt.timedelta(seconds=1), HOST), (NOW, "other.svc"), (NOW - 2 * SKEW, HOST)):
        with pytest.raises(VerificationError):
            verify(served.cert, [signer.cert], at, host)


def test_a_leaf_verifies_only_with_the_authority_that_signed_it(signer, served):
    other = authority("ca", Validity.from_now(NOW, YEAR))
    with pytest.raises(VerificationError):
        verify(served.cert, [other.cert], NOW)
    verify(served.cert, [other.cert, signer.cert], NOW)
    assert signed_by(served.cert, signer.cert)
    assert not signed_by(served.cert, other.cert)


def test_a_client_leaf_is_no_server(signer):
    client = leaf(signer, Validity.from_now(NOW, WEEK), "user", hosts=[HOST], use=Use.CLIENT, organizations=["group"])
    with pytest.raises(VerificationError):
        verify(client.cert, [signer.cert], NOW)
    assert client.cert.subject.rfc4514_string() == "CN=user,O=group"


def test_a_leaf_does_not_outlive_its_authority(signer):
    late = leaf(signer, Validity.from_now(NOW + YEAR - dt.timedelta(days=1), WEEK), "webhook", hosts=[HOST])
    assert late.cert.not_valid_after_utc == signer.cert.not_valid_after_utc


@pytest.mark.parametrize(
    ("life", "before"), [(WEEK, SKEW), (dt.timedelta(seconds=30), dt.timedelta(seconds=3))], ids=["week", "half a minute"]
)
def test_validity_starts_a_little_early_but_no_more_than_a_tenth_of_the_life(life, before):
    assert Validity.from_now(NOW, life) == Validity(NOW - before, NOW + life)


def test_hosts_are_read_back(signer, served):
    assert hosts(served.cert) == (HOST, "127.0.0.1")
    assert hosts(signer.cert) == ()


def test_pem_round_trip(served):
    again = read_pair(served.cert_pem, served.key_pem)
    assert again.cert == served.cert
    assert again.key_pem == served.key_pem


def test_a_bundle_holds_all_certificates_in_order(signer, served):
    assert x509.load_pem_x509_certificates(bundle([served.cert, signer.cert])) == [served.cert, signer.cert]


@pytest.mark.parametrize(
    ("cert", "key", "problem"),
    [
        (b"", None, "no PEM certificate"),
        (None, b"nonsense", "no unencrypted PEM key"),
        (None, "other", "not that of the certificate"),
    ],
    ids=["no certificate", "no key", "another's key"],
)
def test_bad_pairs_say_what_is_wrong(signer, served, cert, key, problem):
    key_pem = signer.key_pem if key == "other" else key
    with pytest.raises(CertificateError, match=problem):
        read_pair(served.cert_pem if cert is None else cert, served.key_pem if key_pem is None else key_pem)


def test_a_key_is_no_certificate(served):
    with pytest.raises(CertificateError):
        read_certificate(served.key_pem)
