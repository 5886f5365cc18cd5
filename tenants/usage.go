package tenants

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// UsageStep is the resolution of usage: every range of time begins and ends at a multiple of it, in UTC.
const UsageStep = 30 * time.Minute

// UsageFilter selects exchanges by range of time, client, model, API key or person.
type UsageFilter struct {
	From, To time.Time // To is excluded
	Client   string    // empty: all
	Model    string    // empty: all
	APIKey   uuid.UUID // uuid.Nil: all
	Member   uuid.UUID // the person behind the API key; uuid.Nil: all
}

// SeenBy narrows the filter to the spend that a person may see: everything with the permission ReadSpend,
// otherwise only their own.
func (f UsageFilter) SeenBy(person uuid.UUID, may func(Permission) bool) UsageFilter {
	if !may(ReadSpend) {
		f.Member = person
		if person == uuid.Nil {
			f.Member = uuid.Max // an API key without a person: nothing, rather than everything
		}
	}
	return f
}

// Aligned returns the filter with the smallest range of whole steps that contains its own.
func (f UsageFilter) Aligned() UsageFilter {
	f.From = f.From.UTC().Truncate(UsageStep)
	if to := f.To.UTC().Truncate(UsageStep); to.Before(f.To) {
		f.To = to.Add(UsageStep)
	} else {
		f.To = to
	}
	return f
}

// Before returns the filter for the preceding range of the same length.
func (f UsageFilter) Before() UsageFilter {
	f.From, f.To = f.From.Add(-f.To.Sub(f.From)), f.From
	return f
}

// IsPart reports whether the filter excludes exchanges of its range.
func (f UsageFilter) IsPart() bool {
	return f.Client != "" || f.Model != "" || f.APIKey != uuid.Nil || f.Member != uuid.Nil
}

// Usage adds up exchanges. Each number is described only here, see pipeline/sums; migrations define the sums.
// The product's own requests to models, for summaries and embeddings, count in cost and savings, but not as
// clients' exchanges.
type Usage struct {
	Exchanges int64 `gorm:"column:exchanges" help:"Requests that were let in by an API key, whatever became of them"                             json:"requests"`
	Failures  int64 `gorm:"column:failures"  help:"Requests that were answered with a status of 400 or above; not those whose client left (499)" json:"failures"`
	Epochs    int64 `gorm:"column:epochs"    help:"Requests that compressed their prompt further"                                                json:"epochs"`

	UsageTokens
	UsageCost
	UsageReach
}

// PromptUsage counts requests by the treatment of their prompt. The JSON API does not have these numbers.
type PromptUsage struct {
	Edited      int64 `gorm:"column:edited"`      // whose prompt had a projection
	Unreachable int64 `gorm:"column:unreachable"` // that no projection brought down to the target
	Compactions int64 `gorm:"column:compactions"` // clients asked for a summary of their own
	Bridged     int64 `gorm:"column:bridged"`     // content that such a summary had lost was restored

	// Usage.Epochs by the deepest level in the prompt. Emergencies, which follow a provider's rejection of a
	// prompt as too long, and truncations, which drop content without a replacement, count separately.
	EpochsL1    int64 `gorm:"column:epochs_l1"`
	EpochsL2    int64 `gorm:"column:epochs_l2"`
	EpochsL3    int64 `gorm:"column:epochs_l3"`
	Emergencies int64 `gorm:"column:emergencies"`
	Truncations int64 `gorm:"column:truncations"`

	// The turns in the prompts by their level.
	Level0 int64 `gorm:"column:level_0"`
	Level1 int64 `gorm:"column:level_1"`
	Level2 int64 `gorm:"column:level_2"`
	Level3 int64 `gorm:"column:level_3"`
}

// Levels returns the turns at L0 to L3.
func (u *PromptUsage) Levels() [4]int64 { return [4]int64{u.Level0, u.Level1, u.Level2, u.Level3} }

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

// UsageReach adds up the exchanges whose prompt the provider would have refused for its length, but answered
// because we shortened it. They are not savings, and NetMicroUSD excludes them.
type UsageReach struct {
	Reach       int64 `gorm:"column:reach"        help:"Requests kept alive: the provider would have refused their prompt for its length, and answered because it was shortened. No money and no tokens are claimed as saved for them" json:"reach"`
	ReachBefore int64 `gorm:"column:reach_before" help:"The part of tokens_before of requests kept alive"                                                                                                                              json:"reach_tokens_before"`
	ReachAfter  int64 `gorm:"column:reach_after"  help:"The part of tokens_after of requests kept alive"                                                                                                                               json:"reach_tokens_after"`
}

// Saved returns the number of tokens not sent, of prompts that could have been sent unchanged.
func (u *Usage) Saved() int64 { return u.Sendable() - (u.TokensAfter - u.ReachAfter) }

// Sendable returns the tokens of the prompts that could have been sent unchanged. Saved is a share of it.
func (u *Usage) Sendable() int64 { return u.TokensBefore - u.ReachBefore }

// UsageCost adds up cost and savings, in millionths of a US dollar. NetMicroUSD has three more parts besides
// NotSentMicroUSD.
type UsageCost struct {
	CostMicroUSD      int64 `gorm:"column:cost_microusd"      help:"What the requests cost"                                            json:"cost_micro_usd"`
	NetMicroUSD       int64 `gorm:"column:net_microusd"       help:"Money saved: not_sent + unread - rewritten - own; can be negative" json:"net_micro_usd"`
	UnreadMicroUSD    int64 `gorm:"column:unread_microusd"    help:"Cached input that was not read"                                    json:"unread_micro_usd"`
	RewrittenMicroUSD int64 `gorm:"column:rewritten_microusd" help:"Cache rewritten because Palimpsest changed the prompt"             json:"rewritten_micro_usd"`
	OwnMicroUSD       int64 `gorm:"column:own_microusd"       help:"Paid for summaries and embeddings"                                 json:"own_micro_usd"`
}

