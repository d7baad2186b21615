"""numalign: an admission webhook that makes GPU pods alignable to one NUMA node, or says why they cannot be."""
