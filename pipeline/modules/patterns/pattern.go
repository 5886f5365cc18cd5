package patterns

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Kind says what a pattern is.
type Kind string

// The kinds of patterns.
const (
	Convention Kind = "convention" // how things are done here
	Directive  Kind = "directive"  // a standing order that people repeat
)

// Status says what becomes of a pattern.
type Status string

// The statuses of patterns. Only approved ones are put into prompts.
const (
	Seen      Status = "seen"      // met too rarely so far to be shown to anybody
	Candidate Status = "candidate" // waits for someone's decision
	Approved  Status = "approved"
	Disabled  Status = "disabled" // by someone, or because nobody met it for long
	Rejected  Status = "rejected" // kept, so that it does not become a candidate again
)

// Source says where a pattern comes from.
type Source string

// The sources of patterns.
const (
	Mined Source = "mined" // found in the archive
	Typed Source = "typed" // added by someone by hand
)

// What bounds a pattern.
const (
	MaxText      = 300 // characters of the text
	MaxTerms     = 12
	MaxOfTerm    = 120 // bytes of one term, path or signature
	MaxPatterns  = 2000
	MaxServed    = 500 // approved patterns of a workspace that are in memory, the best first
	EnoughUses   = 5   // from which on a success rate counts
	AutoSessions = 3   // in which a candidate must have been met to be approved without anybody

	StaleAfter = 90 * 24 * time.Hour  // without being met or used: others go before it
	GoneAfter  = 180 * 24 * time.Hour // it is disabled
)

// ErrNotFound says that the workspace has no such pattern.
var ErrNotFound = errors.New("no such pattern")

// ErrChanged says that someone has changed the pattern in the meantime.
var ErrChanged = errors.New("pattern was changed in the meantime")

// ErrFull says that the workspace has MaxPatterns patterns.
var ErrFull = errors.New("too many patterns")

// When says which requests a pattern is relevant to. Terms and Paths are looked for
// in what was typed, Signatures in new tool results too.
type When struct {
	Terms      []string // words as Terms returns them
	Paths      []string // files
	Signatures []string // errors, as Signature returns them
	Always     bool     // every conversation; people may say so, mining never does
}

// Pattern is something learned.
type Pattern struct {
	ID        uuid.UUID
	Workspace tenants.WorkspaceID
	Kind      Kind
	Text      string
	When      When
	Status    Status
	Reason    string // why it has the status where nobody decided it
	Source    Source
	Version   int // grows with each change that someone makes

	Counts

	CreatedAt time.Time
	CreatedBy uuid.UUID // uuid.Nil: mined
	EditedAt  time.Time // when someone or something changed it last
	EditedBy  uuid.UUID // who decided last; uuid.Nil if none
	LastSeen  time.Time // when it was met or used last
}

// Counts are how often a pattern was met, and how often it helped.
type Counts struct {
	Sessions  int // in which it was met
	Evidence  int // messages in which it was met
	Injected  int // lanes it was put into that have been read since
	Successes int // of these, lanes in which it helped
}

// Rate returns the share of lanes in which the pattern helped; 1 as long as nothing
// is known.
func (p *Pattern) Rate() float64 {
	if p.Injected == 0 {
		return 1
	}
	return float64(p.Successes) / float64(p.Injected)
}

// Fails reports whether a pattern was used often enough to say that it helps in
// fewer cases than a share.
func (p *Pattern) Fails(share float64) bool { return p.Injected >= EnoughUses && p.Rate() < share }

// IsReviewed reports whether someone has decided that the pattern is to be used.
func (p *Pattern) IsReviewed() bool {
	return p.Status == Approved && (p.EditedBy != uuid.Nil || p.Source == Typed)
}

// Change is what someone changes of a pattern; nil: it stays.
type Change struct {
	Text   *string
	When   *When
	Status *Status
}

// Filter bounds a list of patterns.
type Filter struct {
	Statuses []Status  // any of them; none: all but Seen
	After    uuid.UUID // the last one of the page before; uuid.Nil: the first page
	Limit    int
}

// Place points at a message that a pattern was met in.
type Place struct {
	Session uuid.UUID
	Lane    uuid.UUID
	Message int
	At      time.Time
}
