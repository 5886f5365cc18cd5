package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/a-h/templ"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/web/render"
)

// Said renders the beginning of a message of a wire format as its session's page does.
func Said(codec wire.Codec, raw json.RawMessage) templ.Component {
	r := &reader{codec: codec, calls: map[string]call{}}
	said := r.text(raw, false)
	side := drawing{left: maxSide, until: time.Now().Add(patience)}
	side.draw(&said)
	return textView(said)
}

// Plain returns messages of a wire format as text, each after its role, for Difference.
func Plain(codec wire.Codec, raws []json.RawMessage) string {
	r := &reader{codec: codec, calls: map[string]call{}}
	var all []text
	for _, raw := range raws {
		title := "Message"
		if message, err := codec.Parse(raw); err == nil {
			r.noteCalls(message)
			title = titleOfMessage(message, r.calls)
		}
		all = append(all, text{Blocks: []block{newBlock("", render.Plain, "", title)}}, r.text(raw, false))
	}
	return plain(all)
}

// Difference shows the difference of two texts line by line.
func Difference(was, is string) templ.Component {
	return diffView(render.Difference(was, is), "first request", "second request")
}

// answer is the model's answer to the newest request, which the list does not contain yet.
type answer struct {
	At    time.Time
	Shown templ.Component
}

// answer returns the newest archived answer of the lane, or nil.
func (r *reader) answer(ctx context.Context) (*answer, error) {
	newest, err := r.archive.NewestAnswer(ctx, r.workspace, r.session, r.lane.ID, r.lane.Position)
	if errors.Is(err, archive.ErrNotFound) {
		return nil, nil //nolint:nilnil // the request may have failed, or still be under way
	}
	if err != nil {
		return nil, err
	}
	objects, err := r.archive.Objects(ctx, r.workspace, []conversation.Hash{newest.Hash})
	if err != nil || objects[0].Damage != nil {
		return nil, err
	}
	return &answer{At: newest.At, Shown: Said(r.codec, objects[0].Raw)}, nil
}
