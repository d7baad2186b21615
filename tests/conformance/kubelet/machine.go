package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
)

// nodeClass is the part of a NodeClass that a kubelet and its machine depend on.
type nodeClass struct {
	Spec struct {
		Topology topologySpec    `json:"topology"`
		Kubelet  json.RawMessage `json:"kubelet"`
		Sharing  map[string]int  `json:"sharing"`
	} `json:"spec"`
}

type topologySpec struct {
	Sockets                *int               `json:"sockets"`
	ThreadsPerCore         *int               `json:"threadsPerCore"`
	NUMANodes              []numaSpec         `json:"numaNodes"`
	DevicesWithoutTopology map[string]int     `json:"devicesWithoutTopology"`
	DevicesOnSeveralNodes  []multiHomedDevice `json:"devicesOnSeveralNodes"`
	CPUNumbering           string             `json:"cpuNumbering"`
	CoresPerUncoreCache    *int               `json:"coresPerUncoreCache"`
}

type numaSpec struct {
	ID        int                          `json:"id"`
	CPUs      cpuSpec                      `json:"cpus"`
	Memory    resource.Quantity            `json:"memory"`
	Hugepages map[string]resource.Quantity `json:"hugepages"`
	Distances []uint64                     `json:"distances"`
	Devices   map[string]int               `json:"devices"`
}

type multiHomedDevice struct {
	Resource  string `json:"resource"`
	Count     int    `json:"count"`
	NUMANodes []int  `json:"numaNodes"`
}

// cpuSpec is a list of CPU ids or only their number.
type cpuSpec struct {
	ids   []int
	count int
}

func (c *cpuSpec) UnmarshalJSON(data []byte) error {
	if count, err := strconv.Atoi(string(data)); err == nil {
		c.count = count
		return nil
	}
	var list string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	set, err := cpuset.Parse(list)
	if err != nil {
		return err
	}
	c.ids, c.count = set.List(), set.Size()
	return nil
}

// core is a physical core: its place and its threads.
type core struct {
	socket, uncore int
	threads        []int
}

// machine is a NodeClass's hardware, numbered: cores per NUMA node, in the order of the class's NUMA nodes.
type machine struct {
	spec      topologySpec
	sockets   int
	threads   int
	nodes     []int // indices into spec.NUMANodes, by ascending NUMA id
	cores     [][]core
	pageSizes []int64 // bytes, ascending
}

func newMachine(spec topologySpec) (*machine, error) {
	m := &machine{spec: spec, sockets: valueOr(spec.Sockets, 1), threads: valueOr(spec.ThreadsPerCore, 1)}
	for i := range spec.NUMANodes {
		m.nodes = append(m.nodes, i)
	}
	sort.Slice(m.nodes, func(a, b int) bool { return spec.NUMANodes[m.nodes[a]].ID < spec.NUMANodes[m.nodes[b]].ID })
	if err := m.numberCores(); err != nil {
		return nil, err
	}
	m.placeSockets()
	m.placeCaches()
	return m, m.findPageSizes()
}

func valueOr(value *int, otherwise int) int {
	if value == nil {
		return otherwise
	}
	return *value
}

// numberCores gives each core of each node its thread ids.
func (m *machine) numberCores() error {
	total, listed := 0, false
	for _, i := range m.nodes {
		cpus := m.spec.NUMANodes[i].CPUs
		if cpus.count%m.threads != 0 {
			return fmt.Errorf("NUMA node %d: %d CPUs are no whole number of cores", m.spec.NUMANodes[i].ID, cpus.count)
		}
		total += cpus.count
		listed = listed || cpus.ids != nil
	}
	cores, next := total/m.threads, 0
	for _, i := range m.nodes {
		cpus := m.spec.NUMANodes[i].CPUs
		if listed && cpus.ids == nil && cpus.count > 0 {
			return fmt.Errorf("CPUs are listed on some NUMA nodes and counted on others")
		}
		var mine []core
		for k := range cpus.count / m.threads {
			c := core{}
			for t := range m.threads {
				c.threads = append(c.threads, m.thread(cpus, k, t, next, cores))
			}
			mine = append(mine, c)
			next++
		}
		m.cores = append(m.cores, mine)
	}
	return nil
}

