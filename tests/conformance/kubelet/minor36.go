//go:build minor36

package main

import (
	v1 "k8s.io/api/core/v1"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

func admit(handler lifecycle.PodAdmitHandler, pod *v1.Pod) lifecycle.PodAdmitResult {
	return handler.Admit(&lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
}

// podPool is what a pod with pod-level resources holds as a whole: CPUs and memory.
func podPool(m *managers, podUID string) (cpuset.CPUSet, []memorystate.Block) {
	cpus, _ := m.cpu.State().GetPodCPUSet(podUID)
	return cpus, m.memory.State().GetPodMemoryBlocks(podUID)
}
