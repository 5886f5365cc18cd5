package manage

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// requestJSON is one exchange, in lists and on its own.
type requestJSON struct {
	ID           uuid.UUID        `json:"id"`
	At           time.Time        `json:"at"`
	Session      *uuid.UUID       `json:"session"`
	Lane         *uuid.UUID       `json:"lane"`
	APIKey       uuid.UUID        `json:"api_key"`
	Provider     tenants.Provider `json:"provider"`
	ProviderKey  *uuid.UUID       `json:"provider_key"`
	Endpoint     string           `json:"endpoint"`
	Model        string           `json:"model"`
	Client       string           `json:"client"`
	Class        string           `json:"class,omitempty"`
	Stream       bool             `json:"stream"`
	Status       int              `json:"status"`
	ErrorFrom    string           `json:"error_from,omitempty"`
	ErrorType    string           `json:"error_type,omitempty"`
	ServiceTier  string           `json:"service_tier,omitempty"`
	Speed        string           `json:"speed,omitempty"`
	Region       string           `json:"region,omitempty"`
	AnsweredBy   string           `json:"answered_by,omitempty"`
	Messages     int              `json:"messages"`
	Compression  string           `json:"compression"`
	TokensBefore int              `json:"tokens_before"`
	TokensAfter  int              `json:"tokens_after"`
	Window       int              `json:"context_window"`
	Takes        int              `json:"provider_window"`
	Target       int              `json:"target_tokens"`
	Levels       [4]int           `json:"levels"`
	Reported     reportedJSON     `json:"reported"`
	CostMicroUSD int64            `json:"cost_micro_usd"`
	NetMicroUSD  int64            `json:"net_micro_usd"`
	Reach        bool             `json:"reach"`
	MissCause    string           `json:"miss_cause,omitempty"`
	MissedTokens int              `json:"missed_tokens"`
	Projection   int              `json:"projection"`
	OverheadMS   float64          `json:"overhead_ms"`
	TTFBMS       float64          `json:"ttfb_ms"`
	DurationMS   float64          `json:"duration_ms"`
	Attempts     int              `json:"attempts"`
	Answer       string           `json:"answer_sha256,omitempty"`
	Modules      []moduleJSON     `json:"modules"`
	Tags         tenants.Tags     `json:"tags"`
	EndUser      string           `json:"end_user,omitempty"`
	EndUserName  string           `json:"end_user_name,omitempty"` // only with the right to read the session

	// Only for a single request.
	Report    json.RawMessage   `json:"report,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`    // our own, unless another member has the value
	ErrorText string            `json:"error_text,omitempty"` // only with the right to read messages of the session
}

// moduleJSON is the result of a module.
type moduleJSON struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
}

