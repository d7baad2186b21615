import base64
import datetime as dt

import pytest

from tls import rotation
from tls.certificates import CertificateError
from tls.rotation import Lives
from webhook.cluster.authority import SWITCHED, decode, encode

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
LIVES = Lives()


@pytest.fixture(scope="module")
def states():
    fresh = rotation.new_authority(NOW, LIVES)
    announced = rotation.announce(fresh, NOW, LIVES)
    switched = rotation.step(announced, NOW + dt.timedelta(hours=1), LIVES, NOW)
    return {"fresh": fresh, "announced": announced, "switched": switched}


def stored(authority):
    return encode(authority, "numalign-system", "numalign-authority")


@pytest.mark.parametrize("name", ["fresh", "announced", "switched"])
def test_every_state_of_a_rotation_survives_the_secret(states, name):
    state = states[name]
    again = decode(stored(state))
    assert again.trusted == state.trusted
    assert again.switched == state.switched
    assert again.current.key_pem == state.current.key_pem
    assert (again.next is None) == (state.next is None)


def test_the_bundle_is_there_for_people_to_read(states):
    data = stored(states["announced"])["data"]
    assert base64.b64decode(data["ca.crt"]).count(b"BEGIN CERTIFICATE") == 2


def test_a_secret_of_a_tls_type_needs_no_other_tool(states):
    secret = stored(states["fresh"])
    assert secret["type"] == "kubernetes.io/tls"
    assert {"tls.crt", "tls.key"} <= secret["data"].keys()


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda s: s["data"].pop("tls.key"), KeyError),
        (lambda s: s["data"].update({"tls.crt": "not base64!"}), ValueError),
        (lambda s: s["data"].update({"tls.crt": base64.b64encode(b"x").decode()}), CertificateError),
        (lambda s: s["metadata"]["annotations"].update({SWITCHED: "yesterday"}), ValueError),
        (lambda s: s["metadata"]["annotations"].update({SWITCHED: "2026-03-01T00:00:00"}), ValueError),
    ],
    ids=["key missing", "no base64", "no certificate", "no time", "no zone"],
)
def test_damage_is_an_error(states, damage, error):
    secret = stored(states["switched"])
    damage(secret)
    with pytest.raises(error):
        decode(secret)
