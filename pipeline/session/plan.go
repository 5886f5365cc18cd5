package session

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Ahead is the input for planning a lane's next epoch before the cache of its last prompt expires.
type Ahead struct {
	SentAt  time.Time // when that prompt went out
	Due     time.Time // when to plan
	Outline []byte    // of its exchange, as encoded by the planner
}

// Plan is a projection that was planned before the request that may use it. It applies to a history that
// contains its projection's link, and only with the same settings.
type Plan struct {
	Projection Projection
	Settings   conversation.Hash // hash of all its inputs except the history
	Factor     float64           // the model's tokens per o200k token
}

// Plan returns the lane's plan, or nil.
func (p *progress) Plan() *Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan
}

// PlanAhead replaces the plan for the lane's next epoch. nil drops it.
func (p *progress) PlanAhead(plan *Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// PlanLater keeps the input of a plan for the lane's next recorded exchange. It replaces an earlier one.
func (p *progress) PlanLater(ahead Ahead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = &ahead
}

// takeAhead returns the input that PlanLater kept, and removes it.
func (p *progress) takeAhead() *Ahead {
	p.mu.Lock()
	defer p.mu.Unlock()
	ahead := p.ahead
	p.ahead = nil
	return ahead
}

// TryLock takes the lane unless a request holds it.
func (l *Lane) TryLock() bool { return l.mu.TryLock() }

// Lock takes the lane again for a request that has released it and decides its projection a second time,
// unless ctx ends before. The caller calls Unlock unless there is an error.
func (l *Lane) Lock(ctx context.Context) error {
	if err := l.mu.acquire(ctx); err != nil {
		return fmt.Errorf("wait for the lane: %w", err)
	}
	return nil
}

// Snapshot is a lane's state for a request that changes nothing.
type Snapshot struct {
	Projection *Projection // see Lane.Projection
	Next       int         // see Lane.NextNumber; 0 without a lane
	Anchor     Anchor      // see Lane.LastAnchor
	Inserts    []Insert    // see Lane.Inserts
}

// Preview returns the state of the lane that Resolve would return, and creates no lane or head. A history
// without a known lane has the zero Snapshot.
func (r *Resolver) Preview(ctx context.Context, scope Scope, messages []conversation.Digest, chain []conversation.Hash, model string) (Snapshot, error) {
	lane, met, err := r.find(ctx, scope, messages, chain)
	if err != nil || lane == nil {
		return Snapshot{}, err
	}
	defer lane.Unlock()
	seen := lane
	if met < lane.reached.tip && met < len(messages) {
		seen = lane.fork(met)
	}
	glance := Snapshot{Next: seen.NextNumber(), Anchor: seen.LastAnchor(model), Inserts: seen.Inserts(chain)}
	if projection := seen.Projection(chain); projection != nil {
		copied := *projection // the lane goes on
		glance.Projection = &copied
	}
	return glance, nil
}

// Counted is an archived message with its token count.
type Counted struct {
	Role   conversation.Role
	Flags  conversation.Flags
	Tokens int // o200k tokens
}

// Sent is a recorded request of a lane.
type Sent struct {
	At       time.Time
	Position int // messages of the client's list
	Before   int // estimate of the client's prompt in the model's tokens
	After    int // estimate of the prompt as sent
	Limit    int // maximum prompt tokens; 0 if the model is unknown
	Takes    int // tokens that the provider accepts; 0 if unknown
	IsEpoch  bool
	Rewrote  bool  // the provider wrote its cache again, because we changed the prompt
	Reach    bool  // the client's prompt was too long, and ours was answered
	Net      int64 // compression's savings in it, in millionths of a US dollar
	Cost     int64 // of prompt and answer, in the same unit
	Output   int   // tokens of the answer

	Projection int // number of the projection in the prompt as sent; 0 without one
}

// Selection picks sessions.
type Selection struct {
	Newest int       // how many, most recently active first
	Client string    // only of this client; "" means all
	Since  time.Time // only if active since then; zero means all
}

// Recorded is a conversation with its token counts, the input for previews of other settings.
type Recorded struct {
	Session, Lane uuid.UUID
	APIKey        uuid.UUID
	Format        conversation.Format

	Model    string        // last requested model
	TTL      time.Duration // how long the provider caches its prompts; 0 if unknown or not cached
	Messages []Counted     // in order
	Requests []Sent        // in order
}
