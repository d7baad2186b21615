#!/usr/bin/env bash
# The tests on a real control plane, for CI: run where the programs can be had within the time, and loudly left out where not.
set -uo pipefail
cd "$(dirname "$0")/../.."
limit=${NUMALIGN_E2E_BUILD_SECONDS:-2400}

not_run() {
	printf '\n%s\n' '*******************************************************************************' \
		"*** NOT RUN: the tests on a real control plane. $1" \
		'*******************************************************************************' >&2
	exit 0
}

if ! command -v haproxy >/dev/null; then
	(apt-get update -q && apt-get install -y -q haproxy) >/dev/null 2>&1 || not_run 'No haproxy, and it could not be installed.'
fi
timeout "$limit" make control-plane || not_run "No etcd and Kubernetes, and they could not be built within $limit s."
timeout "$limit" make helm || echo '*** No helm, and it could not be built: the tests of the chart will be skipped.' >&2
.venv/bin/python -c 'from tests.e2e.controlplane.binaries import find_cert_manager as find; find()' 2>/dev/null ||
	echo '*** No cert-manager (`make cert-manager` builds it): the tests of its overlay will be skipped.' >&2
exec make e2e
