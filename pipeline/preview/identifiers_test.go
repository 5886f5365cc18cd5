package preview_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/replay"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// texts keeps the originals of one lane.
type texts struct {
	archive.Reader

	entries []archive.Entry
	err     error
}

func (t *texts) Entries(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, _, limit int) ([]archive.Entry, error) {
	return t.entries[:min(limit, len(t.entries))], nil
}

func (t *texts) Originals(_ context.Context, _ tenants.WorkspaceID, _ uuid.UUID, from, to int) ([]archive.Entry, error) {
	return t.entries[from:to], t.err
}

// textsOf returns the originals of a body, and what reads them.
func textsOf(t testing.TB, format conversation.Format, body []byte) (*texts, preview.Texts) {
	t.Helper()
	envelope, err := wire.Open(body, codecOf(format).List())
	if err != nil {
		t.Fatal(err)
	}
	kept := &texts{}
	for i := range envelope.Len() {
		raw := envelope.Element(i)
		kept.entries = append(kept.entries, archive.Entry{Index: i, Hash: sha256.Sum256(raw), Raw: raw, Size: len(raw)})
	}
	return kept, preview.Texts{
		Archive: kept, Codecs: formats.ByFormat(), Within: time.Minute, MayRead: func(uuid.UUID) bool { return true },
	}
}

// long is a session in which one name of many stands in an old result, and at its end the
// assistant comes back to it.
func long() []byte {
	var body strings.Builder
	body.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Find out why it is slow."}`)
	for step := range 40 {
		fmt.Fprintf(&body, `,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"Bash","input":{"command":"look at step %d"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"`, step, step, step)
		for line := range 60 {
			fmt.Fprintf(&body, `seekS%dL%d says nothing that anybody would ever ask for\n`, step, line)
		}
		body.WriteString(`"}]}`)
	}
	body.WriteString(`,{"role":"assistant","content":"It was seekS1L31 all along."},{"role":"user","content":"Mend it."}]}`)
	return []byte(body.String())
}

// of returns sessions that are all alike, and a preview of them.
func of(t testing.TB, recorded session.Recorded, sessions int) (*preview.Preview, *shelf) {
	t.Helper()
	recorded.Format, recorded.APIKey = cmp.Or(recorded.Format, conversation.Anthropic), uuid.New()
	shelf := &shelf{workspace: tenants.NewWorkspaceID(), recorded: slices.Repeat([]session.Recorded{recorded}, sessions)}
	return preview.New(shelf, models(t)), shelf
}

func TestALowTargetLosesANameThatALaterTurnUses(t *testing.T) {
	t.Parallel()
	recorded, _ := record(t, conversation.Anthropic, long(), 60_000, 20*time.Second, settings(0.95))
	compares, shelf := of(t, recorded, 12)
	_, from := textsOf(t, conversation.Anthropic, long())
	picked := session.Selection{Newest: preview.Newest}

	found, err := compares.Identifiers(t.Context(), shelf.workspace, picked, from, settings(0.95), settings(0.95), settings(0.4), settings(0.95))
	if want := (preview.Identifiers{Sessions: 10, TakenUp: 10, Held: []int{10, 0, 10}, Again: []int{0, 10, 0}, Recorded: 10, HeldThen: 10}); err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v, %v, want %+v", found, err, want)
	}
	same, err := compares.Identifiers(t.Context(), shelf.workspace, picked, from, settings(0.4), settings(0.4), settings(0.4))
	if err != nil || same.Sessions != 10 || !slices.Equal(same.Held, []int{0, 0}) {
		t.Errorf("with itself: %+v, %v", same, err)
	}
	off := settings(0.4)
	off.Modules = nil
	if none, err := compares.Identifiers(t.Context(), shelf.workspace, picked, from, settings(0.4), settings(0.4), off); err != nil || !slices.Equal(none.Held, []int{0, 10}) {
		t.Errorf("without the module: %+v, %v", none, err)
	}
}

