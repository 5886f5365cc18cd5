#!/usr/bin/env bash
# release.sh [FOLDER] builds the programs and packages of a release into dist, or FOLDER. The same
# commit, version, key and Go version give the same bytes, wherever the checkout lies.
#
#   VERSION              semantic version; the newest of CHANGELOG.md if absent
#   PLATFORMS            such as "linux/amd64 darwin/arm64"; all six if absent
#   RELEASE_URL          folder on the web that will hold the files; without it no Homebrew formula is written
#   RELEASE_NPM          name of the npm package; palimpsest if absent
#   RELEASE_KEY          file with minisign's private key (minisign -G); without it nothing is signed
#   RELEASE_KEY_PASSWORD its password
#   RELEASE_PUBLIC_KEY   the public key, a line of text, which "palimpsest version --verify" then knows
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(realpath -m "${1:-dist}")
version=${VERSION:-$(sed -n 's/^## \([0-9]*\.[0-9]*\.[0-9]*[^ ]*\).*/\1/p' CHANGELOG.md | head -n 1)}
if ! grep -q "^## ${version//./\\.}\( \|\$\)" CHANGELOG.md; then
	echo "release: CHANGELOG.md has no heading '## $version'" >&2
	exit 1
fi
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
epoch=$(git log -1 --format=%ct 2>/dev/null || echo 0)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf "$out"
mkdir -p "$out/programs"
export CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOFLAGS=
for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/} program=palimpsest
	if [ "$os" = windows ]; then
		program=palimpsest.exe
	fi
	echo "Building for $os $arch"
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags="-s -w -buildid= -X main.released=$version -X main.releaseKey=${RELEASE_PUBLIC_KEY:-}" \
		-o "$out/programs/${os}_$arch/$program" ./cmd/palimpsest
done
echo "Writing the manual pages"
# Those of the program for this machine, if it's among those above: a link costs as long as all the rest.
here="$out/programs/$(go env GOHOSTOS)_$(go env GOHOSTARCH)/palimpsest"
if [ ! -x "$here" ]; then
	here="$scratch/palimpsest"
	go build -trimpath -buildvcs=false -ldflags="-X main.released=$version" -o "$here" ./cmd/palimpsest
fi
"$here" man "$scratch/man"
echo "Packing"
root=$PWD
go -C deploy/tools/release run . -version "$version" -root "$root" -bin "$out/programs" -man "$scratch/man" -out "$out" -epoch "$epoch" \
	-url "${RELEASE_URL:-}" -npm "${RELEASE_NPM:-palimpsest}" -key "${RELEASE_KEY:+$(realpath "$RELEASE_KEY")}"
cat "$out/SHA256SUMS"
