//go:build minor35

package main

import (
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// features are those whose gates are on by default in 1.35.
func features() structured.Features {
	return structured.Features{AdminAccess: true, PrioritizedList: true}
}

func celFeatures() cel.Features { return cel.Features{} }
