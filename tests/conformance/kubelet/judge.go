package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

type request struct {
	NodeClass nodeClass       `json:"nodeClass"`
	Pod       json.RawMessage `json:"pod"`
}

// verdict is one answer. The fields after Certain are the managers' state, for checks of alignment.
type verdict struct {
	Start    *string          `json:"start"`
	Admitted bool             `json:"admitted"`
	Reason   string           `json:"reason"`
	Message  string           `json:"message"`
	Masks    map[string][]int `json:"masks"`
	Aligned  bool             `json:"aligned"`
	Certain  bool             `json:"certain"`

	Preferred map[string]bool                      `json:"preferred,omitempty"`
	CPUs      map[string]string                    `json:"cpus,omitempty"`
	Memory    map[string]map[string][]memoryBlock  `json:"memory,omitempty"`
	Devices   map[string]map[string]map[string]int `json:"devices,omitempty"`
	Error     string                               `json:"error,omitempty"`
	TimedOut  bool                                 `json:"timedOut,omitempty"`
	CPUMicros int64                                `json:"cpuMicros,omitempty"` // that the managers' admission took
}

// memoryBlock is an amount (bytes) that a container holds of one type of memory on some NUMA nodes.
type memoryBlock struct {
	Nodes []int  `json:"nodes"`
	Size  uint64 `json:"size"`
}

// managers are those of one kubelet.
type managers struct {
	topology topologymanager.Manager
	devices  *devicemanager.ManagerImpl
	cpu      cpumanager.Manager
	memory   memorymanager.Manager
	known    map[string][]device
}

const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID of clock_gettime(2)

// patience is how long a case may take before it is no longer repeated.
const patience = 4 * time.Second

var pristineGates = utilfeature.DefaultMutableFeatureGate.DeepCopy()

// resetGates gives the process the default feature gates of its minor.
func resetGates() {
	fresh := pristineGates.DeepCopy()
	utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = fresh, fresh
}

func silence() { klog.SetLogger(logr.Discard()) }

func marshal(v verdict) []byte {
	if v.Masks == nil {
		v.Masks = map[string][]int{}
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// failure answers a line that is no case at all.
func failure(message string) []byte { return marshal(verdict{Reason: "OracleError", Error: message}) }

// hung answers for a kubelet whose admission never ends, or ends the process.
func hung(message string, timedOut bool) []byte {
	return marshal(verdict{Reason: "KubeletPanic", Message: message, Certain: true, TimedOut: timedOut})
}

// judgeLine answers one line of input; it judges the case several times, for the kubelet walks its maps in random order.
func judgeLine(line []byte, times int) []byte {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return failure(err.Error())
	}
	begun := time.Now()
	first, err := judge(r)
	if err != nil {
		return failure(err.Error())
	}
	first.Certain = true
	if !r.random() {
		times = min(times, 2)
	}
	for range times - 1 {
		if first.Start != nil || first.Reason == "Invalid" || time.Since(begun) > patience {
			break
		}
		if again, err := judge(r); err != nil || !sameVerdict(first, again) {
			first.Certain = false
			break
		}
	}
	return marshal(first)
}

// random tells whether the kubelet may well decide by chance: it picks devices in random order, which shows where several
// containers share them or where they are not all alike.
func (r request) random() bool {
	var pod v1.Pod
	topology := r.NodeClass.Spec.Topology
	if json.Unmarshal(r.Pod, &pod) != nil || len(topology.DevicesOnSeveralNodes)+len(topology.DevicesWithoutTopology) > 0 {
		return true
	}
	users := 0
	for _, c := range containersOf(&pod) {
		for name := range c.Resources.Limits {
			if strings.Contains(string(name), "/") {
				users++
				break
			}
		}
	}
	return users > 1
}

func sameVerdict(a, b verdict) bool {
	return (a.Start == nil) == (b.Start == nil) && a.Admitted == b.Admitted && a.Reason == b.Reason &&
		a.Aligned == b.Aligned && reflect.DeepEqual(a.Masks, b.Masks)
}

// judge gives the case to a fresh kubelet. An error means that the case makes no sense.
func judge(r request) (v verdict, err error) {
	m, err := newMachine(r.NodeClass.Spec.Topology)
	if err != nil {
		return v, err
	}
	dir, err := os.MkdirTemp(scratch(), "oracle")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(dir)

	resetGates()
	pod, refusal := store(r.Pod)
	resetGates()
	if pod == nil {
		pod = &v1.Pod{}
	}
	info := m.describe()
	n, kubelet, start := boot(r, m, info, pod, dir)
	if kubelet != nil {
		defer stopDeviceManager(kubelet.devices)
	}
	switch {
	case start != nil:
		text := start.Error()
		return verdict{Start: &text}, nil
	case refusal != nil:
		return verdict{Reason: "Invalid", Message: refusal.Error()}, nil
	}
	return kubelet.admission(n, m, info, pod), nil
}

// boot starts the managers in the kubelet's order. The pod counts as active from the beginning.
func boot(r request, m *machine, info *machineInfo, pod *v1.Pod, dir string) (n *node, k *managers, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("panic: %v", crash)
		}
	}()
	if n, err = configure(r.NodeClass.Spec.Kubelet, info, dir); err != nil {
		return nil, nil, err
	}
	if k, err = newManagers(n, info); err != nil {
		return nil, nil, err
	}
	if err = startManagers(k, func() []*v1.Pod { return []*v1.Pod{pod} }); err != nil {
		return nil, nil, err
	}
	k.known = m.devices(r.NodeClass.Spec.Sharing)
	for name, devices := range k.known {
		if err = connectPlugin(k.devices, name, fakePlugin{name}, reported(devices)); err != nil {
			return nil, nil, err
		}
	}
	return n, k, nil
}

