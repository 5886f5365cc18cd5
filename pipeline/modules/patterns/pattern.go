package patterns

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Kind is the kind of a pattern.
type Kind string

// The kinds of patterns.
const (
	Convention Kind = "convention" // how things are done here
	Directive  Kind = "directive"  // a standing order that people repeat
)

// Status is the state of a pattern.
type Status string

// The statuses of patterns. Only approved ones are put into prompts.
const (
	Approved Status = "approved"
	Disabled Status = "disabled"
)

// The limits of a pattern.
const (
	MaxText     = 300 // characters of the text
	MaxTerms    = 12
	MaxOfTerm   = 120 // bytes of one term, path or signature
	MaxPatterns = 2000
	MaxServed   = 500 // approved patterns of a workspace in memory, those edited last first
)

// ErrNotFound means that the workspace doesn't have the pattern.
var ErrNotFound = errors.New("no such pattern")

// ErrChanged means that someone has changed the pattern in the meantime.
var ErrChanged = errors.New("pattern was changed in the meantime")

// ErrFull means that the workspace has MaxPatterns patterns.
var ErrFull = errors.New("too many patterns")

// When describes which requests a pattern is relevant to. Terms and Paths are looked for in typed
// text, Signatures in new tool results too.
type When struct {
	Terms      []string // words as Terms returns them
	Paths      []string // files
	Signatures []string // errors, as Signature returns them
	Always     bool     // every conversation
}

// Pattern is a rule that people of a workspace have written.
type Pattern struct {
	ID        uuid.UUID
	Workspace tenants.WorkspaceID
	Kind      Kind
	Text      string
	When      When
	Status    Status
	Version   int // grows with each change that someone makes

	CreatedAt time.Time
	CreatedBy uuid.UUID // uuid.Nil if an earlier version found it in sessions
	EditedAt  time.Time // time of the last change by a person
	EditedBy  uuid.UUID // author of the last change; uuid.Nil if unknown
}

// Change holds the new values of a pattern; nil leaves a field unchanged.
type Change struct {
	Text   *string
	When   *When
	Status *Status
}

// Filter bounds a list of patterns.
type Filter struct {
	Status Status    // "" means all
	After  uuid.UUID // the last one of the previous page; uuid.Nil means the first page
	Limit  int
}
