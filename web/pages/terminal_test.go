package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// begin has a terminal at an address ask to log in.
func begin(t *testing.T, product *webtest.Product, machine, from string) tenants.DeviceCodes {
	t.Helper()
	codes, err := product.Devices.Begin(tenants.WithActor(t.Context(), tenants.Actor{From: from}), machine)
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// S53: a person types the code, reads who asks, and decides with a form of their own.
func TestPersonLetsATerminalLogIn(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	codes := begin(t, product, "ada's laptop", "203.0.113.7")

	if page := product.Stranger(t).Get("/device"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("a stranger is at %s", page.Path)
	}
	if page := person.Get("/device?code=" + codes.User + "&user_code=" + codes.User); strings.Contains(page.HTML, codes.User) {
		t.Error("a code in the address is typed for the person")
	}
	asked := person.Post("/device/check", "code", strings.ToLower(codes.User))
	if asked.TestID("machine") != "ada's laptop" || asked.TestID("from") != "203.0.113.7" || asked.TestID("elsewhere") == "" {
		t.Errorf("status %d: %s", asked.Status, asked.TestID("terminal-asks"))
	}
	if strings.Contains(asked.Path, "code") {
		t.Errorf("the code is in the address %s", asked.Path)
	}
	workspace := asked.Find(`select[name="workspace"] option`).AttrOr("value", "")
	for _, wrong := range [][]string{{"workspace", "", "expiry", ""}, {"workspace", workspace, "expiry", "1000"}} {
		page := person.Post("/device/decide", append(wrong, "code", codes.User, "decision", "allow")...)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("terminal-asks") == "" {
			t.Errorf("with %v: status %d: %s", wrong, page.Status, page.Text("main"))
		}
	}
	done := person.Post("/device/decide", "code", codes.User, "decision", "allow", "workspace", workspace, "expiry", "30")
	if !strings.Contains(done.TestID("terminal-done"), "ada's laptop is logged in") {
		t.Errorf("status %d: %s", done.Status, done.Text("main"))
	}
	key, err := product.Devices.Redeem(t.Context(), codes.Device)
	if err != nil || key.ExpiresAt == nil || key.WorkspaceName != "northbeam" {
		t.Fatalf("the key is %+v, %v", key, err)
	}
	if list := person.Get("/keys").Text(`[data-testid="keys"] tbody tr`); !strings.Contains(list, "ada's laptop") {
		t.Errorf("the list says %q", list)
	}
	if again := person.Post("/device/decide", "code", codes.User, "decision", "deny"); again.Status != http.StatusUnprocessableEntity || again.TestID("error-code") == "" {
		t.Errorf("again: status %d: %s", again.Status, again.Text("main"))
	}
}

// S53
func TestPersonDeniesATerminal(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	codes := begin(t, product, "laptop", "203.0.113.7")
	if page := owner.Post("/device/decide", "code", codes.User); page.TestID("terminal-done") == "" || !strings.Contains(page.Text("main"), "gets no key") {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	if _, err := product.Devices.Redeem(t.Context(), codes.Device); err == nil {
		t.Error("a key was made")
	}
}
