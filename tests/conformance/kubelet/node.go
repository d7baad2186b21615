package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
	"k8s.io/utils/cpuset"
)

const (
	never         = 1000 * time.Hour // period of reconciliations: only the first one runs
	unlimitedPods = math.MaxInt32
)

// node is a machine with a kubelet's configuration, as far as the managers' constructors want it.
type node struct {
	cfg          *config.KubeletConfiguration
	reservedCPUs cpuset.CPUSet
	reservation  v1.ResourceList
	storage      v1.ResourceList
	dir          string // the kubelet's root directory
}

// describe is the machine as cadvisor reports it.
func (m *machine) describe() *machineInfo {
	info := &machineInfo{NumSockets: m.sockets}
	totals := make([]uint64, len(m.pageSizes))
	for position, i := range m.nodes {
		spec := m.spec.NUMANodes[i]
		nd := numaNode{Id: spec.ID, Memory: uint64(spec.Memory.Value()), Distances: m.distances(spec)}
		for s, size := range m.pageSizes {
			nd.HugePages = append(nd.HugePages, hugePagesInfo{PageSize: uint64(size / 1024), NumPages: m.pages(spec, size)})
			totals[s] += m.pages(spec, size)
		}
		for k, c := range m.cores[position] {
			nd.Cores = append(nd.Cores, numaCore{Id: k, Threads: c.threads, SocketID: c.socket,
				UncoreCaches: []uncoreCache{{Id: c.uncore, Level: 3}}})
			info.NumCores += len(c.threads)
			info.NumPhysicalCores++
		}
		info.MemoryCapacity += nd.Memory
		info.Topology = append(info.Topology, nd)
	}
	for s, size := range m.pageSizes {
		info.HugePages = append(info.HugePages, hugePagesInfo{PageSize: uint64(size / 1024), NumPages: totals[s]})
	}
	return info
}

// configure reads a KubeletConfiguration as the kubelet does; an error means that the kubelet does not start.
// It leaves the process's feature gates as that kubelet sets them.
func configure(raw json.RawMessage, info *machineInfo, dir string) (*node, error) {
	cfg, err := decodeConfiguration(raw)
	if err != nil {
		return nil, err
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(cfg.FeatureGates); err != nil {
		return nil, err
	}
	cfg.FailCgroupV1 = false // would judge the machine that this runs on
	if err := validation.ValidateKubeletConfiguration(cfg, utilfeature.DefaultFeatureGate); err != nil {
		return nil, err
	}
	n := &node{cfg: cfg, dir: dir, storage: v1.ResourceList{v1.ResourceEphemeralStorage: *resource.NewQuantity(1<<60, resource.BinarySI)}}
	if n.reservedCPUs, err = reservedCPUs(cfg, info); err != nil {
		return nil, err
	}
	capacity := cadvisor.CapacityFromMachineInfo(info)
	if n.reservation, err = reservation(cfg, capacity); err != nil {
		return nil, err
	}
	if err := checkOthers(cfg); err != nil {
		return nil, err
	}
	return n, checkCapacity(n.reservation, capacity)
}

func decodeConfiguration(raw json.RawMessage) (*config.KubeletConfiguration, error) {
	excerpt := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &excerpt); err != nil {
			return nil, err
		}
	}
	document := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	maps.Copy(document, excerpt)
	data, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	_, codecs, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		return nil, err
	}
	cfg, err := codec.DecodeKubeletConfiguration(context.Background(), codecs, data)
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.EvictionHard == nil:
		cfg.EvictionHard = maps.Clone(eviction.DefaultEvictionHard)
	case cfg.MergeDefaultEvictionSettings:
		merged := maps.Clone(eviction.DefaultEvictionHard)
		maps.Copy(merged, cfg.EvictionHard)
		cfg.EvictionHard = merged
	}
	return cfg, nil
}

