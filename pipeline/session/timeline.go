package session

import "time"

// MaxEvents bounds the events of a Timeline.
const MaxEvents = 100

// Timeline is the growth of a lane's prompts from its first request to its newest, with a limited number of
// points.
type Timeline struct {
	Total  int             // requests of the lane that went through the pipeline
	Points []TimelineEntry // evenly spaced, oldest first, including the newest
	Events []TimelineEntry // notable requests with their Report; the newest MaxEvents, oldest first
}

// Totals are the sums of all requests of a session.
type Totals struct {
	Requests     int
	Failed       int // refused by the provider or by Palimpsest
	Misses       int // requests that missed the provider's cache unexpectedly, except first ones
	MissedTokens int64
	CostMicroUSD int64
	Models       []string // by name
}

// TimelineEntry is one request of a lane.
type TimelineEntry struct {
	Number int // of the request in its lane, from 1
	At     time.Time

	PromptSize

	Compression  string
	Class        string
	Levels       [4]int // messages at L0 to L3
	MissCause    string
	MissedTokens int
	Projection   int // number of the projection in the prompt; 0 if absent
	NetMicroUSD  int64
	Reach        bool // the client's prompt was too long to be sent, and ours was answered
	Status       int
	AnsweredBy   string // the model that answered, if it differs from the requested one
	Report       []byte // JSON of pipeline.Report; only in Events
}

// PromptSize is the size of a prompt with its limits, in tokens.
type PromptSize struct {
	Before int // estimate of the prompt as the client sent it
	After  int // estimate of the prompt as sent
	Window int // maximum by the settings of that time; 0 if unknown
	Target int // compression threshold by the settings of that time; 0 if never, or not recorded
}
