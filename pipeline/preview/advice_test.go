package preview_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// drawer keeps advice in memory.
type drawer struct {
	kept map[tenants.WorkspaceID]preview.Advice
	err  error
	made int
}

func (d *drawer) Advice(_ context.Context, workspace tenants.WorkspaceID) (preview.Advice, error) {
	advice, is := d.kept[workspace]
	if !is {
		return preview.Advice{}, preview.ErrNoAdvice
	}
	return advice, nil
}

func (d *drawer) KeepAdvice(_ context.Context, workspace tenants.WorkspaceID, advice preview.Advice) error {
	d.kept[workspace] = advice
	d.made++
	return d.err
}

// vast returns a session in a window that it does not come near, and that is large enough
// to be compressed by break-even.
func vast(t *testing.T) session.Recorded {
	t.Helper()
	generated := sessiontest.Generate(7, sessiontest.Options{Turns: 200, Parallel: true, TargetTokens: 150_000})
	one, _ := record(t, conversation.Anthropic, generated.Body(generated.Steps()-1), 1_000_000, 0, settings(0.75))
	return one
}

// advising is an advisor over two workspaces, of which the first has sessions.
func advising(t *testing.T, recorded []session.Recorded) (*preview.Advisor, *drawer, *shelf, *pipeline.Config) {
	t.Helper()
	shelf, store, config := &shelf{workspace: tenants.NewWorkspaceID(), recorded: recorded}, &drawer{kept: map[tenants.WorkspaceID]preview.Advice{}}, settings(0.75)
	other := tenants.NewWorkspaceID()
	return &preview.Advisor{
		Preview: preview.New(shelf, models(t)), Store: store, Now: from,
		Workspaces: func(context.Context) ([]tenants.WorkspaceID, error) {
			return []tenants.WorkspaceID{shelf.workspace, other}, nil
		},
		Settings: func(context.Context, tenants.WorkspaceID) (pipeline.Config, error) { return config, nil },
	}, store, shelf, &config
}

func TestAdviceSetsBothTriggersAgainstEachOther(t *testing.T) {
	t.Parallel()
	one := vast(t)
	advisor, store, shelf, config := advising(t, slices.Repeat([]session.Recorded{one}, 5))
	if err := advisor.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	advice := store.kept[shelf.workspace]
	if advice.Trigger != ipc.TriggerWindow || advice.Sessions != 5 || advice.HasMore || !advice.MadeAt.Equal(from()) {
		t.Errorf("got %+v", advice)
	}
	if advice.Saves() < advice.Cost/5 || advice.Verbatim != advice.Received || advice.OtherVerbatim > advice.Received*9/10 || advice.OtherVerbatim < advice.Received/10 {
		t.Errorf("to spend less saves %d of %d and leaves %d of %d tokens verbatim", advice.Saves(), advice.Cost, advice.OtherVerbatim, advice.Received)
	}
	if !advice.IsWorthSaying(ipc.TriggerWindow) || advice.IsWorthSaying(ipc.TriggerBreakEven) {
		t.Error("it is worth saying to a workspace whose trigger it compares, and to no other")
	}
	if want := from().Add(-preview.AdviceSpan); !shelf.picked.Since.Equal(want) {
		t.Errorf("sessions since %s were asked for, want %s", shelf.picked.Since, want)
	}

	// The figures are those of the preview with the same settings.
	wanted := *config
	pipeline.Change[ipc.Config](&wanted).Trigger = ipc.TriggerBreakEven
	compared, err := preview.New(shelf, models(t)).Compare(t.Context(), shelf.workspace, session.Selection{Newest: 5}, *config, wanted)
	if err != nil || compared.Saved.Cost != advice.Cost || compared.Wanted.Cost != advice.OtherCost || compared.Wanted.Net-compared.Saved.Net != advice.Saves() {
		t.Errorf("the preview has %+v and %+v, the advice %+v, %v", compared.Saved, compared.Wanted, advice, err)
	}

	// A workspace that has chosen the other one is told what that saves it.
	pipeline.Change[ipc.Config](config).Trigger = ipc.TriggerBreakEven
	if err := advisor.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if turned := store.kept[shelf.workspace]; turned.Trigger != ipc.TriggerBreakEven || turned.Saves() != -advice.Saves() || !turned.IsWorthSaying(ipc.TriggerBreakEven) {
		t.Errorf("the other way round: %+v", turned)
	}
}

