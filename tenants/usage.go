package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// UsageStep is what usage is counted in: every range of time begins and ends with one,
// in UTC.
const UsageStep = 30 * time.Minute

// UsageFilter says which exchanges are added up: those of a range of time, and of one
// client, model or API key.
type UsageFilter struct {
	From, To time.Time // To is excluded
	Client   string    // empty: all
	Model    string    // empty: all
	APIKey   uuid.UUID // uuid.Nil: all
}

// Aligned returns the filter with the smallest range of whole steps that holds its own.
func (f UsageFilter) Aligned() UsageFilter {
	f.From = f.From.UTC().Truncate(UsageStep)
	if to := f.To.UTC().Truncate(UsageStep); to.Before(f.To) {
		f.To = to.Add(UsageStep)
	} else {
		f.To = to
	}
	return f
}

// Before returns the filter for the range of the same length that ends where this one
// begins.
func (f UsageFilter) Before() UsageFilter {
	f.From, f.To = f.From.Add(-f.To.Sub(f.From)), f.From
	return f
}

// IsPart reports whether the filter leaves exchanges of its range out.
func (f UsageFilter) IsPart() bool { return f.Client != "" || f.Model != "" || f.APIKey != uuid.Nil }

// Usage adds up exchanges. Each number is defined here and nowhere else. What the
// product asks of models by itself, summaries and embeddings, counts in what is paid
// and saved, and is no exchange of a client.
type Usage struct {
	Exchanges   int64 // requests that were let in by an API key, whatever became of them
	Failures    int64 // of them, answered with a status of 400 or above; not those whose client left (499)
	Edited      int64 // of them, those whose prompt had a projection
	Unreachable int64 // of them, those that no projection brought down to the target
	Compactions int64 // clients asked for a summary of their own
	Bridged     int64 // what such a summary had lost was put back

	// Reach counts the exchanges whose prompt the provider would have refused for its
	// length, and which it answered because we shortened it. None of NetMicroUSD is theirs.
	Reach int64

	Levels [4]int64 // turns at L0 to L3 in the prompts

	UsageEpochs
	UsageTokens
	UsageCost
}

// UsageEpochs counts the exchanges that made a new projection.
type UsageEpochs struct {
	Epochs int64 // all of them

	// Epochs by the deepest level in the prompt, but for emergencies, after the
	// provider had found a prompt too long, and truncations, which leave out what
	// nothing stands for.
	EpochsL1, EpochsL2, EpochsL3, Emergencies, Truncations int64
}

// UsageTokens adds up tokens.
type UsageTokens struct {
	TokensBefore int64 // estimates of the prompts as clients sent them
	TokensAfter  int64 // estimates of the prompts as they were sent on

	Input, CacheRead, CacheWrite, Output int64 // as providers reported them
}

// Prompt returns the size of all prompts as providers reported it.
func (t *UsageTokens) Prompt() int64 { return t.Input + t.CacheRead + t.CacheWrite }

// Saved returns how many tokens were not sent.
func (t *UsageTokens) Saved() int64 { return t.TokensBefore - t.TokensAfter }

// UsageCost adds up what was paid and saved, in millionths of a US dollar.
type UsageCost struct {
	CostMicroUSD int64 // at list prices
	NetMicroUSD  int64 // saved, net of cache rewrites and our own calls; can be negative

	// The parts of NetMicroUSD beside NotSentMicroUSD.
	UnreadMicroUSD    int64 // cached input that was not read
	RewrittenMicroUSD int64 // paid to write the cache again because we changed the prompt
	OwnMicroUSD       int64 // paid for summaries and embeddings
}

// NotSentMicroUSD returns what input that was not sent would have cost. With it,
// net = not sent + unread − rewritten − own.
func (c *UsageCost) NotSentMicroUSD() int64 {
	return c.NetMicroUSD - c.UnreadMicroUSD + c.RewrittenMicroUSD + c.OwnMicroUSD
}

// Overhead is the proxy's own work before the provider was dialled, of exchanges that
// reached one: half of them, and all but one in a hundred, took no longer. Each is at
// most 4.5 % from the exact value; below 32 µs it is 16 µs.
type Overhead struct {
	P50, P99 time.Duration
	Measured int64 // exchanges; 0: the others say nothing
}

// Totals is the usage of a workspace in a span of time.
type Totals struct {
	Usage

	Overhead Overhead
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
	Totals

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

// UsageChoices are what usage can be filtered by: what a range of time has.
type UsageChoices struct {
	Clients, Models []string
	APIKeys         []UsageKey
}

// UsageKey is an API key that usage can be filtered by.
type UsageKey struct {
	ID   uuid.UUID
	Name string // empty: the key is gone
}

// Obstacle says what kept prompts above their target: most of them was of a kind that no
// level makes shorter.
type Obstacle struct {
	Reason  string // of the event target_unreachable, such as "newest_turn"; "" if not recorded
	Client  string
	Version string // of the client; "" if it named none
	Model   string
	Count   int64     // requests
	Since   time.Time // the first of them
}

// KeyFailure is how many requests failed at a provider key.
type KeyFailure struct {
	Key   uuid.UUID
	Count int64
}

// Rejection says that a provider refuses a key.
type Rejection struct {
	Key      uuid.UUID
	Name     string
	Provider Provider
	Count    int64     // requests since the last one that it took
	Since    time.Time // the first of them
	Status   int       // of the provider's newest refusal
}

// UsageReader adds up a workspace's exchanges. Every filter is aligned.
type UsageReader interface {
	// Totals adds up the exchanges of a filter.
	Totals(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (Totals, error)

	// Series is the same in steps of one length.
	Series(ctx context.Context, workspace WorkspaceID, filter UsageFilter, step time.Duration) ([]Point, error)

	// Balance adds up what exchanges cost, saved and missed.
	Balance(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (Balance, error)

	// Usage splits it by a dimension.
	Usage(ctx context.Context, workspace WorkspaceID, by Dimension, filter UsageFilter) ([]UsageRow, error)

	// UsageChoices returns what the filter can be narrowed to.
	UsageChoices(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (UsageChoices, error)

	// Obstacles returns what kept prompts above their target since a time.
	Obstacles(ctx context.Context, workspace WorkspaceID, since time.Time) ([]Obstacle, error)

	// KeyFailures returns how many requests failed at each enabled provider key since a time for a reason that
	// another key may not have: rate limits, errors of the provider, no answer.
	KeyFailures(ctx context.Context, workspace WorkspaceID, since time.Time) ([]KeyFailure, error)

	// Rejections returns the provider keys that are refused, since a time at most.
	Rejections(ctx context.Context, workspace WorkspaceID, since time.Time) ([]Rejection, error)
}
