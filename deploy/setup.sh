#!/usr/bin/env bash
# setup.sh NAME… installs the programs that the product and its tests start,
# where they are missing: postgresql, chromium, browser (for tests: Chromium without a window, or chromium
# where no package has that), redis-server, pgbouncer, gcc, nodejs, npm, faketime. It
# does nothing, quickly, where all are there. Debian's and Ubuntu's packages are
# installed with apt-get; on other systems it says what to install and fails.
set -euo pipefail

# Chromium without a window takes half the CPU. Debian has a package of it.
shell=chromium-headless-shell

knows_shell() {
	command -v apt-cache && apt-cache show $shell
} >/dev/null 2>&1

has() {
	case $1 in
	postgresql)
		command -v initdb && command -v postgres && return
		local dir
		for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
			[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return
		done
		return 1
		;;
	browser) command -v $shell || { ! knows_shell && has chromium; } ;;
	chromium) command -v chromium || command -v chromium-browser || command -v google-chrome ;;
	pgbouncer) command -v pgbouncer || [ -x /usr/sbin/pgbouncer ] ;;
	redis-server | gcc | npm | faketime) command -v "$1" ;;
	nodejs) command -v node ;;
	*)
		echo "setup: unknown program $1" >&2
		exit 2
		;;
	esac
}

package() {
	case $1 in
	gcc) echo gcc libc6-dev ;;
	browser) knows_shell && echo $shell || echo chromium ;;
	*) echo "$1" ;;
	esac
}

# On Debian the package postgresql creates and starts a cluster for the whole
# system. The product runs its own, so the one setting is off while installing.
without_system_cluster() {
	local conf=/etc/postgresql-common/createcluster.conf
	if [ -e $conf ]; then
		"$@"
		return
	fi
	install_packages postgresql-common
	$as_root sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' $conf
	local code=0
	"$@" || code=$?
	$as_root sed -i 's/^create_main_cluster.*/#create_main_cluster = true/' $conf
	return $code
}

install_packages() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq -o DPkg::Lock::Timeout=120 --no-install-recommends "$@" >/dev/null
}

missing=()
for name in "$@"; do
	has "$name" >/dev/null || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

# Where chromium is there, tests work without the shell.
can_do_without() { [ "${missing[*]}" = browser ] && has chromium >/dev/null; }

if ! command -v apt-get >/dev/null; then
	echo "setup: please install ${missing[*]} and try again, for example:" >&2
	brew=" ${missing[*]/redis-server/redis} "
	brew=${brew/ nodejs / node }
	brew=${brew/ browser / chromium }
	echo "  macOS:  brew install${brew/ npm / node }" >&2
	echo "  Fedora: dnf install ${missing[*]/postgresql/postgresql-server postgresql-contrib}" >&2
	exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		can_do_without && exit 0
		echo "setup: ${missing[*]} missing and no sudo here; as root, run: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	as_root=sudo
fi

echo "setup: installing ${missing[*]}"
if can_do_without; then
	{ $as_root apt-get update -qq -o DPkg::Lock::Timeout=120 && install_packages $shell; } ||
		echo "setup: could not install $shell; the tests drive chromium instead, which takes more CPU"
	exit 0
fi
$as_root apt-get update -qq -o DPkg::Lock::Timeout=120
for name in "${missing[@]}"; do
	# shellcheck disable=SC2046 # one package name a word
	case $name in
	postgresql) without_system_cluster install_packages postgresql ;;
	*) install_packages $(package "$name") ;;
	esac
	if ! has "$name" >/dev/null; then
		echo "setup: $name is still missing after its package was installed" >&2
		exit 1
	fi
done
