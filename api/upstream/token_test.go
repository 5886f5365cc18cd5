package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/tenants"
)

// cloudAt serves a double of the clouds whose clock the test moves, and returns a client with the same clock.
func cloudAt(t *testing.T) (double *providerdouble.Cloud, client *Client, target Target, move func(time.Duration)) {
	t.Helper()
	var passed atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	double, err := providerdouble.NewCloud(providerdouble.CloudConfig{Config: providerdouble.Config{Now: now}, Project: "northbeam", Location: "global"})
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client = New(true)
	client.tokens.now = now
	t.Cleanup(func() {
		client.Close()
		stop()
	})
	return double, client, Target{
		Provider: tenants.ProviderAnthropic, Platform: tenants.PlatformGoogle, BaseURL: url + "/v1/projects/northbeam/locations/global", Auth: tenants.AuthGoogle, Key: double.ServiceAccount(url),
	}, func(by time.Duration) { passed.Add(int64(by)) }
}

// status sends a request and returns the answer's status; 0 without an answer.
func status(t *testing.T, client *Client, target Target) (int, error) {
	t.Helper()
	response, err := client.Send(t.Context(), Request{
		Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{},
		Body: []byte(`{"model":"claude-sonnet-4-5@20250929","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`),
	}, target)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// A token is renewed shortly before its end, beside the requests, and serves on if the sign-in service is down.
func TestTokenIsRenewedAheadOfItsEnd(t *testing.T) {
	t.Parallel()
	double, client, target, move := cloudAt(t)
	must := func(asked int) {
		t.Helper()
		if got, err := status(t, client, target); got != http.StatusOK || double.Asked() < asked {
			t.Fatalf("status %d, %v, %d tokens asked for, want %d", got, err, double.Asked(), asked)
		}
	}
	id := client.tokens.idOf(target)
	renewed := func() { // waits for the request for a token beside the requests
		<-client.tokens.asking.DoChan(string(id[:]), func() (any, error) { return token{}, nil })
	}
	must(1)
	if move(54 * time.Minute); double.Asked() != 1 {
		t.Fatal("asked for without a request")
	}
	must(1)
	double.SignIns(false)
	move(2 * time.Minute)
	must(1)
	renewed()
	must(2)
	if double.Asked() != 2 {
		t.Error("the sign-in service is asked again within the pause")
	}
	double.SignIns(true)
	move(time.Minute)
	must(2)
	renewed()
	move(10 * time.Minute) // the first token is over
	must(3)
	double.SignIns(false)
	move(2 * time.Hour)
	if _, err := status(t, client, target); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a sign-in service: %v", err)
	}
}

// S16: the address in a service account's file comes from a tenant, so the guard of connections applies to it.
func TestTokensAreNotAskedForAtPrivateAddresses(t *testing.T) {
	t.Parallel()
	double, _, target, _ := cloudAt(t)
	guarded := New(false)
	t.Cleanup(guarded.Close)
	if _, err := status(t, guarded, target); !errors.Is(err, ErrUnreachable) || double.Asked() != 0 {
		t.Errorf("%v, %d tokens asked for", err, double.Asked())
	}
}

// A refusal names its code and nothing that the sign-in service says, which may repeat the request.
func TestRefusedSignInNamesItsCode(t *testing.T) {
	t.Parallel()
	double, client, target, _ := cloudAt(t)
	at, _, _ := strings.Cut(target.BaseURL, "/v1/")
	entra := target
	entra.Platform, entra.Auth, entra.Key = "", tenants.AuthEntra, "contoso:client:secret-of-mine"
	client.SignInAt(at)
	if _, err := status(t, client, entra); !errors.Is(err, ErrSignIn) {
		t.Errorf("an unknown tenant: %v", err)
	}
	target.Key = double.ServiceAccount(at + "/other")
	if _, err := status(t, client, target); !errors.Is(err, ErrSignIn) {
		t.Errorf("no service there: %v", err)
	}
	for code, want := range map[string]string{"invalid_grant": "invalid_grant", "Secret 1": "", "averyveryveryveryveryveryveryverylongcode": ""} {
		if got := shortCode(code); got != want {
			t.Errorf("%q: %q", code, got)
		}
	}
}

// S14: an access token, or the key itself, in a provider's answer is replaced by stars.
func TestAccessTokenIsMaskedInAnswers(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/token") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token":"token-of-the-key","expires_in":3600}`))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(r.Header.Get("Authorization") + " of secret-of-mine"))
	}))
	t.Cleanup(provider.Close)
	client := New(true).SignInAt(provider.URL)
	t.Cleanup(client.Close)
	response, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}, Body: []byte(`{}`)},
		Target{Provider: tenants.ProviderAnthropic, BaseURL: provider.URL, Auth: tenants.AuthEntra, Key: "contoso:client:secret-of-mine"})
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || string(said) != "Bearer **************** of **************" {
		t.Errorf("%s, %v", said, err)
	}
}

// National clouds have sign-in services and scopes of their own. A host that only looks like one has not.
func TestSignInBelongsToTheCloudOfTheBaseURL(t *testing.T) {
	t.Parallel()
	var all tokens
	for base, want := range map[string][2]string{
		"https://x.services.ai.azure.com/anthropic":   {"https://login.microsoftonline.com", "https://cognitiveservices.azure.com/.default"},
		"https://x.openai.azure.us/openai/v1":         {"https://login.microsoftonline.us", "https://cognitiveservices.azure.us/.default"},
		"https://x.openai.azure.cn/openai/v1":         {"https://login.chinacloudapi.cn", "https://cognitiveservices.azure.cn/.default"},
		"https://x.openai.azure.us.example.com/a/b/c": {"https://login.microsoftonline.com", "https://cognitiveservices.azure.com/.default"},
	} {
		if got := [2]string{all.entraAt(base), entraScope(base)}; got != want {
			t.Errorf("%s: %v", base, got)
		}
	}
}
