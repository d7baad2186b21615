import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import quantities as q


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("1", 10**9),
        (1, 10**9),
        (1.5, 15 * 10**8),
        ("500m", 5 * 10**8),
        ("0.1", 10**8),
        (".5", 5 * 10**8),
        ("5.", 5 * 10**9),
        ("1Ki", 1024 * 10**9),
        ("1.5Gi", 3 * 2**29 * 10**9),
        ("2k", 2000 * 10**9),
        ("1M", 10**15),
        ("1e3", 1000 * 10**9),
        ("1E3", 1000 * 10**9),
        ("1E", 10**27),
        ("12e-1", 12 * 10**8),
        ("100u", 10**5),
        ("7n", 7),
        ("+3", 3 * 10**9),
        ("-2", -2 * 10**9),
        ("0.1n", 1),  # finer than the API server stores: rounded up
        ("8Ei", (2**63 - 1) * 10**9),  # larger than it stores: capped
    ],
)
def test_reads_what_the_api_server_reads(text, nano):
    assert q.parse(text) == nano


@pytest.mark.parametrize(
    "bad",
    ["", "0.5.1", "1 Gi", "Gi", "1gi", "1KiB", "--1", "1e", "0x10", "NaN", "inf", None, True, [], {}, "9" * 65, float("nan")],
)
def test_refuses_what_the_api_server_refuses(bad):
    with pytest.raises(q.InvalidQuantityError, match="expected a quantity"):
        q.parse(bad)


@pytest.mark.parametrize(
    ("text", "value", "milli"), [("1", 1, 1000), ("1m", 1, 1), ("1500u", 1, 2), ("2001m", 3, 2001), ("-1m", 0, -1)]
)
def test_whole_numbers_round_up(text, value, milli):
    assert q.value(q.parse(text)) == value
    assert q.milli(q.parse(text)) == milli


@pytest.mark.parametrize(("text", "whole"), [("2", True), ("2000m", True), ("1999m", False), ("1Gi", True), ("0", True)])
def test_tells_whole_numbers(text, whole):
    assert q.is_whole(q.parse(text)) is whole


@pytest.mark.parametrize(("milli", "text"), [(0, "0"), (8000, "8"), (7500, "7500m"), (1, "1m")])
def test_writes_cpu(milli, text):
    assert q.format_cpu(milli) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0"), (1000, "1000"), (64 * q.GI, "64Gi"), (1536 * q.MI, "1536Mi"), (2**50, "1Pi")]
)
def test_writes_bytes(size, text):
    assert q.format_bytes(size) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12"), (1024, "1Ki"), (12388 * q.MI, "12.1Gi"), (int(249.953125 * q.GI), "249.95Gi"), (3 * 2**40, "3Ti")],
)
def test_writes_bytes_for_people(size, text):
    assert q.human_bytes(size) == text


@given(st.integers(0, 2**62))
def test_what_it_writes_it_reads(size):
    assert q.value(q.parse(q.format_bytes(size))) == size


@given(st.integers(0, 10**12))
def test_what_it_writes_of_cpu_it_reads(milli):
    assert q.milli(q.parse(q.format_cpu(milli))) == milli
