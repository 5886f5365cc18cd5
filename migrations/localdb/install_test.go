package localdb_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"palimpsest/migrations/localdb"
)

func TestPackageIsNamedForEachSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ system, release, want string }{
		{"linux", "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", "apt-get install -y postgresql"},
		{"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install -y postgresql"},
		{"linux", "ID=fedora\n", "dnf install -y postgresql-server postgresql-contrib"},
		{"linux", "ID_LIKE=\"rhel centos fedora\"\nID=\"rocky\"\n", "dnf install -y postgresql-server postgresql-contrib"},
		{"linux", "ID=arch\n", "pacman -S --noconfirm postgresql"},
		{"linux", "ID=alpine\n", "apk add postgresql17 postgresql17-contrib"},
		{"linux", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "zypper --non-interactive install postgresql-server postgresql-contrib"},
		{"linux", "ID=nixos\n", ""},
		{"linux", "", ""},
		{"darwin", "", "brew install postgresql@17"},
		{"windows", "", "winget install PostgreSQL.PostgreSQL.17"},
		{"plan9", "", ""},
	} {
		command := localdb.PackageCommand(c.system, c.release)
		if command != c.want {
			t.Errorf("%s %q: %q, want %q", c.system, c.release, command, c.want)
		}
		err := localdb.NotInstalled(command)
		for _, part := range []string{command, "--database", "DATABASE_URL"} {
			if !errors.Is(err, localdb.ErrNotInstalled) || !strings.Contains(err.Error(), part) {
				t.Errorf("%s %q: error %q does not name %s", c.system, c.release, err, part)
			}
		}
		if offers := strings.Contains(err.Error(), "--install"); offers != (command != "" && c.system != "windows") {
			t.Errorf("%s %q: error %q offers --install: %t", c.system, c.release, err, offers)
		}
	}
}

func TestInstallingDoesNothingWherePostgreSQLIs(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	if err := localdb.Install(t.Context(), os.Getenv("PATH"), &said); err != nil || said.Len() > 0 {
		t.Errorf("%v, said %q", err, said.String())
	}
}
