package terminal

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	serverTimeout = 10 * time.Second
	clockSkew     = time.Minute
	soon          = 7 * 24 * time.Hour
)

// meJSON describes the owner of an API key.
type meJSON struct {
	Version string  `json:"version"`
	Key     keyJSON `json:"key"`
}

type keyJSON struct {
	Name              string     `json:"name"`
	Scopes            []string   `json:"scopes"`
	ExpiresAt         *time.Time `json:"expires_at"`
	OldUntil          *time.Time `json:"old_secret_until"`
	Models            []string   `json:"allowed_models"`
	Endpoints         []string   `json:"allowed_endpoints"`
	LockOverrides     bool       `json:"lock_overrides"`
	NoStore           bool       `json:"no_store"`
	RequestsPerMinute int        `json:"requests_per_minute"`
	TokensPerMinute   int        `json:"tokens_per_minute"`
	Concurrency       int        `json:"concurrency"`
	DayUSD            float64    `json:"budget_day_usd"`
	MonthUSD          float64    `json:"budget_month_usd"`
}

// server checks whether a Palimpsest server answers.
func (d *diagnosis) server(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.client.server+"/api/v1/openapi.yaml", http.NoBody)
	if err != nil {
		d.note("server", Failed, err.Error(), "palimpsest login URL with the right address")
		return false
	}
	response, err := d.HTTP.Do(request)
	if err != nil {
		text, fix := whyAway(err)
		d.note("server", Failed, text, fix)
		return false
	}
	defer response.Body.Close()
	d.date, _ = http.ParseTime(response.Header.Get("Date")) // the zero time without the header
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		d.note("server", Failed, "it redirects to "+response.Header.Get("Location"), "log in to that address: palimpsest login URL")
	case response.StatusCode >= 500:
		d.note("server", Failed, fmt.Sprintf("it answers %d", response.StatusCode), "ask the person who runs the server; its log says why")
	case response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Content-Type"), "yaml"):
		d.note("server", Failed, fmt.Sprintf("something else answers there (%d, %s)", response.StatusCode, response.Header.Get("Content-Type")), "check the address; a proxy or a login page may stand in between")
	default:
		d.note("server", OK, "it answers", "")
		return true
	}
	return false
}

// whyAway explains why a server is not reached, and returns a fix.
func whyAway(err error) (text, fix string) {
	if wrapped, is := errors.AsType[*url.Error](err); is {
		err = wrapped.Err
	}
	if _, is := errors.AsType[*net.DNSError](err); is {
		return "its name is not known: " + err.Error(), "check the address and your network"
	}
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	if authority || host || invalid {
		return "its certificate is not trusted: " + err.Error(), "check the address and the clock, or install your company's root certificate"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + serverTimeout.String(), "check your network, VPN and firewall"
	}
	return err.Error(), "check that the server runs, and your network"
}

func (d *diagnosis) clock() {
	if d.date.IsZero() {
		return
	}
	skew := d.Now().Sub(d.date).Round(time.Second)
	if skew.Abs() > clockSkew {
		d.note("clock", Failed, fmt.Sprintf("this machine is %s off the server", skew.Abs()), "set the clock (turn on NTP): certificates, logins and limits depend on it")
		return
	}
	d.note("clock", OK, "agrees with the server", "")
}

// key checks whether the key works for the commands and clients.
func (d *diagnosis) key(ctx context.Context) bool {
	err := d.client.get(ctx, "/me", nil, &d.me)
	problem, is := errors.AsType[Problem](err)
	switch {
	case is && problem.Status == http.StatusUnauthorized:
		d.note("key", Failed, problem.Detail, "palimpsest login "+d.client.server)
		return false
	case is && problem.Status == http.StatusForbidden && strings.Contains(problem.Detail, "scope"):
		d.note("key", Warning, "it works, but may not read: status, sessions and limits are not shown", "palimpsest login "+d.client.server+", or give it the scope read")
		d.models(ctx)
		return false
	case err != nil:
		d.note("key", Failed, err.Error(), "ask an owner or admin of the workspace")
		return false
	}
	key := d.me.Key
	if !slices.Contains(key.Scopes, "proxy") {
		d.note("key", Failed, fmt.Sprintf("%s has the scopes %s, and may not send requests", key.Name, strings.Join(key.Scopes, ", ")), "palimpsest login "+d.client.server+"; your role may have changed")
		return true
	}
	for _, end := range []*time.Time{key.ExpiresAt, key.OldUntil} {
		if end != nil && end.Sub(d.Now()) < soon {
			d.note("key", Warning, fmt.Sprintf("%s ends on %s", key.Name, end.Local().Format(time.DateTime)), "palimpsest login "+d.client.server+" before that")
			return true
		}
	}
	d.note("key", OK, key.Name+", scopes "+strings.Join(key.Scopes, ", "), "")
	return true
}

