package manage

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	// messagesPerTurn is the initial number of messages read for each requested turn.
	messagesPerTurn = 4
	// maxTurnMessages bounds the messages of one turn that a page can show.
	maxTurnMessages = 16_384
)

// turnJSON is a turn and its representation in the prompt. Turn 0 holds the system messages at the start of
// the list.
type turnJSON struct {
	Turn     int           `json:"turn"`
	From     int           `json:"from"` // index of its first message
	To       int           `json:"to"`   // index behind its last
	Level    int           `json:"level"`
	Tokens   int           `json:"tokens"` // of the originals
	Messages []messageJSON `json:"messages"`

	// System is text that modules have appended to the system prompt; only in the first turn.
	System []insertJSON `json:"system_inserts,omitempty"`
}

// insertJSON describes text that a module has put into the prompt, without the text itself.
type insertJSON struct {
	Module   string   `json:"module"`
	Tokens   int      `json:"tokens"`
	Items    []string `json:"items"`
	InPrompt bool     `json:"in_prompt"` // no epoch has folded its message
}

type messageJSON struct {
	Index    int               `json:"index"`
	Role     conversation.Role `json:"role"`
	Level    int               `json:"level"`
	Tokens   int               `json:"tokens"`
	Size     int               `json:"size"`
	SHA256   string            `json:"sha256"`
	StoredAt time.Time         `json:"stored_at"`
	Inserts  []insertJSON      `json:"inserts,omitempty"` // behind the client's text, or in place of a result
}

// place is the start of a page of turns: a message that begins a turn.
type place struct{ message, turn int }

func (p place) cursor() string { return fmt.Sprintf("%d.%d", p.message, p.turn) }

// parsePlace returns the start of the list for an empty cursor.
func parsePlace(cursor string) (place, error) {
	if cursor == "" {
		return place{}, nil
	}
	var at place
	if _, err := fmt.Sscanf(cursor, "%d.%d", &at.message, &at.turn); err != nil || at.cursor() != cursor || at.message < 0 {
		return place{}, session.ErrCursor
	}
	return at, nil
}

func (h archiveHandler) listTurns(c echo.Context, who caller) error {
	at, err := parsePlace(c.QueryParam("cursor"))
	if err != nil {
		return err
	}
	limit, err := queryLimit(c)
	if err != nil {
		return err
	}
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	codec, known := h.codecs[detail.Format]
	if !known {
		return fmt.Errorf("session %s has the unknown format %q", detail.ID, detail.Format)
	}
	ctx := c.Request().Context()
	projection, err := h.projection(ctx, who.workspace, lane)
	if err != nil {
		return err
	}
	inserts, err := h.sessions.Inserts(ctx, who.workspace, lane.ID)
	if err != nil {
		return err
	}
	reader := turnReader{archive: h.archive, workspace: who.workspace, lane: lane.ID, codec: codec}
	turns, next, err := reader.read(ctx, at, limit)
	if err != nil {
		return err
	}
	data := make([]turnJSON, len(turns))
	for i, turn := range turns {
		data[i] = turn.json(projection, inserts)
	}
	return answerPage(c, data, next)
}

// projection returns the lane's newest projection; nil without one.
func (h archiveHandler) projection(ctx context.Context, workspace tenants.WorkspaceID, lane session.LaneOverview) (*session.Projection, error) {
	epochs, err := h.sessions.Epochs(ctx, workspace, lane.ID)
	if err != nil || len(epochs) == 0 {
		return nil, err
	}
	projection, err := h.sessions.Projection(ctx, workspace, lane.ID)
	if err != nil {
		return nil, err
	}
	return &projection, nil
}

// storedTurn is a turn with its archived messages.
type storedTurn struct {
	number  int
	entries []archive.Entry
}

func (t storedTurn) json(projection *session.Projection, inserts []session.Insert) turnJSON {
	answer := turnJSON{Turn: t.number, From: t.entries[0].Index, To: t.entries[len(t.entries)-1].Index + 1}
	for _, entry := range t.entries {
		level := levelOf(projection, entry.Index)
		answer.Level = max(answer.Level, level)
		answer.Tokens += entry.Tokens
		answer.Messages = append(answer.Messages, messageJSON{
			Index: entry.Index, Role: entry.Role, Level: level, Tokens: entry.Tokens, Size: entry.Size,
			SHA256: hex.EncodeToString(entry.Hash[:]), StoredAt: entry.StoredAt,
			Inserts: insertsAt(entry.Index, projection, inserts),
		})
	}
	if answer.From == 0 {
		answer.System = insertsAt(session.InSystem, projection, inserts)
	}
	return answer
}

