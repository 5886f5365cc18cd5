package apiclient_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/api/apiclient"
)

// product logs someone in, tells who asks, and refuses anyone who is not logged in.
func product(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/login", func(w http.ResponseWriter, r *http.Request) {
		var question map[string]string
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "login", Value: question["email"], HttpOnly: true, SameSite: http.SameSiteLaxMode}) //nolint:gosec // plain HTTP on the loopback
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /api/v1/account", func(w http.ResponseWriter, r *http.Request) {
		login, err := r.Cookie("login")
		if err != nil {
			http.Error(w, "Log in first.", http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"email": login.Value, "agent": r.UserAgent()})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestLoginIsKept(t *testing.T) {
	t.Parallel()
	client, err := apiclient.New(product(t), "a browser")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Call(t.Context(), http.MethodPost, "/login", map[string]string{"email": "mira@example.com"}, nil); err != nil {
		t.Fatal(err)
	}
	var answer struct{ Email, Agent string }
	if err := client.Call(t.Context(), http.MethodGet, "/account", nil, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Email != "mira@example.com" || answer.Agent != "a browser" {
		t.Errorf("answered %+v", answer)
	}
}

func TestRefusalQuotesTheProduct(t *testing.T) {
	t.Parallel()
	client, err := apiclient.New(product(t), "")
	if err != nil {
		t.Fatal(err)
	}
	err = client.Call(t.Context(), http.MethodGet, "/account", nil, nil)
	for _, part := range []string{"GET /account", "401", "Log in first."} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q in it", err, part)
		}
	}
}

func TestAnswerThatIsNotWhatWasAskedForIsAnError(t *testing.T) {
	t.Parallel()
	client, err := apiclient.New(product(t), "")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Email string }
	if err := client.Call(t.Context(), http.MethodPost, "/login", map[string]string{"email": "mira@example.com"}, &answer); err == nil {
		t.Error("an empty answer was taken for JSON")
	}
}
