module numalign/allocator

// What is required depends on the Kubernetes minor: see minors/ and the Makefile.

go 1.26.0
