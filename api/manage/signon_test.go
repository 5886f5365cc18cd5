package manage_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"palimpsest/tenants"
	"palimpsest/tenants/guard"
	"palimpsest/tenants/signon"
)

// LookupTXT answers with the records of the test.
func (p *product) LookupTXT(_ context.Context, name string) ([]string, error) {
	return p.records[strings.TrimSuffix(name, ".")], nil
}

// issuer is a provider that says its name and nothing else.
const issuer = "http://issuer.example"

// internet has the issuer beside what this machine serves.
type internet struct{ rest http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i internet) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.String() != issuer+"/.well-known/openid-configuration" {
		return i.rest.RoundTrip(request)
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(answer, `{"issuer":%q,"authorization_endpoint":"%[1]s/a","token_endpoint":"%[1]s/t","jwks_uri":"%[1]s/k"}`, issuer)
	return answer.Result(), nil
}

func (p *product) signOn() *signon.Service {
	client := signon.NewClient(guard.New(true))
	client.Transport = internet{client.Transport}
	return signon.New(signon.Config{
		Store: p.db.DB.SignOn, Sealer: p.sealer, LookupTXT: p.LookupTXT, Logins: p.people, Throttle: p.people.Throttle(), Client: client,
		PublicURL: "http://127.0.0.1:8080", AllowHTTP: true, Now: time.Now,
	})
}

// domain is one that the tenant says is its own.
func (w *tenant) domain() string { return w.session.String() + ".example" }

// signOnSettings is single sign-on as the API tells it.
type signOnSettings struct {
	Provider *struct {
		Issuer   string
		ClientID string `json:"client_id"`
		Role     string
	}
	Domains []struct {
		Domain, Record string
		ProvenAt       *time.Time `json:"proven_at"`
	}
}

func (r reply) signOn(t *testing.T) signOnSettings {
	t.Helper()
	var settings signOnSettings
	r.decode(t, &settings)
	return settings
}

// S13, S14, S32: sign-on is set, read without its secret and removed by scripts, and
// each change is noted.
func TestSingleSignOnIsSetByScripts(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	provider, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown() })

	answer := w.send(t, http.MethodGet, "/sign-on", "")
	answer.want(t, http.StatusOK)
	if got := answer.signOn(t); got.Provider != nil || len(got.Domains) != 0 || !strings.Contains(string(answer.body), `"domains":[]`) {
		t.Errorf("none is set: %s", answer.body)
	}
	put := func(secret, role string) reply {
		return w.send(t, http.MethodPut, "/sign-on", fmt.Sprintf(`{"issuer":%q,"client_id":%q,"secret":%q,"role":%q}`, provider.Issuer(), provider.ClientID, secret, role))
	}
	for field, wrong := range map[string]reply{
		"secret": put("", "viewer"), "role": put("s", "owner"),
		"issuer": w.send(t, http.MethodPut, "/sign-on", `{"issuer":"http://127.0.0.1:1","client_id":"c","secret":"s","role":"member"}`),
	} {
		wrong.want(t, http.StatusUnprocessableEntity)
		if got := wrong.field(t); got != field {
			t.Errorf("field %q, want %q: %s", got, field, wrong.body)
		}
	}
	answer = put(provider.ClientSecret, "viewer")
	answer.want(t, http.StatusOK)
	if got := answer.signOn(t); got.Provider == nil || got.Provider.Issuer != provider.Issuer() || got.Provider.ClientID != provider.ClientID || got.Provider.Role != "viewer" || strings.Contains(string(answer.body), provider.ClientSecret) {
		t.Errorf("set: %s", answer.body)
	}
	put("", "member").want(t, http.StatusOK) // with the secret that is kept

	answer = w.send(t, http.MethodPost, "/sign-on/domains", `{"domain":"Corp.Example."}`)
	answer.want(t, http.StatusCreated)
	claimed := answer.signOn(t)
	if len(claimed.Domains) != 1 || claimed.Domains[0].Domain != "corp.example" || claimed.Domains[0].ProvenAt != nil {
		t.Fatalf("claimed: %s", answer.body)
	}
	w.send(t, http.MethodPost, "/sign-on/domains/corp.example/prove", "").want(t, http.StatusUnprocessableEntity)
	w.records["corp.example"] = []string{claimed.Domains[0].Record}
	answer = w.send(t, http.MethodPost, "/sign-on/domains/corp.example/prove", "")
	answer.want(t, http.StatusOK)
	if got := answer.signOn(t); got.Domains[0].ProvenAt == nil {
		t.Errorf("proven: %s", answer.body)
	}
	w.send(t, http.MethodPost, "/sign-on/domains/other.example/prove", "").want(t, http.StatusNotFound)
	w.send(t, http.MethodDelete, "/sign-on/domains/corp.example", "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, "/sign-on/domains/corp.example", "").want(t, http.StatusNotFound)
	w.send(t, http.MethodDelete, "/sign-on", "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, "/sign-on", "").want(t, http.StatusNotFound)

	entries, err := w.db.DB.Audit.Audit(t.Context(), w.workspace, tenants.AuditFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	noted := map[tenants.Action]int{}
	for _, entry := range entries {
		noted[entry.Action]++
		if strings.Contains(fmt.Sprint(entry.Before, entry.After), provider.ClientSecret) {
			t.Errorf("%s tells the secret", entry.Action)
		}
	}
	for action, want := range map[tenants.Action]int{
		tenants.SignOnSaved: 2, tenants.SignOnRemoved: 1, tenants.DomainClaimed: 1, tenants.DomainProven: 1, tenants.DomainRemoved: 1,
	} {
		if noted[action] != want {
			t.Errorf("%s is noted %d times, want %d", action, noted[action], want)
		}
	}
}
