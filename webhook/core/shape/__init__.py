"""What a mutation may change in a pod, a module per injection."""
