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

	// queueJobs and queueBytes bound what may wait: jobs, and the bytes of the
	// prompts that they hold.
	queueJobs  = 256
	queueBytes = 64 << 20

	// DefaultTimeout bounds the work on one summary.
	DefaultTimeout = 30 * time.Second

	storeTimeout = 10 * time.Second

	// sameModel stands for the conversation's own model.
	sameModel = "same"
)

// Settings are what a workspace has set for its summaries.
type Settings struct {
	Model     string // who writes; "same": the conversation's own model
	Prompt    string // in place of our own words; empty: our own
	Asked     string // what someone asked of this summary; empty if nothing special
	MaxTokens int    // of the answer; 0: as many as the budget asks for
	Timeout   time.Duration
	Overrides tokens.Overrides // what holds for models in place of the catalog
}

// Job asks for the summary of a lane's first messages.
type Job struct {
	Scope    session.Scope
	Session  uuid.UUID
	Lane     uuid.UUID
	Covers   int                 // messages that the summary is to stand for: whole turns
	Chain    []conversation.Hash // links of the lane's history, up to Covers at least
	Codec    wire.Codec
	Model    string  // the conversation's, as the client names it
	Window   int     // its context window in tokens; 0 if unknown
	Factor   float64 // its tokens per o200k token
	Provider string  // which of the workspace's provider keys, by name; empty: the first
	Settings Settings
	Base     *CachedPrompt // nil: the lane's prompt cannot be gone on from
	Span     spans.Span    // of the request that asks for it

	// Begin is asked before a model is, with what that may cost at most, in millionths
	// of a dollar; nil if no one. It returns what is to be told the cost once it is
	// known, or an error that refuses the summary.
	Begin func(ctx context.Context, model tokens.Model, microUSD int64) (settle func(microUSD int64), err error)

	// Again says that the summary was asked for before, and perhaps lost with the
	// process that was asked: nothing is done where an attempt at it is kept.
	Again bool
}

// Store keeps attempts and the summaries that came of them.
type Store interface {
	Summaries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Summary, error)
	SaveSummary(ctx context.Context, workspace tenants.WorkspaceID, attempt session.SummaryAttempt) error
	// SummaryTried reports whether an attempt at a summary of so many messages of
	// the lane, or more, is kept, whatever came of it.
	SummaryTried(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, covers int) (bool, error)
}

// Lanes are the lanes in memory, which are told how an attempt ended.
type Lanes interface {
	Summarized(lane uuid.UUID, summary session.Summary)
	SummaryRejected(lane uuid.UUID, reason string)
}

// Config is what a Worker works with.
type Config struct {
	Originals archive.Originals
	Store     Store
	Lanes     Lanes
	Ask       Ask
	Models    *tokens.Models
	Count     func(string) int // o200k tokens of a text
	Log       *slog.Logger
	Now       func() time.Time

	// Ended is notified of every attempt that was kept; may be nil.
	Ended func(Job, session.SummaryAttempt)
}

// Worker makes summaries in the background: a bounded queue, one job for a lane
// at a time. What does not fit in the queue, and what is lost with the process, is
// asked for again with the lane's next request.
type Worker struct {
	config Config
	queue  chan Job

	mu    sync.Mutex
	bytes int                // of prompts that wait
	lanes map[uuid.UUID]bool // that have a job

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

// Stop ends the work, calls under way included, and waits for it. It may be called
// twice and without Start.
func (w *Worker) Stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.stopped.Wait()
}

// Ask queues a job and reports whether it was taken: not where its lane has one
// already, nor where the queue is full. It never blocks. A prompt that exceeds
// what may wait is left out of the job.
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

// do works on one job and makes room for its lane's next one.
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

// keep makes an attempt and stores it, then tells its lane.
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
		return attempt, false // the program ends: nothing is known of the attempt
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

// note says in a step's span what came of an attempt, and ends it.
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

// attempt has a summary written. A rejection is an attempt too; an error is what
// kept it from being made.
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

// reasonOf returns the reason that an error stands for; other errors are not the
// answer's fault.
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

// errTried says that an attempt at a summary is kept already.
var errTried = errors.New("tried already")

// ErrUnreachable says that a provider gave no answer.
var ErrUnreachable = errors.New("provider gave no answer")

// newest returns the summary of the longest prefix of a history; nil if it does not exist.
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
