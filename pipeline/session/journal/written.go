package journal

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

// written is content in its gob form.
type written struct {
	Seen       writtenSeen
	Projection session.Projection
	Empty      []int
	Entries    int
}

// writtenSeen is a session.Update in the form of every version: one flat list of fields. Gob would write an
// embedded struct as a nested field.
type writtenSeen struct {
	Scope     session.Scope
	Session   uuid.UUID
	Lane      uuid.UUID
	Kind      session.Kind
	Parent    uuid.UUID
	ForkAt    int
	Inherited int
	Taken     int

	Name   string
	Source string
	Title  string
	Client string
	Model  string

	At       time.Time
	Position int
	Head     conversation.Hash
	Heat     session.CacheState
	Attempts session.Attempts
	Ahead    *session.Ahead
	Entries  []archive.Entry
	Links    []conversation.Hash
	Answer   json.RawMessage

	Exchanges    int
	TokensBefore int
	TokensAfter  int
	NetMicroUSD  int64
	CostMicroUSD int64
	Reach        bool
	Continued    bool
	Redacted     map[string]int
}

func toWritten(held *content) written {
	seen := &held.Seen
	return written{
		Projection: held.Projection, Empty: held.Empty, Entries: held.Entries,
		Seen: writtenSeen{
			Scope: seen.Scope, Session: seen.Session, Lane: seen.Lane, Kind: seen.Kind,
			Parent: seen.Parent, ForkAt: seen.ForkAt, Inherited: seen.Inherited, Taken: seen.Taken,
			Name: seen.Name, Source: seen.Source, Title: seen.Title, Client: seen.Client, Model: seen.Model,
			At: seen.At, Heat: seen.Heat, Attempts: seen.Attempts, Ahead: seen.Ahead,
			Position: seen.Messages.Position, Head: seen.Messages.Head, Entries: seen.Messages.Entries, Links: seen.Messages.Links, Answer: seen.Messages.Answer,
			Exchanges: seen.Increment.Exchanges, TokensBefore: seen.Increment.TokensBefore, TokensAfter: seen.Increment.TokensAfter,
			NetMicroUSD: seen.Increment.NetMicroUSD, CostMicroUSD: seen.Increment.CostMicroUSD, Reach: seen.Increment.Reach, Continued: seen.Increment.Continued, Redacted: seen.Increment.Redacted,
		},
	}
}

func (w *written) content() content {
	seen := &w.Seen
	return content{
		Projection: w.Projection, Empty: w.Empty, Entries: w.Entries,
		Seen: session.Update{
			Scope: seen.Scope, Session: seen.Session, Lane: seen.Lane, Kind: seen.Kind,
			Ancestry: session.Ancestry{Parent: seen.Parent, ForkAt: seen.ForkAt, Inherited: seen.Inherited, Taken: seen.Taken},
			Naming:   session.Naming{Name: seen.Name, Source: seen.Source}, Title: seen.Title, Client: seen.Client, Model: seen.Model,
			At: seen.At, Heat: seen.Heat, Attempts: seen.Attempts, Ahead: seen.Ahead,
			Messages: session.Messages{Position: seen.Position, Head: seen.Head, Entries: seen.Entries, Links: seen.Links, Answer: seen.Answer},
			Increment: session.Increment{
				Exchanges: seen.Exchanges, TokensBefore: seen.TokensBefore, TokensAfter: seen.TokensAfter,
				NetMicroUSD: seen.NetMicroUSD, CostMicroUSD: seen.CostMicroUSD, Reach: seen.Reach, Continued: seen.Continued, Redacted: seen.Redacted,
			},
		},
	}
}
