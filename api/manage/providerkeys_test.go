package manage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// addProviderKey stores a provider key and returns its id.
func (w *tenant) addProviderKey(t *testing.T, provider, secret, baseURL string) string {
	t.Helper()
	answer := w.send(t, http.MethodPost, "/provider-keys", fmt.Sprintf(`{"provider":%q,"key":%q,"base_url":%q}`, provider, secret, baseURL))
	answer.want(t, http.StatusCreated)
	var stored struct{ ID string }
	answer.decode(t, &stored)
	return stored.ID
}

// S14
func TestAProviderKeyIsNeverShownAgain(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	created := w.send(t, http.MethodPost, "/provider-keys", fmt.Sprintf(`{"provider":"anthropic","name":"main","key":"  %s\n","base_url":"https://llm.example.com/"}`, canaryKey))
	created.want(t, http.StatusCreated)
	list := w.send(t, http.MethodGet, "/provider-keys", "")
	list.want(t, http.StatusOK)
	var listed struct {
		Data []struct {
			ID, Provider, Name, Last4 string
			BaseURL                   string `json:"base_url"`
		}
	}
	list.decode(t, &listed)
	if len(listed.Data) != 1 || listed.Data[0].Last4 != "wxyz" || listed.Data[0].Name != "main" || listed.Data[0].BaseURL != "https://llm.example.com" {
		t.Errorf("listed are %+v", listed.Data)
	}
	probe := w.send(t, http.MethodPost, "/provider-keys/"+listed.Data[0].ID+"/test", "")
	for place, text := range map[string]string{
		"answer": string(created.body), "list": string(list.body), "test": string(probe.body),
		"log": w.log.String(), "database": w.db.Rows(t, w.workspace),
	} {
		if strings.Contains(text, canaryKey) {
			t.Errorf("the %s holds the key", place)
		}
	}
	w.send(t, http.MethodDelete, "/provider-keys/"+listed.Data[0].ID, "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, "/provider-keys/"+listed.Data[0].ID, "").want(t, http.StatusNotFound)
}

func TestAProviderKeyThatCannotBeStoredNamesTheField(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for body, field := range map[string]string{
		`{"key":"sk-0123456789"}`:                                                               "provider",
		`{"provider":"mistral","key":"sk-0123456789"}`:                                          "provider",
		`{"provider":"openai"}`:                                                                 "key",
		`{"provider":"openai","key":"short"}`:                                                   "key",
		`{"provider":"openai","key":"sk-with a space inside"}`:                                  "key",
		`{"provider":"openai","key":"sk-with-\u00e9-inside"}`:                                   "key",
		`{"provider":"openai","key":"sk-0123456789\r\nX-Evil: 1"}`:                              "key",
		`{"provider":"openai","key":"` + strings.Repeat("x", 4097) + `"}`:                       "key",
		`{"provider":"openai","key":"sk-0123456789","base_url":"llm.example.com"}`:              "base_url",
		`{"provider":"openai","key":"sk-0123456789","base_url":"file:///etc"}`:                  "base_url",
		`{"provider":"openai","key":"sk-0123456789","base_url":"https://u:p@x.example"}`:        "base_url",
		`{"provider":"openai","key":"sk-0123456789","base_url":"https://x.example?a=b"}`:        "base_url",
		`{"provider":"openai","key":"sk-0123456789","name":"` + strings.Repeat("x", 101) + `"}`: "name",
	} {
		answer := w.send(t, http.MethodPost, "/provider-keys", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
}

func TestATestAsksTheProviderItself(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	page := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "<html>") }))
	t.Cleanup(page.Close)
	for name, test := range map[string]struct {
		provider, key, url string
		ok                 bool
		status             int
		says               string
	}{
		"anthropic":    {"anthropic", canaryKey, w.double.URL, true, http.StatusOK, ""},
		"openai":       {"openai", canaryKey, w.double.URL, true, http.StatusOK, ""},
		"wrong key":    {"anthropic", "sk-some-other-key", w.double.URL, false, http.StatusUnauthorized, "refuses"},
		"a web page":   {"openai", canaryKey, page.URL, false, http.StatusOK, "no list of models"},
		"nobody there": {"openai", canaryKey, "http://127.0.0.1:1", false, 0, "could not be reached"},
	} {
		answer := w.send(t, http.MethodPost, "/provider-keys/"+w.addProviderKey(t, test.provider, test.key, test.url)+"/test", "")
		answer.want(t, http.StatusOK)
		var outcome struct {
			OK             bool
			Models, Status int
			Error          string
		}
		answer.decode(t, &outcome)
		if outcome.OK != test.ok || outcome.Status != test.status || !strings.Contains(outcome.Error, test.says) || test.ok != (outcome.Models > 0) {
			t.Errorf("%s: %s", name, answer.body)
		}
	}
}

