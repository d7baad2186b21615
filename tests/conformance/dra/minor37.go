//go:build minor37

package main

import (
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// features are those whose gates are on by default in 1.37.
func features() structured.Features {
	return structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true,
		FractionalCapacityRange: true, PrioritizedList: true,
	}
}

func celFeatures() cel.Features { return cel.Features{EnableConsumableCapacity: true} }
