package tenants

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// UsageStep is what usage is counted in: every range of time begins and ends with one,
// in UTC.
const UsageStep = 30 * time.Minute

// UsageFilter says which exchanges are added up: those of a range of time, and of one
// client, model, API key or person.
type UsageFilter struct {
	From, To time.Time // To is excluded
	Client   string    // empty: all
	Model    string    // empty: all
	APIKey   uuid.UUID // uuid.Nil: all
	Member   uuid.UUID // the person behind the API key; uuid.Nil: all
}

// SeenBy returns the filter narrowed to what a person may see of who spent what: everything with the
// permission ReadSpend, else what they spent themselves.
func (f UsageFilter) SeenBy(person uuid.UUID, may func(Permission) bool) UsageFilter {
	if !may(ReadSpend) {
		f.Member = person
	}
	return f
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
func (f UsageFilter) IsPart() bool {
	return f.Client != "" || f.Model != "" || f.APIKey != uuid.Nil || f.Member != uuid.Nil
}

// Usage adds up exchanges. Each number is described here and nowhere else, see pipeline/sums; migrations say how it adds up. What
// the product asks of models by itself, summaries and embeddings, counts in what is paid and saved, and is no exchange of a client.
type Usage struct {
	Exchanges   int64 `gorm:"column:exchanges"   help:"Requests that were let in by an API key, whatever became of them"                                             json:"requests"`
	Failures    int64 `gorm:"column:failures"    help:"Requests that were answered with a status of 400 or above; not those whose client left (499)"               json:"failures"`
	Edited      int64 `gorm:"column:edited"      json:"-"` // whose prompt had a projection
	Unreachable int64 `gorm:"column:unreachable" json:"-"` // that no projection brought down to the target
	Compactions int64 `gorm:"column:compactions" json:"-"` // clients asked for a summary of their own
	Bridged     int64 `gorm:"column:bridged"     json:"-"` // what such a summary had lost was put back

	UsageEpochs
	UsageTokens
	UsageCost
	UsageReach
	UsageLevels
}

// UsageEpochs counts the exchanges that made a new projection.
type UsageEpochs struct {
	Epochs int64 `gorm:"column:epochs" help:"Requests that compressed their prompt further" json:"epochs"`

	// Epochs by the deepest level in the prompt, but for emergencies, after the
	// provider had found a prompt too long, and truncations, which leave out what
	// nothing stands for.
	EpochsL1    int64 `gorm:"column:epochs_l1"   json:"-"`
	EpochsL2    int64 `gorm:"column:epochs_l2"   json:"-"`
	EpochsL3    int64 `gorm:"column:epochs_l3"   json:"-"`
	Emergencies int64 `gorm:"column:emergencies" json:"-"`
	Truncations int64 `gorm:"column:truncations" json:"-"`
}

// UsageTokens adds up tokens.
type UsageTokens struct {
	TokensBefore int64 `gorm:"column:tokens_before" help:"Estimate of the prompts as clients sent them, in tokens" json:"tokens_before"`
	TokensAfter  int64 `gorm:"column:tokens_after"  help:"Estimate of the prompts as they were sent on, in tokens" json:"tokens_after"`
	Input        int64 `gorm:"column:input"         help:"Input tokens as providers reported them, without cache"  json:"input"`
	CacheRead    int64 `gorm:"column:cache_read"    help:"Input tokens that were read from the providers' caches"  json:"cache_read"`
	CacheWrite   int64 `gorm:"column:cache_write"   help:"Input tokens that were written to the providers' caches" json:"cache_write"`
	Output       int64 `gorm:"column:output"        help:"Output tokens as providers reported them"                json:"output"`
}

// Prompt returns the size of all prompts as providers reported it.
func (t *UsageTokens) Prompt() int64 { return t.Input + t.CacheRead + t.CacheWrite }

// UsageReach adds up the exchanges whose prompt the provider would have refused for its length, and which it answered
// because we shortened it. They are no savings: none of NetMicroUSD is theirs.
type UsageReach struct {
	Reach       int64 `gorm:"column:reach"        help:"Requests kept alive: the provider would have refused their prompt for its length, and answered because it was shortened. No money and no tokens are claimed as saved for them" json:"reach"`
	ReachBefore int64 `gorm:"column:reach_before" help:"The part of tokens_before of requests kept alive" json:"reach_tokens_before"`
	ReachAfter  int64 `gorm:"column:reach_after"  help:"The part of tokens_after of requests kept alive"  json:"reach_tokens_after"`
}

// Saved returns how many tokens were not sent of prompts that could have been sent as they came.
func (u *Usage) Saved() int64 { return u.Sendable() - (u.TokensAfter - u.ReachAfter) }

// Sendable returns the tokens of the prompts that could have been sent as they came: what Saved is a share of.
func (u *Usage) Sendable() int64 { return u.TokensBefore - u.ReachBefore }

// UsageLevels counts the turns in the prompts by their level.
type UsageLevels struct {
	Level0 int64 `gorm:"column:level_0" json:"-"`
	Level1 int64 `gorm:"column:level_1" json:"-"`
	Level2 int64 `gorm:"column:level_2" json:"-"`
	Level3 int64 `gorm:"column:level_3" json:"-"`
}

// Levels returns the turns at L0 to L3.
func (l *UsageLevels) Levels() [4]int64 { return [4]int64{l.Level0, l.Level1, l.Level2, l.Level3} }

// UsageCost adds up what was paid and saved, in millionths of a US dollar. NetMicroUSD has three more parts beside NotSentMicroUSD.
type UsageCost struct {
	CostMicroUSD      int64 `gorm:"column:cost_microusd"      help:"What the requests cost"                                json:"cost_micro_usd"`
	NetMicroUSD       int64 `gorm:"column:net_microusd"       help:"Money saved: not_sent + unread - rewritten - own; can be negative" json:"net_micro_usd"`
	UnreadMicroUSD    int64 `gorm:"column:unread_microusd"    help:"Cached input that was not read"                        json:"unread_micro_usd"`
	RewrittenMicroUSD int64 `gorm:"column:rewritten_microusd" help:"Cache rewritten because Palimpsest changed the prompt" json:"rewritten_micro_usd"`
	OwnMicroUSD       int64 `gorm:"column:own_microusd"       help:"Paid for summaries and embeddings"                     json:"own_micro_usd"`
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

// The dimensions of usage, beside those of tags: "tag:" and the tag's name.
const (
	ByDay     Dimension = "day" // in UTC
	ByClient  Dimension = "client"
	ByModel   Dimension = "model"
	ByKey     Dimension = "key"
	ByMember  Dimension = "member"  // the person behind the API key
	ByProject Dimension = "project" // the value of ProjectTag
)

// ParseDimension reads a dimension. It returns an Invalid for what is not one.
func ParseDimension(text string) (Dimension, error) {
	by := Dimension(text)
	if by.Tag() == "" && !slices.Contains([]Dimension{ByDay, ByClient, ByModel, ByKey, ByMember}, by) {
		return "", Invalid{Field: "by", Message: "must be one of day, key, member, project, model, client, or tag:NAME, such as tag:team"}
	}
	return by, nil
}

// Tag returns the name of the tag whose values a dimension splits by; "" if it is another dimension.
func (d Dimension) Tag() string {
	if d == ByProject {
		return ProjectTag
	}
	if name, is := strings.CutPrefix(string(d), "tag:"); is && isTagName(name) {
		return name
	}
	return ""
}

// IsPersonal reports whether the rows of a dimension say what single people spent.
func (d Dimension) IsPersonal() bool { return d == ByMember || d.Tag() != "" }

// UsageRow is the part of a workspace's usage that one value of a dimension has.
type UsageRow struct {
	Usage

	// Label is 2026-01-31, the client, the model, the tag's value, or the id of the API key or person. It is
	// "" for requests without the tag, and without a person.
	Label string
	Name  string // of the API key, "" if it is gone; address of the person, "" if they left; Label in other dimensions
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

	// Usage splits it by a dimension. It returns an Invalid for tags with a filter of a client or model.
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
