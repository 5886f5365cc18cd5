package tenantsdb_test

import (
	"reflect"
	"testing"
	"time"

	"palimpsest/tenants"
)

func TestChoicesAreWhatARangeHas(t *testing.T) {
	t.Parallel()
	b, key := plant(t)
	choices, err := b.Usage.UsageChoices(tenants.OwnWork(t.Context()), b.workspace, between(0, 30*time.Minute))
	want := tenants.UsageChoices{
		Clients: []string{"claude-code"}, Models: []string{"claude"}, APIKeys: []tenants.UsageKey{{ID: key.ID, Name: "laptop"}},
	}
	if err != nil || !reflect.DeepEqual(choices, want) {
		t.Errorf("choices %+v (%v), want %+v", choices, err, want)
	}
	own := b.exchange(day().Add(10 * time.Hour))
	own.Request.Class, own.Request.Client = "summary", "palimpsest"
	b.record(t, b.workspace, own)
	all, err := b.Usage.UsageChoices(tenants.OwnWork(t.Context()), b.workspace, tenants.UsageFilter{From: day(), To: day().Add(48 * time.Hour), Client: "codex"})
	if err != nil || len(all.Clients) != 2 || len(all.APIKeys) != 5 {
		t.Errorf("of both days: %+v (%v): the filter narrows nothing, our own calls do not count", all, err)
	}
}

func TestAKeyIsRejectedUntilSomethingGoodComesOfIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.addProviderKey(t, b.workspace, "anthropic")
	at := now().Add(time.Hour)
	record := func(after time.Duration, status int) {
		exchange := b.exchange(at.Add(after))
		exchange.Answer.ProviderKey, exchange.Answer.Status = key.ID, status
		if status >= 400 {
			exchange.Answer.ErrorFrom = "provider"
		}
		b.record(t, b.workspace, exchange)
	}
	rejected := func() []tenants.Rejection {
		rejections, err := b.Usage.Rejections(tenants.OwnWork(t.Context()), b.workspace, at.Add(-24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return rejections
	}
	record(0, 401)
	record(time.Minute, 200)
	record(2*time.Minute, 429)
	if found := rejected(); len(found) != 0 {
		t.Errorf("rejected although it worked since: %+v", found)
	}
	record(3*time.Minute, 401)
	record(4*time.Minute, 403)
	want := []tenants.Rejection{{Key: key.ID, Name: key.Name, Provider: key.Provider, Count: 2, Since: at.Add(3 * time.Minute), Status: 403}}
	if found := rejected(); len(found) != 1 || !found[0].Since.Equal(want[0].Since) || found[0].Count != 2 || found[0].Status != 403 || found[0].Name != key.Name || found[0].Key != key.ID {
		t.Errorf("rejections %+v, want %+v", found, want)
	}
	if found, err := b.Usage.Rejections(tenants.OwnWork(t.Context()), tenants.NewWorkspaceID(), at.Add(-time.Hour)); err != nil || len(found) != 0 {
		t.Errorf("another workspace: %+v, %v", found, err)
	}
	record(5*time.Minute, 200)
	if found := rejected(); len(found) != 0 {
		t.Errorf("rejected although it works again: %+v", found)
	}
}

func TestHindrancesAreCountedByReasonClientVersionAndModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := now().Add(time.Hour)
	record := func(compression, version, reason string) {
		exchange := b.exchange(at)
		exchange.Request.Client, exchange.Request.Model, exchange.Prompt.Compression = "claude-code", "claude-sonnet-5", compression
		exchange.Prompt.Report = []byte(`{"client_version":"` + version + `","events":[{"type":"started"},{"type":"target_unreachable","reason":"` + reason + `"}]}`)
		b.record(t, b.workspace, exchange)
	}
	record("unreachable", "2.1.330", "kept_messages")
	record("unreachable", "2.1.330", "kept_messages")
	record("unreachable", "2.1.329", "newest_turn")
	record("epoch", "2.1.330", "kept_messages")

	found, err := b.Usage.Obstacles(tenants.OwnWork(t.Context()), b.workspace, at.Add(-time.Minute))

	if err != nil || len(found) != 2 {
		t.Fatalf("obstacles %+v, %v", found, err)
	}
	first := tenants.Obstacle{Reason: "kept_messages", Client: "claude-code", Version: "2.1.330", Model: "claude-sonnet-5", Count: 2, Since: found[0].Since}
	if found[0] != first || found[1].Version != "2.1.329" || !found[0].Since.Equal(at) {
		t.Errorf("obstacles %+v, the first should be %+v", found, first)
	}
	if later, err := b.Usage.Obstacles(tenants.OwnWork(t.Context()), b.workspace, at.Add(time.Minute)); err != nil || len(later) != 0 {
		t.Errorf("of a later time: %+v, %v", later, err)
	}
	if others, err := b.Usage.Obstacles(tenants.OwnWork(t.Context()), tenants.NewWorkspaceID(), at.Add(-time.Minute)); err != nil || len(others) != 0 {
		t.Errorf("of another workspace: %+v, %v", others, err)
	}
}
