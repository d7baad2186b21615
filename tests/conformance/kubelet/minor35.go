//go:build minor35

package main

import (
	v1 "k8s.io/api/core/v1"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

func admit(handler lifecycle.PodAdmitHandler, pod *v1.Pod) lifecycle.PodAdmitResult {
	return handler.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

// podPool is empty: this minor pins nothing for a pod as a whole.
func podPool(*managers, string) (cpuset.CPUSet, []memorystate.Block) { return cpuset.New(), nil }
