package jobsdb

import (
	"sync"
	"time"

	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
)

const (
	crowdEvery = time.Minute
	// crowdFirst and crowdSecond are how many jobs of a kind a workspace may enqueue per minute before its
	// next jobs have a lower priority than those of other workspaces.
	crowdFirst  = 8
	crowdSecond = 64

	maxCrowds = 10_000 // counted workspaces
)

// crowds counts the jobs of each workspace, so that a flood of jobs from one workspace waits behind the few
// of others. River takes the jobs of a queue by priority.
type crowds struct {
	mu    sync.Mutex
	since time.Time
	jobs  map[crowd]int
}

type crowd struct {
	kind      jobs.Kind
	workspace tenants.WorkspaceID
}

// priority counts a job and returns its priority: 1 goes first, 3 last.
func (c *crowds) priority(kind jobs.Kind, workspace tenants.WorkspaceID, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil || now.Sub(c.since) >= crowdEvery || len(c.jobs) >= maxCrowds {
		c.since, c.jobs = now, map[crowd]int{}
	}
	of := crowd{kind, workspace}
	c.jobs[of]++
	switch count := c.jobs[of]; {
	case count <= crowdFirst:
		return 1
	case count <= crowdSecond:
		return 2
	default:
		return 3
	}
}
