package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
)

// creation is what becomes of a claim that is created on the API server.
type creation struct {
	// Invalid is what the API server says against the claim; empty: nothing.
	Invalid string `json:"invalid,omitempty"`
	// Dropped: part of the spec is not stored, as a feature gate that it needs is off.
	Dropped bool `json:"dropped,omitempty"`
}

var strict = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder(resource.SchemeGroupVersion)

// create takes a claim through what the API server does with it after admission: decoding, defaults and conversion, the fields
// of disabled gates are dropped, hand-written and declarative validation.
func create(text json.RawMessage) creation {
	decoded, _, err := strict.Decode(text, nil, nil)
	if err != nil {
		return creation{Invalid: err.Error()}
	}
	claim, ok := decoded.(*resource.ResourceClaim)
	if !ok {
		return creation{Invalid: fmt.Sprintf("a %T, not a claim", decoded)}
	}
	sent := claim.Spec.DeepCopy()
	rest.FillObjectMetaSystemFields(claim)
	if err := rest.BeforeCreate(strategy(), callTo(claim.Namespace), claim); err != nil {
		return creation{Invalid: err.Error()}
	}
	return creation{Dropped: !equality.Semantic.DeepEqual(sent, &claim.Spec)}
}

// callTo returns the context of a call for claims of v1.
func callTo(namespace string) context.Context {
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: resource.GroupName, APIVersion: "v1",
		Resource: "resourceclaims", Namespace: namespace}
	return request.WithRequestInfo(request.WithNamespace(context.Background(), namespace), info)
}