// thread is the id of thread t of a node's k-th core, which is the machine's next-th of so many cores.
func (m *machine) thread(cpus cpuSpec, k, t, next, cores int) int {
	adjacent := m.spec.CPUNumbering == "adjacent"
	switch {
	case cpus.ids != nil && adjacent:
		return cpus.ids[k*m.threads+t]
	case cpus.ids != nil:
		return cpus.ids[t*(len(cpus.ids)/m.threads)+k]
	case adjacent:
		return next*m.threads + t
	default:
		return t*cores + next
	}
}

// placeSockets spreads nodes that have CPUs over the sockets, or each such node's cores where sockets are more.
func (m *machine) placeSockets() {
	with := 0
	for _, cores := range m.cores {
		if len(cores) > 0 {
			with++
		}
	}
	index := 0
	for _, cores := range m.cores {
		if len(cores) == 0 {
			continue
		}
		first, after := index*m.sockets/with, (index+1)*m.sockets/with
		for k := range cores {
			cores[k].socket = first
			if after > first {
				cores[k].socket += k * (after - first) / len(cores)
			}
		}
		index++
	}
}

// placeCaches numbers the uncore caches: one a NUMA node, or one for each run of so many cores.
func (m *machine) placeCaches() {
	cache := 0
	for _, cores := range m.cores {
		width := valueOr(m.spec.CoresPerUncoreCache, max(len(cores), 1))
		for k := range cores {
			cores[k].uncore = cache + k/width
		}
		cache += (len(cores) + width - 1) / width
	}
}

func (m *machine) findPageSizes() error {
	sizes := map[int64]bool{2 << 20: true, 1 << 30: true}
	for _, node := range m.spec.NUMANodes {
		for name := range node.Hugepages {
			size, err := resource.ParseQuantity(name)
			if err != nil {
				return fmt.Errorf("page size %q: %w", name, err)
			}
			sizes[size.Value()] = true
		}
	}
	for size := range sizes {
		m.pageSizes = append(m.pageSizes, size)
	}
	slices.Sort(m.pageSizes)
	return nil
}

// pages is how many pages of a size (bytes) a node holds.
func (m *machine) pages(node numaSpec, size int64) uint64 {
	total := int64(0)
	for name, amount := range node.Hugepages {
		if q := resource.MustParse(name); q.Value() == size {
			total += amount.Value() / size
		}
	}
	return uint64(total)
}

func (m *machine) distances(node numaSpec) []uint64 {
	if node.Distances != nil {
		return node.Distances
	}
	var row []uint64
	for _, i := range m.nodes {
		if m.spec.NUMANodes[i].ID == node.ID {
			row = append(row, 10)
		} else {
			row = append(row, 21)
		}
	}
	return row
}

// device is one device as its plugin reports it; without NUMA nodes it has no topology.
type device struct {
	id    string
	nodes []int
}

// devices lists every device of every resource, in a fixed order.
func (m *machine) devices(sharing map[string]int) map[string][]device {
	all := map[string][]device{}
	add := func(name string, count int, nodes []int) {
		if tokens, ok := sharing[name]; ok {
			count *= tokens
		}
		all[name] = append(all[name], []device{}...)
		for range count {
			all[name] = append(all[name], device{fmt.Sprintf("dev-%03d", len(all[name])), nodes})
		}
		if all[name] == nil {
			all[name] = []device{}
		}
	}
	for _, i := range m.nodes {
		node := m.spec.NUMANodes[i]
		for name, count := range node.Devices {
			add(name, count, []int{node.ID})
		}
	}
	for _, several := range m.spec.DevicesOnSeveralNodes {
		add(several.Resource, several.Count, several.NUMANodes)
	}
	for name, count := range m.spec.DevicesWithoutTopology {
		add(name, count, nil)
	}
	return all
}
