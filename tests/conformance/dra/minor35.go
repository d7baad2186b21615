//go:build minor35

package main

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
)

// features are those whose gates are on by default in 1.35.
func features() structured.Features {
	return structured.Features{AdminAccess: true, PrioritizedList: true}
}

func celFeatures() cel.Features { return cel.Features{} }

// strategy is how the API server creates claims; namespaces and permissions matter to claims with adminAccess and to updates only.
func strategy() rest.RESTCreateStrategy { return resourceclaim.NewStrategy(nil) }