// NotSentMicroUSD returns the cost of the input that was not sent. With it, net = not sent + unread −
// rewritten − own.
func (c *UsageCost) NotSentMicroUSD() int64 {
	return c.NetMicroUSD - c.UnreadMicroUSD + c.RewrittenMicroUSD + c.OwnMicroUSD
}

// Overhead is the proxy's own work before dialing the provider, for exchanges that reached one: the median
// and the 99th percentile. Each deviates by at most 4.5 % from the exact value; below 32 µs it is 16 µs.
type Overhead struct {
	P50, P99 time.Duration
	Measured int64 // exchanges; 0 means no data
}

// Totals is the usage of a workspace in a span of time.
type Totals struct {
	Usage

	Prompts  PromptUsage
	Overhead Overhead
}

// Balance sums up the cost, savings and misses of a workspace's exchanges in a span of time.
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

	From time.Time // start of the step; the next one's From ends it
}

// Dimension is a way to split usage.
type Dimension string

// The dimensions of usage, besides those of tags: "tag:" and the tag's name.
const (
	ByDay     Dimension = "day" // in UTC
	ByClient  Dimension = "client"
	ByModel   Dimension = "model"
	ByKey     Dimension = "key"
	ByMember  Dimension = "member"  // the person behind the API key
	ByProject Dimension = "project" // the value of ProjectTag
)

// ParseDimension parses a dimension. It returns an Invalid for other text.
func ParseDimension(text string) (Dimension, error) {
	by := Dimension(text)
	if by.Tag() == "" && !slices.Contains([]Dimension{ByDay, ByClient, ByModel, ByKey, ByMember}, by) {
		return "", Invalid{Field: "by", Message: "must be one of day, key, member, project, model, client, or tag:NAME, such as tag:team"}
	}
	return by, nil
}

// Tag returns the tag name of a tag's dimension; "" for other dimensions.
func (d Dimension) Tag() string {
	if d == ByProject {
		return ProjectTag
	}
	if name, is := strings.CutPrefix(string(d), "tag:"); is && isTagName(name) {
		return name
	}
	return ""
}

// UsageRow is the part of a workspace's usage with one value of a dimension.
type UsageRow struct {
	Usage

	Prompts PromptUsage

	// Label is 2026-01-31, the client, the model, the tag's value, or the id of the API key or person. It is
	// "" for requests without the tag, and without a person.
	Label string
	Name  string // of the API key, "" if it is gone; address of the person, "" if they left; Label in other dimensions
}

// UsageChoices are the filter values of usage in a range of time.
type UsageChoices struct {
	Clients, Models []string
	APIKeys         []UsageKey
}

// UsageKey is an API key in a usage filter.
type UsageKey struct {
	ID   uuid.UUID
	Name string // "" if the key was deleted
}

// Obstacle is a reason that kept prompts above their target: most of their content was of a kind that no
// level shortens.
type Obstacle struct {
	Reason  string // of the event target_unreachable, such as "newest_turn"; "" if not recorded
	Client  string
	Version string // of the client; "" if unknown
	Model   string
	Count   int64     // requests
	Since   time.Time // the first of them
}

// KeyFailure is the number of failed requests at a provider key.
type KeyFailure struct {
	Key   uuid.UUID
	Count int64
}

// Answered describes how a model's newest requests were answered.
type Answered struct {
	Provider Provider
	Model    string
	Requests int64
	Failed   int64 // status 400 or above, except those whose client left (499)

	// Times of the model: to the first part of its answer, and to the end of it. 0 without a good answer.
	First, P50, P95 time.Duration
}

// MaxAnswered bounds the newest requests that Answers reads.
const MaxAnswered = 5000

// Rejection says that a provider refuses a key.
type Rejection struct {
	Key      uuid.UUID
	Name     string
	Provider Provider
	Count    int64     // requests since the last accepted one
	Since    time.Time // the first of them
	Status   int       // of the provider's newest refusal
}

// UsageReader adds up a workspace's exchanges. Every filter is aligned.
type UsageReader interface {
	// Totals sums up the exchanges of a filter.
	Totals(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (Totals, error)

	// Series sums them up in steps of one length.
	Series(ctx context.Context, workspace WorkspaceID, filter UsageFilter, step time.Duration) ([]Point, error)

	// Balance adds up the cost, savings and misses of exchanges.
	Balance(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (Balance, error)

	// Usage splits them by a dimension. It returns an Invalid for tags with a filter of a client or model.
	Usage(ctx context.Context, workspace WorkspaceID, by Dimension, filter UsageFilter) ([]UsageRow, error)

	// Answers returns how the newest requests of a filter were answered, at most MaxAnswered of them: all
	// together, and by provider and model, those with most requests first.
	Answers(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (Answered, []Answered, error)

	// UsageChoices returns the filter's possible values. Of the filter, its range and Member count.
	UsageChoices(ctx context.Context, workspace WorkspaceID, filter UsageFilter) (UsageChoices, error)

	// Obstacles returns the reasons that kept prompts above their target since a time.
	Obstacles(ctx context.Context, workspace WorkspaceID, since time.Time) ([]Obstacle, error)

	// KeyFailures returns the number of failed requests at each enabled provider key since a time, for
	// reasons that another key may not have: rate limits, errors of the provider, no answer.
	KeyFailures(ctx context.Context, workspace WorkspaceID, since time.Time) ([]KeyFailure, error)

	// Rejections returns the provider keys with refusals, since a time at most.
	Rejections(ctx context.Context, workspace WorkspaceID, since time.Time) ([]Rejection, error)
}
