package localdb

import "context"

// Cluster is a running PostgreSQL cluster. Programs on Windows never have one.
type Cluster struct{}

// Start returns ErrNotInstalled, because PostgreSQL runs as a service of its own on Windows.
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
