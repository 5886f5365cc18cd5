package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// kept is what is to be recorded, as it is kept on the local disk until it is.
type kept struct {
	Request  *session.Update   // what the request added to its session, unless that is recorded
	Answered *session.Update   // what its answer adds
	Exchange *tenants.Exchange // once it has ended
	Said     []byte            // see Job
	Held     []string          // see Begin
}

// How kept is written: CBOR (RFC 8949), which takes bytes as they are. Times keep their
// nanoseconds, texts bytes that are not UTF-8, and a history may have any number of messages.
var (
	keptEncoding = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode())
	keptDecoding = must(cbor.DecOptions{MaxArrayElements: math.MaxInt32, UTF8: cbor.UTF8DecodeInvalid}.DecMode())
)

// must returns a mode; the options that it is made from are constants.
func must[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// Request is what a request added to its session, as long as a recorder has it.
type Request struct {
	mu     sync.Mutex
	update *session.Update // until it is recorded or dropped
}

// NewRequest returns what a request added to its session.
func NewRequest(update *session.Update) *Request { return &Request{update: update} }

// forget ends the use of what the request added: its memory is another's then.
func (r *Request) forget() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.update = nil
}

// Keeps reports whether what waits to be recorded is on the local disk as well.
func (r *Recorder) Keeps() bool { return r.spool != nil }

// Keep writes an exchange that has ended to the local disk, with what its request added if that is not
// recorded yet, before its client has all of the answer. What it returns is the Kept of the job that
// records it; what the disk does not take is only missed if the process is killed.
func (r *Recorder) Keep(ctx context.Context, job Job) spool.Record {
	return r.keep(ctx, job.workspace(), kept{Exchange: job.Exchange, Said: job.Said, Answered: job.Update}, job.Request)
}

// Begin writes to the local disk what an exchange that is about to be sent counts as, should
// the process be killed before it has ended: Replay records it then. What it returns is
// done once the exchange is kept or recorded as it ended. held is what is held for it
// elsewhere until then; Released hears of it.
func (r *Recorder) Begin(ctx context.Context, exchange tenants.Exchange, held []string) spool.Record {
	if r.spool == nil {
		return spool.Record{}
	}
	return r.keep(ctx, exchange.Workspace, kept{Exchange: &exchange, Held: held}, nil)
}

// CatchUp records what processes have left on the local disk that run no more, and what
// could not be recorded before, if there is any.
func (r *Recorder) CatchUp(ctx context.Context) {
	if r.spool != nil && !r.spool.Stats().Since.IsZero() {
		r.Replay(ctx)
	}
}

// keep writes what is to be recorded to the local disk, with what the request added if the recorder
// still has it.
func (r *Recorder) keep(ctx context.Context, workspace tenants.WorkspaceID, what kept, request *Request) spool.Record {
	record, err := r.spool.Put(context.WithoutCancel(ctx), workspace, func(plain *bytes.Buffer) error { return what.encode(plain, request) })
	if err != nil {
		r.metrics.Unkept.Inc()
		r.log.WarnContext(ctx, "an exchange is not kept on the local disk until it is recorded", "workspace", workspace, "error", err)
	}
	return record
}

// keepLate writes to the local disk what that had no room for before its clients had their answers, and
// the database does not take either. It reports whether all of it is there.
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
			return false // there is no room yet
		}
		late.Kept = record
	}
	return all
}

// encode writes what is kept, followed by the entries of the request one by one: in one value
// a hundred thousand of them would take their memory three times.
func (k kept) encode(plain *bytes.Buffer, request *Request) error {
	if request != nil {
		request.mu.Lock()
		defer request.mu.Unlock()
		k.Request = request.update
	}
	var entries []archive.Entry
	if k.Request != nil {
		update := *k.Request
		entries, update.Entries = update.Entries, nil
		k.Request = &update
		plain.Grow(entriesSize(entries))
	}
	encoder := keptEncoding.NewEncoder(plain)
	err := encoder.Encode(k)
	for i := range entries {
		err = errors.Join(err, encoder.Encode(&entries[i]))
	}
	return err
}

// entriesSize returns about how many bytes entries and their links take.
func entriesSize(entries []archive.Entry) int {
	const around = 192 // what is said of a message
	size := 4 << 10
	for i := range entries {
		size += around + len(entries[i].Raw)
	}
	return size
}

// readKept reads what encode wrote.
func readKept(plain []byte) (k kept, err error) {
	decoder := keptDecoding.NewDecoder(bytes.NewReader(plain))
	if err := decoder.Decode(&k); err != nil {
		return kept{}, err
	}
	for k.Request != nil {
		var entry archive.Entry
		err := decoder.Decode(&entry)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return kept{}, err
		}
		k.Request.Entries = append(k.Request.Entries, entry)
	}
	return k, nil
}

// Replay records what the local disk holds of exchanges that could not be recorded, or whose
// process was killed.
func (r *Recorder) Replay(ctx context.Context) {
	r.spool.Replay(ctx, func(ctx context.Context, workspace tenants.WorkspaceID, plain [][]byte) error {
		batch := make([]kept, len(plain))
		for i := range plain {
			var err error
			if batch[i], err = readKept(plain[i]); err != nil { // it waits: another version of the program may have written it
				return fmt.Errorf("read an exchange: %w", err)
			}
		}
		return r.recordKept(ctx, workspace, batch)
	})
}

// recordKept records exchanges of a workspace once: of those that are recorded already, nothing is
// counted again.
func (r *Recorder) recordKept(ctx context.Context, workspace tenants.WorkspaceID, batch []kept) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var jobs []Job
	var held []string
	newest := make(map[uuid.UUID]int, len(batch)) // of what was begun and what became of it
	for i := range batch {
		if batch[i].Exchange != nil {
			newest[batch[i].Exchange.ID] = i
		}
	}
	for i := range batch {
		what := &batch[i]
		if what.Request != nil { // its messages are stored once, however often they come
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
	if added > 0 && r.Recorded != nil {
		r.Recorded(workspace, added)
	}
	if len(held) > 0 && r.Released != nil {
		r.Released(ctx, held)
	}
	return nil
}
