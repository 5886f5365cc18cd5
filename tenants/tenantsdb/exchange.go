package tenantsdb

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/excerpts"
	"palimpsest/tenants"
)

// Exchanges stores one row for each request and its answer.
type Exchanges struct{ *core }

// RecordExchanges stores exchanges of a workspace. Existing ones stay unchanged, so that a batch may be
// written again.
func (db Exchanges) RecordExchanges(ctx context.Context, tenant tenants.Tenant, exchanges []tenants.Exchange) error {
	if len(exchanges) == 0 {
		return nil
	}
	rows := make([]recordedRow, len(exchanges))
	for i := range exchanges {
		rows[i] = toRecorded(&exchanges[i])
	}
	batch, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("record %d exchanges: %w", len(exchanges), err)
	}
	err = db.inTenant(ctx, tenant, func(tx *gorm.DB) error { return insertExchanges(tx, tenant.Workspace(), batch) })
	return batchdb.Wrapf(err, "record %d exchanges", len(exchanges))
}

// Exchange returns one exchange of a workspace. A Reader also reads it from the database itself, because its
// client may have its id before a replica has it. It returns tenants.ErrNotFound, also for an exchange that the
// context's reader may not see.
func (db Exchanges) Exchange(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.Exchange, error) {
	var row exchangeRow
	err := db.current(ctx, workspace, func(tx *gorm.DB) error {
		return ofVisible(tx.Table("exchanges")).Select(exchangeColumns).Where("workspace_id = ? AND id = ?", workspace, id).Take(&row).Error
	})
	if err != nil {
		return tenants.Exchange{}, fmt.Errorf("exchange %s: %w", id, kind(err))
	}
	return row.toExchange(), nil
}

// RecordedExchanges returns the recorded exchanges among ids.
func (db Exchanges) RecordedExchanges(ctx context.Context, tenant tenants.Tenant, ids []uuid.UUID) ([]uuid.UUID, error) {
	var recorded []uuid.UUID
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		return tx.Table("exchanges").Where("workspace_id = ? AND id IN ?", tenant.Workspace(), ids).Pluck("id", &recorded).Error
	})
	return recorded, batchdb.Wrapf(err, "which of %d exchanges are recorded", len(ids))
}

// insertExchanges inserts a JSON array of recordedRow, with the tags and end users of the new ones, and adds
// the new ones that count to the workspace's meter: one statement and one argument for any number of
// exchanges. It does not change rows that another batch changes. The statement names the workspace first, so
// that the transaction locks the table of workspaces, which the exchanges' foreign key references, before
// theirs. The job that changes the bounds of partitions locks them in the same order, so that the two cannot
// deadlock. If an exchange's end user was erased after its time, only its figures are kept, as for exchanges
// erased earlier.
func insertExchanges(tx *gorm.DB, workspace tenants.WorkspaceID, batch []byte) error {
	const statement = `WITH workspace AS (SELECT FROM workspaces WHERE workspace_id = $1),
		recorded AS (INSERT INTO exchanges (workspace_id, ` + recordedColumns + `)
		SELECT $1, ` + figureColumns + `, ` + unlessErased + ` FROM jsonb_populate_recordset(NULL::exchanges, $2) come
		CROSS JOIN LATERAL (SELECT come.end_user <> '' AND EXISTS (
			SELECT FROM end_users u WHERE u.workspace_id = $1 AND u.id = come.end_user AND u.erased_at >= come.at) AS erased) e
		ON CONFLICT DO NOTHING RETURNING id, at, endpoint, class, status, error_from, attempts, tags, end_user),
		tagged AS (INSERT INTO exchange_tags (workspace_id, tag, at, exchange_id)
		SELECT $1, t.key || '=' || t.value, r.at, r.id FROM recorded r, jsonb_each_text(r.tags) t
		UNION ALL SELECT $1, '` + userTag + `' || r.end_user, r.at, r.id FROM recorded r WHERE r.end_user <> '')
		INSERT INTO usage_meter_deltas (workspace_id, hour, exchanges)
		SELECT $1, date_trunc('hour', at, 'UTC') AS hour, count(*) FROM recorded
		WHERE exchange_counts(endpoint, class, status, error_from, attempts) GROUP BY hour`
	return later(tx, statement, workspace, json.RawMessage(batch))
}

// userTag is the prefix of the tag that finds an end user's exchanges. Clients cannot set such a tag.
const userTag = "@user="

const recordedColumns = `id, at, ` + otherColumns

const otherColumns = figuresBeside + `, session_id, lane_id, answer, report, error_text, end_user`

