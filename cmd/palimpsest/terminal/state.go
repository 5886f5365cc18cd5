package terminal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// State is the current state of a session.
type State struct { //nolint:recvcheck // add fills one that is being read
	Session string `json:"session"` // id on the server
	Client  string `json:"client_session"`
	Title   string `json:"title"`

	Context int `json:"context_tokens"` // of the newest prompt as the client has it
	Sent    int `json:"sent_tokens"`    // and as it was sent

	Main      Part `json:"main"`
	Subagents Part `json:"subagents"`

	Last      *Compaction `json:"last_compaction,omitempty"`
	WarmUntil time.Time   `json:"warm_until,omitzero"` // of the provider's cache

	Newest  string    `json:"newest_request"` // that the sums hold
	At      time.Time `json:"at"`             // when it was read
	Problem string    `json:"problem,omitempty"`
}

// Part holds the totals of a session's main thread, or of all its subagents.
type Part struct {
	Threads       int   `json:"threads"`
	Requests      int   `json:"requests"`
	Compactions   int   `json:"compactions"`
	SavedMicroUSD int64 `json:"saved_micro_usd"`
}

// Compaction is one epoch.
type Compaction struct {
	Before int       `json:"tokens_before"`
	After  int       `json:"tokens_after"`
	At     time.Time `json:"at"`
}

type sessionJSON struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Title       string     `json:"title"`
	Client      string     `json:"client"`
	Model       string     `json:"model"`
	LastAt      time.Time  `json:"last_at"`
	Requests    int        `json:"requests"`
	Epochs      int        `json:"epochs"`
	Before      int64      `json:"tokens_before"`
	After       int64      `json:"tokens_after"`
	NetMicroUSD int64      `json:"net_micro_usd"`
	Lanes       []laneJSON `json:"lanes,omitempty"`
	PinnedAt    *time.Time `json:"pinned_at,omitempty"` // as a whole
}

type laneJSON struct {
	ID        string       `json:"id"`
	Kind      string       `json:"kind"`
	Messages  int          `json:"messages"`
	LastAt    time.Time    `json:"last_at"`
	WarmUntil *time.Time   `json:"warm_until,omitempty"`
	Epochs    []Compaction `json:"epochs"`

	Continues string   `json:"continues,omitempty"`    // the session that the lane continues
	Continued []string `json:"continued_in,omitempty"` // the sessions that continue the lane
}

type requestJSON struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at"`
	Session     string    `json:"session"`
	Lane        string    `json:"lane"`
	Model       string    `json:"model"`
	Client      string    `json:"client"`
	Status      int       `json:"status"`
	Compression string    `json:"compression"`
	Before      int       `json:"tokens_before"`
	After       int       `json:"tokens_after"`
	CostMicro   int64     `json:"cost_micro_usd"`
	NetMicroUSD int64     `json:"net_micro_usd"`
	DurationMS  float64   `json:"duration_ms"`
	Reported    struct {
		Input      int `json:"input"`
		CacheRead  int `json:"cache_read"`
		CacheWrite int `json:"cache_write"`
		Output     int `json:"output"`
	} `json:"reported"`
}

// compacts reports whether the request made a compaction.
func (r requestJSON) compacts() bool {
	return r.Compression == "epoch" || r.Compression == "emergency" || r.Compression == "truncated"
}

type page[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_cursor"`
}

const (
	pageSize = 200
	maxPages = 25 // of requests to add up: 5,000
)

var errNoSession = errors.New("no session has this id: palimpsest sessions list shows them")

// find returns a session by its id on the server, or by the client's own.
func (c *Client) find(ctx context.Context, id string) (sessionJSON, error) {
	var found page[sessionJSON]
	if err := c.get(ctx, "/sessions", url.Values{"q": {id}, "limit": {"50"}}, &found); err != nil {
		return sessionJSON{}, err
	}
	for _, one := range found.Data {
		if one.Name == id {
			return c.session(ctx, one.ID)
		}
	}
	one, err := c.session(ctx, id)
	if problem, is := errors.AsType[Problem](err); is && problem.Status == http.StatusNotFound {
		err = errNoSession
	}
	return one, err
}

func (c *Client) session(ctx context.Context, id string) (one sessionJSON, err error) {
	return one, c.get(ctx, "/sessions/"+url.PathEscape(id), nil, &one)
}

// state reads a session's state. It adds to the sums of before if that is the same session.
func (c *Client) state(ctx context.Context, id string, before State, now time.Time) (State, error) {
	one, err := c.find(ctx, id)
	if err != nil {
		return State{}, err
	}
	if before.Session != one.ID {
		before = State{}
	}
	state := State{
		Session: one.ID, Client: one.Name, Title: one.Title, Context: before.Context, Sent: before.Sent, Newest: before.Newest, At: now,
		Main:      Part{Requests: before.Main.Requests, SavedMicroUSD: before.Main.SavedMicroUSD},
		Subagents: Part{Requests: before.Subagents.Requests, SavedMicroUSD: before.Subagents.SavedMicroUSD},
	}
	kinds := map[string]string{}
	for _, lane := range one.Lanes {
		kinds[lane.ID] = lane.Kind
		state.add(lane)
	}
	return state, c.addRequests(ctx, &state, kinds)
}

// part returns the Part that a thread of a kind belongs to.
func (s *State) part(kind string) *Part {
	if kind == "subagent" {
		return &s.Subagents
	}
	return &s.Main
}

func (s *State) add(lane laneJSON) {
	part := s.part(lane.Kind)
	part.Threads++
	part.Compactions += len(lane.Epochs)
	if lane.Kind != "main" {
		return
	}
	if lane.WarmUntil != nil && lane.WarmUntil.After(s.WarmUntil) {
		s.WarmUntil = *lane.WarmUntil
	}
	for i, epoch := range lane.Epochs {
		if s.Last == nil || epoch.At.After(s.Last.At) {
			s.Last = &lane.Epochs[i]
		}
	}
}

// addRequests adds the requests since the newest one in the sums.
func (c *Client) addRequests(ctx context.Context, state *State, kinds map[string]string) error {
	query := url.Values{"session": {state.Session}, "limit": {strconv.Itoa(pageSize)}}
	known, newest, main := state.Newest, "", false
	for range maxPages {
		var requests page[requestJSON]
		if err := c.get(ctx, "/requests", query, &requests); err != nil {
			return err
		}
		for _, request := range requests.Data {
			if request.ID == known {
				requests.Next = nil
				break
			}
			if newest == "" {
				newest = request.ID
			}
			part := state.part(kinds[request.Lane])
			part.Requests++
			part.SavedMicroUSD += request.NetMicroUSD
			if !main && kinds[request.Lane] == "main" && request.Before > 0 {
				main, state.Context, state.Sent = true, request.Before, request.After
			}
		}
		if requests.Next == nil {
			break
		}
		query.Set("cursor", *requests.Next)
	}
	if newest != "" {
		state.Newest = newest
	}
	return nil
}