// reportedJSON are the tokens reported by the provider.
type reportedJSON struct {
	Input      int `json:"input"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	Output     int `json:"output"`
}

func requestOf(exchange tenants.Exchange) requestJSON {
	answer := requestJSON{
		ID: exchange.ID, At: exchange.At, APIKey: exchange.APIKey, ProviderKey: nullable(exchange.ProviderKey), Provider: exchange.Provider, Endpoint: exchange.Endpoint,
		Model: exchange.Model, Client: exchange.Client, Stream: exchange.Stream, Status: exchange.Status,
		ErrorFrom: exchange.ErrorFrom, ErrorType: exchange.ErrorType, Messages: exchange.Position, Compression: exchange.Compression,
		TokensBefore: exchange.TokensBefore, TokensAfter: exchange.TokensAfter, Window: exchange.Window, Takes: exchange.Takes, Target: exchange.Target, Levels: exchange.Levels,
		Reported:     reportedJSON{Input: exchange.Input, CacheRead: exchange.CacheRead, CacheWrite: exchange.CacheWrite, Output: exchange.Output},
		CostMicroUSD: exchange.CostMicroUSD, NetMicroUSD: exchange.NetMicroUSD, Reach: exchange.Reach,
		MissCause: exchange.MissCause, MissedTokens: exchange.MissedTokens, Projection: exchange.Projection,
		OverheadMS: milliseconds(exchange.Overhead), TTFBMS: milliseconds(exchange.TTFB), DurationMS: milliseconds(exchange.Duration),
		Attempts: exchange.Attempts, Answer: hex.EncodeToString(exchange.Answer),
		Class: exchange.Class, Modules: modulesOf(exchange.Report), Tags: exchange.Tags,
		ServiceTier: exchange.ServiceTier, Speed: exchange.Speed, Region: exchange.Region, AnsweredBy: exchange.AnsweredBy,
		EndUser: exchange.EndUser, EndUserName: exchange.EndUserName,
	}
	if answer.Tags == nil {
		answer.Tags = tenants.Tags{}
	}
	if exchange.Session != uuid.Nil {
		answer.Session, answer.Lane = &exchange.Session, &exchange.Lane
	}
	return answer
}

// modulesOf returns the results of a report's modules, in their order.
func modulesOf(encoded []byte) []moduleJSON {
	modules := []moduleJSON{}
	var report pipeline.Report
	if json.Unmarshal(encoded, &report) != nil {
		return modules // exchanges without a pipeline have no report
	}
	for _, module := range report.Modules {
		modules = append(modules, moduleJSON{Name: module.Name, Outcome: module.Outcome})
	}
	return modules
}

// requestColumn is a column of a download.
type requestColumn struct {
	name string
	cell func(*tenants.Exchange) string
}

// requestColumns are the columns of a download.
func requestColumns() []requestColumn {
	type exchange = tenants.Exchange
	return []requestColumn{
		{"at", func(e *exchange) string { return e.At.UTC().Format(time.RFC3339Nano) }},
		{"id", func(e *exchange) string { return e.ID.String() }},
		{"session", func(e *exchange) string { return tenants.CSVID(e.Session) }},
		{"lane", func(e *exchange) string { return tenants.CSVID(e.Lane) }},
		{"client", func(e *exchange) string { return tenants.CSVCell(e.Client) }},
		{"model", func(e *exchange) string { return tenants.CSVCell(e.Model) }},
		{"key", func(e *exchange) string { return e.APIKey.String() }},
		{"provider", func(e *exchange) string { return tenants.CSVCell(string(e.Provider)) }},
		{"provider_key", func(e *exchange) string { return tenants.CSVID(e.ProviderKey) }},
		{"endpoint", func(e *exchange) string { return tenants.CSVCell(e.Endpoint) }},
		{"class", func(e *exchange) string { return tenants.CSVCell(e.Class) }},
		{"stream", func(e *exchange) string { return strconv.FormatBool(e.Stream) }},
		{"status", func(e *exchange) string { return strconv.Itoa(e.Status) }},
		{"error_from", func(e *exchange) string { return tenants.CSVCell(e.ErrorFrom) }},
		{"error_type", func(e *exchange) string { return tenants.CSVCell(e.ErrorType) }},
		{"compression", func(e *exchange) string { return tenants.CSVCell(e.Compression) }},
		{"tokens_received", func(e *exchange) string { return strconv.Itoa(e.TokensBefore) }},
		{"tokens_sent", func(e *exchange) string { return strconv.Itoa(e.TokensAfter) }},
		{"input", func(e *exchange) string { return strconv.Itoa(e.Input) }},
		{"cache_read", func(e *exchange) string { return strconv.Itoa(e.CacheRead) }},
		{"cache_write", func(e *exchange) string { return strconv.Itoa(e.CacheWrite) }},
		{"output", func(e *exchange) string { return strconv.Itoa(e.Output) }},
		{"overhead_ms", func(e *exchange) string { return millisCell(e.Overhead) }},
		{"ttfb_ms", func(e *exchange) string { return millisCell(e.TTFB) }},
		{"duration_ms", func(e *exchange) string { return millisCell(e.Duration) }},
		{"attempts", func(e *exchange) string { return strconv.Itoa(e.Attempts) }},
		{"cost_usd", func(e *exchange) string { return dollars(e.CostMicroUSD) }},
		{"net_usd", func(e *exchange) string { return dollars(e.NetMicroUSD) }},
		{"miss_cause", func(e *exchange) string { return tenants.CSVCell(e.MissCause) }},
		{"missed_tokens", func(e *exchange) string { return strconv.Itoa(e.MissedTokens) }},
		{"modules", modulesCell},
		{"tags", tagsCell},
		{"end_user", func(e *exchange) string { return e.EndUser }},
		{"end_user_name", func(e *exchange) string { return tenants.CSVCell(e.EndUserName) }},
		{"reach", func(e *exchange) string { return strconv.FormatBool(e.Reach) }},
		{"service_tier", func(e *exchange) string { return tenants.CSVCell(e.ServiceTier) }},
		{"speed", func(e *exchange) string { return tenants.CSVCell(e.Speed) }},
		{"region", func(e *exchange) string { return tenants.CSVCell(e.Region) }},
		{"answered_by", func(e *exchange) string { return tenants.CSVCell(e.AnsweredBy) }},
	}
}

func modulesCell(e *tenants.Exchange) string {
	var modules []string
	for _, module := range modulesOf(e.Report) {
		modules = append(modules, module.Name+":"+module.Outcome)
	}
	return tenants.CSVCell(strings.Join(modules, " "))
}

func tagsCell(e *tenants.Exchange) string {
	var tags []string
	for _, tag := range e.Tags.List() {
		tags = append(tags, tag.String())
	}
	return tenants.CSVCell(strings.Join(tags, " "))
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration.Microseconds()) / 1000
}

func millisCell(d time.Duration) string { return strconv.FormatFloat(milliseconds(d), 'f', -1, 64) }

// dollars writes millionths of a US dollar as a number.
func dollars(micro int64) string { return strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64) }
