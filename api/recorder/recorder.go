// Package recorder writes records of the proxy's exchanges to the database in the background, and keeps them
// on the local disk until they are there.
package recorder

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

const (
	queueLength  = 8192                  // jobs that may wait
	queueMemory  = 64 << 20              // bytes of messages that may wait
	patience     = 5 * time.Second       // a request waits for room while the database works
	batchLength  = 512                   // jobs written together
	batchLinger  = 10 * time.Millisecond // wait for more jobs of a batch
	workers      = 4
	tries        = 28          // attempts at a batch: about 25 s in all
	certainTries = 5           // attempts at a batch that the database refuses: about 1.5 s in all
	longestPause = time.Second // maximum between two of them
	writeTimeout = 30 * time.Second
)

// Recorder writes records in the background: batches from a bounded queue. A caller that is faster than the
// database waits for room in the queue, unless the database fails: then records that don't fit are dropped
// and counted. The next request of a lane records its dropped messages again.
type Recorder struct {
	database tenants.Transactor
	sessions session.Store
	usage    tenants.Exchanges
	metrics  *Metrics
	log      *slog.Logger
	keys     *archive.Keys
	spool    *spool.Spool // nil: waiting records are lost if the process is killed

	Hearers

	writing []atomic.Int64      // when the wait of the oldest job that a worker writes began, Unix nanoseconds; 0 if idle
	queues  []chan Job          // one for each worker; a session always uses the same one
	room    *semaphore.Weighted // free bytes for messages in the queues
	failing atomic.Bool         // the last write failed
	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// Hearers are optional callbacks for data that has become durable. They must not wait, and are set before
// Start.
type Hearers struct {
	// Recorded receives the API keys of a workspace's exchanges that have become durable, one for each exchange.
	Recorded func(workspace tenants.WorkspaceID, apiKeys []uuid.UUID)

	// Released receives the holds of exchanges that Replay has recorded.
	Released func(ctx context.Context, held []string)
}

// Job is a record to write: a request's addition to its session, an ended exchange with the answer's
// addition, or an exchange without a session.
type Job struct {
	Update   *session.Update   // addition to a session; nil without one
	Request  *Request          // the addition of the exchange's request, or the Request of Update; nil without one
	Exchange *tenants.Exchange // nil if it has not ended
	Said     []byte            // the provider's text, if it refused Exchange
	Kept     spool.Record      // of Exchange, as Keep returned it
	Span     spans.Span        // starts with the queue
	Ended    func(stored bool) // optional: called once when all of it is durable or was dropped

	since time.Time // when it was queued
}

// New returns a Recorder without starting it. keys seal the texts of providers' refusals.
func New(database tenants.Transactor, sessions session.Store, usage tenants.Exchanges, keys *archive.Keys, metrics *Metrics, log *slog.Logger) *Recorder {
	recorder := &Recorder{
		database: database, sessions: sessions, usage: usage, keys: keys, metrics: metrics, log: log,
		stop: make(chan struct{}), queues: make([]chan Job, workers), writing: make([]atomic.Int64, workers), room: semaphore.NewWeighted(queueMemory),
	}
	for i := range recorder.queues {
		recorder.queues[i] = make(chan Job, queueLength/workers)
	}
	return recorder
}

// WithSpool stores waiting records on the local disk. It returns r.
func (r *Recorder) WithSpool(kept *spool.Spool) *Recorder {
	r.spool = kept
	return r
}

// Start starts the workers.
func (r *Recorder) Start() {
	for i, queue := range r.queues {
		r.stopped.Go(func() { r.work(queue, &r.writing[i]) })
	}
}

// Stop writes the waiting records and ends the workers. It may be called twice; all exchanges must have
// ended.
func (r *Recorder) Stop() {
	r.once.Do(func() { close(r.stop) })
	r.stopped.Wait()
}

// Put queues a job. It waits for room, up to patience.
func (r *Recorder) Put(job Job) {
	job.since = time.Now()
	queue, size := r.queues[job.session()[15]%workers], job.size()
	if r.room.TryAcquire(size) {
		select {
		case queue <- job:
			return
		default:
			r.room.Release(size)
		}
	}
	if r.failing.Load() || !r.wait(queue, job, size) {
		r.drop(job)
		r.end(job, false)
	}
}

// wait queues a job of a size as soon as there is room. It returns false if there wasn't any in time.
func (r *Recorder) wait(queue chan<- Job, job Job, size int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if r.room.Acquire(ctx, size) != nil {
		return false
	}
	select {
	case queue <- job:
		return true
	case <-ctx.Done():
		r.room.Release(size)
		return false
	}
}

// drop counts a job that was neither recorded nor written to the local disk, and returns the number of such
// jobs.
func (r *Recorder) drop(job Job) int {
	if r.isKeptAtLast(job) || job.Kept != (spool.Record{}) {
		return 0
	}
	r.metrics.Dropped.Inc()
	return 1
}

// isKeptAtLast reports whether a job is written to the local disk when it is dropped. That holds for a
// request's addition, which Keep otherwise writes with its exchange if that ends in time.
func (r *Recorder) isKeptAtLast(job Job) bool {
	return r.spool != nil && job.Exchange == nil
}

// end tells waiting callers whether a job was recorded.
func (r *Recorder) end(job Job, stored bool) {
	if stored {
		job.Kept.Done()
	} else {
		job.Kept.Failed()
		job.Span.Fail(spans.Other)
	}
	if !stored && r.isKeptAtLast(job) { // for Replay
		r.keep(job.Span.In(context.Background()), job.workspace(), kept{Request: job.Update}, nil).Failed()
	}
	job.Span.End()
	if job.Exchange == nil {
		job.Request.forget()
	}
	if job.Ended != nil {
		job.Ended(stored)
	}
}

// size returns the bytes of messages and errors in a job, up to the capacity of the queues.
func (j Job) size() int64 {
	size := len(j.Said)
	if j.Update != nil {
		size += j.Update.Bytes()
	}
	return int64(min(size, queueMemory))
}

func (j Job) session() uuid.UUID {
	if j.Update != nil {
		return j.Update.Session
	}
	return j.Exchange.Request.Session
}

func (j Job) workspace() tenants.WorkspaceID {
	if j.Update != nil {
		return j.Update.Scope.Workspace
	}
	return j.Exchange.Workspace
}

func (r *Recorder) work(queue chan Job, writing *atomic.Int64) {
	batch := func(first Job) {
		writing.Store(first.since.UnixNano())
		defer writing.Store(0)
		r.write(r.collect(queue, first))
	}
	for {
		select {
		case first := <-queue:
			batch(first)
		case <-r.stop:
			for len(queue) > 0 {
				batch(<-queue)
			}
			return
		}
	}
}

// WaitsSince returns the start of the longest wait among this process's records: in its queues, which are
// written in order, or on the local disk. It is the zero time if none is waiting.
func (r *Recorder) WaitsSince() time.Time {
	var oldest time.Time
	if r.spool != nil {
		oldest = r.spool.Stats().Since
	}
	for i := range r.writing {
		since := r.writing[i].Load()
		if since != 0 && (oldest.IsZero() || time.Unix(0, since).Before(oldest)) {
			oldest = time.Unix(0, since)
		}
	}
	return oldest
}

// collect returns first and the jobs that arrive while the batch waits.
func (r *Recorder) collect(queue chan Job, first Job) []Job {
	batch := []Job{first}
	linger := time.NewTimer(batchLinger)
	defer linger.Stop()
	for len(batch) < batchLength {
		select {
		case next := <-queue:
			batch = append(batch, next)
		case <-linger.C:
			return batch
		case <-r.stop:
			if len(queue) == 0 {
				return batch
			}
			batch = append(batch, <-queue) // only this worker takes from the queue
		}
	}
	return batch
}

// write records a batch, workspace by workspace.
func (r *Recorder) write(batch []Job) {
	byWorkspace := make(map[tenants.WorkspaceID][]Job)
	var order []tenants.WorkspaceID
	for _, job := range batch {
		r.room.Release(job.size())
		workspace := job.workspace()
		if byWorkspace[workspace] == nil {
			order = append(order, workspace)
		}
		byWorkspace[workspace] = append(byWorkspace[workspace], job)
	}
	for _, workspace := range order {
		jobs := byWorkspace[workspace]
		isRetry := false
		err := r.retry(func(ctx context.Context) error {
			if isRetry { // a commit may have succeeded without its answer
				_, err := r.recordOnce(ctx, workspace, jobs)
				return err
			}
			isRetry = true
			return r.record(ctx, workspace, jobs)
		}, func() bool { return r.keepLate(jobs) })
		var apiKeys []uuid.UUID
		for _, job := range jobs {
			r.end(job, err == nil)
			if err == nil {
				r.metrics.Archived.Add(float64(job.size()))
				if job.Update != nil {
					r.metrics.Redact(job.Update.Increment.Redacted)
				}
			}
			if job.Exchange != nil {
				apiKeys = append(apiKeys, job.Exchange.Request.APIKey)
			}
		}
		if err == nil && len(apiKeys) > 0 && r.Recorded != nil {
			r.Recorded(workspace, apiKeys)
		}
		if err != nil {
			dropped := 0
			for _, job := range jobs {
				dropped += r.drop(job)
			}
			r.metrics.Errors.Inc()
			r.log.Error("record exchanges", "workspace", workspace, "dropped", dropped, "on the local disk", len(jobs)-dropped, "error", err)
		}
	}
}

// record writes all jobs of one workspace in one transaction.
func (r *Recorder) record(ctx context.Context, tenant tenants.Tenant, jobs []Job) error {
	updates := make([]session.Update, 0, len(jobs))
	exchanges := make([]tenants.Exchange, 0, len(jobs))
	of := make(map[int]int, len(jobs)) // the places in seen of exchanges
	for _, job := range jobs {
		if job.Update != nil && job.Exchange != nil {
			of[len(exchanges)] = len(updates)
		}
		if job.Update != nil {
			updates = append(updates, *job.Update)
		}
		if job.Exchange != nil {
			exchange := *job.Exchange
			exchange.Answer.ErrorText = r.seal(tenant.Workspace(), exchange.ID, job.Said)
			exchanges = append(exchanges, exchange)
		}
	}
	return r.database.Together(ctx, tenant, func(tenant tenants.Tenant) error {
		if err := r.sessions.Record(ctx, tenant, updates); err != nil {
			return err
		}
		for exchange, place := range of {
			exchanges[exchange].Request.Session, exchanges[exchange].Request.Lane = updates[place].Session, updates[place].Lane
		}
		return r.usage.RecordExchanges(ctx, tenant, exchanges)
	})
}

// recordOnce is record for jobs that may be recorded already: it doesn't count their exchanges again. It
// returns how many exchanges were new.
func (r *Recorder) recordOnce(ctx context.Context, tenant tenants.Tenant, jobs []Job) (added []uuid.UUID, err error) {
	ids := make([]uuid.UUID, 0, len(jobs))
	for _, job := range jobs {
		if job.Exchange != nil {
			ids = append(ids, job.Exchange.ID)
		}
	}
	err = r.database.Together(ctx, tenant, func(tenant tenants.Tenant) error {
		recorded, err := r.usage.RecordedExchanges(ctx, tenant, ids)
		if err != nil {
			return err
		}
		rest := make([]Job, 0, len(jobs))
		for _, job := range jobs {
			if job.Exchange != nil && slices.Contains(recorded, job.Exchange.ID) {
				continue
			}
			if job.Exchange != nil {
				added = append(added, job.Exchange.Request.APIKey)
			}
			rest = append(rest, job)
		}
		return r.record(ctx, tenant, rest)
	})
	return added, err
}

// seal returns a provider's text about an exchange, sealed. It is nil without a text, or if sealing fails,
// because the figures of the exchange matter more.
func (r *Recorder) seal(workspace tenants.WorkspaceID, exchange uuid.UUID, said []byte) []byte {
	if said == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	key, err := r.keys.Key(ctx, workspace)
	if err != nil {
		r.log.Warn("a provider's error is not kept", "workspace", workspace, "exchange", exchange, "error", err)
		return nil
	}
	return key.SealError(exchange, said)
}

// retry runs write until it succeeds, with growing pauses, and failed after each failure; while stopping, it
// tries once. A batch that the database refuses delays others no longer than certainTries, once failed
// reports that it is on the local disk.
func (r *Recorder) retry(write func(context.Context) error, failed func() (isKept bool)) error {
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := write(ctx)
		cancel()
		r.failing.Store(err != nil)
		if err == nil {
			return nil
		}
		isKept := failed()
		if try == tries || try >= certainTries && isKept && !spool.IsAway(err) {
			return err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-r.stop:
			if try > 1 {
				return err
			}
		}
	}
}
