package localdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// packages are the commands that install PostgreSQL's server, by the ID of a Linux distribution in
// /etc/os-release, or by the name of the system.
var packages = map[string]string{
	"debian":   "apt-get install -y postgresql",
	"fedora":   "dnf install -y postgresql-server postgresql-contrib",
	"arch":     "pacman -S --noconfirm postgresql",
	"alpine":   "apk add postgresql17 postgresql17-contrib",
	"opensuse": "zypper --non-interactive install postgresql-server postgresql-contrib",
	"darwin":   "brew install postgresql@17",
	"windows":  "winget install PostgreSQL.PostgreSQL.17",
}

// sameAs maps distributions to the one whose packages they use, because they don't always declare it.
var sameAs = map[string]string{
	"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "rocky": "fedora", "almalinux": "fedora", "manjaro": "arch", "suse": "opensuse",
}

// PackageCommand returns the command that installs PostgreSQL's server on a system; "" if unknown.
// release is the content of /etc/os-release, which Linux has.
func PackageCommand(system, release string) string {
	if system != "linux" {
		return packages[system]
	}
	var names []string
	for _, field := range []string{"ID=", "ID_LIKE="} {
		for line := range strings.Lines(release) {
			if value, is := strings.CutPrefix(strings.TrimSpace(line), field); is {
				names = append(names, strings.Fields(strings.Trim(value, `"'`))...)
			}
		}
	}
	for _, name := range names {
		if same, is := sameAs[name]; is {
			name = same
		}
		if command, is := packages[name]; is {
			return command
		}
	}
	return ""
}

// here returns PackageCommand for this machine.
func here() string {
	release, _ := os.ReadFile("/etc/os-release") // only Linux has it
	return PackageCommand(runtime.GOOS, string(release))
}

// notInstalled returns an ErrNotInstalled with instructions for a system with a command of PackageCommand.
func notInstalled(command string) error {
	switch command {
	case packages["windows"]:
		return fmt.Errorf("%w here, and the program does not run it by itself on Windows: install it (%s), create a database, and start with --database postgres://USER:PASSWORD@127.0.0.1:5432/NAME, or set DATABASE_URL", ErrNotInstalled, command)
	case "":
		return fmt.Errorf("%w: install the server of PostgreSQL %d or newer with its contrib modules, or start with --database postgres://…, or set DATABASE_URL", ErrNotInstalled, oldest)
	}
	return fmt.Errorf("%w: run %q, or start with --install to have that done, or with --database postgres://… to use a database elsewhere, or set DATABASE_URL", ErrNotInstalled, command)
}

// Install installs PostgreSQL's server with the package manager of this machine, unless it is already
// installed. The package manager's output goes to w. path lists directories as Config.Path does.
func Install(ctx context.Context, path string, w io.Writer) error {
	if found := installed(ctx, path, places()); len(found) > 0 && found[0].version >= oldest {
		return nil
	}
	command := strings.Fields(here())
	if len(command) == 0 || runtime.GOOS == "windows" {
		return notInstalled(strings.Join(command, " "))
	}
	if runtime.GOOS == "linux" && os.Geteuid() != 0 {
		command = slices.Insert(command, 0, "sudo")
	}
	fmt.Fprintln(w, "Running:", strings.Join(command, " "))
	run := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // one of the commands above
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, w, w
	if err := run.Run(); err != nil {
		return fmt.Errorf("install PostgreSQL with %q: %w; on Debian and Ubuntu, \"apt-get update\" may have to run first", strings.Join(command, " "), err)
	}
	if found := installed(ctx, path, places()); len(found) == 0 || found[0].version < oldest {
		return errors.Join(errors.New("the packages were installed, but PostgreSQL's programs are not where they are looked for"), notInstalled(here()))
	}
	return nil
}
