package api

import (
	"runtime/metrics"
	"testing"

	"palimpsest/tenants"
)

// collectsAt returns the collector's target, in percent.
func collectsAt() uint64 {
	target := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(target)
	return target[0].Value.Uint64()
}

// S37: while large bodies are in flight the collector follows closely; before and after, it
// does as it did.
func TestCollectorFollowsHeavyRequestsClosely(t *testing.T) { // not parallel: a process has one collector
	usual := collectsAt()
	bytes := NewBytes(1<<30, 1<<30)
	light, heavy, other := bytes.hold(tenants.APIKey{Workspace: tenants.NewWorkspaceID()}), bytes.hold(tenants.APIKey{Workspace: tenants.NewWorkspaceID()}), bytes.hold(tenants.APIKey{Workspace: tenants.NewWorkspaceID()})
	expect := func(when string, want uint64) {
		t.Helper()
		if got := collectsAt(); got != want {
			t.Errorf("%s: the target is %d percent, want %d", when, got, want)
		}
	}
	take := func(held *heldBytes, more int) {
		t.Helper()
		if err := held.take(more); err != nil {
			t.Fatal(err)
		}
	}
	take(light, heavyBody-1)
	expect("with a small body", usual)
	take(heavy, heavyBody/2)
	take(heavy, heavyBody/2)
	take(heavy, heavyBody)
	expect("with a large body", heavyGrowth)
	take(other, heavyBody)
	recorded := bytes.recording(heavyBody/recordingBytes, 0)
	bytes.recording(0, heavyBody-1)()
	heavy.leave()
	heavy.leave()
	expect("with another large body", heavyGrowth)
	other.leave()
	expect("while many messages are recorded", heavyGrowth)
	recorded()
	expect("after them", usual)
	light.leave()

	var unbounded *Bytes
	unbounded.recording(0, heavyBody)()
	expect("without bounds", usual)
}
