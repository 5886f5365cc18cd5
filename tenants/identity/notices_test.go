package identity_test

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// Anyone who takes an account over cannot change what logs in to it unnoticed.
func TestPersonIsToldOfEveryChangeOfTheirSecondFactor(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	g.service.SetMails(identity.Mails{PublicURL: publicURL})
	codes, err := g.service.RenewRecoveryCodes(t.Context(), g.who, password, g.codes[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][2]string{{"not hers", codes[0]}, {password, "123"}} {
		if err := g.service.RemoveSecondFactor(t.Context(), g.who, wrong[0], wrong[1]); err == nil {
			t.Fatalf("%v removes it", wrong)
		}
	}
	if err := g.service.RemoveSecondFactor(t.Context(), g.who, password, g.code(t)); err != nil {
		t.Fatal(err)
	}
	mails, err := g.DB.Mail.Mails(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, mail := range mails {
		told = append(told, mail.Subject)
		if mail.To != "ada@example.com" || slices.ContainsFunc(append(codes, g.codes...), func(code string) bool { return strings.Contains(mail.Text, code) }) {
			t.Errorf("to %s: %s", mail.To, mail.Text)
		}
		if mail.Subject == "Your second factor was turned off" && (!strings.Contains(mail.Text, "logins have ended") || !strings.Contains(mail.Text, publicURL+"/reset\n")) {
			t.Errorf("it does not say what to do: %s", mail.Text)
		}
	}
	slices.Sort(told)
	want := []string{"A recovery code was used", "Your recovery codes were replaced", "Your second factor was turned off", "Your second factor was turned on"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestEveryChangeOfAFactorHasItsOwnMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unknown := b.service.FactorMail(tenants.User{Email: "ada@example.com"}, "factor.other", "Laptop").Subject
	seen := map[string]bool{unknown: true}
	for _, change := range []tenants.Action{
		tenants.SecondFactorOn, tenants.SecondFactorOff, tenants.RecoveryCodesChanged, tenants.RecoveryCodeUsed,
		tenants.PasskeyAdded, tenants.PasskeyRemoved, tenants.PasskeyCopied,
	} {
		mail := b.service.FactorMail(tenants.User{Email: "ada@example.com"}, change, "Laptop")
		isPasskey := strings.HasPrefix(string(change), "passkey.")
		if seen[mail.Subject] || mail.To != "ada@example.com" || isPasskey != strings.Contains(mail.Text, `"Laptop"`) {
			t.Errorf("%s: %+v", change, mail)
		}
		seen[mail.Subject] = true
	}
}
