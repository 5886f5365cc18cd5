package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"

	"palimpsest/api/spool"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// kept is a record to write, as it waits on the local disk.
type kept struct { //nolint:recvcheck // encode changes its copy
	Request  *session.Update   // the request's addition to its session, unless already recorded
	Answered *session.Update   // the answer's addition
	Exchange *tenants.Exchange // when it has ended
	Said     []byte            // see Job
	Held     []string          // see Begin
}

// kept is encoded as CBOR (RFC 8949), because that stores bytes as they are. Times keep their nanoseconds,
// texts bytes that are not UTF-8, and a history may have any number of messages.
var (
	keptEncoding = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode())
	keptDecoding = must(cbor.DecOptions{MaxArrayElements: math.MaxInt32, UTF8: cbor.UTF8DecodeInvalid}.DecMode())
)

// writtenKept is the form of kept on the disk, the same in every version: each part is one flat list of fields.
type writtenKept struct {
	Request  *writtenUpdate
	Answered *writtenUpdate
	Exchange *writtenExchange
	Said     []byte
	Held     []string
}

type writtenUpdate struct {
	session.Update // without its Messages and Increment
	session.Messages
	session.Increment
}

type writtenExchange struct {
	ID        uuid.UUID
	Workspace tenants.WorkspaceID
	At        time.Time

	tenants.ExchangeRequest
	tenants.ExchangeAnswer
	tenants.ExchangePrompt
	tenants.ExchangeTokens
	tenants.ExchangeCost
	tenants.ExchangeTimes
}

// writtenParts is the memory of a writtenKept. It is reused, because its parts are large.
type writtenParts struct {
	request, answered writtenUpdate
	exchange          writtenExchange
}

var writtenMemory = sync.Pool{New: func() any { return new(writtenParts) }}

// written returns the written form of k, in the memory of parts.
func (k *kept) written(parts *writtenParts) writtenKept {
	update := func(of *session.Update, to *writtenUpdate) *writtenUpdate {
		if of == nil {
			return nil
		}
		*to = writtenUpdate{*of, of.Messages, of.Increment}
		return to
	}
	written := writtenKept{Request: update(k.Request, &parts.request), Answered: update(k.Answered, &parts.answered), Said: k.Said, Held: k.Held}
	if e := k.Exchange; e != nil {
		parts.exchange = writtenExchange{e.ID, e.Workspace, e.At, e.Request, e.Answer, e.Prompt, e.Tokens, e.Cost, e.Times}
		written.Exchange = &parts.exchange
	}
	return written
}

func (w *writtenKept) kept() kept {
	update := func(of *writtenUpdate) *session.Update {
		if of == nil {
			return nil
		}
		of.Update.Messages, of.Update.Increment = of.Messages, of.Increment
		return &of.Update
	}
	read := kept{Request: update(w.Request), Answered: update(w.Answered), Said: w.Said, Held: w.Held}
	if e := w.Exchange; e != nil {
		read.Exchange = &tenants.Exchange{
			ID: e.ID, Workspace: e.Workspace, At: e.At, Request: e.ExchangeRequest, Answer: e.ExchangeAnswer, Prompt: e.ExchangePrompt,
			Tokens: e.ExchangeTokens, Cost: e.ExchangeCost, Times: e.ExchangeTimes,
		}
	}
	return read
}

// must returns a mode; it panics on errors, since the options are constants.
func must[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// Request is a request's addition to its session, as long as a recorder has it.
type Request struct {
	mu     sync.Mutex
	update *session.Update // until it is recorded or dropped
}

// NewRequest returns a Request for an addition.
func NewRequest(update *session.Update) *Request { return &Request{update: update} }

// forget ends the use of the request's addition, because its memory is reused afterwards.
func (r *Request) forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.update = nil
}

// Keeps reports whether waiting records are on the local disk as well.
func (r *Recorder) Keeps() bool { return r.spool != nil }

// Keep writes an ended exchange to the local disk, before its client has the complete answer. It includes the
// request's addition unless that is already recorded. The result is the Kept of the recording job. If writing
// fails, the exchange is only lost if the process is killed.
func (r *Recorder) Keep(ctx context.Context, job Job) spool.Record {
	return r.keep(ctx, job.workspace(), kept{Exchange: job.Exchange, Said: job.Said, Answered: job.Update}, job.Request)
}

// Begin writes a provisional record of an exchange to the local disk before it is sent; Replay records it if
// the process is killed before the exchange ends. The caller withdraws the result once the exchange is kept
// or recorded as it ended. held lists its holds elsewhere until then, for Released.
func (r *Recorder) Begin(ctx context.Context, exchange tenants.Exchange, held []string) spool.Record {
	if r.spool == nil {
		return spool.Record{}
	}
	return r.keep(ctx, exchange.Workspace, kept{Exchange: &exchange, Held: held}, nil)
}

// CatchUp records what earlier processes have left on the local disk, and earlier failures to record, if
// there are any.
func (r *Recorder) CatchUp(ctx context.Context) {
	if r.spool != nil && !r.spool.Stats().Since.IsZero() {
		r.Replay(ctx)
	}
}

