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

	// Summaries has models write summaries of lanes; nil if no one.
	Summaries *summaries.Service

	// Answers gives answers again to the same question; nil if no one.
	Answers *semanticcache.Cache

	// Recall lets models look things up in the archive; nil if there is no such route.
	Recall *recall.Server

	// Failover remembers how provider keys work. Without it every request goes to its first key only.
	Failover *failover.Keys

	// Concurrency bounds the requests that a workspace has open; nil if nothing does.
	Concurrency *Concurrency

	// Bytes bounds the bytes of request bodies in flight. Optional.
	Bytes *Bytes

	// Contact says whom to ask about a suspension: an address, or a page; empty: the person who
	// runs the installation.
	Contact string

	// Tracer traces requests. Optional.
	Tracer *spans.Tracer

	buffers sync.Pool // of *[]byte, relayBuffer long
	bodies  bodies
	lists   modelLists
}

// Gate decides whose requests come in, and where they go.
type Gate struct {
	Keys     tenants.KeyAuthenticator
	Settings *proxysettings.Cache

	// Limits holds API keys to their quotas; nil if no one.
	Limits *limits.Limiter

	// Address returns the address of a request's client; nil: who is connected.
	Address func(*http.Request) string

	// Origins tells which pages may read answers in a browser. Without it no page may.
	Origins *Origins

	// RequireVerified refuses the requests of workspaces none of whose owners has a
	// verified address.
	RequireVerified bool

	underway underway
	plain    plainKeys
}

// Records notes what happens to requests: in the log, in metrics, and by the recorder.
type Records struct {
	Recorder *recorder.Recorder
	Metrics  *Metrics
	Log      *slog.Logger
	Now      func() time.Time
}

// Interface guard.
var _ upstream.Sender = (*upstream.Client)(nil)
