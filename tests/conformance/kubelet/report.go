package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
)

// report copies what each container holds from the managers' state.
func (k *managers) report(v *verdict, pod *v1.Pod) {
	v.Masks, v.Preferred = map[string][]int{}, map[string]bool{}
	v.CPUs, v.Memory = map[string]string{}, map[string]map[string][]memoryBlock{}
	v.Devices = map[string]map[string]map[string]int{}
	for _, c := range containersOf(pod) {
		hint := affinity(k.topology, podUID, c.Name)
		v.Masks[c.Name], v.Preferred[c.Name] = nil, hint.Preferred
		if hint.NUMANodeAffinity != nil {
			v.Masks[c.Name] = hint.NUMANodeAffinity.GetBits()
		}
		if cpus := k.cpu.GetExclusiveCPUs(podUID, c.Name); cpus.Size() > 0 {
			v.CPUs[c.Name] = cpus.String()
		}
		if held := byType(memoryBlocks(k.memory, podUID, c.Name)); len(held) > 0 {
			v.Memory[c.Name] = held
		}
		allocateLate(k.devices, pod, c)
		if held := k.heldDevices(c); len(held) > 0 {
			v.Devices[c.Name] = held
		}
	}
}

func byType(blocks []memorystate.Block) map[string][]memoryBlock {
	held := map[string][]memoryBlock{}
	for _, b := range blocks {
		held[string(b.Type)] = append(held[string(b.Type)], memoryBlock{slices.Sorted(slices.Values(b.NUMAAffinity)), b.Size})
	}
	return held
}

// heldDevices counts a container's devices per resource and per NUMA nodes ("0", "0,1", "" without topology).
func (k *managers) heldDevices(c *v1.Container) map[string]map[string]int {
	held := map[string]map[string]int{}
	for name, devices := range k.devices.GetDevices(podUID, c.Name) {
		held[name] = map[string]int{}
		for _, d := range devices {
			var nodes []string
			for _, one := range d.GetTopology().GetNodes() {
				nodes = append(nodes, fmt.Sprint(one.GetID()))
			}
			held[name][strings.Join(nodes, ",")]++
		}
	}
	return held
}