// What happened is counted in the prompts as they were sent, with what modules put back into them.
func TestWhatHappenedIsCountedInThePromptsAsSent(t *testing.T) {
	t.Parallel()
	recorded, _ := record(t, conversation.Anthropic, long(), 60_000, 20*time.Second, settings(0.95))
	const covers = 40
	for i := range recorded.Requests {
		if recorded.Requests[i].Position >= covers {
			recorded.Requests[i].Projection = 1
		}
	}
	outline := session.Projection{Number: 1, Covers: covers, Parts: []session.Part{{To: covers, Level: 3, Raw: json.RawMessage(`{"role":"user","content":"an outline"}`), Messages: 1}}}
	_, from := textsOf(t, conversation.Anthropic, long())
	for name, test := range map[string]struct {
		projections []session.Projection
		inserts     []session.Insert
		want        preview.Identifiers
	}{
		"left out":         {[]session.Projection{outline}, nil, preview.Identifiers{Recorded: 5, AgainThen: 5}},
		"put back":         {[]session.Projection{outline}, []session.Insert{{Message: covers + 1, Text: "It was seekS1L31."}}, preview.Identifiers{Recorded: 5, HeldThen: 5}},
		"no longer stored": {nil, nil, preview.Identifiers{}},
	} {
		compares, shelf := of(t, recorded, 5)
		shelf.projections, shelf.inserts = test.projections, test.inserts
		found, err := compares.Identifiers(t.Context(), shelf.workspace, session.Selection{Newest: 40}, from, settings(0.95), settings(0.95))
		if err != nil || found.TakenUp != 5 || found.Recorded != test.want.Recorded || found.HeldThen != test.want.HeldThen || found.AgainThen != test.want.AgainThen {
			t.Errorf("%s: got %+v, %v, want %+v", name, found, err, test.want)
		}
	}
}

func TestIdentifiersAreOnlyCountedInTextThatMayBeRead(t *testing.T) {
	t.Parallel()
	recorded, _ := record(t, conversation.Anthropic, long(), 60_000, 20*time.Second, settings(0.95))
	compares, shelf := of(t, recorded, 6)
	shelf.recorded[3].APIKey = uuid.New()
	count := func(ctx context.Context, from preview.Texts) (preview.Identifiers, error) {
		return compares.Identifiers(ctx, shelf.workspace, session.Selection{Newest: 40}, from, settings(0.95), settings(0.95), settings(0.4))
	}

	for name, change := range map[string]struct {
		texts func(kept *texts, from *preview.Texts)
		want  int
	}{
		"all": {func(*texts, *preview.Texts) {}, 6},
		"one key": {func(_ *texts, from *preview.Texts) {
			from.MayRead = func(key uuid.UUID) bool { return key == shelf.recorded[3].APIKey }
		}, 1},
		"nothing":          {func(_ *texts, from *preview.Texts) { from.MayRead = func(uuid.UUID) bool { return false } }, 0},
		"unknown format":   {func(_ *texts, from *preview.Texts) { from.Codecs = nil }, 0},
		"no longer whole":  {func(kept *texts, _ *preview.Texts) { kept.entries = kept.entries[:5] }, 0},
		"damaged":          {func(kept *texts, _ *preview.Texts) { kept.err = archive.ErrDamaged }, 0},
		"one too large":    {func(kept *texts, _ *preview.Texts) { kept.entries[2].Size = 9 << 20 }, 0},
		"three in all":     {func(kept *texts, _ *preview.Texts) { kept.entries[2].Size = 7 << 20 }, 3},
		"no time was left": {func(_ *texts, from *preview.Texts) { from.Within = 0 }, 0},
	} {
		kept, from := textsOf(t, conversation.Anthropic, long())
		change.texts(kept, &from)
		if found, err := count(t.Context(), from); err != nil || found.Sessions != change.want || found.Held[0] != change.want {
			t.Errorf("%s: %+v, %v, want %d sessions", name, found, err, change.want)
		}
	}

	kept, from := textsOf(t, conversation.Anthropic, long())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := count(gone, from); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left is told %v", err)
	}
	kept.err = archive.ErrAway
	if _, err := count(t.Context(), from); !errors.Is(err, archive.ErrAway) {
		t.Errorf("a failure is told as %v", err)
	}
	compares, shelf = of(t, recorded, 2)
	if few, err := count(t.Context(), from); err != nil || few.Sessions != 0 {
		t.Errorf("of a sample: %+v, %v", few, err)
	}
}

