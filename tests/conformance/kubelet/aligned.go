package main

import v1 "k8s.io/api/core/v1"

func (k *managers) aligned(m *machine, n *node, pod *v1.Pod, v verdict) bool { return false }
