package export

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// answersAtOnce is how many answers are in memory at once.
const answersAtOnce = 16

// Session is a session to export.
type Session struct {
	Workspace  tenants.WorkspaceID
	ID         uuid.UUID
	Name       string
	Title      string
	Client     string
	Model      string
	Format     conversation.Format
	StartedAt  time.Time
	LastAt     time.Time
	ExportedAt time.Time // for the transcript and the manifest of a tar; not in lines
	Lanes      []Lane

	// Projection returns the newest projection of a lane, or nil. If the field is nil, no projections are
	// written.
	Projection func(ctx context.Context, lane uuid.UUID) (*Projection, error)

	// Pins returns the pins that apply to a lane. If the field is nil, no pins are written.
	Pins func(ctx context.Context, lane uuid.UUID) ([]Pin, error)

	EndUser     string // EndUserID of the session's user; "" if its application names no one
	EndUserName string // the application's own id of EndUser; "" if it is not kept
}

// Lane is a lane to export.
type Lane struct {
	ID       uuid.UUID
	Kind     string
	Parent   uuid.UUID // uuid.Nil if absent
	ForkAt   int
	Messages int // in the archive; later ones are not written

	Order *Order // waiting for the lane's next request; nil if absent
}

// Pin keeps the turn of a message unchanged.
type Pin struct {
	Message int       // place in the client's list; it need not be archived
	By      uuid.UUID // member or API key
	At      time.Time
}

// Order is a requested compaction.
type Order struct {
	By           uuid.UUID // member or API key
	At           time.Time
	Instructions string
}

// Projection is the replacement of a lane's first messages in the prompt.
type Projection struct {
	Number int
	Covers int
	Reason string
	Before int
	After  int
	At     time.Time
	Parts  []Part
}

// Part is the replacement of some messages of a lane.
type Part struct {
	From  int
	To    int
	Level int
	Raw   []byte // nil means the client's own bytes
}

// Writer writes a file of sessions. It keeps one line in memory, and 32 bytes for each message of the current
// session.
type Writer struct {
	to       io.Writer
	digest   hash.Hash
	lines    int
	sections int
	failed   error
}

// NewWriter returns a Writer to to, which should be buffered.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to, digest: sha256.New()} }

// Session writes a session as the file's next section. It writes damage of the archive into the file and does
// not treat it as an error. After an error the file has no end, so that verification reports it as truncated.
func (w *Writer) Session(ctx context.Context, from archive.Reader, session Session) error {
	section := section{Writer: w, from: from, session: session, seen: make(map[conversation.Hash]struct{})}
	if w.failed == nil {
		w.failed = section.write(ctx)
	}
	if w.failed != nil {
		return fmt.Errorf("export session %s: %w", session.ID, w.failed)
	}
	w.sections++
	return nil
}

// Close writes the file's last line. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.failed != nil {
		return fmt.Errorf("end export: %w", w.failed)
	}
	end := fileLine{Type: typeFile, Sections: w.sections, Lines: w.lines, SHA256: hex.EncodeToString(w.digest.Sum(nil))}
	if _, err := w.line(end); err != nil {
		return fmt.Errorf("end export: %w", err)
	}
	w.failed = errors.New("the file is closed")
	return nil
}

// line writes one line and returns it without its line feed.
func (w *Writer) line(line any) ([]byte, error) {
	encoded, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("encode line: %w", err)
	}
	encoded = append(encoded, '\n')
	w.digest.Write(encoded)
	w.lines++
	if _, err := w.to.Write(encoded); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return encoded[:len(encoded)-1], nil
}

// section is a session during its export.
type section struct {
	*Writer

	from    archive.Reader
	session Session
	seen    map[conversation.Hash]struct{} // messages with their bytes in the section
	end     endLine
}

func (s *section) write(ctx context.Context) error {
	manifest, err := s.line(s.manifest())
	if err != nil {
		return err
	}
	sum := sha256.Sum256(manifest)
	s.end = endLine{Type: typeEnd, Section: s.sections, Manifest: hex.EncodeToString(sum[:]), Lanes: []chainEnd{}}
	for _, lane := range s.session.Lanes {
		if err := s.lane(ctx, lane); err != nil {
			return err
		}
		if err := s.projection(ctx, lane); err != nil {
			return err
		}
		if err := s.marks(ctx, lane); err != nil {
			return err
		}
	}
	if err := s.answers(ctx); err != nil {
		return err
	}
	_, err = s.line(s.end)
	return err
}

func (s *section) manifest() manifestLine {
	first := archive.NewHead().Link
	manifest := manifestLine{
		Type: typeManifest, Version: Version, Section: s.sections, Workspace: s.session.Workspace,
		Session: sessionHead{
			ID: s.session.ID, Name: s.session.Name, Title: s.session.Title, Client: s.session.Client, Model: s.session.Model,
			Format: string(s.session.Format), StartedAt: s.session.StartedAt.UTC(), LastAt: s.session.LastAt.UTC(),
			EndUser: s.session.EndUser, EndUserName: s.session.EndUserName,
		},
		Algorithm: algorithmHead{
			Hash: "SHA-256 of the message's bytes", First: hex.EncodeToString(first[:]),
			Link: "SHA-256 of the link before (or first), the index as 8 bytes big endian, and the message's hash",
		},
		Lanes: make([]laneHead, len(s.session.Lanes)),
	}
	for i, lane := range s.session.Lanes {
		manifest.Lanes[i] = laneHead{ID: lane.ID, Kind: lane.Kind, ForkAt: lane.ForkAt, Messages: lane.Messages}
		if lane.Parent != uuid.Nil {
			manifest.Lanes[i].Parent = &lane.Parent
		}
	}
	return manifest
}

