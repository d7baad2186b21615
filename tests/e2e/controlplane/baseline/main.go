// A plain Go webhook to measure against: typed decoding, a JSON patch of CPU and memory, nothing decided.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func main() {
	address := flag.String("address", "127.0.0.1:9443", "where to listen")
	cert, key := flag.String("cert", "", "PEM file"), flag.String("key", "", "PEM file")
	flag.Parse()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mutate", answering(mutate))
	mux.HandleFunc("POST /validate", answering(func(*core.Pod) []operation { return nil }))
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: *address, Handler: mux, IdleTimeout: 100 * time.Second, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}

func answering(decide func(*core.Pod) []operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admission.AdmissionReview
		var pod core.Pod
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if patch := decide(&pod); len(patch) > 0 {
			kind := admission.PatchTypeJSONPatch
			response.Patch, _ = json.Marshal(patch)
			response.PatchType = &kind
		}
		review.Response, review.Request = response, nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}
}

func mutate(pod *core.Pod) []operation {
	var patch []operation
	for i, container := range pod.Spec.Containers {
		if container.Resources.Limits == nil {
			continue
		}
		limits := container.Resources.Limits.DeepCopy()
		limits[core.ResourceCPU], limits[core.ResourceMemory] = resource.MustParse("4"), resource.MustParse("8Gi")
		value := core.ResourceRequirements{Requests: limits, Limits: limits}
		patch = append(patch, operation{"add", fmt.Sprintf("/spec/containers/%d/resources", i), value})
	}
	return patch
}
