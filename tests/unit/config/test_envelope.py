import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.config import envelope
from webhook.config.envelope import Envelope, EnvelopeError, load


def review(**request):
    base = {"uid": "u-1", "operation": "CREATE", "object": {"kind": "Pod"}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**base, **request}}


def test_a_real_request_arrives():
    body = review(
        kind={"group": "", "version": "v1", "kind": "Pod"},
        resource={"group": "", "version": "v1", "resource": "pods"},
        subResource="resize",
        requestKind={"kind": "Pod"},
        namespace="ml",
        name="train",
        userInfo={"username": "kim", "groups": ["a"], "extra": {}},
        dryRun=True,
        operation="UPDATE",
        oldObject={"kind": "Pod", "old": 1},
        options={"kind": "UpdateOptions"},
    )
    assert load(body) == Envelope(
        uid="u-1",
        operation="UPDATE",
        resource="pods",
        sub_resource="resize",
        kind="Pod",
        namespace="ml",
        name="train",
        user="kim",
        dry_run=True,
        object={"kind": "Pod"},
        old_object={"kind": "Pod", "old": 1},
    )


def test_absent_and_null_fields_are_empty():
    nulls = dict.fromkeys(["kind", "resource", "subResource", "namespace", "name", "userInfo", "dryRun", "object", "oldObject"])
    assert load(review(**nulls)) == Envelope(uid="u-1", operation="CREATE")


@pytest.mark.parametrize("thing", [None, 3, "text", [1], {}, {"kind": 5}])
def test_the_object_is_not_our_business_here(thing):
    assert load(review(object=thing)).object == thing


def test_the_object_is_passed_on_not_copied():
    thing = {"kind": "Pod"}
    assert load(review(object=thing)).object is thing


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (None, ["expected an AdmissionReview"]),
        ([], ["expected an AdmissionReview"]),
        ("x", ["expected an AdmissionReview"]),
        ({}, ["apiVersion: is required", "kind: is required", "request: is required"]),
        ({**review(), "apiVersion": "admission.k8s.io/v1beta1"}, ["apiVersion: expected one of admission.k8s.io/v1"]),
        ({**review(), "kind": "Pod"}, ["kind: expected one of AdmissionReview"]),
        ({**review(), "request": None}, ["request: must not be null"]),
        ({**review(), "request": []}, ["request: expected an object"]),
        (review(uid=""), ["request.uid: expected the uid"]),
        (review(uid=7), ["request.uid: expected the uid"]),
        (review(operation="PATCH"), ["request.operation: expected one of CREATE"]),
        (review(namespace=3), ["request.namespace: expected a text"]),
        (review(userInfo="kim"), ["request.userInfo: expected an object with the text 'username'"]),
        (review(resource={"resource": 1}), ["request.resource: expected an object"]),
        (review(dryRun="true"), ["request.dryRun: expected true or false"]),
        (review(uid=None, operation=5), ["request.uid: must not be null", "request.operation"]),
    ],
)
def test_what_is_no_review_is_said_field_by_field(body, messages):
    with pytest.raises(EnvelopeError) as caught:
        load(body)
    assert all(message in str(caught.value) for message in messages)


values = st.sampled_from(
    [None, "", "x", "CREATE", 7, True, [], {}, {"kind": "Pod"}, {"resource": "pods"}, {"username": "kim"}, {"kind": 7}]
)
keys = st.sampled_from(
    ["uid", "operation", "resource", "subResource", "kind", "namespace", "name", "userInfo", "dryRun", "object", "oldObject"]
)
USUAL = {"kind": {"kind": "Pod"}, "resource": {"resource": "pods"}, "userInfo": {"username": "kim"}, "namespace": "ml"}


@given(changed=st.dictionaries(keys, values, max_size=2), dropped=st.sets(keys, max_size=1))
def test_the_short_way_agrees_with_the_schema(changed, dropped):
    body = review(**{**USUAL, **changed})
    for key in dropped & set(body["request"]):
        del body["request"][key]
    short = envelope._usual(body)
    assert short is None or short == envelope._checked(body)


def test_the_usual_request_takes_the_short_way():
    assert envelope._usual(review(**USUAL)) is not None
