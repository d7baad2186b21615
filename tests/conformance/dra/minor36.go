//go:build minor36

package main

import (
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// features are those whose gates are on by default in 1.36.
func features() structured.Features {
	return structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true,
		PrioritizedList: true,
	}
}

func celFeatures() cel.Features { return cel.Features{EnableConsumableCapacity: true} }
