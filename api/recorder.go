package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	recorderQueue   = 8192 // jobs that may wait
	recorderBatch   = 256  // jobs written together
	recorderWorkers = 4
	recorderTries   = 8 // attempts at a batch: about 25 s in all
	recorderTimeout = 30 * time.Second
)

// SessionStore keeps what exchanges add to their sessions.
type SessionStore interface {
	Record(ctx context.Context, workspace uuid.UUID, seen []session.Seen) error
}

// UsageStore keeps what is counted of exchanges.
type UsageStore interface {
	RecordExchanges(ctx context.Context, workspace uuid.UUID, exchanges []tenants.Exchange) error
}

// AnswerStore keeps answers by their hash.
type AnswerStore interface {
	PutObjects(ctx context.Context, workspace uuid.UUID, raw ...[]byte) ([]conversation.Hash, error)
}

// Recorder writes what happened behind the proxy's back: batches from a bounded
// queue. What does not fit in the queue is dropped and counted; messages among
// it are recorded again with the next request of their lane.
type Recorder struct {
	sessions SessionStore
	usage    UsageStore
	answers  AnswerStore
	metrics  *Metrics
	log      *slog.Logger

	queues  []chan job // one for each worker; a workspace always meets the same one
	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// job is something to record, in the order of its fields.
type job struct {
	seen     *session.Seen
	stored   func() // called once seen is durable; may be nil
	answers  []json.RawMessage
	exchange *tenants.Exchange
}

// NewRecorder returns a Recorder that is not started yet.
func NewRecorder(sessions SessionStore, usage UsageStore, answers AnswerStore, metrics *Metrics, log *slog.Logger) *Recorder {
	recorder := &Recorder{
		sessions: sessions, usage: usage, answers: answers, metrics: metrics, log: log,
		stop: make(chan struct{}), queues: make([]chan job, recorderWorkers),
	}
	for i := range recorder.queues {
		recorder.queues[i] = make(chan job, recorderQueue/recorderWorkers)
	}
	return recorder
}

// Start starts the workers.
func (r *Recorder) Start() {
	for _, queue := range r.queues {
		r.stopped.Go(func() { r.work(queue) })
	}
}

// Stop writes what is waiting and ends the workers. It may be called twice; no
// exchange may be running any more.
func (r *Recorder) Stop() {
	r.once.Do(func() { close(r.stop) })
	r.stopped.Wait()
}

// put queues a job; it never blocks.
func (r *Recorder) put(job job) {
	select {
	case r.queues[int(job.workspace()[15])%len(r.queues)] <- job:
	default:
		r.metrics.dropped.Inc()
	}
}

func (j job) workspace() uuid.UUID {
	if j.seen != nil {
		return j.seen.Scope.Workspace
	}
	return j.exchange.Workspace
}

func (r *Recorder) work(queue chan job) {
	for {
		select {
		case first := <-queue:
			r.write(collect(queue, first))
		case <-r.stop:
			for len(queue) > 0 {
				r.write(collect(queue, <-queue))
			}
			return
		}
	}
}

// collect returns first and what waits behind it.
func collect(queue chan job, first job) []job {
	batch := []job{first}
	for len(batch) < recorderBatch {
		select {
		case next := <-queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// write records a batch, workspace by workspace.
func (r *Recorder) write(batch []job) {
	byWorkspace := make(map[uuid.UUID][]job)
	var order []uuid.UUID
	for _, job := range batch {
		workspace := job.workspace()
		if byWorkspace[workspace] == nil {
			order = append(order, workspace)
		}
		byWorkspace[workspace] = append(byWorkspace[workspace], job)
	}
	for _, workspace := range order {
		jobs := byWorkspace[workspace]
		if err := r.retry(func(ctx context.Context) error { return r.record(ctx, workspace, jobs) }); err != nil {
			r.metrics.dropped.Add(float64(len(jobs)))
			r.metrics.archiveErrors.Inc()
			r.log.Error("record exchanges", "workspace", workspace, "dropped", len(jobs), "error", err)
		}
	}
}

// record writes the jobs of one workspace. Every part may be repeated.
func (r *Recorder) record(ctx context.Context, workspace uuid.UUID, jobs []job) error {
	var seen []session.Seen
	var exchanges []tenants.Exchange
	for _, job := range jobs {
		if job.seen != nil {
			seen = append(seen, *job.seen)
		}
	}
	if len(seen) > 0 {
		if err := r.sessions.Record(ctx, workspace, seen); err != nil {
			return err
		}
	}
	for i := range jobs {
		if jobs[i].stored != nil {
			jobs[i].stored()
		}
		jobs[i].seen, jobs[i].stored = nil, nil // not again, should the rest be retried
	}
	if err := r.keepAnswers(ctx, workspace, jobs); err != nil {
		return err
	}
	for _, job := range jobs {
		if job.exchange != nil {
			exchanges = append(exchanges, *job.exchange)
		}
	}
	if len(exchanges) == 0 {
		return nil
	}
	return r.usage.RecordExchanges(ctx, workspace, exchanges)
}

// keepAnswers stores the first message of each answer and notes its hash with
// the exchange. Further messages, the other items of Responses, come back with
// the client's next request.
func (r *Recorder) keepAnswers(ctx context.Context, workspace uuid.UUID, jobs []job) error {
	var answers [][]byte
	var of []*tenants.Exchange
	for _, job := range jobs {
		if job.exchange != nil && len(job.answers) > 0 {
			answers, of = append(answers, job.answers[0]), append(of, job.exchange)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	hashes, err := r.answers.PutObjects(ctx, workspace, answers...)
	if err != nil {
		return err
	}
	for i, exchange := range of {
		exchange.Answer = hashes[i][:]
	}
	return nil
}

// retry runs write until it succeeds, with growing pauses; while stopping, once.
func (r *Recorder) retry(write func(context.Context) error) error {
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), recorderTimeout)
		err := write(ctx)
		cancel()
		if err == nil || try == recorderTries {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-r.stop:
			if try > 1 {
				return err
			}
		}
	}
}
