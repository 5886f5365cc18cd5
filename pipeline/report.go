package pipeline

import (
	"encoding/json"
	"maps"
	"slices"
)

// Compression says how a prompt was changed. Its values are those of the header X-Palimpsest-Compression.
type Compression string

// The ways in which a prompt can be changed.
const (
	None        Compression = "none"        // left as the client sent it
	Replayed    Compression = "frozen"      // an earlier epoch's projection was replayed
	Epoch       Compression = "epoch"       // a new projection was made
	Emergency   Compression = "emergency"   // a new projection was made because the provider found the prompt too long
	Truncated   Compression = "truncated"   // a new projection was made that drops content which no level would have dropped
	Unreachable Compression = "unreachable" // no projection reaches the target
	Bypassed    Compression = "bypassed"    // the request must not be edited, or asked not to be
)

// Cache is the outcome of a lookup in the answer cache. Its values are those of the header
// X-Palimpsest-Cache.
type Cache string

// The outcomes of a lookup in the answer cache.
const (
	CacheOff         Cache = "off" // not looked up; the same as the zero value
	CacheMiss        Cache = "miss"
	CacheHit         Cache = "hit"          // answered from the cache with the answer to an equal request
	CacheSemanticHit Cache = "semantic-hit" // in requests before 0.2: answered from the cache with the answer to a rephrased question
)

// Report lists the modules' changes to an exchange, for headers, events and pages.
type Report struct {
	Compression Compression    `json:"compression"`
	Modules     []ModuleReport `json:"modules,omitempty"`
	Events      []ReportEntry  `json:"events,omitempty"`
	Warnings    []string       `json:"warnings,omitempty"` // shown to people: "epochs=4", "truncated", "net-loss"
	Before      int            `json:"before"`             // estimate of the prompt in tokens as the client sent it
	After       int            `json:"after"`              // estimate as it goes out
	Limit       int            `json:"limit"`
	Takes       int            `json:"takes,omitempty"`          // tokens that the provider accepts; 0 if unknown
	Target      int            `json:"target,omitempty"`         // tokens above which the prompt is compressed; 0 if never
	Version     string         `json:"client_version,omitempty"` // version of the client, if a prompt stayed above its target or lifted a rule
	Cache       Cache          `json:"cache,omitempty"`
	Answered    string         `json:"answered,omitempty"` // source of a module's answer in the provider's place: AnsweredCompaction
	Levels      [4]int         `json:"levels"`             // turns at L0 to L3 in the prompt
	Injected    map[string]int `json:"injected,omitempty"` // items that each module put into the prompt of this exchange
	Archived    int            `json:"archived"`           // messages that an epoch of this exchange replaced, originals durable; 0 without an epoch
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

// JSON returns the report in the form stored with its exchange.
func (r *Report) JSON() []byte {
	encoded, err := json.Marshal(r)
	if err != nil {
		return nil // unreachable: a report holds only encodable values
	}
	return encoded
}

// Predicted returns the predicted savings of the newest epoch in the report until the next one, in millionths
// of a US dollar; nil without an epoch or a prediction.
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

// The module and type of the event that reports a provider's own compaction.
const (
	ProviderModule = "provider"
	CompactedType  = "compacted"
)

// Compacted returns the event that reports a compaction by the provider; nil if absent.
func (r *Report) Compacted() *ReportEntry {
	for i := range r.Events {
		if r.Events[i].Module == ProviderModule && r.Events[i].Type == CompactedType {
			return &r.Events[i]
		}
	}
	return nil
}

// PredictedNet is the count in a completed event for the epoch's predicted savings until the next one, in
// millionths of a US dollar. It can be negative.
const PredictedNet = "predicted_net_microusd"

// ModuleReport says how one module ended.
type ModuleReport struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // Applied, Noop, Failed or Skipped
}

// ReportEntry is something a module did or could not do. Type is one of started, completed, truncated,
// failed, rejected, skipped, target_unreachable, protection_lifted, directives_left_out, ….
type ReportEntry struct {
	Module string `json:"module"`
	Type   string `json:"type"`
	Reason string `json:"reason,omitempty"`

	// FellBackTo names the prompt in place of a failed one: "original" or "projection 3".
	FellBackTo string `json:"fell_back_to,omitempty"`

	Counts map[string]int `json:"counts,omitempty"`
}
