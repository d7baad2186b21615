"""The kubelet's own rules, a module per manager: what an idle node of one class does with one pod."""
