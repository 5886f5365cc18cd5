package pipeline

import (
	"encoding/json"
	"maps"
	"slices"
)

// Compression says what was done to a prompt; the values of the header
// X-Palimpsest-Compression.
type Compression string

// What can be done to a prompt.
const (
	None        Compression = "none"        // left as the client sent it
	Replayed    Compression = "frozen"      // an earlier epoch's projection was replayed
	Epoch       Compression = "epoch"       // a new projection was made
	Emergency   Compression = "emergency"   // a new projection was made after the provider had found the prompt too long
	Truncated   Compression = "truncated"   // a new projection was made that leaves out what no level would have
	Unreachable Compression = "unreachable" // no projection reaches the target
	Bypassed    Compression = "bypassed"    // the request must not be edited, or asked not to be
)

// Cache says what became of a request at the cache of answers; the values of the
// header X-Palimpsest-Cache.
type Cache string

// What can become of a request at the cache of answers.
const (
	CacheOff         Cache = "off" // nobody looked; the zero value means the same
	CacheMiss        Cache = "miss"
	CacheHit         Cache = "hit"          // the answer to the same request was given again
	CacheSemanticHit Cache = "semantic-hit" // in requests of before 0.2: the answer to the same question in other words
)

// Report is what the modules did to an exchange: for headers, events and pages.
type Report struct {
	Compression Compression    `json:"compression"`
	Modules     []ModuleReport `json:"modules,omitempty"`
	Events      []ReportEntry  `json:"events,omitempty"`
	Warnings    []string       `json:"warnings,omitempty"` // what people should know: "epochs=4", "truncated", "net-loss"
	Before      int            `json:"before"`             // estimate of the prompt in tokens as the client sent it
	After       int            `json:"after"`              // and as it goes out
	Limit       int            `json:"limit"`
	Takes       int            `json:"takes,omitempty"`          // tokens that the provider takes; 0 if unknown
	Target      int            `json:"target,omitempty"`         // tokens above which the prompt was to be compressed; 0 if never
	Version     string         `json:"client_version,omitempty"` // of the client, where a prompt stayed above its target or lifted a rule
	Cache       Cache          `json:"cache,omitempty"`
	Answered    string         `json:"answered,omitempty"` // what a module answered from in the provider's place: AnsweredCompaction
	Levels      [4]int         `json:"levels"`             // turns at L0 to L3 in the prompt
	Injected    map[string]int `json:"injected,omitempty"` // items that each module has put into the prompt of this exchange
	Archived    int            `json:"archived"`           // messages that an epoch of this exchange no longer sends as they came, originals durable; 0: no epoch
}

// clone returns a report that shares no memory with r.
func (r *Report) clone() Report {
	copied := *r
	copied.Modules, copied.Injected = slices.Clone(r.Modules), maps.Clone(r.Injected)
	copied.Events, copied.Warnings = slices.Clone(r.Events), slices.Clone(r.Warnings)
	for i, event := range r.Events {
		copied.Events[i].Counts = maps.Clone(event.Counts)
	}
	return copied
}

// JSON returns the report as it is kept with its exchange.
func (r *Report) JSON() []byte {
	encoded, err := json.Marshal(r)
	if err != nil {
		return nil // a report holds nothing that cannot be encoded
	}
	return encoded
}

// Predicted returns what the newest epoch in the report is to save until the next
// one, in millionths of a US dollar; nil if absent, or it does not say.
func (r *Report) Predicted() *int64 {
	for _, event := range slices.Backward(r.Events) {
		if event.Type != "completed" {
			continue
		}
		predicted, says := event.Counts[PredictedNet]
		if !says {
			return nil
		}
		return new(int64(predicted))
	}
	return nil
}

// A provider's own compaction, in the event that tells of it.
const (
	ProviderModule = "provider"
	CompactedType  = "compacted"
)

// Compacted returns the event that tells of a compaction by the provider, nil without one.
func (r *Report) Compacted() *ReportEntry {
	for i := range r.Events {
		if r.Events[i].Module == ProviderModule && r.Events[i].Type == CompactedType {
			return &r.Events[i]
		}
	}
	return nil
}

// PredictedNet is the count of a completed event that says what the epoch is to
// save until the next one, in millionths of a US dollar; it can be negative.
const PredictedNet = "predicted_net_microusd"

// ModuleReport says how one module ended.
type ModuleReport struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // Applied, Noop, Failed or Skipped
}

// ReportEntry is something a module did or could not do. Type is one of started,
// completed, truncated, failed, rejected, skipped, target_unreachable,
// protection_lifted, directives_left_out, ….
type ReportEntry struct {
	Module string `json:"module"`
	Type   string `json:"type"`
	Reason string `json:"reason,omitempty"`

	// FellBackTo says what went out in place of what failed: "original" or
	// "projection 3".
	FellBackTo string `json:"fell_back_to,omitempty"`

	Counts map[string]int `json:"counts,omitempty"`
}
