// Package session finds the session and lane of each request and keeps each lane's prompt state.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// ErrNotFound says that there is no lane for the requested history.
var ErrNotFound = errors.New("no such lane")

// ErrOvertaken says that another replica was first to end the epoch, to add an insert, or to delete the
// session.
var ErrOvertaken = errors.New("lane was changed elsewhere")

// ErrWarm says that another replica has sent a prompt of the lane, so that the provider's cache is alive
// contrary to the assumption.
var ErrWarm = errors.New("lane was used elsewhere and is warm")

// ErrPinned says that someone has pinned the whole session.
var ErrPinned = errors.New("session is pinned")

// ReasonIdle is the Reason of an epoch made after the provider's cache expired.
const ReasonIdle = "idle"

// Projection replaces a lane's first messages in its prompts. It never changes: an epoch makes a new one.
type Projection struct {
	Number int               // 1 for the lane's first epoch
	Covers int               // messages of the client's list that Parts replace
	Chain  conversation.Hash // link of the history after those messages
	Parts  []Part            // in order; From of the first is 0, To of the last is Covers
	Reason string            // why the epoch happened: "target", "limit", ReasonIdle, …
	Before int               // estimate of the prompt in tokens before the epoch
	After  int               // estimate after it
	At     time.Time

	// Certificate counts the protected facts that the projection has kept; nil without a comparison.
	Certificate Certificate
}

// Tokens returns the o200k tokens of the projection's parts; 0 for nil.
func (p *Projection) Tokens() int {
	tokens := 0
	if p != nil {
		for _, part := range p.Parts {
			tokens += part.Tokens
		}
	}
	return tokens
}

// Part is a run of messages in its rendered form.
type Part struct {
	From, To int             // messages of the client's list, To excluded
	Level    int             // 0 to 3
	Raw      json.RawMessage // any number of messages, comma-separated; nil for the client's own bytes
	Tokens   int             // o200k tokens of the rendered form, or of the originals if Raw is nil
	Messages int             // messages in Raw, or To-From if Raw is nil
}

// Join appends written messages to the part.
func (p *Part) Join(written json.RawMessage, messages, tokens int) {
	p.Raw = slices.Grow(p.Raw, len(written)+1)
	if len(p.Raw) > 0 {
		p.Raw = append(p.Raw, ',')
	}
	p.Raw = append(p.Raw, written...)
	p.Messages += messages
	p.Tokens += tokens
}

// Scope bounds the matches of a session id or a history.
type Scope struct {
	Workspace tenants.WorkspaceID
	APIKey    uuid.UUID
	Format    conversation.Format

	// Upstream is the base URL that prompts go to; "" means the provider's own.
	Upstream string `json:",omitempty"`

	// EndUser is the EndUserID of the application's user; "" if the application names no one.
	EndUser string `json:",omitempty"`

	// EndUserName is the application's own id of EndUser if the workspace shows it; "" otherwise. It does not
	// separate histories.
	EndUserName string `json:",omitempty"`

	// Project is the request's tag of this name; "" if absent. It does not separate histories: only memory
	// with the scope "project" uses it.
	Project string `json:",omitempty"`
}

// Update is an exchange's addition to its session, as the recorder stores it.
type Update struct {
	Scope    Scope
	Session  uuid.UUID
	Lane     uuid.UUID
	Kind     Kind // of Lane; "" means Main
	Ancestry      // of Lane

	Naming

	Title  string // start of the first typed message
	Client string
	Model  string

	At       time.Time
	Heat     CacheState // the lane's newest
	Attempts Attempts   // the lane's
	Ahead    *Ahead     // input of a plan for its next epoch; nil if nothing is new

	// The recorder writes these parts beside the other fields.
	Messages  Messages  `cbor:"-"`
	Increment Increment `cbor:"-"`
}

// Messages are an exchange's additions to the history of its lane.
type Messages struct {
	Position int               // messages in the request
	Head     conversation.Hash // link of the history after them
	Entries  []archive.Entry   // messages not yet known to be stored, up to the request's last

	// Links are the history's links before each of Entries and after the last one. It is empty without
	// entries.
	Links []conversation.Hash `json:",omitempty"`

	Answer json.RawMessage // stored only by its hash, because it has no place in the lane until the client sends it; optional
}

// Sum returns counts with others added, or nil if both are empty. It may change counts.
func Sum(counts, others map[string]int) map[string]int {
	if counts == nil && len(others) > 0 {
		counts = make(map[string]int, len(others))
	}
	for kind, count := range others {
		counts[kind] += count
	}
	return counts
}

// HasHead reports whether a later request may continue from the request's end. The end of a side call that
// adds no message belongs to the conversation.
func (s *Update) HasHead() bool {
	return s.Messages.Position > 0 && (s.Kind != Side || s.ForkAt < s.Messages.Position)
}

// Bytes returns how many bytes of messages it holds.
func (s *Update) Bytes() int {
	bytes := len(s.Messages.Answer)
	for i := range s.Messages.Entries {
		bytes += len(s.Messages.Entries[i].Raw)
	}
	return bytes
}

// Found is a stored lane that a history continues.
type Found struct {
	Session uuid.UUID
	Lane    uuid.UUID
	Kind    Kind

	Naming
	Extent

	Heat        CacheState
	Attempts    Attempts
	Projections []Projection // oldest first, including inherited ones
	Wishes
	Summaries []Summary // accepted ones, oldest first, including inherited ones
	Inserts   []Insert  // by number, including inherited ones
	Taken     int       // number of the newest inherited insert; 0 if absent
	IsFork    bool      // it forked from another lane
	Plan      *Plan     // of the next epoch, made for its last prompt; nil if absent
}

