package main

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/cpuset"
)

// nodeSet is a set of NUMA nodes, as bits by position in the machine's ascending list of nodes.
type nodeSet uint64

func (s nodeSet) size() int { return bits.OnesCount64(uint64(s)) }

// holding is what one container has of its own.
type holding struct {
	cpus   cpuset.CPUSet
	memory map[string][]memoryBlock
}

// alignment answers whether an admitted pod is aligned, from what the managers gave it.
type alignment struct {
	k    *managers
	m    *machine
	pod  *v1.Pod
	v    *verdict
	pool holding // of a pod with pod-level resources: what its sharing containers use
}

// aligned tells whether each device container has CPUs of its own and everything it holds close together.
func (k *managers) aligned(m *machine, pod *v1.Pod, v *verdict) bool {
	a := &alignment{k: k, m: m, pod: pod, v: v, pool: k.sharedPool(pod)}
	found := false
	for _, c := range containersOf(pod) {
		if a.ordinaryInit(c) || !a.wantsBoundDevices(c) {
			continue
		}
		found = true
		if len(m.nodes) > 1 && !a.close(c) {
			return false
		}
	}
	return found
}

// sharedPool is the pod's own CPUs that no container has alone, and the pod's memory.
func (k *managers) sharedPool(pod *v1.Pod) holding {
	cpus, memory := podPool(k, podUID)
	for _, c := range containersOf(pod) {
		cpus = cpus.Difference(k.cpu.GetExclusiveCPUs(podUID, c.Name))
	}
	return holding{cpus, byType(memory)}
}

func (a *alignment) ordinaryInit(c *v1.Container) bool {
	for i := range a.pod.Spec.InitContainers {
		if init := &a.pod.Spec.InitContainers[i]; init.Name == c.Name {
			return !podutil.IsRestartableInitContainer(init)
		}
	}
	return false
}

func (a *alignment) wantsBoundDevices(c *v1.Container) bool {
	for name, amount := range c.Resources.Limits {
		if amount.Value() > 0 && a.bound(string(name)) {
			return true
		}
	}
	return false
}

// bound tells whether some device of the resource sits on a NUMA node that the machine has.
func (a *alignment) bound(resource string) bool {
	for _, d := range a.k.known[resource] {
		if a.nodes(d.nodes) != 0 {
			return true
		}
	}
	return false
}

func (a *alignment) nodes(ids []int) nodeSet {
	set := nodeSet(0)
	for position, i := range a.m.nodes {
		for _, id := range ids {
			if a.m.spec.NUMANodes[i].ID == id {
				set |= 1 << position
			}
		}
	}
	return set
}

func (a *alignment) cpuNodes(cpus cpuset.CPUSet) nodeSet {
	set := nodeSet(0)
	for position, cores := range a.m.cores {
		for _, c := range cores {
			if cpus.Intersection(cpuset.New(c.threads...)).Size() > 0 {
				set |= 1 << position
			}
		}
	}
	return set
}

func (a *alignment) holds(c *v1.Container) holding {
	own := holding{a.k.cpu.GetExclusiveCPUs(podUID, c.Name), a.v.Memory[c.Name]}
	if own.cpus.Size() == 0 {
		return a.pool
	}
	return own
}

// close tells whether a container's CPUs, memory and devices are on one NUMA node, or on no more than they need.
func (a *alignment) close(c *v1.Container) bool {
	held := a.holds(c)
	if held.cpus.Size() == 0 {
		return false
	}
	used := a.cpuNodes(held.cpus)
	for _, blocks := range held.memory {
		for _, b := range blocks {
			used |= a.nodes(b.Nodes)
		}
	}
	var several []nodeSet
	for name, devices := range a.k.devices.GetDevices(podUID, c.Name) {
		for id := range devices {
			on := a.deviceNodes(name, id)
			switch {
			case on == 0 && a.bound(name):
				return false
			case on.size() == 1:
				used |= on
			case on.size() > 1:
				several = append(several, on)
			}
		}
	}
	for _, on := range several {
		if on&used == 0 {
			return false
		}
	}
	hint := affinity(a.k.topology, podUID, c.Name)
	return used.size() == 1 || hint.Preferred && hint.NUMANodeAffinity != nil &&
		used&^a.nodes(hint.NUMANodeAffinity.GetBits()) == 0 && used.size() <= a.need(c, held)
}

func (a *alignment) deviceNodes(resource, id string) nodeSet {
	for _, d := range a.k.known[resource] {
		if d.id == id {
			return a.nodes(d.nodes)
		}
	}
	return 0
}

// need is the fewest NUMA nodes on which each of a container's resources alone would fit on the idle node.
func (a *alignment) need(c *v1.Container, held holding) int {
	free := a.k.cpu.GetAllocatableCPUs()
	widest := a.narrowest(func(set nodeSet) bool { return a.cpusWithin(free, set) >= held.cpus.Size() })
	for kind, blocks := range held.memory {
		wanted := uint64(0)
		for _, b := range blocks {
			wanted += b.Size
		}
		widest = max(widest, a.narrowest(func(set nodeSet) bool { return a.memoryWithin(kind, set) >= wanted }))
	}
	for name, amount := range c.Resources.Limits {
		if a.bound(string(name)) {
			widest = max(widest, a.narrowest(func(set nodeSet) bool { return a.devicesTouching(string(name), set) >= amount.Value() }))
		}
	}
	return widest
}

func (a *alignment) narrowest(fits func(nodeSet) bool) int {
	best := len(a.m.nodes)
	for set := nodeSet(1); set < 1<<len(a.m.nodes); set++ {
		if set.size() < best && fits(set) {
			best = set.size()
		}
	}
	return best
}

func (a *alignment) cpusWithin(cpus cpuset.CPUSet, set nodeSet) int {
	count := 0
	for position, cores := range a.m.cores {
		if set&(1<<position) == 0 {
			continue
		}
		for _, c := range cores {
			count += cpus.Intersection(cpuset.New(c.threads...)).Size()
		}
	}
	return count
}

func (a *alignment) memoryWithin(kind string, set nodeSet) uint64 {
	total := uint64(0)
	for _, block := range allocatableMemory(a.k.memory) {
		if string(block.Type) == kind && a.nodes(block.NUMAAffinity)&^set == 0 {
			total += block.Size
		}
	}
	return total
}

func (a *alignment) devicesTouching(resource string, set nodeSet) int64 {
	count := int64(0)
	for _, d := range a.k.known[resource] {
		if a.nodes(d.nodes)&set != 0 {
			count++
		}
	}
	return count
}
