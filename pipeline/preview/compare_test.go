package preview_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// shelf keeps the sessions of one workspace.
type shelf struct {
	session.Records

	workspace tenants.WorkspaceID
	recorded  []session.Recorded
	err       error
	asked     int
	picked    session.Selection

	projections []session.Projection // of every lane
	inserts     []session.Insert
}

func (s *shelf) Projections(context.Context, tenants.WorkspaceID, uuid.UUID) ([]session.Projection, error) {
	return s.projections, s.err
}

func (s *shelf) Inserts(context.Context, tenants.WorkspaceID, uuid.UUID) ([]session.Insert, error) {
	return s.inserts, s.err
}

func (s *shelf) Recorded(_ context.Context, workspace tenants.WorkspaceID, picked session.Selection) ([]session.Recorded, error) {
	s.asked++
	if workspace != s.workspace || s.err != nil {
		return nil, s.err
	}
	s.picked = picked
	return s.recorded[:min(picked.Newest, len(s.recorded))], nil
}

func TestSettingsAreComparedOnAWorkspacesOwnSessions(t *testing.T) {
	t.Parallel()
	generated := sessiontest.Generate(7, sessiontest.Options{Turns: 60, Parallel: true, TargetTokens: 60_000})
	one, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 40_000, 0, settings(0.75))
	shelf := &shelf{workspace: tenants.NewWorkspaceID(), recorded: slices.Repeat([]session.Recorded{one}, 6)}
	compare := preview.New(shelf, models(t))

	found, err := compare.Compare(t.Context(), shelf.workspace, session.Selection{Newest: 5}, settings(0.75), settings(0.5))
	if err != nil {
		t.Fatal(err)
	}
	if found.IsSample || found.Was.Sessions != 5 || found.Saved.Sessions != 5 || found.Wanted.Sent >= found.Saved.Sent {
		t.Errorf("got %+v", found)
	}
	same, err := compare.Compare(t.Context(), shelf.workspace, session.Selection{Newest: 5}, settings(0.75), settings(0.75))
	if err != nil || same.Wanted != same.Saved || same.Saved != found.Saved || shelf.asked != 1 {
		t.Errorf("with itself: %+v, %v, asked %d times", same, err, shelf.asked)
	}
	off := settings(0.75)
	off.Modules = nil
	if none, err := compare.Compare(t.Context(), shelf.workspace, session.Selection{Newest: 5}, settings(0.75), off); err != nil || none.Wanted.Epochs != 0 || none.Wanted.Sent != none.Wanted.Received {
		t.Errorf("without the module: %+v, %v", none.Wanted, err)
	}
	few, err := compare.Compare(t.Context(), tenants.NewWorkspaceID(), session.Selection{Newest: 40}, settings(0.75), settings(0.5))
	if err != nil || !few.IsSample || few.Was != (preview.Figures{}) || few.Saved.Epochs == 0 {
		t.Errorf("another workspace: %+v, %v", few, err)
	}
	shelf.err = errors.New("database is down")
	if _, err := compare.Compare(t.Context(), tenants.NewWorkspaceID(), session.Selection{Newest: 40}, settings(0.75), settings(0.5)); !errors.Is(err, shelf.err) {
		t.Errorf("a failure is told as %v", err)
	}
}

// What was sent word for word and as an outline is read from the prompts as sent.
func TestLevelsOfWhatHappenedAreThoseOfThePromptsAsSent(t *testing.T) {
	t.Parallel()
	const covers, outlined = 40, 30
	generated := sessiontest.Generate(7, sessiontest.Options{Turns: 60, Parallel: true, TargetTokens: 60_000})
	one, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 40_000, 0, settings(0.75))
	sizeOf := func(messages int) (sum int) {
		for _, message := range one.Messages[:messages] {
			sum += message.Tokens
		}
		return sum
	}
	raw := json.RawMessage(`{"role":"user","content":"short"}`)
	projection := session.Projection{Number: 2, Covers: covers, Parts: []session.Part{{To: outlined, Level: 3, Raw: raw, Messages: 1}, {From: outlined, To: covers, Level: 1, Raw: raw, Messages: 1}, {From: covers, To: covers + 2}}}
	var whole, requests int64
	for i := range one.Requests {
		if one.Requests[i].Projection = 0; one.Requests[i].Position > covers {
			one.Requests[i].Projection = 2
			requests++
		}
		whole += int64(one.Requests[i].Before)
	}
	shelf := &shelf{workspace: tenants.NewWorkspaceID(), recorded: slices.Repeat([]session.Recorded{one}, 5), projections: []session.Projection{{Number: 1}, projection}}
	compare := func() preview.Comparison {
		found, err := preview.New(shelf, models(t)).Compare(t.Context(), shelf.workspace, session.Selection{Newest: 5}, settings(0.75), settings(0.75))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	near := func(got, o200k int64) bool { // the model's own tokens are up to a third more
		return got >= o200k && got <= o200k*3/2
	}

	found := compare()
	if was := found.Was; !found.HasLevels || was.Deepest != 3 || !near(was.AtL3, 5*requests*int64(sizeOf(outlined))) || !near(5*whole-was.Verbatim, 5*requests*int64(sizeOf(covers))) {
		t.Errorf("%d requests of %d tokens in all: %+v", requests, whole, was)
	}
	shelf.projections = shelf.projections[:1]
	if found := compare(); found.HasLevels || found.Was.Verbatim != 0 {
		t.Errorf("no longer stored: %+v", found.Was)
	}
}

func TestEverySessionIsToldByItself(t *testing.T) {
	t.Parallel()
	generated := sessiontest.Generate(7, sessiontest.Options{Turns: 60, Parallel: true, TargetTokens: 60_000})
	long, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 40_000, 0, settings(0.75))
	short := long
	short.Requests = long.Requests[:3]
	shelf := &shelf{workspace: tenants.NewWorkspaceID(), recorded: []session.Recorded{short, long, short, short, short}}
	picked := session.Selection{Newest: 40, Client: "claude-code"}

	found, err := preview.New(shelf, models(t)).Compare(t.Context(), shelf.workspace, picked, settings(0.75), settings(0.4))
	if err != nil || shelf.picked != picked || len(found.SavedEach) != 5 || len(found.WantedEach) != 5 {
		t.Fatalf("%v of %+v: %+v", err, shelf.picked, found)
	}
	small, large := found.WantedEach[0], found.WantedEach[1]
	if small.Epochs != 0 || small.FullBefore == 0 || small.FullBefore != small.FullSent || small.Requests != 3 {
		t.Errorf("the short one: %+v", small)
	}
	if large.Epochs == 0 || large.Deepest == 0 || large.FullBefore <= 1000 || large.FullSent >= large.FullBefore {
		t.Errorf("the long one: %+v", large)
	}
	if was := found.SavedEach[1]; was.FullSent <= large.FullSent || was.FullBefore != large.FullBefore {
		t.Errorf("as saved: %+v, else %+v", was, large)
	}
	var sent int64
	for _, one := range found.WantedEach {
		sent += one.Sent
	}
	if sent != found.Wanted.Sent {
		t.Errorf("%d tokens in all, %d session by session", found.Wanted.Sent, sent)
	}
}
