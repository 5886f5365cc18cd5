package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

// Judged is what people say about a session.
type Judged struct {
	Labels   []string `json:"labels"`
	Scores   []Score  `json:"scores"`
	Comments []Remark `json:"comments"`
}

// Score is a person's score of a session.
type Score struct {
	By    string    `json:"by"` // their address; "" once they have left
	Score int       `json:"score"`
	Note  string    `json:"note,omitempty"`
	At    time.Time `json:"at"`
}

// Remark is a comment on a session, or on one of its messages.
type Remark struct {
	By      string    `json:"by"`
	Message *int      `json:"message,omitempty"`
	Text    string    `json:"text"`
	At      time.Time `json:"at"`
}

// exampleHead is the start of a line of a data set, before its messages.
type exampleHead struct {
	Session   uuid.UUID           `json:"session"`
	Title     string              `json:"title"`
	Client    string              `json:"client"`
	Model     string              `json:"model"`
	Format    conversation.Format `json:"format"`
	StartedAt time.Time           `json:"started_at"`
	LastAt    time.Time           `json:"last_at"`
	EndUser   string              `json:"end_user,omitempty"`

	Judged
}

// Example writes a session as one line of a data set: its facts, what people say about it, and the messages of
// its main thread as they came, with the answer to the newest request. With last >= 0, the messages end with
// that one. It keeps some messages in memory. A line with damage has the field damage and ends before it.
func Example(ctx context.Context, w io.Writer, from archive.Reader, session Session, judged Judged, last int) error {
	head, err := json.Marshal(exampleHead{
		session.ID, session.Title, session.Client, session.Model, session.Format, session.StartedAt.UTC(), session.LastAt.UTC(), session.EndUser, judged,
	})
	if err != nil {
		return fmt.Errorf("data set of session %s: %w", session.ID, err)
	}
	line := example{to: w, from: from, session: session, last: last}
	line.write(head[:len(head)-1])
	line.write([]byte(`,"messages":[`))
	if err := line.messages(ctx); err != nil {
		return fmt.Errorf("data set of session %s: %w", session.ID, err)
	}
	line.write([]byte("]"))
	if line.damage != nil {
		said, _ := json.Marshal(line.damage.Error()) //nolint:errchkjson // a string
		line.write([]byte(`,"damage":`))
		line.write(said)
	}
	line.write([]byte("}\n"))
	return line.failed
}

// example is a line during its export.
type example struct {
	to      io.Writer
	from    archive.Reader
	session Session
	last    int // message; -1 means all
	written int
	damage  error
	failed  error
}

func (e *example) write(text []byte) {
	if e.failed == nil {
		_, e.failed = e.to.Write(text)
	}
}

func (e *example) messages(ctx context.Context) error {
	if len(e.session.Lanes) == 0 {
		return nil
	}
	lane := e.session.Lanes[0] // the main one is first
	count := lane.Messages
	if e.last >= 0 {
		count = min(count, e.last+1)
	}
	err := archive.Restore(ctx, e.from, e.session.Workspace, lane.ID, count, func(message archive.Restored) error {
		if e.damage == nil {
			e.damage = message.Damage
		}
		if e.damage == nil {
			e.message(message.Raw)
		}
		return e.failed
	})
	if errors.Is(err, archive.ErrDamaged) {
		e.damage = err
		return nil
	}
	if err != nil || e.damage != nil || e.last >= 0 {
		return err
	}
	return e.answer(ctx, lane)
}

// answer writes the answer to the newest request.
func (e *example) answer(ctx context.Context, lane Lane) error {
	newest, err := e.from.NewestAnswer(ctx, e.session.Workspace, e.session.ID, lane.ID, lane.Messages)
	if errors.Is(err, archive.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	objects, err := e.from.Objects(ctx, e.session.Workspace, []conversation.Hash{newest.Hash})
	if err != nil {
		return err
	}
	if objects[0].Damage != nil {
		e.damage = objects[0].Damage
		return nil //nolint:nilerr // the export goes on and names the damage
	}
	e.message(objects[0].Raw)
	return nil
}

// message writes one message on one line.
func (e *example) message(raw []byte) {
	if e.written > 0 {
		e.write([]byte(","))
	}
	e.written++
	if bytes.ContainsAny(raw, "\r\n") {
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			e.failed = err
			return
		}
		raw = line.Bytes()
	}
	e.write(raw)
}
