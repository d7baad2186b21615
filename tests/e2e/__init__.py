"""The webhook on a real control plane: `make control-plane` once, then `make e2e`."""
