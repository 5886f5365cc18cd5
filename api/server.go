package api

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"palimpsest/api/failover"
	"palimpsest/api/limits"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recall"
	"palimpsest/api/recorder"
	"palimpsest/api/summaries"
	"palimpsest/api/upstream"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

// Server is the proxy.
type Server struct {
	Gate
	Records

	Prompts  *prompt.Writer
	Upstream upstream.Sender

	// Summaries lets models write summaries of lanes; disabled if nil.
	Summaries *summaries.Service

	// Answers caches answers to equal questions; disabled if nil.
	Answers *semanticcache.Cache

	// Recall lets models look things up in the archive; disabled if nil.
	Recall *recall.Server

	// Failover remembers how provider keys work. Without it every request goes to its first key only.
	Failover *failover.Keys

	// Concurrency bounds the requests that a workspace has open; no bound if nil.
	Concurrency *Concurrency

	// Bytes bounds the bytes of request bodies in flight. Optional.
	Bytes *Bytes

	// Contact is whom to ask about a suspension: an address or a page; "" means the person who runs the
	// installation.
	Contact string

	// Tracer traces requests. Optional.
	Tracer *spans.Tracer

	buffers sync.Pool // of *[]byte, relayBuffer long
	bodies  bodies
	lists   modelLists
}

// Gate decides which requests are admitted, and where they go.
type Gate struct {
	Keys     tenants.KeyAuthenticator
	Settings *proxysettings.Cache

	// Limits enforces the quotas of API keys; disabled if nil.
	Limits *limits.Limiter

	// Address returns the address of a request's client; the peer's address if nil.
	Address func(*http.Request) string

	// Origins decides which pages may read answers in a browser. Without it, no page may.
	Origins *Origins

	// RequireVerified refuses the requests of workspaces without any owner who has a verified address.
	RequireVerified bool

	underway underway
	plain    plainKeys
}

// Records writes about requests to the log, to metrics, and to the recorder.
type Records struct {
	Recorder *recorder.Recorder
	Metrics  *Metrics
	Log      *slog.Logger
	Now      func() time.Time
}

// Interface guard.
var _ upstream.Sender = (*upstream.Client)(nil)