// keep writes a record to the local disk, with the request's addition if the recorder still has it.
func (r *Recorder) keep(ctx context.Context, workspace tenants.WorkspaceID, what kept, request *Request) spool.Record {
	record, err := r.spool.Put(context.WithoutCancel(ctx), workspace, func(plain *bytes.Buffer) error { return what.encode(plain, request) })
	if err != nil {
		r.metrics.Unkept.Inc()
		r.log.WarnContext(ctx, "an exchange is not kept on the local disk until it is recorded", "workspace", workspace, "error", err)
	}
	return record
}

// keepLate writes jobs to the local disk if the disk had no room before their clients had the answers, and
// the database refuses them too. It reports whether all of them are there.
func (r *Recorder) keepLate(jobs []Job) (all bool) {
	if r.spool == nil {
		return false
	}
	all = true
	for i := range jobs {
		late := &jobs[i]
		if late.Exchange == nil || late.Kept != (spool.Record{}) {
			all = all && late.Exchange != nil
			continue
		}
		what := kept{Exchange: late.Exchange, Said: late.Said, Answered: late.Update}
		record, err := r.spool.Put(context.Background(), late.workspace(), func(plain *bytes.Buffer) error { return what.encode(plain, late.Request) })
		if err != nil {
			return false // still no room
		}
		late.Kept = record
	}
	return all
}

// encode writes kept, followed by the entries of the request one at a time, because a hundred thousand of
// them in one value would take three times their memory.
func (k kept) encode(plain *bytes.Buffer, request *Request) error {
	if request != nil {
		request.mu.Lock()
		defer request.mu.Unlock()
		k.Request = request.update
	}
	parts, _ := writtenMemory.Get().(*writtenParts)
	written := k.written(parts)
	var entries []archive.Entry
	if k.Request != nil {
		entries, written.Request.Messages.Entries = k.Request.Messages.Entries, nil
		plain.Grow(entriesSize(entries))
	}
	encoder := keptEncoding.NewEncoder(plain)
	err := encoder.Encode(written)
	*parts = writtenParts{} // so that no workspace's data stays in it
	writtenMemory.Put(parts)
	for i := range entries {
		err = errors.Join(err, encoder.Encode(&entries[i]))
	}
	return err
}

// entriesSize returns the approximate size of entries and their links in bytes.
func entriesSize(entries []archive.Entry) int {
	const around = 192 // metadata of a message
	size := 4 << 10
	for i := range entries {
		size += around + len(entries[i].Raw)
	}
	return size
}

// readKept reads the output of encode.
func readKept(plain []byte) (k kept, err error) {
	decoder := keptDecoding.NewDecoder(bytes.NewReader(plain))
	var written writtenKept
	if err := decoder.Decode(&written); err != nil {
		return kept{}, err
	}
	k = written.kept()
	for k.Request != nil {
		var entry archive.Entry
		err := decoder.Decode(&entry)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return kept{}, err
		}
		k.Request.Messages.Entries = append(k.Request.Messages.Entries, entry)
	}
	return k, nil
}

// Replay records exchanges from the local disk that could not be recorded, or whose process was killed.
func (r *Recorder) Replay(ctx context.Context) {
	r.spool.Replay(ctx, func(ctx context.Context, workspace tenants.WorkspaceID, plain [][]byte) error {
		batch := make([]kept, len(plain))
		for i := range plain {
			var err error
			if batch[i], err = readKept(plain[i]); err != nil { // it waits, because another version of the program may have written it
				return fmt.Errorf("read an exchange: %w", err)
			}
		}
		return r.recordKept(ctx, workspace, batch)
	})
}

// recordKept records exchanges of a workspace once: it doesn't count already recorded ones again.
func (r *Recorder) recordKept(ctx context.Context, workspace tenants.WorkspaceID, batch []kept) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var jobs []Job
	var held []string
	newest := make(map[uuid.UUID]int, len(batch)) // the begun exchanges and their final records
	for i := range batch {
		if batch[i].Exchange != nil {
			newest[batch[i].Exchange.ID] = i
		}
	}
	for i := range batch {
		what := &batch[i]
		if what.Request != nil { // its messages are stored once, even if they come several times
			jobs = append(jobs, Job{Update: what.Request})
		}
		held = append(held, what.Held...)
		if what.Exchange != nil && newest[what.Exchange.ID] == i {
			jobs = append(jobs, Job{Update: what.Answered, Exchange: what.Exchange, Said: what.Said})
		}
	}
	added, err := r.recordOnce(ctx, workspace, jobs)
	if err != nil {
		return fmt.Errorf("record %d exchanges from the local disk: %w", len(batch), err)
	}
	if len(added) > 0 && r.Recorded != nil {
		r.Recorded(workspace, added)
	}
	if len(held) > 0 && r.Released != nil {
		r.Released(ctx, held)
	}
	return nil
}

// OwnCall returns the job for a model call that Palimpsest made itself, at a workspace's cost. It fills in
// the fields that all such calls have in common.
func OwnCall(call tenants.Exchange) Job {
	call.ID, call.Request.Client = uuid.Must(uuid.NewV7()), "palimpsest"
	call.Answer.Status, call.Answer.Attempts = http.StatusOK, 1
	call.Prompt.Compression = string(pipeline.None)
	call.Prompt.Report = (&pipeline.Report{Compression: pipeline.None}).JSON()
	call.Cost.NetMicroUSD = -call.Cost.CostMicroUSD
	return Job{Exchange: &call}
}