// Wishes are what people want of a lane's prompt.
type Wishes struct {
	Pins   []int // pinned messages, in order, including inherited ones
	Pinned bool  // the whole session is pinned
	Order  Order // the newest; zero if absent
}

// Extent holds the message counts of a stored lane.
type Extent struct {
	Match    int // messages of the history before the lane's head
	Tip      int // messages of the lane's longest request
	Archived int // in the archive, without a gap from 0
}

// Store keeps sessions, lanes and projections.
type Store interface {
	// Commit stores the session, lane and entries of the update together with a new projection of its lane,
	// in one transaction that is durable when it returns. It returns ErrOvertaken if a projection with that
	// number exists or if messages that it replaces are not in the archive. It returns ErrWarm if the
	// projection's reason is ReasonIdle and a known prompt of the lane still had a live cache at the time of
	// the update. It returns ErrPinned if the session is pinned and no order is newer.
	Commit(ctx context.Context, update Update, projection Projection) error

	// Inject stores the session, lane and entries of the update together with new inserts of its lane, in one
	// transaction that is durable when it returns. It returns ErrOvertaken if one of their numbers is taken.
	Inject(ctx context.Context, update Update, inserts []Insert) error

	// Withdraw removes a lane's own inserts with a number of from or more.
	Withdraw(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from int) error

	// Record stores the updates of one workspace's exchanges, in order. An exchange that does not continue
	// its lane, because another process has recorded other messages there, is stored in a fork, and its
	// update then names the fork.
	Record(ctx context.Context, tenant tenants.Tenant, updates []Update) error

	// Announce lets all processes find lanes by the ends of requests that are not recorded yet. It keeps the
	// session, the lane and the head of each update.
	Announce(ctx context.Context, workspace tenants.WorkspaceID, updates []Update) error

	// Find returns the lane with the furthest of the given heads, which are in the order of the history. It
	// returns ErrNotFound if no lane has one.
	Find(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (Found, error)

	// Stands returns the Standing of the lane that Find would return.
	Stands(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (Standing, error)
}

// Sums are the totals of all exchanges of a session. This is the only description of each number, see
// sums.Sum.
type Sums struct {
	Exchanges    int   `csv:"requests"        gorm:"column:exchanges"     help:"Requests of the session"                                                                                                                                                      json:"requests"`
	Epochs       int   `csv:"epochs"          gorm:"column:epochs"        help:"Requests that compressed their prompt further"                                                                                                                                json:"epochs"`
	TokensBefore int64 `csv:"tokens_received" gorm:"column:tokens_before" help:"Estimate of the prompts as the client sent them, in tokens"                                                                                                                   json:"tokens_before"`
	TokensAfter  int64 `csv:"tokens_sent"     gorm:"column:tokens_after"  help:"Estimate of the prompts as they were sent on, in tokens"                                                                                                                      json:"tokens_after"`
	NetMicroUSD  int64 `csv:"net_micro_usd"   gorm:"column:net_microusd"  help:"Money saved against the cheaper of the prompt as sent and a client that compacts itself, net of cache rewrites; can be negative; 0 for prompts that could not have been sent" json:"net_micro_usd"`

	// Answered requests whose original prompt was too long to send.
	Reach       int64 `csv:"reach"                 gorm:"column:reach"        help:"Requests kept alive: the provider would have refused their prompt for its length, and answered because it was shortened. No money and no tokens are claimed as saved for them" json:"reach"`
	ReachBefore int64 `csv:"reach_tokens_received" gorm:"column:reach_before" help:"The part of tokens_before of requests kept alive"                                                                                                                              json:"reach_tokens_before"`
	ReachAfter  int64 `csv:"reach_tokens_sent"     gorm:"column:reach_after"  help:"The part of tokens_after of requests kept alive"                                                                                                                               json:"reach_tokens_after"`

	CostMicroUSD int64 `csv:"cost_micro_usd" gorm:"column:cost_microusd" help:"Paid, with summaries of the session" json:"cost_micro_usd"`
}

// Saved returns how many tokens were saved on prompts that could have been sent unchanged. It is negative if
// more were sent than received.
func (s *Sums) Saved() int64 { return s.Sendable() - (s.TokensAfter - s.ReachAfter) }

// Sendable returns the tokens of the prompts that could have been sent unchanged: the base of Saved.
func (s *Sums) Sendable() int64 { return s.TokensBefore - s.ReachBefore }

// Increment is an exchange's addition to the counts of its session.
type Increment struct {
	Exchanges    int
	TokensBefore int // estimate of the prompt as the client sent it
	TokensAfter  int // estimate of the prompt as sent
	NetMicroUSD  int64
	CostMicroUSD int64
	Reach        bool // the client's prompt was too long to be sent, and ours was answered
	Continued    bool // the request carries a model's answer

	// Redacted counts the replaced pieces of personal data in the entries by kind; nil without any.
	Redacted map[string]int `json:",omitempty"`
}

// Sums returns the exchange's addition to its session's sums. A compaction is counted when it is stored.
func (i *Increment) Sums() Sums {
	sums := Sums{Exchanges: i.Exchanges, TokensBefore: int64(i.TokensBefore), TokensAfter: int64(i.TokensAfter), NetMicroUSD: i.NetMicroUSD, CostMicroUSD: i.CostMicroUSD}
	if i.Reach {
		sums.Reach, sums.ReachBefore, sums.ReachAfter = 1, sums.TokensBefore, sums.TokensAfter
	}
	return sums
}
