package preview_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/wiregen"
)

// shelf keeps the sessions of one workspace.
type shelf struct {
	workspace uuid.UUID
	recorded  []session.Recorded
	err       error
	asked     int
}

func (s *shelf) Recorded(_ context.Context, workspace uuid.UUID, sessions int) ([]session.Recorded, error) {
	s.asked++
	if workspace != s.workspace || s.err != nil {
		return nil, s.err
	}
	return s.recorded[:min(sessions, len(s.recorded))], nil
}

func TestSettingsAreComparedOnAWorkspacesOwnSessions(t *testing.T) {
	t.Parallel()
	generated := wiregen.Generate(7, wiregen.Options{Turns: 60, Parallel: true, TargetTokens: 60_000})
	one, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 40_000, 0, settings(0.75))
	shelf := &shelf{workspace: uuid.New(), recorded: slices.Repeat([]session.Recorded{one}, 6)}
	compare := preview.New(shelf, models(t))

	found, err := compare.Compare(t.Context(), shelf.workspace, 5, settings(0.75), settings(0.5))
	if err != nil {
		t.Fatal(err)
	}
	if found.IsSample || found.Was.Sessions != 5 || found.Saved.Sessions != 5 || found.Wanted.Sent >= found.Saved.Sent {
		t.Errorf("got %+v", found)
	}
	same, err := compare.Compare(t.Context(), shelf.workspace, 5, settings(0.75), settings(0.75))
	if err != nil || same.Wanted != same.Saved || same.Saved != found.Saved || shelf.asked != 1 {
		t.Errorf("with itself: %+v, %v, asked %d times", same, err, shelf.asked)
	}
	off := settings(0.75)
	off.Modules = nil
	if none, err := compare.Compare(t.Context(), shelf.workspace, 5, settings(0.75), off); err != nil || none.Wanted.Epochs != 0 || none.Wanted.Sent != none.Wanted.Received {
		t.Errorf("without the module: %+v, %v", none.Wanted, err)
	}
	few, err := compare.Compare(t.Context(), uuid.New(), 40, settings(0.75), settings(0.5))
	if err != nil || !few.IsSample || few.Was != (preview.Figures{}) || few.Saved.Epochs == 0 {
		t.Errorf("another workspace: %+v, %v", few, err)
	}
	shelf.err = errors.New("database is down")
	if _, err := compare.Compare(t.Context(), uuid.New(), 40, settings(0.75), settings(0.5)); !errors.Is(err, shelf.err) {
		t.Errorf("a failure is told as %v", err)
	}
}
