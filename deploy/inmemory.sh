#!/usr/bin/env bash
# inmemory.sh COMMAND… runs a command with its temporary files in memory where there is room for
# them: a database that a test makes and drops costs several times as much on a disk. Where there
# is none, or programs cannot be started from there, it runs the command as it is.
set -euo pipefail

shm=/dev/shm
needed=$((6 * 1024 * 1024)) # kB

hasRoom() {
	[ -d $shm ] && [ -w $shm ] || return
	local free available
	free=$(df -Pk $shm | awk 'NR == 2 { print $4 }')
	available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
	[ "$free" -ge $needed ] && [ "$available" -ge $((2 * needed)) ]
}

if ! hasRoom; then
	exec "$@"
fi
dir=$(mktemp -d $shm/palimpsest-XXXXXX)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir" # the database's own user looks into it
printf '#!/bin/sh\n' >"$dir/try" && chmod +x "$dir/try"
if "$dir/try" 2>/dev/null; then
	export TMPDIR=$dir
fi
"$@"
