package main

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcev1 "k8s.io/kubernetes/pkg/apis/resource/v1"
	"k8s.io/kubernetes/pkg/apis/resource/validation"
)

// invalid returns what the API server would say against the claim; an empty text: nothing.
func invalid(claim *resourceapi.ResourceClaim) string {
	claim = claim.DeepCopy()
	resourcev1.SetObjectDefaults_ResourceClaim(claim)
	var internal resource.ResourceClaim
	if err := resourcev1.Convert_v1_ResourceClaim_To_resource_ResourceClaim(claim, &internal, nil); err != nil {
		return err.Error()
	}
	if errs := validation.ValidateResourceClaim(&internal); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}
