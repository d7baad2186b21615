"""Proof that the verdict is the kubelet's: an oracle made of the kubelet's own managers, tables, and a random comparison."""
