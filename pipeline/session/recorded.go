package session

import (
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

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
	Reach    bool  // the client's prompt was too long, and ours was answered
	Net      int64 // compression's savings in it, in millionths of a US dollar
	Cost     int64 // of prompt and answer, in the same unit
	Output   int   // tokens of the answer
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
