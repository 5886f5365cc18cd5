package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"palimpsest/migrations/localdb"
)

// part is a server that can be killed, stopped for a while and restarted.
type part interface {
	start(ctx context.Context) error
	signal(what syscall.Signal)
	wait() // until it has ended
}

// process is a part with a single process.
type process struct {
	name    string
	command func() (*exec.Cmd, string, error) // and its listening address
	log     string
	link    *link

	running *exec.Cmd
	ended   chan struct{}
}

func (p *process) start(ctx context.Context) error {
	command, address, err := p.command()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	p.running, p.ended = command, ended
	go func() { _ = command.Wait(); close(ended) }()
	if err := listens(ctx, address, ended); err != nil {
		return fmt.Errorf("%s: %w; see %s", p.name, err, p.log)
	}
	p.link.target.Store(address)
	return nil
}

func (p *process) signal(what syscall.Signal) {
	if p.running != nil {
		_ = p.running.Process.Signal(what)
	}
}

func (p *process) wait() {
	if p.running != nil {
		<-p.ended
	}
}

// hasEnded reports whether the process has ended.
func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// listens waits until an address accepts connections.
func listens(ctx context.Context, address string, ended <-chan struct{}) error {
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return errors.New("ended at once")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// free returns an unused address.
func free() (string, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// database is a PostgreSQL server. A signal goes to its first process and all children
// of that.
type database struct {
	dir     string
	link    *link
	cluster *localdb.Cluster
}

func (d *database) start(ctx context.Context) error {
	if d.cluster != nil {
		_ = d.cluster.Stop() // releases the directory
	}
	var err error
	if d.cluster, err = localdb.Start(ctx, localdb.Config{Dir: d.dir, Path: os.Getenv("PATH")}); err != nil {
		return err
	}
	address, err := d.address()
	d.link.target.Store(address)
	return err
}

// address returns the server's address, which changes with each start.
func (d *database) address() (string, error) {
	content, err := os.ReadFile(filepath.Join(d.dir, "data", "postmaster.pid"))
	lines := strings.Split(string(content), "\n")
	if err != nil || len(lines) < 4 {
		return "", fmt.Errorf("where PostgreSQL listens: %w", err)
	}
	return net.JoinHostPort("127.0.0.1", lines[3]), nil
}

func (d *database) signal(what syscall.Signal) {
	content, err := os.ReadFile(filepath.Join(d.dir, "data", "postmaster.pid"))
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(content), "\n")
	server, err := strconv.Atoi(line)
	if err != nil {
		return
	}
	children := childrenOf(server)
	_ = syscall.Kill(server, what)
	for _, child := range children {
		_ = syscall.Kill(child, what)
	}
}

func (d *database) wait() { <-d.cluster.Done() }

// childrenOf returns the child processes of a process.
func childrenOf(parent int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for a malformed pattern
	var children []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(content), ") ") // after the program's name
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				children = append(children, id)
			}
		}
	}
	return children
}

// disk is its own file system, which can be full.
type disk struct{ dir string }

func newDisk(dir string, megabytes int) (disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return disk{}, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", megabytes)); err != nil {
		return disk{}, fmt.Errorf("mount a small disk: %w", err)
	}
	return disk{dir: dir}, nil
}

func (d disk) fill() error {
	file, err := os.Create(filepath.Join(d.dir, "full"))
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

func (d disk) clear() error { return os.Remove(filepath.Join(d.dir, "full")) }

func (d disk) close() { _ = syscall.Unmount(d.dir, syscall.MNT_DETACH) }
