import datetime as dt

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from tls import rotation
from tls.certificates import Pair, signed_by
from tls.rotation import Authority, Lives

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
LIVES = Lives(authority=360 * DAY, leaf=6 * DAY, settle=dt.timedelta(minutes=1))
HOSTS = ("numalign.numalign-system.svc",)


@pytest.fixture(scope="module")
def fresh() -> Authority:
    return rotation.new_authority(NOW, LIVES)


@pytest.fixture(scope="module")
def announced(fresh: Authority) -> Authority:
    return rotation.announce(fresh, NOW + 100 * DAY, LIVES)


@pytest.fixture(scope="module")
def switched(announced: Authority) -> Authority:
    return rotation.step(announced, NOW + 101 * DAY, LIVES, NOW + 100 * DAY)


def serials(certs: tuple[x509.Certificate, ...]) -> list[int]:
    return [cert.serial_number for cert in certs]


def test_nothing_is_due_in_the_first_two_thirds(fresh):
    assert rotation.step(fresh, NOW + 239 * DAY, LIVES, NOW) is fresh
    assert rotation.step(fresh, NOW + 239 * DAY, LIVES, None) is fresh


def test_a_successor_is_announced_at_two_thirds_and_signs_nothing(fresh):
    after = rotation.step(fresh, NOW + 240 * DAY, LIVES, NOW)
    assert after.current == fresh.current
    assert after.next is not None
    assert serials(after.trusted) == serials((fresh.current.cert, after.next.cert))
    leaf = rotation.new_leaf(after, NOW + 240 * DAY, LIVES, HOSTS)
    assert signed_by(leaf.cert, fresh.current.cert)


def test_announcing_twice_makes_one_successor(announced):
    assert rotation.announce(announced, NOW + 102 * DAY, LIVES) is announced


@pytest.mark.parametrize(
    ("since", "switches"),
    [(None, False), (dt.timedelta(seconds=59), False), (dt.timedelta(seconds=60), True)],
    ids=["not trusted", "not long enough", "long enough"],
)
def test_the_successor_signs_only_once_it_is_trusted_for_a_while(announced, since, switches):
    now = NOW + 100 * DAY + dt.timedelta(hours=1)
    after = rotation.step(announced, now, LIVES, None if since is None else now - since)
    assert (after is not announced) == switches


def test_after_the_switch_the_old_authority_stays_trusted(announced, switched):
    assert switched.current == announced.next
    assert switched.next is None
    assert serials(switched.trusted) == serials((switched.current.cert, announced.current.cert))


def test_the_old_authority_is_dropped_when_no_leaf_of_it_can_be_alive(switched):
    assert rotation.step(switched, NOW + 107 * DAY - dt.timedelta(seconds=1), LIVES, NOW) is switched
    after = rotation.step(switched, NOW + 107 * DAY, LIVES, NOW)
    assert serials(after.trusted) == serials((switched.current.cert,))


def test_an_expired_authority_is_followed_at_once_by_its_successor(announced):
    after = rotation.step(announced, NOW + 361 * DAY, LIVES, None)
    assert after == Authority(announced.next)


def test_an_expired_authority_without_a_successor_is_replaced(fresh):
    after = rotation.step(fresh, NOW + 361 * DAY, LIVES, None)
    assert after.current != fresh.current
    assert after.previous is None


def test_a_leaf_is_due_at_two_thirds_for_other_hosts_and_after_a_switch(announced, switched):
    start = NOW + 100 * DAY
    leaf = rotation.new_leaf(announced, start, LIVES, HOSTS)
    assert not rotation.leaf_due(leaf, announced, start + 3 * DAY, HOSTS)
    assert rotation.leaf_due(leaf, announced, start + 4 * DAY, HOSTS)
    assert rotation.leaf_due(leaf, announced, start, (*HOSTS, "other"))
    assert rotation.leaf_due(leaf, switched, start, HOSTS)
    assert rotation.leaf_due(None, announced, start, HOSTS)


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(st.tuples(st.floats(0.01, 40), st.booleans()), min_size=1, max_size=25))
def test_a_leaf_that_a_replica_still_serves_is_always_trusted(steps):
    """Whatever the pace of the clock and of clients' trust: who looks after a leaf each time never serves an untrusted one."""
    now, state = NOW, rotation.new_authority(NOW, LIVES)
    leaf: Pair = rotation.new_leaf(state, now, LIVES, HOSTS)
    for days, trusting in steps:
        now += days * DAY
        was_alive = not rotation.expired(state.current.cert, now)
        state = rotation.step(state, now, LIVES, now - LIVES.settle if trusting else None)
        if was_alive and not rotation.expired(leaf.cert, now):
            assert any(signed_by(leaf.cert, cert) for cert in state.trusted)
        if rotation.leaf_due(leaf, state, now, HOSTS):
            leaf = rotation.new_leaf(state, now, LIVES, HOSTS)
