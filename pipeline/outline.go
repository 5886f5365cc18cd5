package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// ErrNoPlan means that no epoch is worth planning ahead for an exchange.
var ErrNoPlan = errors.New("no epoch to plan")

// Outline holds an epoch's inputs from an exchange, without the body. The messages are in the archive.
type Outline struct {
	Position int // messages of the exchange

	exchange Exchange
	root     conversation.Hash // link of the history before the exchange's first message
	head     conversation.Hash // link after its last message
}

// Outline returns the exchange's outline.
func (e *Exchange) Outline() *Outline {
	length := len(e.Conversation.Digests)
	request := e.Request
	request.Fixed = nil
	return &Outline{
		Position: length, root: e.Conversation.Chain[0], head: e.Conversation.Chain[length],
		exchange: Exchange{
			Codec: e.Codec,
			View: View{
				ID: e.ID, Scope: e.Scope, Config: e.Config, Request: request, Class: e.Class, Model: e.Model,
				Limits: Limits{Limit: e.Limits.Limit, Factor: e.Limits.Factor, Fixed: e.Limits.Fixed}, Committer: Forgetful{},
			},
		},
	}
}

// Body returns a body with the exchange's messages that its Codec can open.
func (o *Outline) Body(messages []json.RawMessage) []byte {
	size := 32
	for _, message := range messages {
		size += len(message) + 1
	}
	body := append(make([]byte, 0, size), `{"`+o.exchange.Codec.List()+`":[`...)
	for i, message := range messages {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, message...)
	}
	return append(body, "]}"...)
}

// Head returns the link of the exchange's history.
func (o *Outline) Head() conversation.Hash { return o.head }

// storedOutline is the stored form of an outline.
type storedOutline struct {
	ID       uuid.UUID       `json:"id"`
	Scope    session.Scope   `json:"scope"`
	Config   json.RawMessage `json:"config"`
	Request  wire.Request    `json:"request"`
	Class    client.Class    `json:"class"`
	Model    tokens.Model    `json:"model"`
	Known    bool            `json:"known"` // whether the model is known
	Limit    int             `json:"limit"`
	Factor   float64         `json:"factor"`
	Fixed    int             `json:"fixed"`
	Position int             `json:"position"`
	Root     []byte          `json:"root"`
	Head     []byte          `json:"head"`
}

// Bytes returns the outline's stored form, for ReadOutline.
func (o *Outline) Bytes() ([]byte, error) {
	e := &o.exchange
	config, err := json.Marshal(e.Config)
	if err != nil {
		return nil, fmt.Errorf("encode outline: %w", err)
	}
	encoded, err := json.Marshal(storedOutline{ //nolint:musttag // ReadOutline alone reads it
		ID: e.ID, Scope: e.Scope, Config: config, Request: e.Request, Class: e.Class, Model: e.Model, Known: e.Model.Known,
		Limit: e.Limits.Limit, Factor: e.Limits.Factor, Fixed: e.Limits.Fixed, Position: o.Position, Root: o.root[:], Head: o.head[:],
	})
	if err != nil {
		return nil, fmt.Errorf("encode outline: %w", err)
	}
	return encoded, nil
}

// ReadOutline reads the stored form that Bytes returned. codecs must include all formats.
func (c *Catalog) ReadOutline(encoded []byte, codecs map[conversation.Format]wire.Codec) (*Outline, error) {
	var stored storedOutline
	if err := json.Unmarshal(encoded, &stored); err != nil { //nolint:musttag // Bytes alone writes it
		return nil, fmt.Errorf("read outline: %w", err)
	}
	codec, known := codecs[stored.Scope.Format]
	if !known || len(stored.Root) != len(conversation.Hash{}) || len(stored.Head) != len(conversation.Hash{}) {
		return nil, fmt.Errorf("read outline: format %q, links of %d and %d bytes", stored.Scope.Format, len(stored.Root), len(stored.Head))
	}
	config, err := c.Decode(stored.Config)
	if err != nil {
		return nil, fmt.Errorf("read outline: %w", err)
	}
	stored.Model.Known = stored.Known
	return &Outline{
		Position: stored.Position, root: conversation.Hash(stored.Root), head: conversation.Hash(stored.Head),
		exchange: Exchange{
			Codec: codec,
			View: View{
				ID: stored.ID, Scope: stored.Scope, Config: config, Request: stored.Request, Class: stored.Class, Model: stored.Model,
				Limits: Limits{Limit: stored.Limit, Factor: stored.Factor, Fixed: stored.Fixed}, Committer: Forgetful{},
			},
		},
	}, nil
}

// Workspace returns the workspace of the exchange.
func (o *Outline) Workspace() tenants.WorkspaceID { return o.exchange.Scope.Workspace }

// Codec returns the codec of the exchange.
func (o *Outline) Codec() wire.Codec { return o.exchange.Codec }

// Restore returns the exchange with a body that holds its messages. It returns false if body holds other
// messages. The exchange has no projection, and decisions made for it can't be committed.
func (o *Outline) Restore(body *wire.Envelope, digests []conversation.Digest) (*Exchange, bool) {
	chain := make([]conversation.Hash, len(digests)+1)
	chain[0] = o.root
	for i, digest := range digests {
		chain[i+1] = conversation.Extend(chain[i], digest.Identity)
	}
	if chain[len(digests)] != o.head {
		return nil, false
	}
	exchange := o.exchange
	exchange.Body, exchange.Conversation = body, NewConversation(exchange.Codec, body, digests)
	exchange.Conversation.Chain = chain
	return &exchange, true
}
