package session

import (
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Counted is an archived message as it is counted.
type Counted struct {
	Role   conversation.Role
	Flags  conversation.Flags
	Tokens int // o200k tokens
}

// Sent is a request of a lane, as it was recorded.
type Sent struct {
	At       time.Time
	Position int // messages of the client's list
	Before   int // estimate of the prompt in the model's tokens as the client sent it
	After    int // and as it was sent
	Limit    int // tokens the prompt may have; 0: the model is unknown
	Takes    int // tokens that the provider takes; 0 if unknown
	IsEpoch  bool
	Reach    bool  // the prompt was too long to be sent as it came, and was answered
	Net      int64 // what compression saved in it, in millionths of a US dollar
}

// Selection says which sessions' conversations are wanted.
type Selection struct {
	Newest int       // so many of those that were active last
	Client string    // of this client; empty: of all
	Since  time.Time // that were active since then; zero: of all times
}

// Recorded is a conversation as it is counted: what the preview of other settings
// works on.
type Recorded struct {
	Session, Lane uuid.UUID
	APIKey        uuid.UUID
	Format        conversation.Format

	Model    string        // that was asked for last
	TTL      time.Duration // how long the provider keeps its prompts; 0 if nothing caches them, or nobody knows
	Messages []Counted     // in order
	Requests []Sent        // in order
}
