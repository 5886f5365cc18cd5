package pages_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// receiver is a server that takes webhooks.
type receiver struct {
	*httptest.Server

	status atomic.Int64
	got    chan received
}

type received struct {
	header http.Header
	body   []byte
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan received, 100)}
	r.answers(http.StatusOK)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		w.WriteHeader(int(r.status.Load()))
		_, _ = io.WriteString(w, "thanks")
		r.got <- received{request.Header, body}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(status int) { r.status.Store(int64(status)) }

// one returns the next webhook.
func (r *receiver) one(t *testing.T) received {
	t.Helper()
	select {
	case got := <-r.got:
		return got
	case <-time.After(30 * time.Second):
		t.Fatal("no webhook came")
		panic("unreachable")
	}
}

// verify checks the signature of a webhook as a receiver does.
func verify(t *testing.T, secret string, got received) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("secret %q: %v", secret, err)
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(got.header.Get("webhook-id") + "." + got.header.Get("webhook-timestamp") + "." + string(got.body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)); got.header.Get("webhook-signature") != want {
		t.Errorf("signature %q, want %q", got.header.Get("webhook-signature"), want)
	}
}

func TestSigningSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	receiver, owner := receive(t), webtest.Start(t).SignUp(t, "northbeam")
	added := owner.Post("/settings/alerts/channels", "kind", "webhook", "name", "On call", "url", receiver.URL+"/token-in-the-path", "rules", "budget", "on", "yes")
	secret := added.Find("#signing-secret").Text()
	if added.Status != http.StatusOK || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("%d, secret %q", added.Status, secret)
	}
	page := owner.Get("/settings/alerts")
	test := page.Find(`[data-testid="channels"] form[action$="/test"]`).AttrOr("action", "")
	edit := owner.Get(strings.TrimSuffix(test, "/test"))
	for name, page := range map[string]webtest.Page{"added": added, "page": page, "form": edit} {
		if strings.Contains(page.HTML, "token-in-the-path") || name != "added" && strings.Contains(page.HTML, secret) {
			t.Errorf("%s shows the URL or the secret", name)
		}
	}
	if page := owner.Post(test); page.Path != "/settings/alerts?done=tested" {
		t.Errorf("the test led to %s", page.Path)
	}
	verify(t, secret, receiver.one(t))

	// Slack's need none.
	slack := owner.Post("/settings/alerts/channels", "kind", "slack", "name", "ops", "url", receiver.URL, "rules", "budget", "on", "yes")
	if slack.Path != "/settings/alerts?done=added" {
		t.Errorf("Slack led to %s", slack.Path)
	}
}

func TestQuietHoursAreInTheWorkspacesTimeZoneAtFirst(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	zone := func() string { return owner.Get("/settings/alerts").Find("#field-time_zone").AttrOr("value", "") }
	owner.Post("/settings", "time_zone", "Asia/Tokyo", "managers_read", "all", "members_read", "own", "viewers_read", "none")
	if got := zone(); got != "Asia/Tokyo" {
		t.Errorf("nothing is set, and it is %q", got)
	}
	owner.Post("/settings/alerts", "quiet_from", "22:00", "quiet_to", "07:30", "time_zone", "Europe/Berlin", "error_percent", "10", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25")
	if got := zone(); got != "Europe/Berlin" {
		t.Errorf("set, it is %q", got)
	}
}

func TestInvalidAlertsAreExplained(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	member := owner.Colleague(tenants.Regular)
	for field, values := range map[string][]string{
		"name":  {"kind", "webhook", "name", " ", "url", "https://example.com", "rules", "budget"},
		"url":   {"kind", "slack", "name", "n", "url", "example.com", "rules", "budget"},
		"user":  {"kind", "email", "name", "n", "user", uuid.NewString(), "rules", "budget"},
		"rules": {"kind", "webhook", "name", "n", "url", "https://example.com"},
		"form":  {"kind", "pager", "name", "n", "url", "https://example.com", "rules", "budget"},
	} {
		if page := owner.Post("/settings/alerts/channels", values...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%s: %d: %s", field, page.Status, page.Text("main"))
		}
	}
	for field, values := range map[string][]string{
		"quiet_from":    {"quiet_from", "late", "quiet_to", "07:00", "time_zone", "UTC", "error_percent", "25", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25"},
		"quiet_to":      {"quiet_from", "22:00", "time_zone", "UTC", "error_percent", "25", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25"},
		"time_zone":     {"time_zone", "Mars", "error_percent", "25", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25"},
		"error_percent": {"time_zone", "UTC", "error_percent", "some", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25"},
		"spend_percent": {"time_zone", "UTC", "error_percent", "25", "spend_percent", "100", "slow_seconds", "120", "held_percent", "25"},
		"slow_seconds":  {"time_zone", "UTC", "error_percent", "25", "spend_percent", "300", "slow_seconds", "", "held_percent", "25"},
		"held_percent":  {"time_zone", "UTC", "error_percent", "25", "spend_percent", "300", "slow_seconds", "120", "held_percent", "101"},
	} {
		if page := owner.Post("/settings/alerts", values...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%s: %d: %s", field, page.Status, page.Text("main"))
		}
	}
	if page := owner.Post("/settings/alerts", "quiet_from", "22:00", "quiet_to", "07:30", "time_zone", "Europe/Berlin", "error_percent", "10", "spend_percent", "300", "slow_seconds", "120", "held_percent", "25"); page.Path != "/settings/alerts?done=saved" ||
		page.Find("#field-quiet_to").AttrOr("value", "") != "07:30" || page.Find("#field-spend_percent").AttrOr("value", "") != "300" {
		t.Errorf("saving led to %s", page.Path)
	}
	if page := member.Get("/settings/alerts"); page.Status != http.StatusForbidden {
		t.Errorf("a member: %d", page.Status)
	}
}

// The rule about the installation is for operators: others are not offered it, and cannot
// choose it.
func TestInstallationIsOfferedToOperatorsOnly(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator, owner := product.SignUp(t, "first"), product.SignUp(t, "second")
	for _, test := range []struct {
		person  *webtest.Person
		offered bool
		status  int
	}{{operator, true, http.StatusOK}, {owner, false, http.StatusUnprocessableEntity}} {
		form := test.person.Get("/settings/alerts/channels/new?kind=slack")
		if form.Has("#rule-installation") != test.offered {
			t.Errorf("%s: offered %v", test.person.Email, !test.offered)
		}
		page := test.person.Post("/settings/alerts/channels", "kind", "slack", "name", "n", "url", "https://example.com", "rules", "installation", "on", "yes")
		if page.Status != test.status {
			t.Errorf("%s: %d at %s", test.person.Email, page.Status, page.Path)
		}
	}
}

func TestMailsOfAlertsAreKeptWhereThereIsNoServer(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	page := owner.Post("/settings/alerts/channels", "kind", "email", "name", "me", "user", owner.User.ID.String(), "rules", "budget", "on", "yes")
	if page.Path != "/settings/alerts?done=added" || page.TestID("mails-kept") == "" {
		t.Fatalf("adding led to %s: %s", page.Path, page.Text("main"))
	}
	owner.Post(page.Find(`form[action$="/test"]`).AttrOr("action", ""))
	kept, err := product.Mails.Kept(t.Context())
	if err != nil || len(kept) == 0 || kept[0].To != owner.Email || kept[0].Subject != "[northbeam] Test of me" {
		t.Errorf("mails %+v, %v", kept, err)
	}
}
