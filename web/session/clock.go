package session

import (
	"context"
	"fmt"
	"time"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/web/components"
)

// clock sets the times of rows, and the requests that they answer. A message came with the first request that
// has it, and an answer at its request's end. Without such a request, the time is that of the archive.
func (r *reader) clock(ctx context.Context, rows []row) error {
	var since, until time.Time
	for i := range rows {
		switch at := rows[i].At; {
		case at.IsZero():
		case since.IsZero():
			since, until = at, at
		case at.Before(since):
			since = at
		case at.After(until):
			until = at
		}
	}
	if since.IsZero() {
		return nil
	}
	from, to := rows[0].From, rows[len(rows)-1].To
	asked, err := sessiondb.Asked(ctx, r.requests, r.workspace, r.session, r.lane.ID, from, to+1, since, until)
	if err != nil {
		return err
	}
	tell(rows, asked)
	return nil
}

// tell sets the times of rows by requests, which are in order.
func tell(rows []row, asked []session.Asked) {
	next := 0
	for i := range rows {
		row := &rows[i]
		if row.At.IsZero() {
			continue
		}
		for next < len(asked) && asked[next].Position < row.From {
			next++
		}
		if next < len(asked) && asked[next].Position == row.From {
			row.Asked = &asked[next]
			row.At = row.Asked.At.Add(row.Asked.Duration)
			continue
		}
		if next < len(asked) && asked[next].Position > row.From && asked[next].Position <= row.From+maxNew {
			row.At = asked[next].At
		}
	}
}

// maxNew is how many messages a client may add with one request, for the time of its request to be theirs.
const maxNew = 64

// took describes the request of an answer: its duration, cost and share read from the cache.
func took(asked *session.Asked) string {
	words := duration(asked.Duration) + " · " + components.Money(asked.CostMicroUSD)
	if read, whole := asked.Cached(); read > 0 {
		words += " · " + components.Share(read, whole) + " cached"
	}
	return words
}

// duration formats the time that a request took.
func duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return components.Span(d)
}

// bar is a thread's part of the session's time, in percent.
type bar struct{ From, Length int }

// bar returns when a thread was active within the session.
func (m *model) bar(lane session.LaneOverview) bar {
	whole := m.LastAt.Sub(m.StartedAt)
	if whole <= 0 {
		return bar{0, 100}
	}
	percent := func(d time.Duration) int { return max(0, min(100, int(100*d/whole))) }
	from := percent(lane.CreatedAt.Sub(m.StartedAt))
	return bar{min(from, 98), max(2, percent(lane.LastAt.Sub(m.StartedAt))-from)}
}
