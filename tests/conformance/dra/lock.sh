#!/bin/sh
# Writes minors/1.<minor>.mod and .sum: k8s.io/kubernetes requires its staging modules at v0.0.0, so each is replaced.
# Works on a copy with that minor's file only, for `go mod tidy` looks at the files of every build tag.
set -eu
minor=$1 version=$2
here=$(cd "$(dirname "$0")" && pwd)
staging=v0.${version#v1.}
source=$(cd / && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp "$here"/*.go "$copy"
find "$copy" -name 'minor*.go' ! -name "minor$minor.go" -delete
{
	printf 'module numalign/allocator\n\n'
	grep '^go ' "$source/go.mod"
	printf '\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$version"
	sed -n "s#^\t\(k8s.io/[a-z-]*\) => \./staging/.*#\t\1 => \1 $staging#p" "$source/go.mod"
	printf ')\n'
} >"$copy/go.mod"
(cd "$copy" && go mod tidy)
mkdir -p "$here/minors"
cp "$copy/go.mod" "$here/minors/1.$minor.mod"
cp "$copy/go.sum" "$here/minors/1.$minor.sum"
