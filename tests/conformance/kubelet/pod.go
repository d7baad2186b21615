package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
)

const podUID = "00000000-0000-4000-8000-000000000001"

var creation = &genericapirequest.RequestInfo{
	IsResourceRequest: true, Verb: "create", APIVersion: "v1", Resource: "pods",
}

// store is the pod as an API server with default feature gates stores it; an error means that it refuses the pod.
// Names and images that the pod leaves out are filled in: they are no concern of the kubelet's managers.
func store(raw json.RawMessage) (*v1.Pod, error) {
	completed, err := complete(raw)
	if err != nil {
		return nil, err
	}
	object, _, err := legacyscheme.Codecs.UniversalDecoder(api.SchemeGroupVersion).Decode(completed, nil, nil)
	if err != nil {
		return nil, err
	}
	pod, ok := object.(*api.Pod)
	if !ok {
		return nil, fmt.Errorf("not a Pod: %T", object)
	}
	rest.FillObjectMetaSystemFields(pod)
	ctx := genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(context.Background(), pod.Namespace), creation)
	if err := rest.BeforeCreate(podregistry.Strategy, ctx, pod); err != nil {
		return nil, err
	}
	data, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(v1.SchemeGroupVersion), pod)
	if err != nil {
		return nil, err
	}
	stored := &v1.Pod{}
	if err := json.Unmarshal(data, stored); err != nil {
		return nil, err
	}
	stored.UID = types.UID(podUID)
	return stored, nil
}

func complete(raw json.RawMessage) ([]byte, error) {
	pod := map[string]any{}
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, err
	}
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	delete(pod, "status")
	meta, ok := pod["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
	}
	setDefault(meta, "namespace", "default")
	setDefault(meta, "name", "pod")
	pod["metadata"] = meta
	spec, _ := pod["spec"].(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		entries, _ := spec[list].([]any)
		for i, entry := range entries {
			if container, ok := entry.(map[string]any); ok {
				setDefault(container, "image", "registry.example/image")
				setDefault(container, "name", fmt.Sprintf("%s-%d", map[bool]string{true: "init", false: "app"}[list == "initContainers"], i))
			}
		}
	}
	return json.Marshal(pod)
}

func setDefault(object map[string]any, key string, value any) {
	if _, present := object[key]; !present {
		object[key] = value
	}
}

// withoutPlacement drops what only a scheduler or this very node's labels, taints and ports could decide.
func withoutPlacement(pod *v1.Pod) *v1.Pod {
	bare := pod.DeepCopy()
	bare.Labels = nil
	bare.Spec.NodeName, bare.Spec.NodeSelector, bare.Spec.Affinity, bare.Spec.OS = "", nil, nil, nil
	if bare.Spec.SecurityContext != nil {
		bare.Spec.SecurityContext.SupplementalGroupsPolicy = nil
	}
	for _, list := range [][]v1.Container{bare.Spec.InitContainers, bare.Spec.Containers} {
		for i := range list {
			list[i].Ports = nil
		}
	}
	return bare
}

func containersOf(pod *v1.Pod) []*v1.Container {
	var all []*v1.Container
	for i := range pod.Spec.InitContainers {
		all = append(all, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		all = append(all, &pod.Spec.Containers[i])
	}
	return all
}
