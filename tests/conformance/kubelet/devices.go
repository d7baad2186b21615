package main

import (
	"context"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// fakePlugin grants every allocation and has no preferences.
type fakePlugin struct{ resource string }

func (p fakePlugin) API() pluginapi.DevicePluginClient { return fakeClient{} }
func (p fakePlugin) Resource() string                  { return p.resource }
func (p fakePlugin) SocketPath() string                { return "/" + p.resource }

type fakeClient struct{ pluginapi.DevicePluginClient }

func (fakeClient) GetDevicePluginOptions(context.Context, *pluginapi.Empty, ...grpc.CallOption) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (fakeClient) Allocate(_ context.Context, request *pluginapi.AllocateRequest, _ ...grpc.CallOption) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}

func reported(devices []device) []*pluginapi.Device {
	var all []*pluginapi.Device
	for _, d := range devices {
		one := &pluginapi.Device{ID: d.id, Health: pluginapi.Healthy}
		if d.nodes != nil {
			one.Topology = &pluginapi.TopologyInfo{}
			for _, id := range d.nodes {
				one.Topology.Nodes = append(one.Topology.Nodes, &pluginapi.NUMANode{ID: int64(id)})
			}
		}
		all = append(all, one)
	}
	return all
}