func newManagers(n *node, info *machineInfo) (k *managers, err error) {
	k = &managers{}
	if k.topology, err = makeTopologyManager(info, n.cfg); err != nil {
		return nil, err
	}
	if k.devices, err = makeDeviceManager(filepath.Join(n.dir, "kubelet.sock"), info, k.topology); err != nil {
		return nil, err
	}
	if k.cpu, err = makeCPUManager(info, n, k.topology); err != nil {
		return nil, err
	}
	if k.memory, err = makeMemoryManager(info, n, k.topology); err != nil {
		return nil, err
	}
	addHintProviders(k.topology, k.devices, k.cpu, k.memory)
	return k, nil
}

// admission runs the pod through the managers, the fit check, and the check of features that the kubelet has turned off.
func (k *managers) admission(n *node, m *machine, info *machineInfo, pod *v1.Pod) (v verdict) {
	defer func() {
		if crash := recover(); crash != nil {
			v = verdict{Reason: "KubeletPanic", Message: fmt.Sprintf("%v\n%s", crash, debug.Stack())}
		}
	}()
	status := &v1.Node{}
	if err := nodeSetter(info, n, k.devices)(context.Background(), status); err != nil {
		return verdict{Reason: "OracleError", Message: err.Error()}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := threadMicros()
	result := admit(k.topology, pod)
	spent := threadMicros() - begun
	for _, handler := range []lifecycle.PodAdmitHandler{predicateHandler(status, k.devices), lifecycle.NewPodFeaturesAdmitHandler()} {
		if result.Admit {
			result = admit(handler, withoutPlacement(pod))
		}
	}
	if !result.Admit {
		return verdict{Reason: result.Reason, Message: result.Message, CPUMicros: spent}
	}
	v = verdict{Admitted: true, CPUMicros: spent}
	k.report(&v, pod)
	v.Aligned = k.aligned(m, pod, &v)
	return v
}

// threadMicros is the CPU time of the calling thread.
func threadMicros() int64 {
	var spent syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&spent)), 0)
	return spent.Nano() / 1000
}

// scratch is where state files go: in memory if possible.
func scratch() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

type noStatus struct{}

func (noStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

type noRuntime struct{}

func (noRuntime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}
