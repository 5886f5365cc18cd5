package summary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	workers = 2

	// queueJobs and queueBytes bound the queue: its jobs, and the bytes of their prompts.
	queueJobs  = 256
	queueBytes = 64 << 20

	// DefaultTimeout bounds the work on one summary.
	DefaultTimeout = 30 * time.Second

	storeTimeout = 10 * time.Second

	// sameModel means the conversation's own model.
	sameModel = "same"
)

// Settings are a workspace's settings for its summaries.
type Settings struct {
	Model     string // the writer; "same" means the conversation's own model
	Prompt    string // replaces our own instructions; "" means our own
	Asked     string // a person's request for this summary; "" if absent
	MaxTokens int    // of the answer; 0 means derived from the budget
	Timeout   time.Duration
	Overrides tokens.Overrides // replace the catalog's data about models
}

// Job asks for the summary of a lane's first messages.
type Job struct {
	Scope    session.Scope
	Session  uuid.UUID
	Lane     uuid.UUID
	Covers   int                 // messages that the summary is to cover: whole turns
	Chain    []conversation.Hash // links of the lane's history, up to Covers at least
	Codec    wire.Codec
	Model    string  // the conversation's, as the client names it
	Window   int     // its context window in tokens; 0 if unknown
	Factor   float64 // its tokens per o200k token
	Provider string  // name of the workspace's provider key; "" means the first
	Settings Settings
	Base     *CachedPrompt // nil if the lane's prompt cannot be continued
	Span     spans.Span    // of the request that asks for it

	// Begin is called before a model, with the maximum cost in millionths of a dollar; optional. It
	// returns a function to call with the real cost once it is known, or an error that refuses the
	// summary.
	Begin func(ctx context.Context, model tokens.Model, microUSD int64) (settle func(microUSD int64), err error)

	// Again means that the summary was requested before, and perhaps lost with the earlier process.
	// The job ends without work if an attempt is stored.
	Again bool
}

// Store keeps attempts and their summaries.
type Store interface {
	Summaries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Summary, error)
	SaveSummary(ctx context.Context, workspace tenants.WorkspaceID, attempt session.SummaryAttempt) error
	// SummaryTried reports whether an attempt at a summary of so many messages of the lane, or
	// more, is stored, whatever its outcome.
	SummaryTried(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, covers int) (bool, error)
}

// Lanes are the lanes in memory, which are notified of the end of an attempt.
type Lanes interface {
	Summarized(lane uuid.UUID, summary session.Summary)
	SummaryRejected(lane uuid.UUID, reason string)
}

// Config holds the dependencies of a Worker.
type Config struct {
	Originals archive.Originals
	Store     Store
	Lanes     Lanes
	Ask       Ask
	Models    *tokens.Models
	Count     func(string) int // o200k tokens of a text
	Log       *slog.Logger
	Now       func() time.Time

	// Ended is called for every stored attempt; optional.
	Ended func(Job, session.SummaryAttempt)
}

// Worker makes summaries in the background: a bounded queue, one job for a lane at a time. The
// lane's next request asks again for a summary that did not fit in the queue or was lost with the
// process.
type Worker struct {
	config Config
	queue  chan Job

	mu    sync.Mutex
	bytes int                // of waiting prompts
	lanes map[uuid.UUID]bool // those with a job

	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// NewWorker returns a Worker that is not started yet.
func NewWorker(config Config) *Worker {
	return &Worker{config: config, queue: make(chan Job, queueJobs), lanes: map[uuid.UUID]bool{}}
}

// Start starts the work.
func (w *Worker) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	for range workers {
		w.stopped.Go(func() { w.work(ctx) })
	}
}

// Stop ends the work, including calls in progress, and waits for it. It may be called twice and
// without Start.
func (w *Worker) Stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.stopped.Wait()
}

// Ask queues a job and reports whether it was accepted. It rejects the job if its lane has one
// already or the queue is full. It never blocks. It leaves out a prompt that exceeds the queue's
// bytes.
func (w *Worker) Ask(job Job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if job.Covers <= 0 || job.Covers >= len(job.Chain) || w.lanes[job.Lane] {
		return false
	}
	if job.Base != nil && w.bytes+len(job.Base.Body) > queueBytes {
		job.Base = nil
	}
	select {
	case w.queue <- job:
		w.lanes[job.Lane] = true
		w.bytes += job.bytes()
		return true
	default:
		return false
	}
}

func (j *Job) bytes() int {
	if j.Base == nil {
		return 0
	}
	return len(j.Base.Body)
}

func (w *Worker) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case job := <-w.queue:
			w.do(ctx, job)
		}
	}
}

// do runs one job and makes room for its lane's next one.
func (w *Worker) do(ctx context.Context, job Job) {
	attempt, kept := w.keep(ctx, job)
	w.mu.Lock()
	delete(w.lanes, job.Lane)
	w.bytes -= job.bytes()
	w.mu.Unlock()
	if kept && w.config.Ended != nil {
		w.config.Ended(job, attempt)
	}
}

