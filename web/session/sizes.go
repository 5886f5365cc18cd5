package session

import (
	"context"
	"errors"
	"math"

	"palimpsest/pipeline/session"
	"palimpsest/web/components"
)

// figure is a number of tokens as received and as sent.
type figure struct{ Received, Sent int }

// isSame reports whether both numbers are equal.
func (f figure) isSame() bool { return f.Received == f.Sent }

// String writes the received number and, if different, the sent one.
func (f figure) String() string {
	if f.isSame() {
		return components.Count(int64(f.Received))
	}
	return components.Count(int64(f.Received)) + " → " + components.Count(int64(f.Sent))
}

func (f figure) plus(other figure) figure {
	return figure{f.Received + other.Received, f.Sent + other.Sent}
}

// sizes are a prompt's tokens by row. Rows and rest add up to the prompt.
type sizes struct {
	prompt figure // of the rows' request; zero if unknown
	rest   figure // of the prompt outside messages: system prompt, tools, and the messages' overhead
	rows   []figure
	factor float64 // the model's tokens per o200k token
	up     float64 // is added before rounding down
}

// measure sets the figures of all rows of the lane.
func (r *reader) measure(ctx context.Context, rows []span) error {
	var err error
	if r.archived, err = r.archive.Sizes(ctx, r.workspace, r.lane.ID, r.lane.Position); err != nil {
		return err
	}
	newest, err := r.store.Newest(ctx, r.workspace, r.session, r.lane.ID, r.lane.Position)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	r.sizes = newSizes(r.counted(rows), figure{newest.Before, newest.After})
	for i := range rows {
		rows[i].tokens = r.sizes.rows[i]
	}
	return nil
}

// newSizes converts rows counted in o200k tokens to tokens of the prompt's model.
func newSizes(counted []figure, prompt figure) sizes {
	var sum figure
	for _, row := range counted {
		sum = sum.plus(row)
	}
	s := sizes{prompt: prompt, rows: make([]figure, len(counted)), factor: factorOf(sum, prompt), up: 0.5}
	if s.fill(counted); prompt == (figure{}) {
		s.rest = figure{}
	} else if s.rest.Received < 0 || s.rest.Sent < 0 {
		s.up = 0 // rounded up, the rows would be more than their prompt
		s.fill(counted)
	}
	return s
}

// fill sets rows and rest.
func (s *sizes) fill(counted []figure) {
	s.rest = s.prompt
	for i, row := range counted {
		s.rows[i] = figure{s.scaled(row.Received), s.scaled(row.Sent)}
		s.rest.Received -= s.rows[i].Received
		s.rest.Sent -= s.rows[i].Sent
	}
}

// ofPrompt describes the newest request's content.
func (m *readModel) ofPrompt() string {
	held := components.Plural(int64(m.Position), "message")
	if m.Prompt.Received == 0 {
		return held
	}
	return held + ", " + m.Prompt.String() + " tokens"
}

// scaled converts o200k tokens to the model's.
func (s *sizes) scaled(counted int) int { return int(float64(counted)*s.factor + s.up) }

// factorOf returns the number of the model's tokens per counted token. If messages were sent smaller than
// received, the difference gives the factor, because the rest of the prompt is the same on both sides. The
// factor never makes the messages larger than the prompt.
func factorOf(counted, prompt figure) float64 {
	if prompt == (figure{}) {
		return 1
	}
	factor, least, most := 1.0, 0.5, 2.0
	if less := counted.Received - counted.Sent; less > 0 && prompt.Received > prompt.Sent {
		factor = min(max(float64(prompt.Received-prompt.Sent)/float64(less), least), most)
	}
	if counted.Received > 0 {
		factor = min(factor, float64(prompt.Received)/float64(counted.Received))
	}
	if counted.Sent > 0 {
		factor = min(factor, float64(prompt.Sent)/float64(counted.Sent))
	}
	return factor
}

// counted returns the o200k tokens of all rows: received and sent.
func (r *reader) counted(rows []span) []figure {
	counted := make([]figure, len(rows))
	rowOf := make([]int, len(r.archived)) // of each message
	for i, row := range rows {
		for at := row.From; at < row.To; at++ {
			counted[i].Received += max(0, r.archived[at])
			rowOf[at] = i
		}
		counted[i].Sent = counted[i].Received
	}
	texts := r.texts()
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && r.isRendered(rows[from]) && r.isRendered(rows[to]) && texts[rows[to].part] == texts[rows[from].part] {
			to++
		}
		r.share(rows[from:to], counted[from:to])
		from = to
	}
	for i := range r.inserts {
		insert := &r.inserts[i]
		switch {
		case len(rows) == 0:
		case insert.Message == session.InSystem:
			counted[0].Sent += insert.Tokens
		case insert.Message < len(rowOf) && insert.Stands(&r.projection):
			counted[rowOf[insert.Message]].Sent += insert.Tokens
		}
	}
	return counted
}

// isRendered reports whether an epoch's rendering was sent for the row instead of the client's bytes.
func (r *reader) isRendered(of span) bool {
	return of.part >= 0 && r.projection.Parts[of.part].Raw != nil
}

// texts returns, by part of the projection, the part with its text. A run of rows at several levels has one
// text, in the last part; if a turn had to stay before them, in that turn's part.
func (r *reader) texts() []int {
	parts := r.projection.Parts
	texts := make([]int, len(parts))
	waiting, behind := 0, -1 // parts still without a text, and the text before them
	settle := func(at, text int) {
		for ; waiting > 0; waiting-- {
			if text >= 0 {
				texts[at-waiting] = text
			}
		}
	}
	for i, part := range parts {
		texts[i] = i
		switch {
		case part.Raw == nil:
			settle(i, behind)
			behind = -1
		case part.Messages == 0:
			waiting++
		case part.Level >= 2:
			settle(i, i)
			behind = i
		default:
			settle(i, behind)
			behind = i
		}
	}
	settle(len(parts), behind)
	return texts
}

// share distributes the sent tokens over rows in proportion to their messages.
func (r *reader) share(rows []span, counted []figure) {
	if !r.isRendered(rows[0]) {
		return
	}
	tokens, originals := 0, 0
	for i, row := range rows {
		tokens += r.projection.Parts[row.part].Tokens
		originals += counted[i].Received
	}
	left, of := tokens, originals
	for i := range rows {
		part := left
		if i < len(rows)-1 {
			part = int(math.Round(float64(left) * weight(counted[i].Received, of, len(rows)-i)))
		}
		counted[i].Sent = part
		left -= part
		of -= counted[i].Received
	}
}

// weight returns one row's share of the sum; an equal share if the sum is 0.
func weight(one, sum, rows int) float64 {
	if sum == 0 {
		return 1 / float64(rows)
	}
	return float64(one) / float64(sum)
}
