#!/usr/bin/env bash
# run.sh runs tests on other days, in other time zones and in a bare environment.
#
#   DATES     which of the dates below, or instants such as 2027-05-01T19:12:00Z; all of
#             the dates if unset
#   PACKAGES  which packages; all of them if unset
#   ARGS      further arguments of go test, for example "-run TestDemo"
#
# The clock of this machine isn't touched. Go programs (the tests and what they start)
# are built with a copy of package time whose Now adds the seconds in
# PALIMPSEST_TEST_SHIFT. PostgreSQL runs under libfaketime. Timers and durations are
# real. Not shifted: file times, Chromium, Redis, PgBouncer, Node.
set -euo pipefail
cd "$(dirname "$0")/../.."

read -ra dates <<<"${DATES:-monday new-year leap-day dst-spring dst-autumn bare}"
read -ra packages <<<"${PACKAGES:-./...}"
read -ra arguments <<<"${ARGS:-}"

# next MONTH-DAY TIME prints the next time of that name that exists, in UTC.
next() {
	local year now
	now=$(date +%s)
	for ((year = $(date -u +%Y); ; year++)); do
		if date -ud "$year-$1" >/dev/null 2>&1 && [ "$(date -ud "$year-$1 $2" +%s)" -gt "$now" ]; then
			date -ud "$year-$1 $2" +%FT%TZ
			return
		fi
	done
}

# sunday MONTH FIRST TIME prints the next first Sunday from a day of a month on.
sunday() {
	local day instant nearest=
	for ((day = $2; day < $2 + 7; day++)); do
		instant=$(next "$1-$(printf %02d "$day")" "$3")
		while [ "$(date -ud "$instant" +%u)" != 7 ]; do
			instant=$(date -ud "$instant + 1 year" +%FT%TZ)
		done
		if [[ -z $nearest || $instant < $nearest ]]; then nearest=$instant; fi
	done
	echo "$nearest"
}

# Sets when tests begin, and the environment they run in.
choose() {
	export CALENDAR_INSTANT= CALENDAR_BARE= TZ=UTC
	case $1 in
	monday) CALENDAR_INSTANT=$(date -ud 'next monday 10:00' +%FT%TZ) ;;
	new-year) CALENDAR_INSTANT=$(next 12-31 23:58) TZ=Pacific/Kiritimati ;;
	leap-day) CALENDAR_INSTANT=$(next 02-29 12:00) TZ=America/St_Johns ;;
	dst-spring) CALENDAR_INSTANT=$(sunday 03 8 06:59) TZ=America/New_York ;; # a minute before the change
	dst-autumn) CALENDAR_INSTANT=$(sunday 11 1 05:59) TZ=America/New_York ;;
	20*) CALENDAR_INSTANT=$1 ;;
	bare)
		CALENDAR_INSTANT=$(date -u +%FT%TZ) CALENDAR_BARE=$go
		mkdir -p "$go/pkg/mod" "$go/build"
		cp -al "$(go env GOMODCACHE)/." "$go/pkg/mod" 2>/dev/null || cp -a "$(go env GOMODCACHE)/." "$go/pkg/mod"
		chmod 755 "$go" && chmod 777 "$go/build"
		;;
	*)
		echo "calendar: unknown date $1" >&2
		exit 2
		;;
	esac
}

# What Go keeps, for a user who may not read ours: outside the module, whose packages
# it would become.
go=$(mktemp -d)
trap 'find "$go" -type d -exec chmod u+w {} +; rm -rf "$go"' EXIT

made=$PWD/bin/calendar
overlay=$(deploy/calendar/overlay.sh "$made")
GOFLAGS="$(go env GOFLAGS) -overlay=$overlay"
export GOFLAGS

echo "calendar: building the programs that tests start"
make --no-print-directory test-programs TEST_PROGRAMS="$made/programs"
export PALIMPSEST_TEST_PROGRAMS=$made/programs

failed=()
for date in "${dates[@]}"; do
	choose "$date"
	echo "calendar: $date, from $CALENDAR_INSTANT, TZ=$TZ${CALENDAR_BARE:+, one processor, no HOME, an ordinary user}"
	go test -p 2 -count=1 -vet=off -timeout 30m -exec "$PWD/deploy/calendar/at.sh" \
		"${arguments[@]}" "${packages[@]}" || failed+=("$date")
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "calendar: failed on ${failed[*]}" >&2
	exit 1
fi