// S16
func TestAPrivateBaseURLIsNotStored(t *testing.T) {
	t.Parallel()
	w := setupAt(t, "http://127.0.0.1:8080", false).member(t, "ada")
	for _, url := range []string{"http://127.0.0.1:11434", "https://192.168.0.4/v1", "http://localhost:8000"} {
		answer := w.send(t, http.MethodPost, "/provider-keys", fmt.Sprintf(`{"provider":"openai","key":"sk-0123456789","base_url":%q}`, url))
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != "base_url" || !strings.Contains(string(answer.body), "private address") {
			t.Errorf("%s: %s", url, answer.body)
		}
	}
	w.addProviderKey(t, "openai", "sk-0123456789", "https://llm.example.com/v1")
}

// providerKeys lists the provider keys.
func (w *tenant) providerKeys(t *testing.T) []map[string]any {
	t.Helper()
	var listed struct{ Data []map[string]any }
	answer := w.send(t, http.MethodGet, "/provider-keys", "")
	answer.want(t, http.StatusOK)
	answer.decode(t, &listed)
	return listed.Data
}

func TestAProviderKeyIsEditedAndReplaced(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id := w.addProviderKey(t, "groq", "sk-first-0123", "")
	first := w.providerKeys(t)[0]
	if first["provider"] != "openai" || first["preset"] != "groq" || first["base_url"] != "https://api.groq.com/openai/v1" || first["auth"] != "bearer" || first["name"] != "groq" || first["weight"] != 1.0 || first["enabled"] != true || first["check"] != nil {
		t.Errorf("stored %v", first)
	}
	w.send(t, http.MethodPatch, "/provider-keys/"+id, `{"name":"fast","models":["llama-*"," llama-* ","gpt-oss-20b"],"order":7,"weight":3,"default":true,"enabled":false,"headers":[{"name":"X-Title","value":"n"}]}`).want(t, http.StatusOK)
	w.send(t, http.MethodPost, "/provider-keys/"+id+"/replace", `{"key":"sk-second-4567"}`).want(t, http.StatusOK)
	changed := w.providerKeys(t)[0]
	if fmt.Sprintf("%v %v %v %v %v %v %v", changed["name"], changed["models"], changed["order"], changed["weight"], changed["default"], changed["enabled"], changed["last4"]) != "fast [llama-* gpt-oss-20b] 7 3 true false 4567" {
		t.Errorf("changed to %v", changed)
	}
	for body, field := range map[string]string{
		`{"name":" "}`: "", `{"models":["two words"]}`: "models", `{"order":-1}`: "order", `{"weight":101}`: "weight", `{"auth":"basic"}`: "auth", `{"dialects":["gemini"]}`: "dialects",
		`{"headers":[{"name":"Authorization","value":"x"}]}`: "headers",
	} {
		if answer := w.send(t, http.MethodPatch, "/provider-keys/"+id, body); answer.field(t) != field {
			t.Errorf("%s: %s", body, answer.body)
		}
	}
	if answer := w.send(t, http.MethodPost, "/provider-keys/"+id+"/replace", `{"key":"short"}`); answer.field(t) != "key" {
		t.Errorf("a short secret: %s", answer.body)
	}
	if answer := w.send(t, http.MethodPatch, "/provider-keys/"+id, `{"base_url":"https://evil.example.com"}`); answer.field(t) != "base_url" {
		t.Errorf("a base URL without a secret: %s", answer.body)
	}
	log := w.db.Rows(t, w.workspace)
	for _, action := range []string{"provider_key.added", "provider_key.changed", "provider_key.replaced"} {
		if !strings.Contains(log, action) {
			t.Errorf("%s is not in the audit log", action)
		}
	}
	if strings.Contains(log, "sk-first") || strings.Contains(log, "sk-second") {
		t.Error("the database holds a secret")
	}
}

func TestTheOutcomeOfATestStays(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id := w.addProviderKey(t, "anthropic", "sk-some-other-key", w.double.URL)
	w.send(t, http.MethodPost, "/provider-keys/"+id+"/test", "").want(t, http.StatusOK)
	check, _ := w.providerKeys(t)[0]["check"].(map[string]any)
	if check["ok"] != false || check["status"] != float64(http.StatusUnauthorized) || check["at"] == "" || !strings.Contains(fmt.Sprint(check["error"]), "refuses") {
		t.Errorf("the last test was %v", check)
	}
}
