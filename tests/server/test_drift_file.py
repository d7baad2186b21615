import math
import os
import time

from webhook.server.drift import STALE_SECONDS, Drift


def test_the_file_tells_whether_there_are_differences(tmp_path):
    file = tmp_path / "drift"
    drift = Drift(file)
    assert math.isnan(drift())
    file.write_text("")
    assert drift() == 0.0
    file.write_text("ValidatingWebhookConfiguration: not registered\n")
    assert drift() == 1.0


def test_a_stale_file_says_nothing(tmp_path):
    file = tmp_path / "drift"
    file.write_text("")
    old = time.time() - STALE_SECONDS - 1
    os.utime(file, (old, old))
    assert math.isnan(Drift(file)())
