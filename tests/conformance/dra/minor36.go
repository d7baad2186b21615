//go:build minor36

package main

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
)

// features are those whose gates are on by default in 1.36.
func features() structured.Features {
	return structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true,
		PrioritizedList: true,
	}
}

func celFeatures() cel.Features { return cel.Features{EnableConsumableCapacity: true} }

// strategy is how the API server creates claims; namespaces and permissions matter to claims with adminAccess and to updates only.
func strategy() rest.RESTCreateStrategy { return resourceclaim.NewStrategy(nil, nil) }
