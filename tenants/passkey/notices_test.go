package passkey_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Anyone who takes an account over cannot add or remove a passkey unnoticed; what is
// refused sends nothing.
func TestPersonIsToldOfEveryChangeOfTheirPasskeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withPasskey(t, "eve@example.com")
	h := b.withPasskey(t, "ada@example.com")
	h.key.Counter = 5
	if _, err := h.logIn(t); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is found out once
		if _, err := h.logIn(t); !errors.Is(err, tenants.ErrPasskeyCopied) {
			t.Fatalf("the same count again: %v", err)
		}
	}
	if _, err := h.service.RenewCodes(t.Context(), h.who, password); err != nil {
		t.Fatal(err)
	}
	passkeys, _, err := h.service.List(t.Context(), h.who.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.service.Remove(t.Context(), h.who, passkeys[0].ID, "not hers"); err == nil {
		t.Fatal("a wrong password removes a passkey")
	}
	if err := h.service.Remove(t.Context(), h.who, uuid.New(), password); !errors.Is(err, tenants.ErrNotFound) {
		t.Fatalf("a passkey that is not there: %v", err)
	}
	if err := h.service.Remove(t.Context(), h.who, passkeys[0].ID, password); err != nil {
		t.Fatal(err)
	}

	mails, err := h.DB.Mail.Mails(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, mail := range mails {
		if mail.To == "ada@example.com" {
			told = append(told, mail.Subject)
		}
		if strings.HasPrefix(mail.Subject, "A passkey") && !strings.Contains(mail.Text, `"Laptop"`) {
			t.Errorf("which passkey: %s", mail.Text)
		}
	}
	slices.Sort(told)
	if want := []string{"A passkey was added", "A passkey was copied", "A passkey was removed", "Your recovery codes were replaced"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
