#!/usr/bin/env bash
# templdrift.sh fails when a committed *_templ.go is not what its .templ file
# generates now, or has lost its .templ file. It works on a copy.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp go.mod go.sum "$copy"
cp -r web "$copy/committed"
cp -r "$copy/committed" "$copy/web"
find "$copy/web" -name '*_templ.go' -delete

templ=$(go tool -n templ) # built once and kept in the build cache
(cd "$copy" && "$templ" generate -path web -log-level error)

if ! (cd "$copy" && diff -r -q committed web); then
	echo "templ: the files above differ from what the templates generate; run: make generate" >&2
	exit 1
fi
