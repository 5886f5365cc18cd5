package connect

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Place is the machine on which clients are set up.
type Place struct {
	OS      string // as runtime.GOOS
	Home    string
	Project string // the project's folder if there is one, otherwise the working folder

	// Env returns a variable of the environment, "" if it is not set.
	Env func(name string) string

	// Program returns the path of a program, "" if it is not in PATH.
	Program func(name string) string
}

// Here is this machine and its user.
func Here() (Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Place{}, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return Place{}, err
	}
	return Place{OS: runtime.GOOS, Home: home, Project: folder, Env: os.Getenv, Program: inPath}, nil
}

// ThisProgram returns the path by which clients start this program: its place in PATH if it is there,
// because that stays the same when a package manager replaces the program.
func ThisProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	inPath, err := exec.LookPath("palimpsest")
	if err != nil {
		return self, nil //nolint:nilerr // it is in no folder of the path
	}
	a, errA := os.Stat(self)
	b, errB := os.Stat(inPath)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return self, nil //nolint:nilerr // the path has another program
	}
	return filepath.Abs(inPath)
}

func inPath(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// home returns a path below the user's home folder.
func (p Place) home(path ...string) string {
	return filepath.Join(append([]string{p.Home}, path...)...)
}

// in returns a path below the folder named by an environment variable, or else below a folder in the user's
// home.
func (p Place) in(variable, otherwise string, path ...string) string {
	folder := cmp.Or(p.Env(variable), p.home(otherwise))
	return filepath.Join(append([]string{folder}, path...)...)
}

// project returns a path below the folder of the project.
func (p Place) project(path ...string) string {
	return filepath.Join(append([]string{p.Project}, path...)...)
}

// config returns a path in the folder for settings of programs that follow the XDG rules on every system.
func (p Place) config(path ...string) string {
	return p.in("XDG_CONFIG_HOME", ".config", path...)
}

// state returns a path in the folder for records of changed files.
func (p Place) state(path ...string) string {
	folder := p.in("XDG_STATE_HOME", filepath.Join(".local", "state"), "palimpsest", "connect")
	switch p.OS {
	case "darwin":
		folder = p.home("Library", "Application Support", "palimpsest", "connect")
	case "windows":
		folder = p.in("LOCALAPPDATA", filepath.Join("AppData", "Local"), "palimpsest", "connect")
	}
	return filepath.Join(append([]string{folder}, path...)...)
}