// keep makes an attempt and stores it, then notifies its lane.
func (w *Worker) keep(ctx context.Context, job Job) (attempt session.SummaryAttempt, kept bool) {
	ctx, span := spans.Start(job.Span.In(ctx), "summarize")
	defer func() { note(span, job, attempt, kept) }()
	timeout := job.Settings.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	working, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	attempt, err := w.attempt(working, job)
	if ctx.Err() != nil {
		return attempt, false // the program ends, and the outcome is unknown
	}
	if err == nil {
		saving, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err = w.config.Store.SaveSummary(saving, job.Scope.Workspace, attempt)
	}
	if errors.Is(err, errTried) {
		return attempt, false
	}
	if err != nil {
		w.config.Log.Warn("summary", "lane", job.Lane, "covers", job.Covers, "error", err)
		return attempt, false
	}
	if attempt.Reason == "" {
		w.config.Lanes.Summarized(job.Lane, attempt.Summary)
	} else {
		w.config.Lanes.SummaryRejected(job.Lane, attempt.Reason)
	}
	w.config.Log.Info("summary", "lane", job.Lane, "covers", attempt.Covers, "merged", attempt.Merged, "rejected", attempt.Reason,
		"form", attempt.Form, "model", attempt.Model, "cost_microusd", attempt.CostMicroUSD)
	return attempt, true
}

// note records the outcome of an attempt in a step's span, and ends it.
func note(span spans.Span, job Job, attempt session.SummaryAttempt, kept bool) {
	span.Int(spans.Covers, job.Covers)
	switch {
	case !kept:
		span.Fail(spans.Other)
	case attempt.Reason != "":
		span.String(spans.Outcome, "rejected")
	default:
		span.String(spans.Outcome, "accepted")
	}
	span.End()
}

// attempt has a summary written. A rejection is an attempt too; an error means that there was no
// attempt.
func (w *Worker) attempt(ctx context.Context, job Job) (session.SummaryAttempt, error) {
	workspace := job.Scope.Workspace
	if job.Again {
		tried, err := w.config.Store.SummaryTried(ctx, workspace, job.Lane, job.Covers)
		if err != nil {
			return session.SummaryAttempt{}, err
		}
		if tried {
			return session.SummaryAttempt{}, errTried
		}
	}
	known, err := w.config.Store.Summaries(ctx, workspace, job.Lane)
	if err != nil {
		return session.SummaryAttempt{}, err
	}
	previous := newest(known, job.Chain)
	if previous != nil && previous.Covers >= job.Covers {
		return session.SummaryAttempt{}, fmt.Errorf("there is one of %d messages already", previous.Covers)
	}
	entries, err := w.config.Originals.Originals(ctx, workspace, job.Lane, 0, job.Covers)
	if err != nil {
		return session.SummaryAttempt{}, err
	}
	m := &maker{
		job: job, provider: w.config.Ask, models: w.config.Models, count: w.config.Count, previous: previous,
		budget: job.budget(),
	}
	text := ""
	if err = m.read(entries); err == nil {
		text, err = m.write(ctx)
	}
	attempt := session.SummaryAttempt{
		Summary: session.Summary{Covers: job.Covers, Chain: job.Chain[job.Covers], Text: text},
		Session: job.Session, Lane: job.Lane, Version: Version, Form: m.form, Model: m.model,
		Usage: m.usage, CostMicroUSD: m.cost, At: w.config.Now(),
	}
	if previous != nil {
		attempt.Merged = previous.Covers
	}
	attempt.Reason, err = reasonOf(ctx, err)
	return attempt, err
}

// reasonOf returns the reason in an error; other errors are not the answer's fault.
func reasonOf(ctx context.Context, err error) (reason string, other error) {
	if err == nil {
		return "", nil
	}
	rejected, is := errors.AsType[rejection](err)
	isLate := errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case is:
		return rejected.reason, nil
	case errors.Is(err, ErrNoProvider):
		return ReasonNoProvider, nil
	case isLate:
		return ReasonTimeout, nil
	case errors.Is(err, ErrUnreachable):
		return ReasonUnreachable, nil
	default:
		return "", err
	}
}

// errTried means that an attempt at a summary is stored already.
var errTried = errors.New("tried already")

// ErrUnreachable means that a provider gave no answer.
var ErrUnreachable = errors.New("provider gave no answer")

// newest returns the summary of the longest prefix of a history; nil if absent.
func newest(known []session.Summary, chain []conversation.Hash) *session.Summary {
	var found *session.Summary
	for i := range known {
		if s := &known[i]; s.Covers < len(chain) && chain[s.Covers] == s.Chain && (found == nil || s.Covers >= found.Covers) {
			found = s
		}
	}
	return found
}

// budget returns how many o200k tokens the summary may have.
func (j *Job) budget() int {
	window := j.Window
	if window == 0 {
		window = unknownLimit
	}
	factor := j.Factor
	if factor <= 0 {
		factor = 1
	}
	return int(float64(Budget(window)) / factor)
}
