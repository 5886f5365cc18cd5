package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// kept is what is to be recorded, as it is kept on the local disk until it is.
type kept struct {
	Request  *session.Seen     `json:"request,omitempty"`  // what the request added to its session, unless that is recorded
	Answered *session.Seen     `json:"answered,omitempty"` // what its answer adds
	Answer   []byte            `json:"answer,omitempty"`   // of Answered: JSON would not keep its bytes
	Exchange *tenants.Exchange `json:"exchange,omitempty"` // once it has ended
	Said     []byte            `json:"said,omitempty"`     // see job
}

// unrecorded is what a request added to its session, as long as the recorder has it.
type unrecorded struct {
	mu   sync.Mutex
	seen *session.Seen // until it is recorded or dropped
}

// forget ends the use of what the request added: its memory is another's then.
func (u *unrecorded) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen = nil
}

// keep writes what is to be recorded of an exchange to the local disk, before its client has
// all of the answer.
func (s *Server) keep(ctx context.Context, event *Event) {
	if s.Recorder.spool == nil || event.isKept || event.Workspace == uuid.Nil {
		return
	}
	event.isKept = true
	exchange := event.exchange()
	event.kept = s.spooled(ctx, event.Workspace, event.request, kept{Exchange: &exchange, Said: event.said, Answered: event.seen})
}

// spooled writes to the local disk what is to be recorded, with what the request added if the
// recorder still has it. What the disk does not take is only missed if the process is killed.
func (s *Server) spooled(ctx context.Context, workspace uuid.UUID, request *unrecorded, what kept) spool.Record {
	plain, err := what.encode(request)
	if err != nil {
		s.Log.ErrorContext(ctx, "encode an exchange for the local disk", "error", err)
		return spool.Record{}
	}
	record, err := s.Recorder.spool.Put(context.WithoutCancel(ctx), workspace, plain)
	if err != nil {
		s.Metrics.unkept.Inc()
		s.Log.WarnContext(ctx, "an exchange is not kept on the local disk until it is recorded", "workspace", workspace, "error", err)
	}
	return record
}

// encode returns what is kept as JSON, followed by the entries of the request one by one: in one
// value a hundred thousand of them would take their memory three times.
func (k kept) encode(request *unrecorded) ([]byte, error) {
	if k.Answered != nil {
		answered := *k.Answered
		k.Answer, answered.Answer = answered.Answer, nil
		k.Answered = &answered
	}
	if request != nil {
		request.mu.Lock()
		defer request.mu.Unlock()
		k.Request = request.seen
	}
	var plain bytes.Buffer
	var entries []archive.Entry
	if k.Request != nil {
		seen := *k.Request
		entries, seen.Entries = seen.Entries, nil
		k.Request = &seen
		plain.Grow(entriesSize(entries))
	}
	encoder := json.NewEncoder(&plain)
	err := encoder.Encode(k) //nolint:musttag // read by this program alone
	for i := range entries {
		err = errors.Join(err, encoder.Encode(&entries[i])) //nolint:musttag // as k
	}
	return plain.Bytes(), err
}

// entriesSize returns about how many bytes entries and their links take as JSON.
func entriesSize(entries []archive.Entry) int {
	const around = 256 // what is said of a message
	size := 4 << 10
	for i := range entries {
		size += around + base64.StdEncoding.EncodedLen(len(entries[i].Raw))
	}
	return size
}

// readKept reads what encode wrote. The entries may also be part of the request, as the version
// before wrote them.
func readKept(plain []byte) (k kept, err error) {
	decoder := json.NewDecoder(bytes.NewReader(plain))
	if err := decoder.Decode(&k); err != nil { //nolint:musttag // as it was written
		return kept{}, err
	}
	for k.Request != nil && decoder.More() {
		var entry archive.Entry
		if err := decoder.Decode(&entry); err != nil { //nolint:musttag // as it was written
			return kept{}, err
		}
		k.Request.Entries = append(k.Request.Entries, entry)
	}
	return k, nil
}

// Replay records what the local disk holds of exchanges that could not be recorded, or whose
// process was killed.
func (r *Recorder) Replay(ctx context.Context) {
	r.spool.Replay(ctx, func(ctx context.Context, workspace uuid.UUID, plain []byte) error {
		what, err := readKept(plain)
		if err != nil {
			r.log.ErrorContext(ctx, "an exchange on the local disk cannot be read", "workspace", workspace, "error", err)
			return nil
		}
		return r.recordKept(ctx, workspace, what)
	})
}

// recordKept records an exchange once: where it is recorded already, nothing is counted again.
func (r *Recorder) recordKept(ctx context.Context, workspace uuid.UUID, what kept) error {
	ctx, cancel := context.WithTimeout(ctx, recorderTimeout)
	defer cancel()
	if what.Answered != nil {
		what.Answered.Answer = what.Answer
	}
	if what.Request != nil {
		what.Request.Answer = nil // JSON has made "null" of it
	}
	isNew := false
	err := r.database.Together(ctx, workspace, func(ctx context.Context) error {
		if what.Request != nil { // its messages are stored once, however often they come
			if err := r.sessions.Record(ctx, workspace, []session.Seen{*what.Request}); err != nil {
				return err
			}
		}
		if what.Exchange == nil {
			return nil
		}
		_, err := r.usage.Exchange(ctx, workspace, what.Exchange.ID)
		if isNew = errors.Is(err, tenants.ErrNotFound); !isNew {
			return err
		}
		exchange := *what.Exchange
		exchange.ErrorText = r.seal(workspace, exchange.ID, what.Said)
		if what.Answered != nil {
			seen := []session.Seen{*what.Answered}
			if err := r.sessions.Record(ctx, workspace, seen); err != nil {
				return err
			}
			exchange.Session, exchange.Lane = seen[0].Session, seen[0].Lane
		}
		return r.usage.RecordExchanges(ctx, workspace, []tenants.Exchange{exchange})
	})
	if err != nil {
		return fmt.Errorf("record an exchange from the local disk: %w", err)
	}
	if isNew && r.Recorded != nil {
		r.Recorded(workspace, 1)
	}
	return nil
}
