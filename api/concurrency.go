package api

import (
	"errors"
	"sync"

	"palimpsest/tenants"
)

// retryCrowded is the Retry-After value, in seconds, for a workspace with too many requests.
const retryCrowded = "1"

// errCrowded says that a workspace has too many requests open.
var errCrowded = errors.New("workspace has too many requests at once")

// Concurrency bounds how many requests, streams among them, each workspace has open
// in this process, so that one cannot take the connections and the memory of the
// others.
type Concurrency struct {
	limit int

	mu   sync.Mutex
	open map[tenants.WorkspaceID]int
}

// NewConcurrency returns a Concurrency with a limit per workspace.
func NewConcurrency(limit int) *Concurrency {
	return &Concurrency{limit: limit, open: make(map[tenants.WorkspaceID]int)}
}

// enter counts a request of a workspace until the caller calls leave, once; or it returns errCrowded.
func (c *Concurrency) enter(workspace tenants.WorkspaceID) (leave func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[workspace] >= c.limit {
		return nil, errCrowded
	}
	c.open[workspace]++
	return func() { c.leave(workspace) }, nil
}

func (c *Concurrency) leave(workspace tenants.WorkspaceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[workspace]--; c.open[workspace] == 0 {
		delete(c.open, workspace)
	}
}