// S28: a pass that is done twice makes the same, and only once a day.
func TestAdviceIsMadeOnceADay(t *testing.T) {
	t.Parallel()
	one := vast(t)
	one.Requests = one.Requests[:10]
	advisor, store, shelf, _ := advising(t, slices.Repeat([]session.Recorded{one}, 5))
	now := from()
	advisor.Now = func() time.Time { return now }
	for range 2 {
		if err := advisor.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if store.made != 2 || shelf.asked != 2 { // once for each workspace
		t.Errorf("made %d times, sessions read %d times", store.made, shelf.asked)
	}
	now = now.Add(25 * time.Hour)
	if err := advisor.Pass(t.Context()); err != nil || store.made != 4 {
		t.Errorf("a day later made %d times, %v", store.made, err)
	}
}

func TestAdviceSaysNothingWithoutABasis(t *testing.T) {
	t.Parallel()
	one := vast(t)
	gone := one
	gone.Messages = nil
	small := one
	small.Requests = one.Requests[:5] // too small for either trigger
	for name, recorded := range map[string][]session.Recorded{
		"four sessions":             slices.Repeat([]session.Recorded{one}, 4),
		"nothing is kept of others": append(slices.Repeat([]session.Recorded{one}, 4), gone),
		"both come to the same":     slices.Repeat([]session.Recorded{small}, 9),
		"no session":                nil,
	} {
		advisor, store, shelf, _ := advising(t, recorded)
		if err := advisor.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if advice := store.kept[shelf.workspace]; advice.IsWorthSaying(ipc.TriggerWindow) {
			t.Errorf("%s: %+v", name, advice)
		}
	}
	advisor, store, _, config := advising(t, slices.Repeat([]session.Recorded{one}, 5))
	config.Modules = nil
	if err := advisor.Pass(t.Context()); err != nil || store.made != 0 {
		t.Errorf("without the module that compresses: made %d times, %v", store.made, err)
	}
}

func TestAdviceIsBoundedToTheNewestSessions(t *testing.T) {
	t.Parallel()
	one := vast(t)
	one.Requests = one.Requests[:2]
	advisor, store, shelf, _ := advising(t, slices.Repeat([]session.Recorded{one}, 300))
	if err := advisor.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if advice := store.kept[shelf.workspace]; advice.Sessions != 100 || !advice.HasMore || shelf.picked.Newest != 101 {
		t.Errorf("%d sessions were asked for, the advice is of %d, more: %t", shelf.picked.Newest, advice.Sessions, advice.HasMore)
	}
}

func TestWorkspaceWithoutAdviceDoesNotKeepOthersWaiting(t *testing.T) {
	t.Parallel()
	one := vast(t)
	one.Requests = one.Requests[:2]
	advisor, store, shelf, config := advising(t, slices.Repeat([]session.Recorded{one}, 5))
	broken := errors.New("saved pipeline is not valid")
	advisor.Settings = func(_ context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
		if workspace == shelf.workspace {
			return pipeline.Config{}, broken
		}
		return *config, nil
	}
	if err := advisor.Pass(t.Context()); !errors.Is(err, broken) || store.made != 1 {
		t.Errorf("made %d times, %v", store.made, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := advisor.Pass(ended); !errors.Is(err, context.Canceled) || store.made != 1 {
		t.Errorf("after its time: made %d times, %v", store.made, err)
	}
}
