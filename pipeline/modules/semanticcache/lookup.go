package semanticcache

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

// Request is a request that is ready to be sent.
type Request struct {
	Asked

	Config    Config
	Workspace tenants.WorkspaceID
	APIKey    uuid.UUID
	Person    uuid.UUID // the member that the API key belongs to
	Project   string    // the tag of this name; "" if absent
	EndUser   string    // the application's end user, as session.EndUserID names them; "" if it doesn't say
	Session   uuid.UUID // uuid.Nil without a session

	HasHistory bool // it is known not to be a single question
	NoStore    bool // neither store its answer nor serve a stored one
	BringsKey  bool // it has its own provider key, which is for one use, and so is its answer
}

// read reads a request; if it must not use the cache, asked is nil and reason says why.
func (r Request) read(secret []byte) (asked *Lookup, reason string) {
	switch {
	case r.HasHistory:
		return nil, ReasonHistory
	case r.NoStore:
		return nil, "no-store"
	case r.BringsKey:
		return nil, "provider-key"
	case r.Config.Scope == pipeline.ScopeSession && r.Session == uuid.Nil:
		return nil, "no-session"
	}
	r.Origin = append([]string{r.Workspace.String(), r.owner()}, r.Origin...)
	key, reason := Read(r.Asked, secret)
	if reason != "" {
		return nil, reason
	}
	r.Body = nil // the caller reuses the body soon
	return &Lookup{request: r, key: key}, ""
}

// owner names the group that shares the answer to a request.
func (r Request) owner() string {
	var of string
	switch {
	case r.Config.Scope == pipeline.ScopeWorkspace:
		return pipeline.ScopeWorkspace
	case r.Config.Scope == pipeline.ScopeProject && r.Project != "":
		of = pipeline.ScopeProject + " " + r.Project
	case r.Config.Scope == pipeline.ScopeProject, r.Config.Scope == pipeline.ScopePerson:
		of = pipeline.ScopePerson + " " + r.Person.String()
	case r.Config.Scope == pipeline.ScopeKey:
		of = pipeline.ScopeKey + " " + r.APIKey.String()
	default:
		of = pipeline.ScopeSession + " " + r.Session.String()
	}
	return of + " " + r.EndUser
}

// Lookup is a request that may be answered from the cache, and whose answer may be kept. It is nil
// for a request that must not use the cache.
type Lookup struct {
	request Request
	key     Key
	entry   *Entry // the answer to give again; nil if absent
	copied  []byte // of the provider's answer
	isLong  bool   // the answer has more than MaxAnswer bytes
}

// Entry returns the answer to give again; nil if absent.
func (l *Lookup) Entry() *Entry {
	if l == nil {
		return nil
	}
	return l.entry
}

// Write implements io.Writer: it takes the next bytes of the provider's answer.
func (l *Lookup) Write(p []byte) (int, error) {
	if l.isLong = l.isLong || len(l.copied)+len(p) > MaxAnswer; l.isLong {
		l.copied = nil
	} else {
		l.copied = append(l.copied, p...)
	}
	return len(p), nil
}

// hit notes that there is an answer.
func (l *Lookup) hit(report *pipeline.Report, entry Entry) {
	l.entry, report.Cache = &entry, pipeline.CacheHit
	note(report, "hit", string(pipeline.CacheHit), map[string]int{"saved_microusd": int(entry.MicroUSD)})
	for i := range report.Modules {
		if report.Modules[i].Name == Name {
			report.Modules[i].Outcome = pipeline.Applied
		}
	}
}

// note notes an event of the cache in a report: cache.semantic.hit, ….
func note(report *pipeline.Report, kind, reason string, counts map[string]int) {
	report.Events = append(report.Events, pipeline.ReportEntry{Module: "cache.semantic", Type: kind, Reason: reason, Counts: counts})
}

// Keep stores the provider's finished answer to a lookup if it may be given again; entry holds its
// properties and cost. It never waits: if the queue is full, it drops the answer.
func (c *Cache) Keep(ctx context.Context, asked *Lookup, answered Answered, entry Entry) {
	if asked == nil || asked.isLong || !answered.IsKept() {
		return
	}
	entry.Key, entry.Answer, entry.At, entry.EndUser = asked.key, asked.copied, c.Now(), asked.request.EndUser
	expires := entry.At.Add(time.Duration(asked.request.Config.TTLSeconds) * time.Second)
	_, span := spans.Start(ctx, "keep answer")
	select {
	case c.queue <- keptAnswer{asked.request.Workspace, entry, expires, span}:
		c.known.Set(entry.Key, entry)
	default:
		c.Log.Warn("an answer is not kept: the queue is full", "workspace", asked.request.Workspace)
	}
}

// Interface guard.
var _ io.Writer = (*Lookup)(nil)
