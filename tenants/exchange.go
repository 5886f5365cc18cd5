package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Exchange is what is kept of one request and its answer: who, when, how much.
// Its texts are in the archive.
type Exchange struct {
	ID        uuid.UUID // version 7: ordered by time
	Workspace WorkspaceID
	At        time.Time // when the request had arrived

	ExchangeRequest
	ExchangeAnswer
	ExchangePrompt
	ExchangeTokens
	ExchangeCost
	ExchangeTimes
}

// ExchangeRequest is who asked, and what for.
type ExchangeRequest struct {
	Session  uuid.UUID // uuid.Nil if none was resolved
	Lane     uuid.UUID
	APIKey   uuid.UUID
	Endpoint string // the route, "/v1/messages"
	Model    string // as the client named it
	Client   string // "claude-code", "codex", …
	Class    string // what the request was to its client: "main", "compaction", …; empty: not looked at
	Stream   bool
	Position int    // messages in the request
	Tags     Tags   // that the client gave
	EndUser  string // whom the application spoke for, as session.EndUserID names them; "" if it did not say

	// EndUserName is the application's own id of EndUser, where those who show the exchange have filled
	// it in. It is not recorded.
	EndUserName string
}

// ExchangeAnswer is who answered, and how.
type ExchangeAnswer struct {
	Provider    Provider
	ProviderKey uuid.UUID // that the request was sent with; uuid.Nil if that key is not stored
	Attempts    int
	Status      int    // HTTP status the client got; 499 if it left before
	ErrorFrom   string // "proxy", "provider"; empty if none
	ErrorType   string
	Answer      []byte // archive hash of the answer's first message; nil if none

	Served

	// Signed are our headers that the answer had and that nothing else here tells,
	// by their names without X-Palimpsest-.
	Signed map[string]string

	// ErrorText is what the provider said where it refused, without what looks like a
	// secret, sealed with archive.Key.SealError; nil if nothing is kept.
	ErrorText []byte
}

// Served is on what terms a request was answered, as the answer says, or else as it was asked for: they
// decide what it costs. Empty where nothing is said.
type Served struct {
	ServiceTier string // "priority", "flex"
	Speed       string // "fast"
	Region      string // where it was processed
	AnsweredBy  string // the model that answered, if it's another than the one that was asked for
}

// ExchangePrompt is what the pipeline made of the client's prompt.
type ExchangePrompt struct {
	Compression  string // none, frozen, epoch, …: the X-Palimpsest-Compression header
	TokensBefore int    // estimate of the prompt as the client sent it
	TokensAfter  int    // estimate of the prompt as it was sent
	Window       int    // tokens that the prompt might have by the settings of then; 0 if unknown
	Takes        int    // tokens that the provider takes, which a setting may have lowered to Window; 0 if not recorded
	Target       int    // tokens above which the prompt was to be compressed; 0 if never, or not recorded
	Levels       [4]int // messages at L0 to L3 in the sent prompt
	Projection   int    // number of the projection in the prompt; 0 if none
	Reach        bool   // the provider would have refused the client's prompt for its length, and answered ours
	Bridged      bool   // what a client's own summary had lost was put back
	Compacted    bool   // the provider compacted the history by itself
	Report       []byte // JSON of pipeline.Report
}

// ExchangeTokens are the tokens of the prompt and the answer as the provider reported them.
type ExchangeTokens struct {
	Input, CacheRead, CacheWrite, Output int

	MissCause    string // why the provider's cache did not have what it should; empty if nothing was missed
	MissedTokens int    // that it should have had
}

// ExchangeCost is what an exchange cost and saved, in millionths of a US dollar.
type ExchangeCost struct {
	CostMicroUSD      int64  // of the exchange at list prices; 0 if the model is unknown
	NetMicroUSD       int64  // saved, net of cache rewrites; can be negative, 0 if the client's prompt could not have been sent
	UnreadMicroUSD    int64  // the part of it that is cached input not read
	RewrittenMicroUSD int64  // and what was taken off for the cache that our change rewrote
	PredictedMicroUSD *int64 // what the epoch that this exchange made is to save; nil: no epoch, or no prediction
}

// ExchangeTimes are how long the parts of an exchange took.
type ExchangeTimes struct {
	Overhead time.Duration // our own work before the upstream was dialled
	TTFB     time.Duration // from dialling to the first byte of the answer
	Duration time.Duration // from arrival to the last byte
}

// HeaderName returns the whole name of a header in Exchange.Signed.
func HeaderName(signed string) string {
	if signed == "Server-Timing" { // the one that others know, too
		return signed
	}
	return "X-Palimpsest-" + signed
}

// NameEndUsers fills in EndUserName of exchanges that a reader may read, by names, which returns the applications' own ids
// of end users.
func NameEndUsers(exchanges []Exchange, reader Reader, names func(users []string) (map[string]string, error)) error {
	var users []string
	for i := range exchanges {
		if exchanges[i].EndUser != "" && reader.MayRead(exchanges[i].APIKey) {
			users = append(users, exchanges[i].EndUser)
		}
	}
	if len(users) == 0 {
		return nil
	}
	known, err := names(users)
	for i := range exchanges {
		if reader.MayRead(exchanges[i].APIKey) {
			exchanges[i].EndUserName = known[exchanges[i].EndUser]
		}
	}
	return err
}

// Exchanges keeps what went through the proxy.
type Exchanges interface {
	// RecordExchanges records exchanges, each once.
	RecordExchanges(ctx context.Context, tenant Tenant, exchanges []Exchange) error

	// Exchanges returns a page, the newest first, with the cursor of the next one, ""
	// after the last. It returns an Invalid for a cursor that it did not hand out.
	Exchanges(ctx context.Context, workspace WorkspaceID, filter ExchangeFilter) ([]Exchange, string, error)

	// Exchange returns ErrNotFound for an exchange that the workspace does not have.
	Exchange(ctx context.Context, workspace WorkspaceID, id uuid.UUID) (Exchange, error)

	// RecordedExchanges returns which of some exchanges are recorded.
	RecordedExchanges(ctx context.Context, tenant Tenant, ids []uuid.UUID) ([]uuid.UUID, error)

	// CountExchanges returns how many there are, or most, if there are more.
	CountExchanges(ctx context.Context, workspace WorkspaceID, most int) (int, error)

	// ExchangeNames returns the clients and models that exchanges have.
	ExchangeNames(ctx context.Context, workspace WorkspaceID) (clients, models []string, err error)

	// NewestOf returns the newest exchanges of each of some sessions, the newest first.
	NewestOf(ctx context.Context, workspace WorkspaceID, sessions []uuid.UUID, most int) (map[uuid.UUID][]Exchange, error)

	// AnsweredAgain counts the exchanges since a time that a kept answer replied to.
	AnsweredAgain(ctx context.Context, workspace WorkspaceID, since time.Time) (int64, error)
}
