package signon_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/tenants/signon"
	"palimpsest/tenants/vault/vaulttest"
)

// S13: who does not come back from the provider within ten minutes begins again.
func TestSignOnThatTakesTooLongEnds(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.configure(t)
	now := c.with(vaulttest.Of(t, "v"), records{})
	earlier := func(by time.Duration) *signon.Service {
		config := now.Config
		config.Now = func() time.Time { return time.Now().Add(-by) }
		return signon.New(config)
	}
	if err := c.through(t, earlier(tenants.SignOnAge+time.Second), now); !errors.Is(err, tenants.ErrSignOn) {
		t.Errorf("after more than ten minutes: %v", err)
	}
	if err := c.through(t, earlier(tenants.SignOnAge-time.Minute), now); err != nil {
		t.Errorf("after nine minutes: %v", err)
	}
}

func TestWorkspaceNamesABoundedNumberOfDomains(t *testing.T) {
	t.Parallel()
	c := setup(t)
	service := c.with(vaulttest.Of(t, "v"), records{})
	ctx := tenants.WithActor(t.Context(), c.owner.Actor(""))
	for i := range 50 {
		if err := service.Claim(ctx, c.owner, fmt.Sprintf("d%d.example", i)); err != nil {
			t.Fatal(err)
		}
	}
	err := service.Claim(ctx, c.owner, "more.example")
	if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "domain" {
		t.Errorf("one more: %v", err)
	}
	if err := service.RemoveDomain(ctx, c.owner, "d7.example"); err != nil {
		t.Fatal(err)
	}
	if err := service.Claim(ctx, c.owner, "more.example"); err != nil {
		t.Errorf("in place of one that was removed: %v", err)
	}
}
