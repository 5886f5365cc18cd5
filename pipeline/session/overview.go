package session

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// ErrCursor says that the list did not issue a cursor.
var ErrCursor = errors.New("cursor is not one of this list")

// Filter narrows a list of sessions. Its zero value asks for the first page of all.
//
// Query searches the title, the client's own session id, the client and the model without regard to case, and
// the start of the session's id. Sessions with words that begin with the query's words are found anywhere in
// the list if they are few. Otherwise the list is searched from the newest session, some thousand sessions
// for a page: see Page.Cut.
type Filter struct {
	Query  string      // see above
	IDs    []uuid.UUID // only these; nil means all
	Client string      // exact
	Model  string      // exact
	APIKey uuid.UUID   // uuid.Nil means all
	Keys   []uuid.UUID // any of these API keys; nil means all
	Show   Show
	From   time.Time // active at or after
	To     time.Time // begun before
	Masked bool      // titles are shown and searched only for sessions of Shown
	Shown  []uuid.UUID
	Sort   Sort   // orders that Sorts rejects become most recently active first
	Cursor string // Next of the previous page, in the same order
	Limit  int    // sessions on a page; 0 means 50, at most 200

	Whose
}

// Whose narrows a list to the people behind sessions, and to what members think of them.
type Whose struct {
	EndUser []string  // any of these EndUserIDs; nil means all
	Member  uuid.UUID // the person behind the API key; uuid.Nil means all
	Project string    // the tag "project" of their requests; "" means all
	Label   string    // only sessions with this label; "" means all
	Score   int       // only sessions with this score, 1 or -1, of any member; 0 means all
}

func (w Whose) isAll() bool {
	return len(w.EndUser) == 0 && w.Member == uuid.Nil && w.Project == "" && w.Label == "" && w.Score == 0
}

// Sort is an order of a list. An index supports each one, so that pages are as fast in a large workspace.
type Sort struct {
	By SortKey
	Up bool // ascending, or the one active longest ago first
}

// SortKey is the value by which a list is ordered.
type SortKey string

// The orders.
const (
	ByLast     SortKey = ""         // the last request
	ByNet      SortKey = "net"      // net savings
	ByReceived SortKey = "received" // received tokens
)

// Sorts reports whether the filter's list supports an order. Sums only order lists of all conversations, and
// a query's results are always newest first.
func (f Filter) Sorts(by Sort) bool {
	switch {
	case by == Sort{}:
		return true
	case f.Query != "":
		return false
	case by.By == ByLast:
		return true
	case by.By == ByNet || by.By == ByReceived:
		return f.Show == ShowConversations && f.IDs == nil && f.Client == "" && f.Model == "" && f.APIKey == uuid.Nil && f.Keys == nil && f.isAll() && f.From.IsZero() && f.To.IsZero()
	}
	return false
}

// Show is a part of a list of sessions.
type Show string

// The parts of a list of sessions.
const (
	ShowAll Show = ""

	// Single calls carry no history and their client names no session. The same question asked again is the
	// same call. All other sessions are conversations.
	ShowConversations Show = "conversations"
	ShowSingle        Show = "single"

	ShowCompressed Show = "compressed" // with an epoch
	ShowBridged    Show = "bridged"    // content was put back after the client compacted itself
	ShowProblems   Show = "problems"   // truncated, refused or failed requests, or money lost
)

// MostCounted is the maximum count of sessions: it means as many or more.
const MostCounted = 1000

// Page is a part of a list of sessions, the most recently active first.
type Page struct {
	Sessions []Overview
	Next     string // cursor of the next page; "" on the last one

	// Cut says that the page ends because enough sessions were searched for a query. There may be more, older
	// ones from Next on.
	Cut bool
}

// Counts are how many sessions a filter finds, each at most MostCounted.
type Counts struct {
	Of        map[Show]int // in each part of the list
	Workspace int          // regardless of the filter
	More      bool         // the search was cut, so that Of may be too low
}

// Overview is a session in a list.
type Overview struct {
	ID     uuid.UUID
	APIKey uuid.UUID `gorm:"column:api_key_id"`
	Format conversation.Format
	Name   string // the client's own id; "" if recognized by content
	Source string // where the id came from
	Title  string // start of the first typed message
	Client string
	Model  string // of the newest exchange

	StartedAt time.Time
	LastAt    time.Time

	Sums Sums `gorm:"embedded"`

	Single     bool // no request of it carries history, and its client names no session
	Bridged    bool // content was put back after the client compacted itself
	Rehydrated bool // content was brought back from the archive

	Speaker
}

// Speaker says whose session it is: an application's end user, and the project of its requests.
type Speaker struct {
	Project     string // the tag "project" of its requests; "" if absent
	EndUser     string // an EndUserID; "" if the application names no one
	EndUserName string `gorm:"-"` // the application's own id of EndUser; "" if it is not kept
}

// Mask removes the fields that require the right to read content.
func (o *Overview) Mask() { o.Title, o.EndUserName = "", "" }

// Detail is a session with its lanes. Lanes of the conversation come first, each group by most recent
// activity, so that the first is its main lane.
type Detail struct {
	Overview

	Lanes    []LaneOverview
	PinnedAt time.Time // when the whole session was pinned; zero if it isn't
}

// LaneOverview is a lane on a page.
type LaneOverview struct {
	ID        uuid.UUID
	Parent    uuid.UUID   // lane it forked from or continues; uuid.Nil if absent
	ForkAt    int         // messages shared with Parent; 0 if it continues Parent
	Continues uuid.UUID   // session of Parent if it differs; uuid.Nil otherwise, or after its deletion
	Continued []uuid.UUID // sessions that continue it, in the order of their ids
	Kind      Kind
	Position  int // messages of the longest request
	Archived  int // messages in the archive
	Epochs    int // own epochs
	CreatedAt time.Time
	LastAt    time.Time

	WarmUntil time.Time // when the provider's cache of its prompt expires without another request; zero without caching

	Order   *Order // waiting for the next request; nil if absent
	Breaker string // why the breaker is open; "" if it is closed
}

// EpochOverview is a projection without its bytes.
type EpochOverview struct {
	Number int
	Lane   uuid.UUID // lane that made it, which differs from the requested lane if it was taken over
	Covers int
	Reason string
	Before int // estimate of the prompt in tokens before the epoch
	After  int
	At     time.Time

	Levels [3]int // tokens sent at L1, L2 and L3
	Window int    // input limit of the model at its request, in tokens; 0 if unknown

	Certificate Certificate // nil without a comparison
}
