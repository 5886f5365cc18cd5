#!/usr/bin/env bash
# testall.sh record|check: keeps the commit and the date of the last green make test-all in .ci/test-all,
# and fails when it is more than 300 commits old.
set -euo pipefail
cd "$(dirname "$0")/.."
file=.ci/test-all most=300

case ${1-} in
record)
	if [ -n "$(git status --porcelain)" ]; then
		echo "testall: every test passed, but not recorded: commit the changes and run make test-all again" >&2
		exit 1
	fi
	echo "$(git rev-parse HEAD) $(date -u +%F)" >$file
	echo "testall: recorded in $file; commit it"
	;;
check)
	if ! git rev-parse --git-dir >/dev/null 2>&1; then
		exit 0 # an archive has no commits to count
	fi
	read -r commit date <$file
	if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
		[ "$(git rev-parse --is-shallow-repository)" = true ] && exit 0 # the count needs the history
		echo "testall: $file names $commit, which is no commit of this repository; run make test-all" >&2
		exit 1
	fi
	since=$(git rev-list --count "$commit..HEAD")
	if [ "$since" -gt $most ]; then
		echo "testall: make test-all was last green on $date, $since commits ago (at most $most); run it and commit $file" >&2
		exit 1
	fi
	;;
*)
	echo "usage: testall.sh record|check" >&2
	exit 2
	;;
esac
