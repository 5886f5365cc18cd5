package settings

import (
	"fmt"
	"math"
	"strconv"

	"palimpsest/api/connections"
	"palimpsest/migrations/partitions"
)

// Bounds limits the resources that many requests may take together in one process.
type Bounds struct {
	WorkspaceMegabytes int // PALIMPSEST_WORKSPACE_INFLIGHT_MB: bodies of a workspace's requests in flight
	Megabytes          int // PALIMPSEST_INFLIGHT_MB: all bodies in flight
	PlaceConnections   int // PALIMPSEST_CONNECTIONS_PER_PLACE: connections of one place without an authenticated request; 0: no limit
	KeyConnections     int // PALIMPSEST_CONNECTIONS_PER_KEY: of an API key or a login; 0: no limit
	AccountConnections int // PALIMPSEST_CONNECTIONS_PER_ACCOUNT: of all workspaces of one owner; 0: no limit
}

// DefaultBounds returns the bounds of an installation without its own.
func DefaultBounds() Bounds {
	return Bounds{WorkspaceMegabytes: 256, Megabytes: 1024, PlaceConnections: 512, KeyConnections: 512, AccountConnections: 1024}
}

// mostReserved is the maximum number of file descriptors reserved for the admin listener, the database,
// idle connections to providers and files. If the process may have few descriptors, a quarter of them is
// reserved.
const mostReserved = 1024

// Connections returns the limits on client connections.
func (b Bounds) Connections() connections.Limits {
	limits := connections.Limits{PerPlace: b.PlaceConnections, PerKey: b.KeyConnections, PerAccount: b.AccountConnections}
	if files, known := mostFiles(); known {
		limits.Descriptors = descriptorsOf(files)
	}
	return limits
}

// descriptorsOf returns how many of the process's file descriptors client connections may take; 0 means no
// limit.
func descriptorsOf(files uint64) int {
	if files > math.MaxInt32 {
		return 0
	}
	all := int(files)
	return all - min(mostReserved, all/4)
}

// leastMegabytes is the minimum that lets one body of the largest size through.
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
			config.Storage.KeepRequestsDays = days
			return nil
		}},
	}
}
