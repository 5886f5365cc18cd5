#!/usr/bin/env bash
# at.sh runs a test program as run.sh has chosen: go test -exec calls it.
set -euo pipefail

# Another user may not pass through the folders above, such as a home directory.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
install -m 755 "$1" "$folder/$(basename "$1")"
program=$folder/$(basename "$1")
shift

seconds=$(($(date -d "$CALENDAR_INSTANT" +%s) - $(date +%s)))
export PALIMPSEST_TEST_SHIFT=$seconds

# PostgreSQL gets a clean environment but for the PATH, in which these come first.
real=$(for found in /usr/lib/postgresql/*/bin; do echo "$found"; done | sort -V | tail -1)
library=$(for found in /usr/lib/*/faketime/libfaketime.so.1; do echo "$found"; done | head -1)
for name in postgres initdb; do
	cat >"$folder/$name" <<END
#!/bin/sh
LD_PRELOAD='$library' FAKETIME='$(printf %+d "$seconds")' FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 \\
	exec '$real/$name' "\$@"
END
	chmod 755 "$folder/$name"
done
export PATH=$folder:$PATH

if [ -z "$CALENDAR_BARE" ]; then
	"$program" "$@"
	exit
fi
as=()
if [ "$(id -u)" = 0 ]; then
	as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
GOMAXPROCS=1 "${as[@]}" env -u HOME -u GOFLAGS GOPATH="$CALENDAR_BARE" GOCACHE="$CALENDAR_BARE/build" "$program" "$@"
