package session

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// ErrCursor says that a cursor is not one that the list handed out.
var ErrCursor = errors.New("cursor is not one of this list")

// Filter narrows a list of sessions. Its zero value asks for the first page of all.
//
// Query finds what stands in the title, the client's own id for the session, the client
// or the model, in whatever case, or at the start of the session's id. Sessions that have
// words which begin as its words do are found wherever they are, while they are few.
// Where they are many or none, the list is looked through from the newest on, some
// thousand sessions for a page: see Page.Cut.
type Filter struct {
	Query  string      // see above
	IDs    []uuid.UUID // only these; nil: all
	Client string      // exactly
	Model  string      // exactly
	APIKey uuid.UUID   // uuid.Nil: of all
	Keys   []uuid.UUID // of any of these API keys; nil: of all
	Show   Show
	From   time.Time // active at or after
	To     time.Time // begun before
	Masked bool      // titles are shown, and looked through, of sessions of Shown only
	Shown  []uuid.UUID
	Sort   Sort   // the order; what Sorts refuses is the most recently active first
	Cursor string // Next of the page before, in the same order
	Limit  int    // sessions on a page; 0: 50, at most 200

	Whose
}

// Whose narrows a list to whom sessions are for.
type Whose struct {
	EndUser []string  // of any of these, as EndUserID names them; nil: of all
	Member  uuid.UUID // the person behind the API key; uuid.Nil: of all
	Project string    // the tag "project" of their requests; empty: of all
}

func (w Whose) isAll() bool { return len(w.EndUser) == 0 && w.Member == uuid.Nil && w.Project == "" }

// Sort is an order of a list. An index carries each, so that pages take no longer in a large workspace.
type Sort struct {
	By SortKey
	Up bool // the least, or the one active longest ago, first
}

// SortKey is what a list is ordered by.
type SortKey string

// The orders.
const (
	ByLast     SortKey = ""         // the last request
	ByNet      SortKey = "net"      // what was saved, net
	ByReceived SortKey = "received" // the tokens that were received
)

// Sorts reports whether the filter's list can be in an order: by sums only all conversations are, and what a query
// looks for is always the newest first.
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

// Show is which sessions of a list are shown.
type Show string

// The parts of a list of sessions.
const (
	ShowAll Show = ""

	// Single calls carry no history, and their client names no session: the same question
	// asked again is the same call. All other sessions are conversations.
	ShowConversations Show = "conversations"
	ShowSingle        Show = "single"

	ShowCompressed Show = "compressed" // with an epoch
	ShowBridged    Show = "bridged"    // something was put back after the client compacted itself
	ShowProblems   Show = "problems"   // truncated, refused or failed requests, or money lost
)

// MostCounted is where counting sessions ends: a count of it means as many or more.
const MostCounted = 1000

// Page is a part of a list of sessions, the most recently active first.
type Page struct {
	Sessions []Overview
	Next     string // cursor of the page that follows; empty: this is the last

	// Cut says that the page ends where enough sessions were looked through for a query:
	// there may be more, older ones, from Next on.
	Cut bool
}

// Counts are how many sessions a filter finds, each MostCounted at most.
type Counts struct {
	Of        map[Show]int // in each part of the list
	Workspace int          // whatever the filter
	More      bool         // not all sessions were looked through: Of may be more
}

// Overview is what a list shows of a session.
type Overview struct {
	ID     uuid.UUID
	APIKey uuid.UUID
	Format conversation.Format
	Name   string // the client's own id; empty: recognized by content
	Source string // where the id came from
	Title  string // start of the first typed message
	Client string
	Model  string // of the newest exchange

	StartedAt time.Time
	LastAt    time.Time

	Sums

	Single     bool // no request of it carries history, and its client names no session
	Bridged    bool // something was put back after the client compacted itself
	Rehydrated bool // something was brought back from the archive

	Speaker
}

// Speaker is whom an application speaks for in a session.
type Speaker struct {
	EndUser     string // as EndUserID names them; "" if the application names no one
	EndUserName string // the application's own id of EndUser; "" if it is not kept
}

// Mask takes away what only those see who may read what was said.
func (o *Overview) Mask() { o.Title, o.EndUserName = "", "" }

// Detail is a session with its lanes, those of the conversation itself first, the
// most recently active before the others: the first is its main lane.
type Detail struct {
	Overview

	Lanes []LaneOverview
}

// LaneOverview is what a page shows of a lane.
type LaneOverview struct {
	ID        uuid.UUID
	Parent    uuid.UUID // lane it forked from, or carries on; uuid.Nil if none
	ForkAt    int       // messages shared with Parent; 0 if it carries Parent on
	Continues uuid.UUID // session of Parent where that is another one; uuid.Nil otherwise, or if it is gone
	Kind      Kind
	Position  int // messages of the request that went furthest
	Archived  int // messages in the archive
	Epochs    int // of its own
	CreatedAt time.Time
	LastAt    time.Time

	WarmUntil time.Time // until when the provider keeps its prompt unless it is asked again; zero if nothing caches it

	Order   *Order // waits for the next request; nil if none does
	Breaker string // why the breaker is open; empty if it is not
}

// EpochOverview is a projection without its bytes.
type EpochOverview struct {
	Number int
	Lane   uuid.UUID // lane that made it: another than the one asked for if it was taken over
	Covers int
	Reason string
	Before int // estimate of the prompt in tokens before the epoch
	After  int
	At     time.Time

	Levels [3]int // tokens that it sends at L1, L2 and L3
	Window int    // input limit of the model at its request, in tokens; 0: unknown

	Certificate Certificate // nil if nothing was compared
}