// insertsAt returns the inserts at a message.
func insertsAt(message int, projection *session.Projection, inserts []session.Insert) []insertJSON {
	var at []insertJSON
	for i := range inserts {
		if insert := &inserts[i]; insert.Message == message {
			at = append(at, insertJSON{Module: insert.Module, Tokens: insert.Tokens, Items: insert.Items, InPrompt: insert.Stands(projection)})
		}
	}
	return at
}

// levelOf returns the level of a message in a projection, which may be nil.
func levelOf(projection *session.Projection, index int) int {
	if projection == nil {
		return 0
	}
	for _, part := range projection.Parts {
		if index >= part.From && index < part.To {
			return part.Level
		}
	}
	return 0
}

// turnReader groups a lane's archived messages into turns, page by page.
type turnReader struct {
	archive   archive.Reader
	workspace tenants.WorkspaceID
	lane      uuid.UUID
	codec     wire.Codec
}

// read returns up to limit turns from a place on, and the cursor of the next page; "" if absent.
func (r turnReader) read(ctx context.Context, at place, limit int) ([]storedTurn, string, error) {
	for window := messagesPerTurn * limit; ; window *= 2 {
		entries, err := r.archive.Originals(ctx, r.workspace, r.lane, at.message, at.message+window)
		if err != nil {
			return nil, "", err
		}
		turns, err := r.group(entries, at)
		if err != nil {
			return nil, "", err
		}
		atEnd := len(entries) < window
		if !atEnd && len(turns) > 0 && window < maxTurnMessages {
			turns = turns[:len(turns)-1] // it may continue after the read messages
		}
		if len(turns) == 0 && !atEnd {
			continue
		}
		more := !atEnd || len(turns) > limit
		turns = turns[:min(len(turns), limit)]
		if !more || len(turns) == 0 {
			return turns, "", nil
		}
		last := turns[len(turns)-1]
		return turns, place{message: last.entries[len(last.entries)-1].Index + 1, turn: last.number + 1}.cursor(), nil
	}
}

// group splits entries into turns; the first entry begins one.
func (r turnReader) group(entries []archive.Entry, at place) ([]storedTurn, error) {
	digests := make([]conversation.Digest, len(entries))
	for i, entry := range entries {
		digest, err := wire.Digest(r.codec, entry.Raw, func(conversation.Message) int { return entry.Tokens })
		if err != nil {
			return nil, fmt.Errorf("message %d of lane %s: %w", entry.Index, r.lane, err)
		}
		digests[i] = digest
	}
	var turns []storedTurn
	number := max(at.turn, 1)
	if lead := conversation.Lead(digests); lead > 0 {
		turns = append(turns, storedTurn{number: 0, entries: entries[:lead]})
	}
	for _, turn := range conversation.Turns(digests) {
		turns = append(turns, storedTurn{number: number, entries: entries[turn.From:turn.To]})
		number++
	}
	return turns, nil
}

// compaction is the body of a request to compact.
type compaction struct {
	Instructions string `json:"instructions"`
}

type orderJSON struct {
	Lane         uuid.UUID `json:"lane"`
	AskedAt      time.Time `json:"asked_at"`
	Instructions string    `json:"instructions,omitempty"`
}

// compact makes the lane's next request an epoch, whatever its size. It waits for that request because the
// client owns the prompt. It closes the lane's breaker.
func (h sessionHandler) compact(c echo.Context, who caller) error {
	var asked compaction
	if c.Request().ContentLength != 0 {
		var err error
		if asked, err = readJSON[compaction](c); err != nil {
			return err
		}
	}
	if utf8.RuneCountInString(asked.Instructions) > session.MaxInstructions {
		return tenants.Invalid{Field: "instructions", Message: fmt.Sprintf("must be at most %d characters long", session.MaxInstructions)}
	}
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	order := session.Order{At: h.now().UTC().Truncate(time.Microsecond), By: who.author(), Instructions: asked.Instructions}
	change := tenants.Change{Action: tenants.CompactAsked, Target: detail.ID.String(), After: tenants.Fields{"lane": lane.ID.String()}}
	err = h.notes.noted(c, who, change, func(ctx context.Context, tenant tenants.Tenant) error {
		return h.sessions.Ask(ctx, tenant, lane.ID, order)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, orderJSON{Lane: lane.ID, AskedAt: order.At, Instructions: order.Instructions})
}
