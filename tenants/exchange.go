package tenants

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Exchange is the stored record of one request and its answer: who, when, how much. Its texts are in the
// archive.
type Exchange struct {
	ID        uuid.UUID   // version 7: ordered by time
	Workspace WorkspaceID `gorm:"column:workspace_id"`
	At        time.Time   // arrival of the request

	Request ExchangeRequest `gorm:"embedded"`
	Answer  ExchangeAnswer  `gorm:"embedded"`
	Prompt  ExchangePrompt  `gorm:"embedded"`
	Tokens  ExchangeTokens  `gorm:"embedded"`
	Cost    ExchangeCost    `gorm:"embedded"`
	Times   ExchangeTimes   `gorm:"embedded"`
}

// ExchangeRequest is the origin and target of a request.
type ExchangeRequest struct {
	Session  uuid.UUID `gorm:"column:session_id;serializer:null"` // uuid.Nil if not resolved
	Lane     uuid.UUID `gorm:"column:lane_id;serializer:null"`
	APIKey   uuid.UUID `gorm:"column:api_key_id"`
	Endpoint string    // the route, "/v1/messages"
	Model    string    `gorm:"serializer:name"` // as the client named it
	Client   string    `gorm:"serializer:name"` // "claude-code", "codex", …
	Class    string    // the request's purpose for its client: "main", "compaction", …; "" if not classified
	Stream   bool
	Position int    // messages in the request
	Tags     Tags   `gorm:"serializer:object"` // that the client gave
	EndUser  string `gorm:"serializer:null"`   // the application's user, as session.EndUserID names them; "" if not given

	// EndUserName is the application's own id of EndUser. It is filled in for display and not recorded.
	EndUserName string `gorm:"-"`
}

// ExchangeAnswer describes the answer and its provider.
type ExchangeAnswer struct {
	Provider    Provider
	ProviderKey uuid.UUID `gorm:"column:provider_key_id;serializer:null"` // that the request was sent with; uuid.Nil if that key is not stored
	Attempts    int
	Status      int    // HTTP status the client got; 499 if it left before
	ErrorFrom   string // "proxy", "provider"; "" without an error
	ErrorType   string
	Answer      []byte // archive hash of the answer's first message; nil without an answer

	Served

	// Signed are our response headers whose values are stored nowhere else, by their names without
	// X-Palimpsest-.
	Signed map[string]string `gorm:"serializer:object"`

	// ErrorText is the provider's error message, with secrets redacted, sealed with archive.Key.SealError;
	// nil if not stored.
	ErrorText []byte
}

// Served are the terms of the answer, as the answer states them, or else as requested. They determine its
// cost. Fields are "" if not stated.
type Served struct {
	ServiceTier string `gorm:"serializer:name"` // "priority", "flex"
	Speed       string `gorm:"serializer:name"` // "fast"
	Region      string `gorm:"serializer:name"` // where it was processed
	AnsweredBy  string `gorm:"serializer:name"` // the model that answered, if it is not the requested one
}

// ExchangePrompt is the pipeline's result for the client's prompt.
type ExchangePrompt struct {
	Compression  string // none, frozen, epoch, …: the X-Palimpsest-Compression header
	TokensBefore int    // estimate of the prompt as the client sent it
	TokensAfter  int    // estimate of the prompt as it was sent
	Window       int    `gorm:"column:window_tokens"` // prompt tokens allowed by the settings at that time; 0 if unknown
	Takes        int    `gorm:"column:takes_tokens"`  // tokens that the provider takes; a setting may have lowered Window; 0 if not recorded
	Target       int    `gorm:"column:target_tokens"` // tokens above which the prompt was to be compressed; 0 if never, or not recorded
	Levels       [4]int `gorm:"-"`                    // messages at L0 to L3 in the sent prompt
	Projection   int    // number of the projection in the prompt; 0 without one
	Reach        bool   // the provider would have refused the client's prompt for its length, and answered ours
	Bridged      bool   // content that a client's own summary had lost was restored
	Compacted    bool   // the provider compacted the history on its own
	Report       []byte `gorm:"serializer:report"` // JSON of pipeline.Report
}

// ExchangeTokens are the tokens of the prompt and the answer as the provider reported them.
type ExchangeTokens struct {
	Input      int `gorm:"column:input_tokens"`
	CacheRead  int `gorm:"column:cache_read_tokens"`
	CacheWrite int `gorm:"column:cache_write_tokens"`
	Output     int `gorm:"column:output_tokens"`

	MissCause    string // why the provider's cache missed a prompt that it should have had; "" without a miss
	MissedTokens int    // the tokens that it should have had
}

// ExchangeCost is an exchange's cost and savings, in millionths of a US dollar.
type ExchangeCost struct {
	CostMicroUSD      int64  `gorm:"column:cost_microusd"`      // of the exchange at list prices; 0 if the model is unknown
	NetMicroUSD       int64  `gorm:"column:net_microusd"`       // saved, net of cache rewrites; can be negative, 0 if the client's prompt could not have been sent
	UnreadMicroUSD    int64  `gorm:"column:unread_microusd"`    // the part of it for cached input not read
	RewrittenMicroUSD int64  `gorm:"column:rewritten_microusd"` // and the deduction for the cache that our change rewrote
	PredictedMicroUSD *int64 `gorm:"column:predicted_microusd"` // predicted savings of the epoch that this exchange made; nil without an epoch or a prediction
}

// ExchangeTimes are the durations of an exchange's parts.
type ExchangeTimes struct {
	Overhead time.Duration `gorm:"column:overhead_us;serializer:microseconds"` // our own work before dialing the upstream
	TTFB     time.Duration `gorm:"column:ttfb_us;serializer:microseconds"`     // from dialing to the first byte of the answer
	Duration time.Duration `gorm:"column:duration_us;serializer:microseconds"` // from arrival to the last byte
}

