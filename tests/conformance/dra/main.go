// Command allocator asks the scheduler's own allocator of DRA devices, and the API server's own validation of claims.
//
// It reads JSON lines {"node", "classes", "slices", "allocated", "claims", "create"} on stdin and writes one line of answers
// for each, in order: what it allocates on the node for each set of claims, and what becomes of each claim to create.
// With -gates=Name=false,... the API server has other feature gates than by default.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
)

const maxLine = 64 << 20

type question struct {
	Node      string                                  `json:"node"`
	Classes   []*resourceapi.DeviceClass              `json:"classes"`
	Slices    []*resourceapi.ResourceSlice            `json:"slices"`
	Allocated [][3]string                             `json:"allocated"`
	Claims    map[string][]*resourceapi.ResourceClaim `json:"claims"`
	Create    map[string]json.RawMessage              `json:"create"`
}

type answer struct {
	Allocations map[string]allocation `json:"allocations,omitempty"`
	Created     map[string]creation   `json:"created,omitempty"`
}

// allocation holds request, driver, pool and device of each result; none where the claims do not fit.
type allocation struct {
	Fits    bool        `json:"fits"`
	Results [][4]string `json:"results,omitempty"`
	Error   string      `json:"error,omitempty"`
}

type lister []*resourceapi.DeviceClass

func (l lister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("device class %s not found", name)
}

func main() {
	gates := flag.String("gates", "", "feature gates of the API server: Name=false,...")
	flag.Parse()
	if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	klog.SetLogger(klog.Logger{})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLine)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	cache := cel.NewCache(1000, celFeatures())
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, "no question:", err)
			os.Exit(2)
		}
		text, err := json.Marshal(q.answer(cache))
		if err != nil {
			panic(err)
		}
		out.Write(text)
		out.WriteByte('\n')
		out.Flush()
	}
}

func (q *question) answer(cache *cel.Cache) answer {
	a := answer{Allocations: map[string]allocation{}, Created: map[string]creation{}}
	for name, claims := range q.Claims {
		a.Allocations[name] = q.allocate(cache, claims)
	}
	for name, claim := range q.Create {
		a.Created[name] = create(claim)
	}
	return a
}

func (q *question) allocate(cache *cel.Cache, claims []*resourceapi.ResourceClaim) allocation {
	ctx := context.Background()
	taken := sets.New[structured.DeviceID]()
	for _, id := range q.Allocated {
		taken.Insert(structured.MakeDeviceID(id[0], id[1], id[2]))
	}
	state := structured.AllocatedState{
		AllocatedDevices:         taken,
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	allocator, err := structured.NewAllocator(ctx, features(), state, lister(q.Classes), q.Slices, cache)
	if err != nil {
		return allocation{Error: err.Error()}
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: q.Node, Labels: map[string]string{"kubernetes.io/hostname": q.Node}}}
	found, err := allocator.Allocate(ctx, node, claims)
	if err != nil {
		return allocation{Error: err.Error()}
	}
	made := allocation{Fits: found != nil}
	for _, result := range found {
		for _, device := range result.Devices.Results {
			made.Results = append(made.Results, [4]string{device.Request, device.Driver, device.Pool, device.Device})
		}
	}
	return made
}
