package tenants

import "time"

// Usage adds up exchanges. Each number is defined here and nowhere else.
type Usage struct {
	Exchanges int64 // requests that were let in by an API key, whatever became of them
	Failures  int64 // of them, answered with a status of 400 or above; not those whose client left (499)
	Epochs    int64 // of them, those that made a new projection

	TokensBefore int64 // estimates of the prompts as clients sent them
	TokensAfter  int64 // estimates of the prompts as they were sent on

	Input, CacheRead, CacheWrite, Output int64 // tokens as providers reported them

	CostMicroUSD int64 // at list prices
	NetMicroUSD  int64 // saved, net of cache rewrites; can be negative
}

// Totals is the usage of a workspace in a span of time.
type Totals struct {
	Usage

	// The proxy's own work before the provider was dialled, of exchanges that
	// reached one: half of them, and all but one in a hundred, took no longer.
	OverheadP50, OverheadP99 time.Duration
}

// Balance is what the exchanges of a workspace cost, saved and missed in a span of
// time.
type Balance struct {
	Edited       int64 // exchanges whose prompt had a projection
	CostMicroUSD int64 // of all exchanges, at list prices
	NetMicroUSD  int64 // saved, net of cache rewrites; can be negative
	Misses       []Misses
}

// Misses are the cache misses of one cause.
type Misses struct {
	Cause  string
	Count  int64
	Tokens int64 // that the provider's cache should have had
}

// Point is the usage of a workspace in one step of a chart.
type Point struct {
	Usage

	From time.Time // where the step begins; the next one's From ends it
}

// Dimension is what usage can be split by.
type Dimension string

// The dimensions of usage.
const (
	ByDay    Dimension = "day" // in UTC
	ByClient Dimension = "client"
	ByModel  Dimension = "model"
	ByKey    Dimension = "key"
)

// UsageRow is the part of a workspace's usage that one day, client, model or API
// key has.
type UsageRow struct {
	Usage

	Label string // 2026-01-31, the client, the model or the API key's id
	Name  string // of the API key; Label in other dimensions
}
