package export

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
)

// Parse parses the bytes of a message.
type Parse func(raw []byte) (conversation.Message, error)

// Markdown writes a session as a readable transcript: the messages of each lane in order, with their role,
// level and hash. Content is in fences and names are in code spans, each longer than any run of backticks
// within it, so that content can't act as markup. It keeps some messages in memory. Unlike the other exports
// it verifies nothing. It writes damage of the archive into the transcript and does not treat it as an error.
func Markdown(ctx context.Context, w io.Writer, from archive.Reader, session Session, parse Parse) error {
	t := transcript{to: w, parse: parse}
	t.head(session)
	for _, lane := range session.Lanes {
		if err := t.lane(ctx, from, session, lane); err != nil {
			return fmt.Errorf("transcript of session %s: %w", session.ID, err)
		}
	}
	if t.failed != nil {
		return fmt.Errorf("transcript of session %s: %w", session.ID, t.failed)
	}
	return nil
}

// transcript is a session during its export.
type transcript struct {
	to     io.Writer
	parse  Parse
	failed error
}

func (t *transcript) writef(format string, values ...any) {
	if t.failed == nil {
		_, t.failed = fmt.Fprintf(t.to, format, values...)
	}
}

func (t *transcript) head(session Session) {
	t.writef("# Session %s\n\n", span(cmp.Or(session.Title, session.Name, session.ID.String())))
	t.writef("- Session: %s\n- Client: %s\n- Model: %s\n- From %s to %s, exported %s\n\n", span(session.ID.String()), span(session.Client), span(session.Model),
		moment(session.StartedAt), moment(session.LastAt), moment(session.ExportedAt))
	t.writef("What was said stands in fences, as it was sent. SHA-256 is that of the message's original bytes, which the exports as tar and NDJSON hold, with the answer to the newest request.\n\n")
}

// lane writes a lane's messages, without those shared with its parent.
func (t *transcript) lane(ctx context.Context, from archive.Reader, session Session, lane Lane) error {
	t.writef("## Thread %s, %s\n\n", span(lane.Kind), span(lane.ID.String()))
	first := 0
	if slices.ContainsFunc(session.Lanes, func(other Lane) bool { return other.ID == lane.Parent && lane.Parent != uuid.Nil }) {
		first = lane.ForkAt
		t.writef("What is before message %d stands in thread %s.\n\n", first, span(lane.Parent.String()))
	}
	var projection *Projection
	if session.Projection != nil {
		var err error
		if projection, err = session.Projection(ctx, lane.ID); err != nil {
			return err
		}
	}
	err := archive.Restore(ctx, from, session.Workspace, lane.ID, lane.Messages, func(message archive.Restored) error {
		if message.Index >= first {
			t.message(message, projection.levelOf(message.Index))
		}
		return t.failed
	})
	if errors.Is(err, archive.ErrDamaged) {
		t.writef("**Damaged in the archive:** %s\n\n", span(err.Error()))
		return nil
	}
	return err
}

// levelOf returns the level of a message in the newest prompt.
func (p *Projection) levelOf(index int) int {
	if p != nil {
		for _, part := range p.Parts {
			if part.From <= index && index < part.To {
				return part.Level
			}
		}
	}
	return 0
}

func (t *transcript) message(message archive.Restored, level int) {
	t.writef("### %d · %s · L%d\n\n%d tokens, stored %s, SHA-256 %s\n\n", message.Index, message.Role, level,
		message.Tokens, moment(message.StoredAt), span(hex.EncodeToString(message.Hash[:])))
	if message.Damage != nil {
		t.writef("**Damaged in the archive:** %s\n\n", span(message.Damage.Error()))
		return
	}
	parsed, err := t.parse(message.Raw)
	if err != nil {
		t.writef("As it was sent:\n\n")
		t.fence("", string(message.Raw))
		return
	}
	for i := range parsed.Blocks {
		t.block(&parsed.Blocks[i])
	}
	if len(parsed.Blocks) == 0 {
		t.writef("Without content.\n\n")
	}
}

func (t *transcript) block(block *conversation.Block) {
	switch block.Kind {
	case conversation.Text:
	case conversation.Thinking:
		t.writef("Thinking:\n\n")
	case conversation.ToolCall:
		t.writef("Call of %s, %s:\n\n", span(block.Name), span(block.ID))
	case conversation.ToolResult:
		t.writef("Result of %s%s:\n\n", span(block.ID), map[bool]string{true: ", failed"}[block.IsError])
	case conversation.Media, conversation.Opaque:
		t.writef("%s %s:\n\n", strings.ToUpper(string(block.Kind[:1]))+string(block.Kind[1:]), span(block.Name))
	default:
		t.writef("%s:\n\n", span(string(block.Kind)))
	}
	if block.Text != "" {
		t.fence(map[bool]string{true: "json", false: "text"}[block.Kind == conversation.ToolCall], block.Text)
	}
	for _, media := range block.Media {
		t.writef("Attachment %s, %d bytes.\n\n", span(media.Type), media.Size)
	}
}

// fence writes text in a fence that the text cannot close.
func (t *transcript) fence(language, text string) {
	const shortest = 3
	text = strings.ToValidUTF8(text, "\uFFFD")
	marks := strings.Repeat("`", max(shortest, longestRun(text)+1))
	t.writef("%s%s\n%s\n%s\n\n", marks, language, text, marks)
}

// span returns a text on one line as a code span that the text cannot close.
func span(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.In(r, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	marks := strings.Repeat("`", longestRun(text)+1)
	if len(marks) == 1 && text != "" && strings.TrimSpace(text) == text {
		return marks + text + marks
	}
	return marks + " " + text + " " + marks // a span needs at least one character, and no backticks at its ends
}

// longestRun returns the length of the longest run of backticks in a text.
func longestRun(text string) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }
