"""What a cluster without kubelets lacks: something that runs our Deployment's pods, and something that plays its Service."""
