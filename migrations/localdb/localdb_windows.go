package localdb

import "context"

// Cluster is a running PostgreSQL cluster, which a program on Windows never has.
type Cluster struct{}

// Start returns ErrNotInstalled: on Windows, PostgreSQL runs as a service of its own.
func Start(context.Context, Config) (*Cluster, error) { return nil, notInstalled(here()) }

// Remove does nothing.
func Remove(context.Context, string) error { return nil }

// Running returns ErrInUse.
func Running(string, string) (string, error) { return "", ErrInUse }

// DSN returns "".
func (c *Cluster) DSN(string) string { return "" }

// CreateDatabase returns ErrNotInstalled.
func (c *Cluster) CreateDatabase(context.Context, string) error { return ErrNotInstalled }

// Done returns nil.
func (c *Cluster) Done() <-chan struct{} { return nil }

// Stop does nothing.
func (c *Cluster) Stop() error { return nil }
