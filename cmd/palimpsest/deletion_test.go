package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/tenants/identity"
)

// S31: with the transaction that deletes a workspace the end of what it has bought is
// asked for, whether or not Stripe can be asked just now, and outlives the workspace.
func TestDeletedWorkspaceLeavesItsSubscriptionToBeEnded(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	_, workspace, err := database.DB.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "Northbeam")
	if err != nil {
		t.Fatal(err)
	}
	store := billingdb.New(database.DB)
	if _, err := store.KeepCustomer(t.Context(), workspace.ID, "cus_1"); err != nil {
		t.Fatal(err)
	}
	b := base{Inputs: setup.New(settings.Config{}, slog.New(slog.DiscardHandler), time.Now), db: database.DB, registry: prometheus.NewRegistry()}
	b.work = newWork(b)
	sold := billing.New(billing.DefaultConfig(), billing.Deps{Store: store, Log: b.Log, Now: time.Now}) // off
	service := newDeletion(b, new(identity.Service), archivedb.NewMover(database.DB, archivetest.Keys(), nil), sold)
	if err := b.work.Open(); err != nil {
		t.Fatal(err)
	}
	if err := service.DeleteWorkspace(t.Context(), workspace.ID); err != nil {
		t.Fatal(err)
	}
	if err := service.Work(t.Context(), workspace.ID); err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]int{
		"SELECT count(*) FROM subscription_ends WHERE customer = 'cus_1'":                               1,
		"SELECT count(*) FROM workspaces":                                                               0,
		"SELECT count(*) FROM billing_accounts":                                                         0,
		"SELECT count(*) FROM subscription_ends s WHERE s::text LIKE '%" + workspace.ID.String() + "%'": 0,
	} {
		var got int
		if err := database.Owner(t).QueryRow(t.Context(), question).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", question, got, want, err)
		}
	}
}