// The bench counts the same names in the bodies that the whole pipeline sends.
func TestIdentifiersAgreeWithTheBench(t *testing.T) {
	t.Parallel()
	formats := []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses}
	for i := range fulltest.Part(len(formats)) {
		format := formats[i]
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			generated := sessiontest.Generate(5, sessiontest.Options{Format: format, Turns: 120, Parallel: true, Facts: true, TargetTokens: 120_000})
			body := generated.Body(generated.Steps() - 1)
			recorded, _ := record(t, format, body, 60_000, 20*time.Second, settings(0.5))
			recorded.Format = format
			compares, shelf := of(t, recorded, 5)
			_, from := textsOf(t, format, body)
			found, err := compares.Identifiers(t.Context(), shelf.workspace, session.Selection{Newest: 40}, from, settings(0.5), settings(0.5))
			if err != nil {
				t.Fatal(err)
			}
			held, taken := benched(t, format, body)
			t.Logf("the preview finds %d of %d, the bench %d of %d", found.Held[0]/5, found.TakenUp/5, held, taken)
			if found.TakenUp != 5*taken || taken < 50 || held == taken {
				t.Errorf("%d are taken up, the bench counts %d, of which %d are held", found.TakenUp/5, taken, held)
			}
			if off := float64(found.Held[0])/5 - float64(held); math.Abs(off) > 0.03*float64(taken) {
				t.Errorf("%d are held, the bench counts %d of %d", found.Held[0]/5, held, taken)
			}
		})
	}
}

// benched replays a body at a window and counts the identifiers that its prompts hold.
func benched(t *testing.T, format conversation.Format, body []byte) (held, taken int) {
	t.Helper()
	envelope, err := wire.Open(body, codecOf(format).List())
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]conversation.Message, envelope.Len())
	for i := range messages {
		if messages[i], err = codecOf(format).Parse(envelope.Element(i)); err != nil {
			t.Fatal(err)
		}
	}
	names := fidelity.NamesOf(messages)
	run, err := replay.New(replay.Config{
		Format: format, Pipeline: settings(0.5), Window: 60_000, TTL: session.ShortTTL,
		Clock: func(request int) time.Time { return from().Add(time.Duration(request) * 20 * time.Second) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var before replay.Step
	if _, err = run.Run(t.Context(), body, func(step replay.Step) error {
		if before.Sent.Body != nil {
			kept, of := names.Held(before.Messages, step.Messages, func(name string) bool { return bytes.Contains(before.Sent.Body, []byte(name)) })
			held, taken = held+kept, taken+of
		}
		before = step
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return held, taken
}

func BenchmarkIdentifiersOfTenSessions(b *testing.B) {
	generated := sessiontest.Generate(5, sessiontest.Options{Format: conversation.Anthropic, Turns: 200, Parallel: true, Facts: true, TargetTokens: 180_000})
	body := generated.Body(generated.Steps() - 1)
	recorded, _ := record(b, conversation.Anthropic, body, 100_000, 20*time.Second, settings(0.75))
	compares, shelf := of(b, recorded, 10)
	_, from := textsOf(b, conversation.Anthropic, body)
	b.SetBytes(int64(10 * len(body)))
	for b.Loop() {
		if found, err := compares.Identifiers(b.Context(), shelf.workspace, session.Selection{Newest: 40}, from, settings(0.75), settings(0.75), settings(0.6)); err != nil || found.Sessions != 10 {
			b.Fatal(found, err)
		}
	}
}