// reservedCPUs parses reservedSystemCPUs; they replace what the configuration reserves by number.
func reservedCPUs(cfg *config.KubeletConfiguration, info *machineInfo) (cpuset.CPUSet, error) {
	if cfg.ReservedSystemCPUs == "" {
		return cpuset.New(), nil
	}
	cpus, err := discover(info)
	if err != nil {
		return cpuset.New(), err
	}
	set, err := cpuset.Parse(cfg.ReservedSystemCPUs)
	if err != nil {
		return cpuset.New(), err
	}
	if !set.IsSubsetOf(cpus.CPUDetails.CPUs()) {
		return cpuset.New(), fmt.Errorf("reservedSystemCPUs: %s are not all online", set)
	}
	if set.Size() > 0 {
		delete(cfg.KubeReserved, "cpu")
		if cfg.SystemReserved == nil {
			cfg.SystemReserved = map[string]string{}
		}
		cfg.SystemReserved["cpu"] = strconv.Itoa(set.Size())
	}
	return set, nil
}

// reservation is what Node Allocatable keeps back of each resource that the machine has.
func reservation(cfg *config.KubeletConfiguration, capacity v1.ResourceList) (v1.ResourceList, error) {
	total := v1.ResourceList{}
	for _, reserved := range []map[string]string{cfg.SystemReserved, cfg.KubeReserved} {
		for name, text := range reserved {
			amount, err := reservedAmount(name, text)
			if err != nil {
				return nil, err
			}
			addTo(total, v1.ResourceName(name), amount)
		}
	}
	thresholds, err := eviction.ParseThresholdConfig([]string{}, cfg.EvictionHard, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	for _, threshold := range thresholds {
		if threshold.Signal == evictionapi.SignalMemoryAvailable && threshold.Operator == evictionapi.OpLessThan {
			whole := capacity[v1.ResourceMemory]
			addTo(total, v1.ResourceMemory, *evictionapi.GetThresholdQuantity(threshold.Value, &whole))
		}
	}
	for name, amount := range total {
		if _, known := capacity[name]; !known || amount.IsZero() {
			delete(total, name)
		}
	}
	return total, nil
}

func reservedAmount(name, text string) (resource.Quantity, error) {
	switch name {
	case "cpu", "memory", "ephemeral-storage", "pid":
	default:
		return resource.Quantity{}, fmt.Errorf("cannot reserve %q", name)
	}
	amount, err := resource.ParseQuantity(text)
	if err != nil {
		return amount, fmt.Errorf("reserved %s %q: %w", name, text, err)
	}
	if amount.Sign() < 0 {
		return amount, fmt.Errorf("reserved %s %q is negative", name, text)
	}
	if name == "cpu" {
		roundReservedCPU(&amount)
	}
	return amount, nil
}

func addTo(list v1.ResourceList, name v1.ResourceName, amount resource.Quantity) {
	sum := list[name]
	sum.Add(amount)
	list[name] = sum
}

// checkOthers runs what else of the configuration the kubelet parses at start.
func checkOthers(cfg *config.KubeletConfiguration) error {
	if _, err := cm.ParseQOSReserved(cfg.QOSReserved); err != nil {
		return err
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.TopologyManagerPolicyOptions) && cfg.TopologyManagerPolicyOptions != nil {
		return fmt.Errorf("topologyManagerPolicyOptions need the feature gate %s", features.TopologyManagerPolicyOptions)
	}
	_, err := eviction.ParseThresholdConfig(cfg.EnforceNodeAllocatable, cfg.EvictionHard, cfg.EvictionSoft,
		cfg.EvictionSoftGracePeriod, cfg.EvictionMinimumReclaim)
	return err
}

// checkCapacity refuses to keep back more than the machine has.
func checkCapacity(reservation, capacity v1.ResourceList) error {
	for name, reserved := range reservation {
		if whole := capacity[name]; reserved.Cmp(whole) > 0 {
			return fmt.Errorf("reservation of %s is %s but capacity is %s", name, reserved.String(), whole.String())
		}
	}
	return nil
}