// HeaderName returns the full name of a header in Exchange.Signed.
func HeaderName(signed string) string {
	if signed == "Server-Timing" { // a standard header, without the prefix
		return signed
	}
	return "X-Palimpsest-" + signed
}

// NameEndUsers fills in EndUserName of exchanges that a reader may read. names returns the applications' own
// ids of end users.
func NameEndUsers(exchanges []Exchange, reader Reader, names func(users []string) (map[string]string, error)) error {
	var users []string
	for i := range exchanges {
		if exchanges[i].Request.EndUser != "" && reader.MayRead(exchanges[i].Request.APIKey) {
			users = append(users, exchanges[i].Request.EndUser)
		}
	}
	if len(users) == 0 {
		return nil
	}
	known, err := names(users)
	for i := range exchanges {
		if reader.MayRead(exchanges[i].Request.APIKey) {
			exchanges[i].Request.EndUserName = known[exchanges[i].Request.EndUser]
		}
	}
	return err
}

// Exchanges stores the proxy's exchanges.
type Exchanges interface {
	// RecordExchanges records exchanges, each once.
	RecordExchanges(ctx context.Context, tenant Tenant, exchanges []Exchange) error

	// Exchanges returns a page, the newest first, with the cursor of the next one; "" after the last. It
	// returns an Invalid for an invalid cursor.
	Exchanges(ctx context.Context, workspace WorkspaceID, filter ExchangeFilter) ([]Exchange, string, error)

	// Exchange returns ErrNotFound for an unknown exchange.
	Exchange(ctx context.Context, workspace WorkspaceID, id uuid.UUID) (Exchange, error)

	// RecordedExchanges returns the recorded exchanges among ids.
	RecordedExchanges(ctx context.Context, tenant Tenant, ids []uuid.UUID) ([]uuid.UUID, error)

	// CountExchanges returns the number of exchanges, at most most.
	CountExchanges(ctx context.Context, workspace WorkspaceID, most int) (int, error)

	// ExchangeNames returns the clients and models of exchanges.
	ExchangeNames(ctx context.Context, workspace WorkspaceID) (clients, models []string, err error)

	// NewestOf returns the newest exchanges of each session, the newest first.
	NewestOf(ctx context.Context, workspace WorkspaceID, sessions []uuid.UUID, most int) (map[uuid.UUID][]Exchange, error)

	// AnsweredAgain counts the exchanges since a time that were answered from the cache of answers.
	AnsweredAgain(ctx context.Context, workspace WorkspaceID, since time.Time) (int64, error)
}

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

// ResendTag tags requests that were resent from the dashboard. Its value is the id of the first request.
const ResendTag = "sent-again"

// Resend is a resent request.
type Resend struct {
	Of       uuid.UUID // the first request
	Endpoint string
	Body     []byte
	Pipeline ResendPipeline
}

// ResendPipeline is the treatment of a resent request's prompt.
type ResendPipeline string

// The treatments. The others are those of the key's pipeline, compressing above a share of the window.
const (
	ResendAsConfigured ResendPipeline = ""
	ResendUnchanged    ResendPipeline = "none" // without any module
)

// ResendPipelines returns all treatments.
func ResendPipelines() []ResendPipeline {
	return []ResendPipeline{ResendAsConfigured, ResendUnchanged, "0.30", "0.50", "0.80"}
}

// SentAgain returns the id of the request that an exchange resends; uuid.Nil if it is not a resend.
func (e *Exchange) SentAgain() uuid.UUID {
	id, err := uuid.Parse(e.Request.Tags[ResendTag])
	if err != nil {
		return uuid.Nil
	}
	return id
}

// The bounds of tags.
const (
	MaxTags     = 10  // of a request
	MaxTagName  = 64  // bytes of a name
	MaxTagValue = 256 // characters of a value
)

// Tags are names and values that a client gives a request, for searches and sums. They are stored unsealed,
// with its figures.
type Tags map[string]string

// Tag is one of Tags.
type Tag struct{ Name, Value string }

// String returns a tag in the form of URLs and lists: name=value.
func (t Tag) String() string { return t.Name + "=" + t.Value }

// ParseTag parses the output of Tag.String. It returns Invalid for other text.
func ParseTag(text string) (Tag, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || !isTagName(name) {
		return Tag{}, Invalid{Field: "tag", Message: "must be written name=value, such as team=search"}
	}
	return Tag{Name: name, Value: value}, nil
}

// List returns the tags by name.
func (t Tags) List() []Tag {
	list := make([]Tag, 0, len(t))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		list = append(list, Tag{Name: name, Value: t[name]})
	}
	return list
}

// CheckTag returns Invalid, with the allowed values, for an invalid tag. field is the client's name of it.
func CheckTag(field, name, value string) error {
	switch {
	case !isTagName(name):
		return Invalid{Field: fmt.Sprintf("%.100s", field), Message: fmt.Sprintf("is no name of a tag: use 1 to %d of the letters a to z, digits and hyphens", MaxTagName)}
	case value == "" || utf8.RuneCountInString(value) > MaxTagValue || !isPrintable(value):
		return Invalid{Field: field, Message: fmt.Sprintf("must have a value of 1 to %d printable characters", MaxTagValue)}
	}
	return nil
}

func isTagName(name string) bool {
	return name != "" && len(name) <= MaxTagName && !strings.ContainsFunc(name, func(sign rune) bool {
		return sign != '-' && (sign < '0' || sign > '9') && (sign < 'a' || sign > 'z')
	})
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(sign rune) bool { return !unicode.IsPrint(sign) })
}
