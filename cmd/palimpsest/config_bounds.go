package main

import (
	"fmt"
	"math"
	"strconv"

	"palimpsest/api/connections"
	"palimpsest/migrations/partitions"
)

// Bounds is what many requests may take together in one process.
type Bounds struct {
	WorkspaceMegabytes int // PALIMPSEST_WORKSPACE_INFLIGHT_MB: of the bodies of a workspace's requests that wait for their answer
	Megabytes          int // PALIMPSEST_INFLIGHT_MB: of all bodies that do
	PlaceConnections   int // PALIMPSEST_CONNECTIONS_PER_PLACE: connections of one place on which nobody has proven who they are; 0: any number
	KeyConnections     int // PALIMPSEST_CONNECTIONS_PER_KEY: of an API key or a login; 0: any number
	AccountConnections int // PALIMPSEST_CONNECTIONS_PER_ACCOUNT: of all workspaces that one person owns; 0: any number
}

// DefaultBounds returns the bounds of an installation that sets none.
func DefaultBounds() Bounds {
	return Bounds{WorkspaceMegabytes: 256, Megabytes: 1024, PlaceConnections: 512, KeyConnections: 512, AccountConnections: 1024}
}

// mostReserved is how many file descriptors connections of clients leave, at most, to the admin
// listener, the database, idle connections to providers and files. They leave a quarter of fewer.
const mostReserved = 1024

// connections returns how many connections there may be.
func (b Bounds) connections() connections.Limits {
	limits := connections.Limits{PerPlace: b.PlaceConnections, PerKey: b.KeyConnections, PerAccount: b.AccountConnections}
	if files, known := mostFiles(); known {
		limits.Descriptors = descriptorsOf(files)
	}
	return limits
}

// descriptorsOf returns how many of the files that the process may have open connections of clients take;
// 0 for any number.
func descriptorsOf(files uint64) int {
	if files > math.MaxInt32 {
		return 0
	}
	all := int(files) //nolint:gosec // no more than MaxInt32
	return all - min(mostReserved, all/4)
}

// leastMegabytes lets one body of the largest size through.
const leastMegabytes = 64

// boundSettings lists the settings of bounds.
func boundSettings() []setting {
	whole := func(least int, field func(*Bounds) *int) func(*Config, string) error {
		return func(config *Config, value string) error {
			number, err := strconv.Atoi(value)
			if err != nil || number < least || number > 1<<20 {
				return fmt.Errorf("must be a whole number from %d to %d", least, 1<<20)
			}
			*field(&config.Bounds) = number
			return nil
		}
	}
	return []setting{
		{"PALIMPSEST_WORKSPACE_INFLIGHT_MB", whole(leastMegabytes, func(b *Bounds) *int { return &b.WorkspaceMegabytes })},
		{"PALIMPSEST_INFLIGHT_MB", whole(leastMegabytes, func(b *Bounds) *int { return &b.Megabytes })},
		{"PALIMPSEST_CONNECTIONS_PER_PLACE", whole(0, func(b *Bounds) *int { return &b.PlaceConnections })},
		{"PALIMPSEST_CONNECTIONS_PER_KEY", whole(0, func(b *Bounds) *int { return &b.KeyConnections })},
		{"PALIMPSEST_CONNECTIONS_PER_ACCOUNT", whole(0, func(b *Bounds) *int { return &b.AccountConnections })},
		{"PALIMPSEST_KEEP_REQUESTS_DAYS", func(config *Config, value string) error {
			days, err := strconv.Atoi(value)
			if err != nil || days != 0 && (days < partitions.LeastDays || days > 36_500) {
				return fmt.Errorf("must be 0, which keeps them for ever, or a number of days from %d to 36500", partitions.LeastDays)
			}
			config.KeepRequestsDays = days
			return nil
		}},
	}
}
