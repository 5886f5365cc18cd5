package programtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// product answers as the product's API does and notes what it is asked.
type product struct {
	asked   []string
	bodies  []string
	refuses string // path that is answered with 409
	secret  string
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.asked = append(p.asked, r.Method+" "+r.URL.Path)
	p.bodies = append(p.bodies, string(body))
	if r.URL.Path == p.refuses {
		http.Error(w, "taken", http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"secret": p.secret})
}

func TestWorkspaceIsSignedUpWithBothProvidersAndItsWindow(t *testing.T) {
	t.Parallel()
	asked := &product{secret: "plm_made"}
	server := httptest.NewServer(asked)
	t.Cleanup(server.Close)

	account, err := SignUp(t.Context(), server.URL, Workspace{Name: "tight", Provider: "http://127.0.0.1:1", Window: 1234})
	if err != nil {
		t.Fatal(err)
	}
	if account.Key != "plm_made" {
		t.Errorf("key %q", account.Key)
	}
	want := []string{
		"POST /api/v1/signup", "POST /api/v1/provider-keys", "POST /api/v1/provider-keys", "PUT /api/v1/pipeline", "POST /api/v1/keys",
	}
	if !slices.Equal(asked.asked, want) {
		t.Errorf("asked %v, want %v", asked.asked, want)
	}
	for i, part := range []string{"tight@example.com", `"anthropic"`, `"openai"`, `"contextWindow":1234`, `"proxy"`} {
		if !strings.Contains(asked.bodies[i], part) {
			t.Errorf("%s: body %s lacks %s", asked.asked[i], asked.bodies[i], part)
		}
	}
}

func TestWorkspaceWithoutAWindowKeepsTheModels(t *testing.T) {
	t.Parallel()
	asked := &product{secret: "plm_made"}
	server := httptest.NewServer(asked)
	t.Cleanup(server.Close)

	if _, err := SignUp(t.Context(), server.URL, Workspace{Name: "roomy"}); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(asked.asked, "PUT /api/v1/pipeline") {
		t.Error("the pipeline was set")
	}
}

func TestAnotherWorkspaceIsMadeByTheSameOwner(t *testing.T) {
	t.Parallel()
	asked := &product{secret: "plm_first"}
	server := httptest.NewServer(asked)
	t.Cleanup(server.Close)
	account, err := SignUp(t.Context(), server.URL, Workspace{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}

	asked.asked, asked.bodies, asked.secret = nil, nil, "plm_second"
	if err := account.Create(t.Context(), Workspace{Name: "second", Window: 7}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"POST /api/v1/workspaces", "POST /api/v1/provider-keys", "POST /api/v1/provider-keys", "PUT /api/v1/pipeline", "POST /api/v1/keys",
	}
	if !slices.Equal(asked.asked, want) || !strings.Contains(asked.bodies[0], `"second"`) || account.Key != "plm_second" {
		t.Errorf("asked %v %v, key %s", asked.asked, asked.bodies, account.Key)
	}
}

func TestRefusedSignUpQuotesTheProduct(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/signup", "/api/v1/provider-keys", "/api/v1/pipeline", "/api/v1/keys"} {
		server := httptest.NewServer(&product{refuses: path, secret: "plm_made"})
		t.Cleanup(server.Close)
		_, err := SignUp(t.Context(), server.URL, Workspace{Name: "tight", Window: 1})
		if err == nil || !strings.Contains(err.Error(), "taken") {
			t.Errorf("%s refused: error %v", path, err)
		}
	}

	server := httptest.NewServer(&product{})
	t.Cleanup(server.Close)
	if _, err := SignUp(t.Context(), server.URL, Workspace{Name: "tight"}); err == nil || !strings.Contains(err.Error(), "no secret") {
		t.Errorf("key without a secret: error %v", err)
	}
}