func (d *diagnosis) version() {
	switch {
	case d.me.Version == "" || d.Version == "" || d.Version == "unknown" || d.Version == "(devel)":
		d.note("version", Skipped, fmt.Sprintf("this program %q, server %q", d.Version, d.me.Version), "")
	case d.me.Version != d.Version:
		d.note("version", Warning, fmt.Sprintf("this program is %s, the server %s", d.Version, d.me.Version), "install the server's version of palimpsest")
	default:
		d.note("version", OK, d.Version, "")
	}
}

// limits reports the key's limits.
func (d *diagnosis) limits() {
	key := d.me.Key
	var held []string
	for _, limit := range []struct {
		is   bool
		text string
	}{
		{len(key.Models) > 0, "models " + strings.Join(key.Models, ", ")},
		{key.RequestsPerMinute > 0, fmt.Sprintf("%d requests a minute", key.RequestsPerMinute)},
		{key.TokensPerMinute > 0, fmt.Sprintf("%d tokens a minute", key.TokensPerMinute)},
		{key.Concurrency > 0, fmt.Sprintf("%d at once", key.Concurrency)},
		{key.DayUSD > 0, fmt.Sprintf("$%.2f a day", key.DayUSD)},
		{key.MonthUSD > 0, fmt.Sprintf("$%.2f a month", key.MonthUSD)},
	} {
		if limit.is {
			held = append(held, limit.text)
		}
	}
	if key.NoStore {
		d.note("limits", Warning, "the key keeps figures only, so nothing is compacted and nothing can be searched", "edit the key on the page API keys, Keep figures only")
		return
	}
	if len(key.Endpoints) > 0 {
		d.note("limits", Warning, "the key may use only "+strings.Join(key.Endpoints, ", "), "edit the key on the page API keys if a client needs others")
		return
	}
	if len(held) == 0 {
		held = []string{"none"}
	}
	d.note("limits", OK, strings.Join(held, ", "), "")
}

// models checks whether the provider lists the model with the workspace's key.
func (d *diagnosis) models(ctx context.Context) {
	if d.model == "" {
		var newest page[sessionJSON]
		if err := d.client.get(ctx, "/sessions", url.Values{"limit": {"1"}}, &newest); err == nil && len(newest.Data) > 0 {
			d.model = newest.Data[0].Model
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := d.client.send(ctx, http.MethodGet, "/v1/models?limit=1000", "", http.NoBody)
	if err != nil {
		d.note("provider", Failed, err.Error(), providerFix(err))
		return
	}
	defer response.Body.Close()
	names, err := modelNames(response.Body)
	switch {
	case err != nil:
		d.note("provider", Failed, "its list of models cannot be read: "+err.Error(), "something between you and the server changes answers; check proxies")
	case d.model == "":
		d.model = cheapest(names)
		d.note("provider", OK, fmt.Sprintf("it lists %d models", len(names)), "")
	case !slices.Contains(names, d.model):
		d.note("provider", Warning, fmt.Sprintf("it lists %d models, and not %s", len(names), d.model), "choose another model in the client, or --model; the page Providers says which key serves which")
	default:
		d.note("provider", OK, "it lists "+d.model, "")
	}
}

// webSocket checks whether a WebSocket is refused at once, for clients such as Codex that try it first.
func (d *diagnosis) webSocket(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.client.server+"/v1/responses", http.NoBody)
	if err != nil {
		d.note("websocket", Failed, err.Error(), "palimpsest login URL with the right address")
		return
	}
	nonce := make([]byte, 16) // as RFC 6455 asks for
	_, _ = rand.Read(nonce)   // never fails
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.StdEncoding.EncodeToString(nonce),
		"Authorization": "Bearer " + d.client.key,
	} {
		request.Header.Set(name, value)
	}
	const fix = "have the proxy or firewall in between pass requests with the header Upgrade, and the answer 426"
	response, err := d.HTTP.Do(request)
	if err != nil {
		text, _ := whyAway(err)
		d.note("websocket", Failed, "an attempt gets no answer: "+text, fix)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUpgradeRequired {
		d.note("websocket", Warning, fmt.Sprintf("an attempt is answered %d, and not 426 as by the server", response.StatusCode), fix)
		return
	}
	d.note("websocket", OK, "clients that try one are told at once to send requests", "")
}

// providerFix returns advice for a refused request.
func providerFix(err error) string {
	problem, _ := errors.AsType[Problem](err)
	switch problem.Status {
	case http.StatusUnauthorized:
		return "the provider or the server refuses the key: test the provider key on the page Providers"
	case http.StatusForbidden:
		return "an owner or admin allows it for this key on the page API keys, or adds a provider key on the page Providers"
	case http.StatusTooManyRequests:
		return "wait, or have an owner or admin raise the limit or budget that the message names"
	case http.StatusNotFound:
		return "choose a model that the provider has: palimpsest doctor --model NAME"
	}
	return "test the provider key on the page Providers; the message says what the provider answered"
}
