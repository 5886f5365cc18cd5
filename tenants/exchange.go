package tenants

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Exchange is the stored record of one request and its answer: who, when, how much. Its texts are in the
// archive.
type Exchange struct {
	ID        uuid.UUID // version 7: ordered by time
	Workspace WorkspaceID
	At        time.Time // arrival of the request

	ExchangeRequest
	ExchangeAnswer
	ExchangePrompt
	ExchangeTokens
	ExchangeCost
	ExchangeTimes
}

// ExchangeRequest is the origin and target of a request.
type ExchangeRequest struct {
	Session  uuid.UUID // uuid.Nil if not resolved
	Lane     uuid.UUID
	APIKey   uuid.UUID
	Endpoint string // the route, "/v1/messages"
	Model    string // as the client named it
	Client   string // "claude-code", "codex", …
	Class    string // the request's purpose for its client: "main", "compaction", …; "" if not classified
	Stream   bool
	Position int    // messages in the request
	Tags     Tags   // that the client gave
	EndUser  string // the application's user, as session.EndUserID names them; "" if not given

	// EndUserName is the application's own id of EndUser. It is filled in for display and not recorded.
	EndUserName string
}

// ExchangeAnswer describes the answer and its provider.
type ExchangeAnswer struct {
	Provider    Provider
	ProviderKey uuid.UUID // that the request was sent with; uuid.Nil if that key is not stored
	Attempts    int
	Status      int    // HTTP status the client got; 499 if it left before
	ErrorFrom   string // "proxy", "provider"; "" without an error
	ErrorType   string
	Answer      []byte // archive hash of the answer's first message; nil without an answer

	Served

	// Signed are our response headers whose values are stored nowhere else, by their names without
	// X-Palimpsest-.
	Signed map[string]string

	// ErrorText is the provider's error message, with secrets redacted, sealed with archive.Key.SealError;
	// nil if not stored.
	ErrorText []byte
}

// Served are the terms of the answer, as the answer states them, or else as requested. They determine its
// cost. Fields are "" if not stated.
type Served struct {
	ServiceTier string // "priority", "flex"
	Speed       string // "fast"
	Region      string // where it was processed
	AnsweredBy  string // the model that answered, if it is not the requested one
}

// ExchangePrompt is the pipeline's result for the client's prompt.
type ExchangePrompt struct {
	Compression  string // none, frozen, epoch, …: the X-Palimpsest-Compression header
	TokensBefore int    // estimate of the prompt as the client sent it
	TokensAfter  int    // estimate of the prompt as it was sent
	Window       int    // prompt tokens allowed by the settings at that time; 0 if unknown
	Takes        int    // tokens that the provider takes; a setting may have lowered Window; 0 if not recorded
	Target       int    // tokens above which the prompt was to be compressed; 0 if never, or not recorded
	Levels       [4]int // messages at L0 to L3 in the sent prompt
	Projection   int    // number of the projection in the prompt; 0 without one
	Reach        bool   // the provider would have refused the client's prompt for its length, and answered ours
	Bridged      bool   // content that a client's own summary had lost was restored
	Compacted    bool   // the provider compacted the history on its own
	Report       []byte // JSON of pipeline.Report
}

// ExchangeTokens are the tokens of the prompt and the answer as the provider reported them.
type ExchangeTokens struct {
	Input, CacheRead, CacheWrite, Output int

	MissCause    string // why the provider's cache missed a prompt that it should have had; "" without a miss
	MissedTokens int    // the tokens that it should have had
}

// ExchangeCost is an exchange's cost and savings, in millionths of a US dollar.
type ExchangeCost struct {
	CostMicroUSD      int64  // of the exchange at list prices; 0 if the model is unknown
	NetMicroUSD       int64  // saved, net of cache rewrites; can be negative, 0 if the client's prompt could not have been sent
	UnreadMicroUSD    int64  // the part of it for cached input not read
	RewrittenMicroUSD int64  // and the deduction for the cache that our change rewrote
	PredictedMicroUSD *int64 // predicted savings of the epoch that this exchange made; nil without an epoch or a prediction
}

// ExchangeTimes are the durations of an exchange's parts.
type ExchangeTimes struct {
	Overhead time.Duration // our own work before dialing the upstream
	TTFB     time.Duration // from dialing to the first byte of the answer
	Duration time.Duration // from arrival to the last byte
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
