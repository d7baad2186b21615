"""Claims (Dynamic Resource Allocation): what devices they ask for, and how to have them on one NUMA node."""
