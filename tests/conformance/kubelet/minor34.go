//go:build minor34

package main

import (
	"context"
	_ "unsafe" // for go:linkname

	cadvisor "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
	"k8s.io/utils/cpuset"
)

// What differs between the minors: where the machine's description lives, and the managers' parameters.

type (
	machineInfo   = cadvisor.MachineInfo
	numaNode      = cadvisor.Node
	numaCore      = cadvisor.Core
	uncoreCache   = cadvisor.Cache
	hugePagesInfo = cadvisor.HugePagesInfo
)

// newDeviceManager is the constructor that takes the path of the plugin socket; the exported one fixes it to the
// directory of a real kubelet, which two processes cannot share.
//
//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(socketPath string, topology []numaNode, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

func makeTopologyManager(info *machineInfo, cfg *config.KubeletConfiguration) (topologymanager.Manager, error) {
	return topologymanager.NewManager(info.Topology, cfg.TopologyManagerPolicy, cfg.TopologyManagerScope,
		cfg.TopologyManagerPolicyOptions)
}

func makeDeviceManager(socket string, info *machineInfo, tm topologymanager.Manager) (*devicemanager.ManagerImpl, error) {
	return newDeviceManager(socket, info.Topology, tm)
}

func makeCPUManager(info *machineInfo, n *node, tm topologymanager.Manager) (cpumanager.Manager, error) {
	return cpumanager.NewManager(n.cfg.CPUManagerPolicy, n.cfg.CPUManagerPolicyOptions, never, info,
		n.reservedCPUs, n.reservation, n.dir, tm)
}

func makeMemoryManager(info *machineInfo, n *node, tm topologymanager.Manager) (memorymanager.Manager, error) {
	return memorymanager.NewManager(context.Background(), n.cfg.MemoryManagerPolicy, info, n.reservation, n.cfg.ReservedMemory,
		n.dir, tm)
}

func addHintProviders(tm topologymanager.Manager, providers ...topologymanager.HintProvider) {
	for _, provider := range providers {
		tm.AddHintProvider(provider)
	}
}

func startManagers(m *managers, active func() []*v1.Pod) error {
	ctx := context.Background()
	if err := m.cpu.Start(active, ready{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return err
	}
	if err := m.memory.Start(ctx, active, ready{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return err
	}
	return m.devices.Start(active, ready{}, containermap.NewContainerMap(), sets.New[string]())
}

func stopDeviceManager(dm *devicemanager.ManagerImpl) { dm.Stop() }

func connectPlugin(dm *devicemanager.ManagerImpl, resource string, plugin fakePlugin, devices []*pluginapi.Device) error {
	if err := dm.PluginConnected(resource, plugin); err != nil {
		return err
	}
	dm.PluginListAndWatchReceiver(resource, &pluginapi.ListAndWatchResponse{Devices: devices})
	return nil
}

func discover(info *machineInfo) (*topology.CPUTopology, error) {
	return topology.Discover(info)
}

// nodeSetter fills a Node's capacity and allocatable as the kubelet reports them.
func nodeSetter(info *machineInfo, n *node, dm *devicemanager.ManagerImpl) nodestatus.Setter {
	return nodestatus.MachineInfo("node", unlimitedPods, 0,
		func() (*machineInfo, error) { return info, nil },
		func(bool) v1.ResourceList { return n.storage },
		dm.GetCapacity,
		func() v1.ResourceList { return n.reservation },
		func(_, _, _ string) {},
		true)
}

func predicateHandler(status *v1.Node, dm *devicemanager.ManagerImpl) lifecycle.PodAdmitHandler {
	critical := preemption.NewCriticalPodAdmissionHandler(func() []*v1.Pod { return nil }, nil, nil)
	return lifecycle.NewPredicateAdmitHandler(
		func() (*v1.Node, error) { return status, nil }, critical, dm.UpdatePluginResources)
}

func affinity(tm topologymanager.Manager, podUID, container string) topologymanager.TopologyHint {
	return tm.GetAffinity(podUID, container)
}

func memoryBlocks(mm memorymanager.Manager, podUID, container string) []memorystate.Block {
	return mm.GetMemory(context.Background(), podUID, container)
}

func allocatableMemory(mm memorymanager.Manager) []memorystate.Block {
	return mm.GetAllocatableMemory(context.Background())
}

// allocateLate gives a container the devices that are only allocated when it is created.
func allocateLate(dm *devicemanager.ManagerImpl, pod *v1.Pod, container *v1.Container) {
	dm.GetDeviceRunContainerOptions(pod, container)
}

// roundReservedCPU does nothing: finer reservations than a thousandth of a CPU are kept.
func roundReservedCPU(*resource.Quantity) {}

func admit(handler lifecycle.PodAdmitHandler, pod *v1.Pod) lifecycle.PodAdmitResult {
	return handler.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

// podPool is empty: this minor pins nothing for a pod as a whole.
func podPool(*managers, string) (cpuset.CPUSet, []memorystate.Block) { return cpuset.New(), nil }
