package sessiondb_test

import (
	"reflect"
	"testing"
	"time"

	"palimpsest/pipeline/session"
)

func TestWhatModulesMadeIsCountedByModuleSinceAMoment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	before := time.Now().Add(-time.Hour)
	first, second := f.conversationOf(3), f.conversationOf(3)
	learnt := first.insert(2, 1, "[rule]")
	learnt.Module = "patterns"
	if err := f.store.Inject(t.Context(), first.seen(), []session.Insert{first.insert(1, 0, "[turn]"), learnt}); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Inject(t.Context(), second.seen(), []session.Insert{second.insert(1, 1, "[turn]")}); err != nil {
		t.Fatal(err)
	}
	second.save(t, second.attempt(2, "## Goal\n- first", ""))
	second.save(t, second.attempt(2, "an answer that was cut", "truncated"))

	made, err := f.store.Made(t.Context(), f.scope.Workspace, before)
	want := session.Made{Inserts: map[string]int64{"rehydrator": 2, "patterns": 1}, Summaries: 2, Rejected: 1}
	if err != nil || !reflect.DeepEqual(made, want) {
		t.Errorf("made %+v, %v; want %+v", made, err, want)
	}
	nothing := session.Made{Inserts: map[string]int64{}}
	if later, err := f.store.Made(t.Context(), f.scope.Workspace, time.Now().Add(time.Hour)); err != nil || !reflect.DeepEqual(later, nothing) {
		t.Errorf("in an hour from now %+v, %v", later, err)
	}
	// S2: another workspace made none of it.
	if other, err := f.store.Made(t.Context(), addWorkspace(t, f.door), before); err != nil || !reflect.DeepEqual(other, nothing) {
		t.Errorf("another workspace made %+v, %v", other, err)
	}
}
