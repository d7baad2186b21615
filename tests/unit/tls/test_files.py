import datetime as dt
import ssl
import stat

from tls import selfsigned
from tls.certificates import Validity, authority
from tls.files import PairFiles

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


def pair():
    return authority("ca", Validity.from_now(NOW, dt.timedelta(days=1)))


def test_what_is_written_is_read_back_and_the_key_is_private(tmp_path):
    files, made = PairFiles(tmp_path / "new"), pair()
    files.write(made)
    assert files.read().cert == made.cert
    assert stat.S_IMODE(files.key.stat().st_mode) == 0o600
    assert sorted(path.name for path in files.directory.iterdir()) == ["tls.crt", "tls.key"]


def test_nothing_there_and_halves_of_two_pairs_are_no_pair(tmp_path):
    files = PairFiles(tmp_path)
    assert files.read() is None
    files.write(pair())
    files.key.write_bytes(pair().key_pem)
    assert files.read() is None


def test_a_demo_certificate_serves(tmp_path):
    files = selfsigned.create(tmp_path, ["localhost"])
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files.cert, files.key)
    client = ssl.create_default_context(cafile=files.ca)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(3):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].getpeercert()["subjectAltName"] == (("DNS", "localhost"),)
