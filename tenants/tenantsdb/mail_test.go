package tenantsdb_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"palimpsest/tenants"
)

func TestMailIsQueuedIfAndOnlyIfTheChangeCommits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mail := tenants.Mail{To: "ada@example.com", Subject: "Hello", Text: "text"}
	down := errors.New("down")
	err := b.Together(t.Context(), b.workspace, func(ctx context.Context) error {
		return errors.Join(b.QueueMail(ctx, mail), down)
	})
	if !errors.Is(err, down) || waiting(t, b) != 0 {
		t.Fatalf("%v; %d mails are left of what failed", err, waiting(t, b))
	}
	err = b.Together(t.Context(), b.workspace, func(ctx context.Context) error {
		if err := b.QueueMail(ctx, mail); err != nil {
			return err
		}
		return b.InTenant(ctx, b.workspace, func(tx *gorm.DB) error {
			var seen int
			err := tx.Raw("SELECT count(*) FROM mails").Scan(&seen).Error
			if seen != 0 {
				t.Errorf("the workspace's transaction sees %d mails", seen)
			}
			return err
		})
	})
	if err != nil || waiting(t, b) != 1 {
		t.Fatalf("%v; %d mails, want 1", err, waiting(t, b))
	}
	if err := b.QueueMail(t.Context(), mail); err != nil || waiting(t, b) != 2 {
		t.Fatalf("alone: %v; %d mails, want 2", err, waiting(t, b))
	}
}

// waiting returns how many mails wait to be sent.
func waiting(t *testing.T, b bundle) int {
	t.Helper()
	var count int
	if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM mails").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}
