package alerts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/api/alerts"
	"palimpsest/tenants"
)

func TestSlackGetsTextThatNobodyCanForge(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	channel, secret, err := b.Add(t.Context(), b.owner, tenants.WantedAlertChannel{
		Kind: tenants.AlertSlack, Name: "#<!channel> & co", URL: receiver.URL + "/services/T000/B000/XXXXXXXXXXXX", Rules: []tenants.AlertRule{tenants.AlertBudget},
	})
	if err != nil || secret != "" {
		t.Fatal(secret, err)
	}
	if strings.Contains(channel.Place, "services") || strings.Contains(string(channel.Sealed), "XXXX") {
		t.Errorf("channel %+v shows its address", channel)
	}
	if _, err := b.Test(t.Context(), b.owner, channel.ID); err != nil {
		t.Fatal(err)
	}
	got := receiver.requests()
	var body map[string]string
	if len(got) != 1 || json.Unmarshal(got[0].body, &body) != nil || got[0].header.Get("webhook-signature") != "" {
		t.Fatalf("received %+v", got)
	}
	want := "*Test of #&lt;!channel&gt; &amp; co*\nAlerts of this workspace arrive here.\n<https://palimpsest.example/settings/alerts|Open in Palimpsest> · northbeam"
	if len(body) != 1 || body["text"] != want {
		t.Errorf("text %q, want %q", body["text"], want)
	}
}

func TestMailsGoToVerifiedMembersOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, func(config *alerts.Config) { config.HasMail = true })
	wanted := tenants.WantedAlertChannel{Kind: tenants.AlertEmail, Name: "mails", User: b.owner.User.ID, Rules: []tenants.AlertRule{tenants.AlertInstallation}}
	refused := func(what string) {
		t.Helper()
		_, _, err := b.Add(t.Context(), b.owner, wanted)
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "user" {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("an address that is not verified")
	stranger, _, err := b.Accounts.SignUp(t.Context(), "eve@example.com", "hash", "rival")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE users SET verified_at = now()"); err != nil {
		t.Fatal(err)
	}
	wanted.User = stranger.ID
	refused("a stranger")
	wanted.User = b.owner.User.ID
	channel, _, err := b.Add(t.Context(), b.owner, wanted)
	if err != nil {
		t.Fatal(err)
	}
	result, err := b.Test(t.Context(), b.owner, channel.ID)
	if err != nil || result.State != tenants.DeliveryDelivered || len(b.mails.sent) != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	if mail := b.mails.sent[0]; mail.To != "ada@example.com" || mail.Subject != "[northbeam] Test of mails" || !strings.Contains(mail.Text, publicURL+"/settings/alerts") {
		t.Errorf("mail %+v", mail)
	}

	b.mails.err = errors.New("mail server smtp.internal answered 451")
	delivery := b.raised(t)
	if again := b.deliver(t, delivery.ID); again.IsZero() {
		t.Error("not tried again")
	}
	all := b.deliveries(t)
	if got := all[len(all)-1]; got.State != tenants.DeliveryWaiting || got.Answer != "The mail server did not take the mail." {
		t.Errorf("log %+v", got)
	}
	// Who has left gets nothing more.
	b.mails.err = nil
	if _, err := b.database.Owner(t).Exec(t.Context(), "DELETE FROM members WHERE user_id = $1", b.owner.User.ID); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Minute)
	b.deliver(t, delivery.ID)
	all = b.deliveries(t)
	if got := all[len(all)-1]; got.State != tenants.DeliveryFailed || len(b.mails.sent) != 1 {
		t.Errorf("log %+v, %d mails", got, len(b.mails.sent))
	}
}

func TestReceiverThatDoesNotAnswerIsDescribedWithoutItsAddress(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	channel, _ := b.webhook(t, receiver.URL+"/secret-path", tenants.AlertBudget)
	receiver.Close()
	result, err := b.Test(t.Context(), b.owner, channel.ID)
	if err != nil || result.State != tenants.DeliveryFailed || result.Status != 0 || result.Answer != "The host could not be reached." {
		t.Errorf("closed: %+v, %v", result, err)
	}
	channel, _ = b.webhook(t, "https://palimpsest.invalid/secret-path", tenants.AlertBudget)
	result, err = b.Test(t.Context(), b.owner, channel.ID)
	if err != nil || result.State != tenants.DeliveryFailed || strings.Contains(result.Answer, "invalid") || result.Answer == "" {
		t.Errorf("unknown host: %+v, %v", result, err)
	}
}

func TestChangesAreAuditedWithoutSecrets(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	channel, secret := b.webhook(t, receiver.URL+"/token-in-the-path", tenants.AlertBudget)
	settings := tenants.DefaultAlertSettings()
	settings.QuietFrom, settings.QuietTo, settings.ErrorPercent = 1, 2, 10
	wanted := tenants.WantedAlertChannel{Name: "renamed", URL: receiver.URL + "/another-token", Rules: []tenants.AlertRule{tenants.AlertErrorRate}}
	err := errors.Join(b.Change(t.Context(), b.owner, channel.ID, wanted), b.SaveSettings(t.Context(), b.owner.Workspace.ID, settings), b.Remove(t.Context(), b.owner, channel.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []tenants.Action{tenants.AlertChannelAdded, tenants.AlertChannelChanged, tenants.AlertsSaved, tenants.AlertChannelRemoved} {
		entries, err := b.Audit.Audit(t.Context(), b.owner.Workspace.ID, tenants.AuditFilter{Action: string(action)})
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: %d entries, %v", action, len(entries), err)
		}
		if text := fmt.Sprint(entries[0]); strings.Contains(text, "token") || strings.Contains(text, secret) {
			t.Errorf("%s: %s", action, text)
		}
	}
}

func TestWorkspaceHasABoundedNumberOfChannels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range tenants.MaxAlertChannels {
		b.webhook(t, "https://example.com", tenants.AlertBudget)
	}
	_, _, err := b.Add(t.Context(), b.owner, tenants.WantedAlertChannel{Kind: tenants.AlertWebhook, Name: "n", URL: "https://example.com", Rules: []tenants.AlertRule{tenants.AlertBudget}})
	if _, is := errors.AsType[tenants.Invalid](err); !is {
		t.Errorf("one more: %v", err)
	}
	for field, wanted := range map[string]tenants.WantedAlertChannel{
		"name":  {Kind: tenants.AlertWebhook, Name: " ", URL: "https://example.com", Rules: []tenants.AlertRule{tenants.AlertBudget}},
		"kind":  {Kind: "pager", Name: "n", Rules: []tenants.AlertRule{tenants.AlertBudget}},
		"rules": {Kind: tenants.AlertWebhook, Name: "n", URL: "https://example.com", Rules: []tenants.AlertRule{tenants.AlertTest}},
	} {
		_, _, err := b.Add(t.Context(), b.owner, wanted)
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestHangingReceiverIsLeft(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	receiver := receive(t)
	receiver.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-hang:
		case <-request.Context().Done():
		}
	})
	b := setup(t, func(config *alerts.Config) { config.Patience = 50 * time.Millisecond })
	channel, _ := b.webhook(t, receiver.URL, tenants.AlertBudget)
	result, err := b.Test(t.Context(), b.owner, channel.ID)
	close(hang)
	if err != nil || result.Answer != "No answer within 50ms." {
		t.Errorf("%+v, %v", result, err)
	}
}
