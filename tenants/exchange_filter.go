package tenants

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ExchangeFilter narrows a list of exchanges. Its zero value selects the first page of all.
type ExchangeFilter struct {
	ID      string    // prefix of the ids, at least leastID characters; optional
	Session uuid.UUID // uuid.Nil: of all
	APIKey  uuid.UUID // uuid.Nil: of all
	Client  string    // empty: of all
	Model   string    // as clients named it; empty: of all
	EndUser []string  // any of these, as session.EndUserID names them; nil: of all

	Tags Tags // all of them
	AnswerFilter
	ModuleFilter

	From   time.Time // arrived at or after; zero: from the first
	To     time.Time // arrived before; zero: to the last
	Order  ExchangeOrder
	Cursor string // from the previous page
	Limit  int    // exchanges on a page; 0: 50, never more than MaxExchanges
}

// AnswerFilter narrows a list by answers.
type AnswerFilter struct {
	StatusClass int    // first digit of the status: 2 to 5; 0: any
	ErrorFrom   string // "proxy", "provider"; empty: with an error or without
	MissCause   string // of the provider's cache; empty: with a miss or without
}

// ModuleFilter narrows a list to exchanges in which a module ran.
type ModuleFilter struct {
	Module  string // empty: any
	Outcome string // outcome of Module; optional
}

// ExchangeOrder is the order of a list of exchanges. Its zero value has the newest first.
type ExchangeOrder struct {
	By Figure // sort key; "" for time
	Up bool   // ascending: the oldest first, or the least of By
}

// Figure is a sort key of exchanges besides time.
type Figure string

// The figures of an exchange that a list can be sorted by.
const (
	ByReceived Figure = "received" // tokens of the client's prompt
	BySent     Figure = "sent"     // tokens sent to the provider
	ByCached   Figure = "cached"   // tokens read from the provider's cache
	ByOverhead Figure = "overhead" // our own work
	ByUpstream Figure = "upstream" // the provider's time, up to the last byte
	ByCost     Figure = "cost"
)

// Figures returns all sort keys of exchanges besides time.
func Figures() []Figure {
	return []Figure{ByReceived, BySent, ByCached, ByOverhead, ByUpstream, ByCost}
}

// MaxExchanges bounds the exchanges of a page.
const MaxExchanges = 500

// leastID is the shortest prefix of an id in a filter. Ids begin with the time, so that this prefix covers
// about a minute.
const leastID = 8

// ExchangeFilterNames returns the parameters that ParseExchangeFilter reads.
func ExchangeFilterNames() []string {
	return []string{"id", "session", "key", "client", "model", "status", "error_from", "miss", "module", "tag", "end_user"}
}

// ParseExchangeFilter parses the filter of a URL, for the JSON API and the dashboard alike: id, session, key,
// client, model, status (2xx … 5xx), error_from, miss, module (name or name:outcome) and tag (name=value,
// repeatable). Callers parse times, pages and end_user. It returns Invalid for an invalid value.
func ParseExchangeFilter(query url.Values) (ExchangeFilter, error) {
	filter := ExchangeFilter{
		ID:     strings.ToLower(strings.TrimSpace(query.Get("id"))),
		Client: query.Get("client"), Model: query.Get("model"),
		AnswerFilter: AnswerFilter{ErrorFrom: query.Get("error_from"), MissCause: query.Get("miss")},
	}
	filter.Module, filter.Outcome, _ = strings.Cut(query.Get("module"), ":")
	if err := filter.parseIDs(query); err != nil {
		return filter, err
	}
	if status := query.Get("status"); status != "" {
		class := slices.Index([]string{"2xx", "3xx", "4xx", "5xx"}, status)
		if class < 0 {
			return filter, Invalid{Field: "status", Message: "must be 2xx, 3xx, 4xx or 5xx"}
		}
		filter.StatusClass = 2 + class
	}
	if !slices.Contains([]string{"", "proxy", "provider"}, filter.ErrorFrom) {
		return filter, Invalid{Field: "error_from", Message: "must be proxy or provider"}
	}
	if len(query["tag"]) > MaxTags {
		return filter, Invalid{Field: "tag", Message: fmt.Sprintf("is there more than %d times", MaxTags)}
	}
	for _, text := range query["tag"] {
		if text == "" {
			continue
		}
		tag, err := ParseTag(text)
		if err != nil {
			return filter, err
		}
		if other, is := filter.Tags[tag.Name]; is && other != tag.Value {
			return filter, Invalid{Field: "tag", Message: "asks for two values of " + tag.Name}
		}
		if filter.Tags == nil {
			filter.Tags = Tags{}
		}
		filter.Tags[tag.Name] = tag.Value
	}
	return filter, nil
}

func (f *ExchangeFilter) parseIDs(query url.Values) error {
	if f.ID != "" {
		if _, _, ok := IDRange(f.ID); !ok {
			return Invalid{Field: "id", Message: fmt.Sprintf("must be a request id, or at least the first %d characters of one", leastID)}
		}
	}
	var err error
	if session := query.Get("session"); session != "" {
		if f.Session, err = uuid.Parse(session); err != nil {
			return Invalid{Field: "session", Message: "is no session id"}
		}
	}
	if key := query.Get("key"); key != "" {
		if f.APIKey, err = uuid.Parse(key); err != nil {
			return Invalid{Field: "key", Message: "is no id of an API key"}
		}
	}
	return nil
}

// IDRange returns the first and last id with a prefix; ok is false if the prefix is too short or invalid.
func IDRange(start string) (first, last uuid.UUID, ok bool) {
	const form = "00000000-0000-0000-0000-000000000000"
	if len(start) < leastID || len(start) > len(form) {
		return first, last, false
	}
	first, err := uuid.Parse(start + form[len(start):])
	if err != nil {
		return first, last, false
	}
	last, err = uuid.Parse(start + strings.ReplaceAll(form, "0", "f")[len(start):])
	return first, last, err == nil
}
