package dbtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Server is a test's own PostgreSQL server, which ends with the test.
type Server struct {
	OwnerURL string

	dir string
}

// NewServer starts a server with an empty database.
func NewServer(t testing.TB) *Server {
	t.Helper()
	const database = "palimpsest"
	s := &Server{dir: filepath.Join(t.TempDir(), "server")}
	cluster := started(t, s.dir)
	if err := cluster.CreateDatabase(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.signal(t, syscall.SIGCONT) }) // runs before the server is stopped
	s.OwnerURL = cluster.DSN(database)
	return s
}

// Freeze stops the server and all its processes: connections stay open, but get no answers.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// Thaw resumes the server.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

// signal sends a signal to the server and its current child processes.
func (s *Server) signal(t testing.TB, what syscall.Signal) {
	t.Helper()
	server := postmaster(t, filepath.Join(s.dir, "data"))
	if err := syscall.Kill(server, what); err != nil {
		t.Fatal(err)
	}
	for _, process := range childrenOf(t, server) {
		_ = syscall.Kill(process, what) // it may have ended
	}
}

// postmaster returns the process of the server on a data directory.
func postmaster(t testing.TB, data string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid")) //nolint:gosec // below the test's own directory
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	id, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// childrenOf returns a process's child processes.
func childrenOf(t testing.TB, parent int) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // of the system
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(content), ") ") // after the name of the program
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, id)
		}
	}
	return children
}