// figureColumns are kept of every exchange, unlessErased only if its end user was not erased.
const (
	figureColumns = `id, at, ` + figuresBeside
	unlessErased  = `CASE WHEN erased IS NOT TRUE THEN session_id END, CASE WHEN erased IS NOT TRUE THEN lane_id END,
		CASE WHEN erased IS NOT TRUE THEN answer END, CASE WHEN erased IS NOT TRUE THEN report END,
		CASE WHEN erased IS NOT TRUE THEN error_text END, CASE WHEN erased IS NOT TRUE THEN end_user END`
)

const figuresBeside = `api_key_id, provider, endpoint, model, client, class, stream, status,
	error_from, error_type, position, compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3,
	input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd,
	overhead_us, ttfb_us, duration_us, attempts, miss_cause, missed_tokens, projection, predicted_microusd,
	provider_key_id, tags, signed, unread_microusd, rewritten_microusd, bridged, compacted, reach, takes_tokens, target_tokens, service_tier, speed, region, answered_by`

const exchangeColumns = "workspace_id, " + recordedColumns

// exchangeRow is a row for reading.
type exchangeRow struct {
	WorkspaceID   tenants.WorkspaceID `json:"-"`
	ID            uuid.UUID           `json:"id"`
	At            time.Time           `json:"at"`
	SessionID     uuid.UUID           `json:"-"` // uuid.Nil for NULL
	LaneID        uuid.UUID           `json:"-"`
	APIKeyID      uuid.UUID           `json:"api_key_id"`
	Provider      string              `json:"provider"`
	ProviderKeyID uuid.UUID           `json:"-"` // uuid.Nil for NULL
	Endpoint      string              `json:"endpoint"`
	Model         string              `json:"model"`
	Client        string              `json:"client"`
	Class         string              `json:"class"`
	Stream        bool                `json:"stream"`
	Status        int                 `json:"status"`
	ErrorFrom     string              `json:"error_from"`
	ErrorType     string              `json:"error_type"`
	Position      int                 `json:"position"`
	Compression   string              `json:"compression"`
	TokensBefore  int                 `json:"tokens_before"`
	TokensAfter   int                 `json:"tokens_after"`
	WindowTokens  int                 `json:"window_tokens"`
	Level0        int                 `gorm:"column:level_0" json:"level_0"`
	Level1        int                 `gorm:"column:level_1" json:"level_1"`
	Level2        int                 `gorm:"column:level_2" json:"level_2"`
	Level3        int                 `gorm:"column:level_3" json:"level_3"`

	InputTokens      int `json:"input_tokens"`
	CacheReadTokens  int `json:"cache_read_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
	OutputTokens     int `json:"output_tokens"`

	CostMicroUSD int64 `gorm:"column:cost_microusd" json:"cost_microusd"`
	NetMicroUSD  int64 `gorm:"column:net_microusd"  json:"net_microusd"`

	UnreadMicroUSD    int64 `gorm:"column:unread_microusd"    json:"unread_microusd"`
	RewrittenMicroUSD int64 `gorm:"column:rewritten_microusd" json:"rewritten_microusd"`
	Bridged           bool  `json:"bridged"`
	Compacted         bool  `json:"compacted"`
	Reach             bool  `json:"reach"`
	TakesTokens       int   `json:"takes_tokens"`
	TargetTokens      int   `json:"target_tokens"`

	ServiceTier string `json:"service_tier"`
	Speed       string `json:"speed"`
	Region      string `json:"region"`
	AnsweredBy  string `json:"answered_by"`

	MissCause         string `json:"miss_cause"`
	MissedTokens      int    `json:"missed_tokens"`
	Projection        int    `json:"projection"`
	PredictedMicroUSD *int64 `gorm:"column:predicted_microusd" json:"predicted_microusd"`

	OverheadUS int64  `gorm:"column:overhead_us" json:"overhead_us"`
	TTFBUS     int64  `gorm:"column:ttfb_us"     json:"ttfb_us"`
	DurationUS int64  `gorm:"column:duration_us" json:"duration_us"`
	Attempts   int    `json:"attempts"`
	Answer     []byte `json:"-"`
	Report     []byte `json:"-"`
	Tags       []byte `json:"-"`
	Signed     []byte `json:"-"`
	ErrorText  []byte `json:"-"`
	EndUser    string `json:"-"` // "" for NULL
}

// recordedRow is a row for writing; it holds the fields whose JSON form differs.
type recordedRow struct {
	exchangeRow

	SessionID     *uuid.UUID      `json:"session_id"`
	ProviderKeyID *uuid.UUID      `json:"provider_key_id"`
	LaneID        *uuid.UUID      `json:"lane_id"`
	Answer        *string         `json:"answer"`
	Report        json.RawMessage `json:"report"`
	Tags          json.RawMessage `json:"tags"`
	Signed        json.RawMessage `json:"signed"`
	ErrorText     *string         `json:"error_text"`
	EndUser       *string         `json:"end_user"`
}

func toRecorded(e *tenants.Exchange) recordedRow {
	row := recordedRow{
		exchangeRow: exchangeRow{
			ID: e.ID, At: e.At, APIKeyID: e.Request.APIKey,
			Provider: storable(string(e.Answer.Provider)), Endpoint: storable(e.Request.Endpoint), Model: name(e.Request.Model), Client: name(e.Request.Client), Class: e.Request.Class,
			Stream: e.Request.Stream, Status: e.Answer.Status, ErrorFrom: storable(e.Answer.ErrorFrom), ErrorType: storable(e.Answer.ErrorType),
			Position: e.Request.Position, Compression: storable(e.Prompt.Compression),
			TokensBefore: e.Prompt.TokensBefore, TokensAfter: e.Prompt.TokensAfter, WindowTokens: e.Prompt.Window,
			Level0: e.Prompt.Levels[0], Level1: e.Prompt.Levels[1], Level2: e.Prompt.Levels[2], Level3: e.Prompt.Levels[3],
			InputTokens: e.Tokens.Input, CacheReadTokens: e.Tokens.CacheRead, CacheWriteTokens: e.Tokens.CacheWrite, OutputTokens: e.Tokens.Output,
			CostMicroUSD: e.Cost.CostMicroUSD, NetMicroUSD: e.Cost.NetMicroUSD,
			UnreadMicroUSD: e.Cost.UnreadMicroUSD, RewrittenMicroUSD: e.Cost.RewrittenMicroUSD, Bridged: e.Prompt.Bridged, Compacted: e.Prompt.Compacted,
			Reach: e.Prompt.Reach, TakesTokens: e.Prompt.Takes, TargetTokens: e.Prompt.Target, ServiceTier: name(e.Answer.ServiceTier), Speed: name(e.Answer.Speed), Region: name(e.Answer.Region), AnsweredBy: name(e.Answer.AnsweredBy),
			MissCause: e.Tokens.MissCause, MissedTokens: e.Tokens.MissedTokens, Projection: e.Prompt.Projection, PredictedMicroUSD: e.Cost.PredictedMicroUSD,
			OverheadUS: e.Times.Overhead.Microseconds(), TTFBUS: e.Times.TTFB.Microseconds(), DurationUS: e.Times.Duration.Microseconds(),
			Attempts: e.Answer.Attempts,
		},
		// JSON columns reject NUL.
		Report: bytes.ReplaceAll(e.Prompt.Report, []byte(`\u0000`), []byte(`\ufffd`)),
	}
	if len(row.Report) == 0 {
		row.Report = nil
	}
	if e.Request.Session != uuid.Nil {
		row.SessionID, row.LaneID = &e.Request.Session, &e.Request.Lane
	}
	if e.Answer.ProviderKey != uuid.Nil {
		row.ProviderKeyID = &e.Answer.ProviderKey
	}
	if e.Request.EndUser != "" {
		row.EndUser = &e.Request.EndUser
	}
	row.Answer, row.ErrorText = hexText(e.Answer.Answer), hexText(e.Answer.ErrorText)
	row.Tags, row.Signed = textsJSON(e.Request.Tags), textsJSON(e.Answer.Signed)
	return row
}

// maxName bounds the stored part of a client's name, in characters: longer than real names, and short enough
// for an index.
const maxName = 200

// name returns the stored part of a name.
func name(text string) string {
	return excerpts.First(storable(text), maxName)
}

// hexText returns bytes as text for a bytea column; nil for nil.
func hexText(value []byte) *string {
	if value == nil {
		return nil
	}
	return new(`\x` + hex.EncodeToString(value))
}

// textsJSON returns names and values as a JSON object; nil if empty.
func textsJSON(texts map[string]string) json.RawMessage {
	if len(texts) == 0 {
		return nil
	}
	return json.RawMessage(objectJSON(maps.Clone(texts)))
}

// textsOf is the reverse of textsJSON.
func textsOf(encoded []byte) map[string]string {
	var texts map[string]string
	if len(encoded) == 0 || json.Unmarshal(encoded, &texts) != nil {
		return nil // a column with another form was not written by Palimpsest
	}
	return texts
}

func (r *exchangeRow) toExchange() tenants.Exchange {
	return tenants.Exchange{
		ID: r.ID, Workspace: r.WorkspaceID, At: r.At,
		Request: tenants.ExchangeRequest{
			Session: r.SessionID, Lane: r.LaneID, APIKey: r.APIKeyID, Endpoint: r.Endpoint, Model: r.Model,
			Client: r.Client, Class: r.Class, Stream: r.Stream, Position: r.Position, Tags: textsOf(r.Tags), EndUser: r.EndUser,
		},
		Answer: tenants.ExchangeAnswer{
			ProviderKey: r.ProviderKeyID, Provider: tenants.Provider(r.Provider), Status: r.Status, ErrorFrom: r.ErrorFrom,
			ErrorType: r.ErrorType, Attempts: r.Attempts, Answer: r.Answer, Signed: textsOf(r.Signed),
			ErrorText: r.ErrorText, Served: tenants.Served{ServiceTier: r.ServiceTier, Speed: r.Speed, Region: r.Region, AnsweredBy: r.AnsweredBy},
		},
		Prompt: tenants.ExchangePrompt{
			Compression: r.Compression, TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, Window: r.WindowTokens,
			Levels: [4]int{r.Level0, r.Level1, r.Level2, r.Level3}, Bridged: r.Bridged, Compacted: r.Compacted,
			Reach: r.Reach, Takes: r.TakesTokens, Target: r.TargetTokens, Projection: r.Projection, Report: r.Report,
		},
		Tokens: tenants.ExchangeTokens{
			Input: r.InputTokens, CacheRead: r.CacheReadTokens, CacheWrite: r.CacheWriteTokens, Output: r.OutputTokens,
			MissCause: r.MissCause, MissedTokens: r.MissedTokens,
		},
		Cost: tenants.ExchangeCost{
			CostMicroUSD: r.CostMicroUSD, NetMicroUSD: r.NetMicroUSD, UnreadMicroUSD: r.UnreadMicroUSD,
			RewrittenMicroUSD: r.RewrittenMicroUSD, PredictedMicroUSD: r.PredictedMicroUSD,
		},
		Times: tenants.ExchangeTimes{
			Overhead: microseconds(r.OverheadUS), TTFB: microseconds(r.TTFBUS), Duration: microseconds(r.DurationUS),
		},
	}
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// NewestOf returns the newest exchanges of each session, at most most, the newest first. It reads only the
// data for charts: size, window, levels, status and compression.
func (db Exchanges) NewestOf(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID, most int) (map[uuid.UUID][]tenants.Exchange, error) {
	const statement = `SELECT session_id, at, status, compression, tokens_after, window_tokens, level_0, level_1, level_2, level_3
		FROM unnest(?::uuid[]) AS s (id) CROSS JOIN LATERAL (
			SELECT session_id, at, status, compression, tokens_after, window_tokens, level_0, level_1, level_2, level_3
			FROM exchanges WHERE workspace_id = ? AND session_id = s.id ORDER BY at DESC, id DESC LIMIT ?) e`
	texts := make([]string, len(sessions))
	for i, id := range sessions {
		texts[i] = id.String()
	}
	rows, err := batchdb.Scan[[]exchangeRow](ctx, db.tenant(workspace), statement, "{"+strings.Join(texts, ",")+"}", workspace, most)
	if err != nil {
		return nil, fmt.Errorf("newest exchanges of %d sessions: %w", len(sessions), err)
	}
	newest := make(map[uuid.UUID][]tenants.Exchange, len(sessions))
	for i := range rows {
		newest[rows[i].SessionID] = append(newest[rows[i].SessionID], rows[i].toExchange())
	}
	return newest, nil
}

// Joined runs fn with a tenant's transaction as a pgx.Tx, for libraries that need pgx. fn must not commit or
// roll it back.
func (db *DB) Joined(ctx context.Context, tenant tenants.Tenant, fn func(tx pgx.Tx) error) error {
	return db.core.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		t, err := transactionOf(tx)
		if err != nil {
			return err
		}
		return t.join(ctx, fn)
	})
}

// join runs fn with the transaction as a pgx.Tx, after sending its beginning to the server.
func (t *transaction) join(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if err := t.Send(ctx); err != nil {
		return err
	}
	return t.Raw(func(any) error { return fn(joined{t.below}) })
}

// joined is a transaction that its opener ends.
type joined struct{ connection }

// connection is the name under which joined embeds it, because pgx.Tx has a method Conn.
type connection = *pgx.Conn

// Begin implements pgx.Tx. Nested transactions are not supported.
func (joined) Begin(context.Context) (pgx.Tx, error) { return nil, errNotOurs }

// Commit implements pgx.Tx.
func (joined) Commit(context.Context) error { return errNotOurs }

// Rollback implements pgx.Tx.
func (joined) Rollback(context.Context) error { return errNotOurs }

// LargeObjects implements pgx.Tx. Palimpsest does not use large objects.
func (joined) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn implements pgx.Tx.
func (j joined) Conn() *pgx.Conn { return j.connection }
