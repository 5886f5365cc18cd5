package session

import "time"

// MaxEvents bounds the events of a Timeline.
const MaxEvents = 100

// Timeline is how the prompts of a lane grew, from its first request to its newest, with
// no more figures than were asked for.
type Timeline struct {
	Total  int             // requests of the lane that went through the pipeline
	Points []TimelineEntry // evenly chosen of them, oldest first; the newest is the last
	Events []TimelineEntry // at which something happened, with their Report; the newest MaxEvents, oldest first
}

// Totals are what all requests of a session have come to.
type Totals struct {
	Requests     int
	Failed       int // that the provider or the product refused
	Misses       int // that did not find in the provider's cache what they should have, but for first ones
	MissedTokens int64
	CostMicroUSD int64
	Models       []string // by name
}

// TimelineEntry is one request of a lane.
type TimelineEntry struct {
	Number int // of the request in its lane, from 1 on
	At     time.Time

	PromptSize

	Compression  string
	Class        string
	Levels       [4]int // messages at L0 to L3
	MissCause    string
	MissedTokens int
	Projection   int // number of the projection in the prompt; 0 if none
	NetMicroUSD  int64
	Reach        bool // the client's prompt was too long to be sent, and ours was answered
	Status       int
	AnsweredBy   string // the model that answered, if it's another than the one that was asked for
	Report       []byte // JSON of pipeline.Report; only in Events
}

// PromptSize is the size of a prompt beside what it might have, in tokens.
type PromptSize struct {
	Before int // estimate of the prompt as the client sent it
	After  int // and as it was sent
	Window int // what the prompt might have by the settings of then; 0: unknown
	Target int // above which it was to be compressed by the settings of then; 0 if never, or not recorded
}
