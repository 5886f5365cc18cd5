package alerts_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/alerts"
	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
	"palimpsest/tenants/guard"
)

// The vector of the reference implementations,
// https://github.com/standard-webhooks/standard-webhooks/tree/main/libraries.
func TestSignatureIsThatOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	err := alerts.Sign(header, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if err != nil || header.Get("webhook-signature") != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" ||
		header.Get("webhook-id") != "msg_p5jXN8AQM9LWM0D4loKWxJek" || header.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("headers %v (%v)", header, err)
	}
}

// verify checks the signature of a webhook as a receiver does.
func verify(t *testing.T, secret string, got received) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 {
		t.Fatalf("secret %q: %v", secret, err)
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(got.header.Get("webhook-id") + "." + got.header.Get("webhook-timestamp") + "." + string(got.body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)); got.header.Get("webhook-signature") != want {
		t.Errorf("signature %q, want %q", got.header.Get("webhook-signature"), want)
	}
}

func TestTestIsSentSignedAndLogged(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	channel, secret := b.webhook(t, receiver.URL+"/hooks/a-long-token-in-the-path", tenants.AlertBudget)
	receiver.answers(http.StatusAccepted, "taken\x00\n by "+secret+" at /hooks/a-long-token-in-the-path with sk-ant-api03-abcdefghijkl "+strings.Repeat("x", 9_000))

	delivery, err := b.Test(t.Context(), b.owner, channel.ID)
	if err != nil || delivery.State != tenants.DeliveryDelivered || delivery.Status != http.StatusAccepted {
		t.Fatalf("delivery %+v, %v", delivery, err)
	}
	got := receiver.requests()
	if len(got) != 1 || got[0].header.Get("webhook-id") != delivery.ID.String() || got[0].header.Get("Content-Type") != "application/json" {
		t.Fatalf("received %+v", got)
	}
	verify(t, secret, got[0])
	var body struct {
		Type string `json:"type"`
		Data struct {
			Title     string `json:"title"`
			URL       string `json:"url"`
			Workspace struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"workspace"`
		} `json:"data"`
	}
	if err := json.Unmarshal(got[0].body, &body); err != nil || body.Type != "alert.test" || body.Data.URL != publicURL+"/settings/alerts" ||
		body.Data.Workspace.Name != "northbeam" || body.Data.Workspace.ID != b.owner.Workspace.ID.String() || body.Data.Title != "Test of on call" {
		t.Errorf("body %s (%v)", got[0].body, err)
	}
	logged := b.deliveries(t)
	if len(logged) != 1 || logged[0].ID != delivery.ID || logged[0].Attempts != 1 {
		t.Fatalf("log %+v", logged)
	}
	answer := logged[0].Answer
	if !strings.HasPrefix(answer, "taken by [redacted] at /hooks/[redacted] with [redacted] xxx") || len([]rune(answer)) > 300 || strings.Contains(answer, secret[10:]) {
		t.Errorf("answer %q", answer)
	}
}

// raised has an alert delivered to a channel and returns the delivery.
func (b *bundle) raised(t *testing.T) tenants.AlertDelivery {
	t.Helper()
	b.health = []tenants.Check{{Name: "Bucket", Text: "does not answer", Means: "Originals wait."}}
	b.pass(t)
	all := b.deliveries(t)
	if len(all) == 0 {
		t.Fatal("nothing was raised")
	}
	return all[len(all)-1]
}

// deliver does the job of a delivery once, and returns when it is to be done again; zero for
// never.
func (b *bundle) deliver(t *testing.T, id uuid.UUID) time.Time {
	t.Helper()
	err := b.Deliver(t.Context(), b.owner.Workspace.ID, id)
	again, is := errors.AsType[jobs.Snooze](err)
	if err != nil && !is {
		t.Fatal(err)
	}
	return again.At
}

// S28
func TestDeliveryIsTriedForADayWithLongerAndLongerPauses(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	_, secret := b.webhook(t, receiver.URL, tenants.AlertInstallation)
	receiver.answers(http.StatusServiceUnavailable, "later")
	delivery, began := b.raised(t), b.clock()
	last := time.Duration(0)
	const most = 30
	for attempt := 1; ; attempt++ {
		again := b.deliver(t, delivery.ID)
		if again.IsZero() {
			break
		}
		if attempt == most {
			t.Fatalf("still tried after %d attempts in %s", most, b.clock().Sub(began))
		}
		pause := again.Sub(b.clock())
		if pause < last || pause > 4*time.Hour {
			t.Fatalf("paused %s after %s", pause, last)
		}
		last = pause
		// A job that comes too early does nothing.
		if sent := len(receiver.requests()); !b.deliver(t, delivery.ID).Equal(again) || len(receiver.requests()) != sent {
			t.Fatal("sent before its time")
		}
		b.advance(pause)
	}
	tries := len(receiver.requests())
	if span := b.clock().Sub(began); span < 20*time.Hour || span > 24*time.Hour || tries < 12 || tries > 20 || last != 4*time.Hour {
		t.Errorf("%d attempts in %s, the last pause %s", tries, span, last)
	}
	for _, got := range receiver.requests() {
		verify(t, secret, got)
		if got.header.Get("webhook-id") != delivery.ID.String() {
			t.Fatalf("another id %s", got.header.Get("webhook-id"))
		}
	}
	if got := b.deliveries(t)[0]; got.State != tenants.DeliveryFailed || got.Attempts != tries || got.Status != http.StatusServiceUnavailable || got.Answer != "later" {
		t.Errorf("log %+v", got)
	}

	// One click sends it again.
	receiver.answers(http.StatusNoContent, "")
	if err := b.Retry(t.Context(), b.owner, delivery.ID); err != nil {
		t.Fatal(err)
	}
	if again := b.deliver(t, delivery.ID); !again.IsZero() {
		t.Errorf("again at %s", again)
	}
	if got := b.deliveries(t)[0]; got.State != tenants.DeliveryDelivered || got.Status != http.StatusNoContent {
		t.Errorf("log %+v", got)
	}
	if err := b.Retry(t.Context(), b.owner, delivery.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("what was delivered is tried again: %v", err)
	}
	if b.deliver(t, delivery.ID); len(receiver.requests()) != tries+1 {
		t.Error("delivered twice")
	}
}

// S16, S43
func TestReceiverThatIsGoneOrRedirectsGetsNothingMore(t *testing.T) {
	t.Parallel()
	b, receiver, other := setup(t), receive(t), receive(t)
	channel, _ := b.webhook(t, receiver.URL, tenants.AlertInstallation)
	receiver.header = map[string]string{"Location": other.URL}
	receiver.answers(http.StatusTemporaryRedirect, "")
	result, err := b.Test(t.Context(), b.owner, channel.ID)
	if err != nil || result.State != tenants.DeliveryFailed || !strings.Contains(result.Answer, "redirects") || len(other.requests()) > 0 {
		t.Errorf("redirected: %+v, %v, %d requests elsewhere", result, err, len(other.requests()))
	}
	receiver.answers(http.StatusGone, "unsubscribed")
	delivery := b.raised(t)
	if again := b.deliver(t, delivery.ID); !again.IsZero() {
		t.Errorf("again at %s", again)
	}
	all := b.deliveries(t)
	if got := all[len(all)-1]; got.State != tenants.DeliveryFailed || got.Status != http.StatusGone {
		t.Errorf("log %+v", got)
	}
}

// S16, S43
func TestPrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	receiver := receive(t)
	b := setup(t, func(config *alerts.Config) { config.Guard = guard.New(false) })
	for _, address := range []string{"https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "https://10.1.2.3/x", "https://169.254.169.254/latest", "http://example.com/x", "https://user:pass@example.com/", "ftp://example.com", "https://", "x"} {
		_, _, err := b.Add(t.Context(), b.owner, tenants.WantedAlertChannel{Kind: tenants.AlertSlack, Name: "n", URL: address, Rules: []tenants.AlertRule{tenants.AlertBudget}})
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != "url" {
			t.Errorf("%s: %v", address, err)
		}
	}

	// Where a name leads is seen when the connection is made.
	open := alerts.New(func() alerts.Config { config := b.config; config.Guard = guard.New(true); return config }())
	channel, _, err := open.Add(t.Context(), b.owner, tenants.WantedAlertChannel{Kind: tenants.AlertWebhook, Name: "n", URL: receiver.URL, Rules: []tenants.AlertRule{tenants.AlertBudget}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := b.Test(t.Context(), b.owner, channel.ID)
	if err != nil || result.State != tenants.DeliveryFailed || !strings.Contains(result.Answer, "private address") || len(receiver.requests()) > 0 {
		t.Errorf("%+v, %v, %d requests", result, err, len(receiver.requests()))
	}
}

func TestAnotherWorkspaceReachesNoChannel(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	channel, _ := b.webhook(t, receiver.URL, tenants.AlertInstallation)
	delivery := b.raised(t)
	receiver.answers(http.StatusGone, "")
	b.deliver(t, delivery.ID)
	sent := len(receiver.requests())

	user, workspace, err := b.Accounts.SignUp(t.Context(), "eve@example.com", "hash", "rival")
	if err != nil {
		t.Fatal(err)
	}
	rival := tenants.Principal{User: user, Workspace: workspace, Role: tenants.Owner}
	_, testErr := b.Test(t.Context(), rival, channel.ID)
	for what, err := range map[string]error{
		"test": testErr, "retry": b.Retry(t.Context(), rival, delivery.ID), "remove": b.Remove(t.Context(), rival, channel.ID),
		"change": b.Change(t.Context(), rival, channel.ID, tenants.WantedAlertChannel{Name: "mine", URL: receiver.URL, Rules: []tenants.AlertRule{tenants.AlertBudget}}),
	} {
		if !errors.Is(err, tenants.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := b.Deliver(t.Context(), workspace.ID, delivery.ID); err != nil || len(receiver.requests()) != sent {
		t.Errorf("delivered for another workspace: %v", err)
	}
	if found, err := b.Find(t.Context(), workspace.ID); err != nil || len(found.Channels)+len(found.Deliveries) > 0 {
		t.Errorf("it sees %+v, %v", found, err)
	}
}

func TestChannelThatIsTurnedOffGetsNothing(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	channel, secret := b.webhook(t, receiver.URL, tenants.AlertInstallation)
	delivery := b.raised(t)
	wanted := tenants.WantedAlertChannel{Name: "off", Rules: channel.Rules, Disabled: true}
	if err := b.Change(t.Context(), b.owner, channel.ID, wanted); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, delivery.ID)
	if got := b.deliveries(t)[0]; got.State != tenants.DeliveryFailed || len(receiver.requests()) > 0 {
		t.Errorf("log %+v, %d requests", got, len(receiver.requests()))
	}
	// A URL that is left empty is kept, and so is the secret.
	if wanted.Disabled = false; b.Change(t.Context(), b.owner, channel.ID, wanted) != nil {
		t.Fatal("cannot be turned on")
	}
	if _, err := b.Test(t.Context(), b.owner, channel.ID); err != nil {
		t.Fatal(err)
	}
	verify(t, secret, receiver.requests()[0])
}

func TestReplicasDeliverOnceAndSurviveARestart(t *testing.T) {
	t.Parallel()
	b, receiver := setup(t), receive(t)
	b.webhook(t, receiver.URL, tenants.AlertInstallation)
	delivery := b.raised(t)
	if len(receiver.requests()) > 0 {
		t.Fatal("delivered before a process runs jobs")
	}
	// The process that raised it is gone; two others run jobs.
	for range 2 {
		replica := b.replica(t)
		if err := replica.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(replica.Stop)
	}
	select {
	case <-receiver.came:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
	}
	b.ends(t, delivery.ID)
	if got := receiver.requests(); len(got) != 1 || got[0].header.Get("webhook-id") != delivery.ID.String() {
		t.Errorf("%d requests", len(got))
	}
}
