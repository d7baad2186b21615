import copy

import pytest

from webhook.cluster.drift import drift

ENTRY = {
    "name": "strict.pods.example.com",
    "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/p", "port": 443}},
    "failurePolicy": "Fail",
    "matchConditions": [{"name": "a", "expression": "true"}],
}
EXPECTED = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "numalign"}, "webhooks": [ENTRY]}


def registered(change=lambda _entry: None):
    """What an API server would return, after `change`."""
    made = copy.deepcopy(EXPECTED)
    made["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    made["webhooks"][0]["clientConfig"]["caBundle"] = "eA=="
    made["webhooks"][0] |= {"objectSelector": {}, "matchPolicy": "Equivalent"}
    change(made["webhooks"])
    return made


def test_what_the_api_server_adds_is_no_drift():
    assert drift([EXPECTED], [registered()]) == ()


@pytest.mark.parametrize(
    ("change", "path", "word"),
    [
        (lambda w: w[0].update(failurePolicy="Ignore"), "strict.pods.example.com.failurePolicy", "'Ignore' is registered"),
        (lambda w: w[0].pop("failurePolicy"), "strict.pods.example.com.failurePolicy", "None is registered"),
        (lambda w: w[0]["matchConditions"].clear(), "strict.pods.example.com.matchConditions", "[] is registered"),
        (
            lambda w: w[0]["matchConditions"][0].update(expression="false"),
            "matchConditions[0].expression",
            "'false' is registered",
        ),
        (lambda w: w[0]["clientConfig"]["service"].update(path="/old"), "clientConfig.service.path", "'/old' is registered"),
        (lambda w: w.clear(), "strict.pods.example.com", "not registered"),
        (lambda w: w.append({**ENTRY, "name": "extra.example.com"}), "extra.example.com", "not one of ours"),
    ],
)
def test_a_difference_is_named_by_path(change, path, word):
    (line,) = drift([EXPECTED], [registered(change)])
    assert line.startswith("ValidatingWebhookConfiguration.")
    assert path in line.split(": ")[0]
    assert word in line


def test_a_missing_configuration_is_drift():
    assert drift([EXPECTED], []) == ("ValidatingWebhookConfiguration: not registered",)