func (s *section) lane(ctx context.Context, lane Lane) error {
	link, written := archive.NewHead().Link, 0
	err := archive.Restore(ctx, s.from, s.session.Workspace, lane.ID, lane.Messages, func(message archive.Restored) error {
		link = message.Link
		written++
		s.end.Messages++
		_, err := s.line(messageLine{
			Type: typeMessage, Lane: lane.ID, Index: message.Index, Role: string(message.Role), Tokens: message.Tokens,
			StoredAt: message.StoredAt.UTC(), content: s.content(message.Entry, message.Link, message.Damage),
		})
		return err
	})
	if errors.Is(err, archive.ErrDamaged) {
		s.end.Damaged++
		_, err = s.line(damageLine{Type: typeDamage, Lane: lane.ID, Damage: err.Error()})
	}
	if err != nil {
		return err
	}
	if written < lane.Messages {
		s.end.Damaged++
		if _, err := s.line(damageLine{Type: typeDamage, Lane: lane.ID, Damage: fmt.Sprintf("%d messages are gone", lane.Messages-written)}); err != nil {
			return err
		}
	}
	s.end.Lanes = append(s.end.Lanes, chainEnd{Lane: lane.ID, Messages: written, Link: hex.EncodeToString(link[:])})
	return nil
}

// content returns the description of some bytes for a line.
func (s *section) content(entry archive.Entry, link conversation.Hash, damage error) content {
	content := content{SHA256: hex.EncodeToString(entry.Hash[:]), Size: entry.Size, Link: hex.EncodeToString(link[:])}
	s.end.Bytes += int64(entry.Size)
	if damage != nil {
		s.end.Damaged++
		content.Damage = damage.Error()
		return content
	}
	if _, known := s.seen[entry.Hash]; known {
		return content
	}
	s.seen[entry.Hash] = struct{}{}
	content.Text, content.Base64 = textOf(entry.Raw)
	return content
}

// textOf returns bytes as text, or in base64 if they are not UTF-8.
func textOf(raw []byte) (text, encoded *string) {
	if utf8.Valid(raw) {
		return new(string(raw)), nil
	}
	return nil, new(base64.StdEncoding.EncodeToString(raw))
}

func (s *section) projection(ctx context.Context, lane Lane) error {
	if s.session.Projection == nil {
		return nil
	}
	projection, err := s.session.Projection(ctx, lane.ID)
	if err != nil || projection == nil {
		return err
	}
	line := projectionLine{
		Type: typeProjection, Lane: lane.ID, Number: projection.Number, Covers: projection.Covers, Reason: projection.Reason,
		Before: projection.Before, After: projection.After, At: projection.At.UTC(), Parts: make([]partLine, len(projection.Parts)),
	}
	for i, part := range projection.Parts {
		line.Parts[i] = partLine{From: part.From, To: part.To, Level: part.Level}
		if part.Raw != nil {
			line.Parts[i].Text, line.Parts[i].Base64 = textOf(part.Raw)
		}
	}
	_, err = s.line(line)
	return err
}

// marks writes a lane's pins and order.
func (s *section) marks(ctx context.Context, lane Lane) error {
	if s.session.Pins != nil {
		pins, err := s.session.Pins(ctx, lane.ID)
		if err != nil {
			return err
		}
		for _, pin := range pins {
			if _, err := s.line(pinLine{Type: typePin, Lane: lane.ID, Message: pin.Message, By: pin.By, At: pin.At.UTC()}); err != nil {
				return err
			}
		}
	}
	if lane.Order == nil {
		return nil
	}
	_, err := s.line(orderLine{Type: typeOrder, Lane: lane.ID, By: lane.Order.By, At: lane.Order.At.UTC(), Instructions: lane.Order.Instructions})
	return err
}

func (s *section) answers(ctx context.Context) error {
	head, last := archive.NewHead(), archive.Answer{}
	for {
		answers, err := s.from.Answers(ctx, s.session.Workspace, s.session.ID, last, answersAtOnce)
		if err != nil {
			return err
		}
		if len(answers) == 0 {
			break
		}
		hashes := make([]conversation.Hash, len(answers))
		for i := range answers {
			hashes[i] = answers[i].Hash
		}
		objects, err := s.from.Objects(ctx, s.session.Workspace, hashes)
		if err != nil {
			return err
		}
		for i, answer := range answers {
			index := head.Messages
			head = head.Extend(answer.Hash)
			entry := archive.Entry{Hash: answer.Hash, Raw: objects[i].Raw, Size: answer.Size}
			_, err := s.line(answerLine{
				Type: typeAnswer, Index: index, Request: answer.Exchange, Lane: answer.Lane, At: answer.At.UTC(),
				content: s.content(entry, head.Link, objects[i].Damage),
			})
			if err != nil {
				return err
			}
		}
		last = answers[len(answers)-1]
	}
	s.end.Answers = chainEnd{Messages: head.Messages, Link: hex.EncodeToString(head.Link[:])}
	return nil
}
