package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"
	"golang.org/x/sync/singleflight"

	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// ErrSignIn says that a sign-in service gives no access token for a provider key.
var ErrSignIn = errors.New("sign-in service refuses the provider key")

const (
	// tokenTimeout bounds a request for an access token.
	tokenTimeout = 10 * time.Second

	// tokenAhead is how long before its end a token is renewed, at most: a fifth of its life.
	tokenAhead = 5 * time.Minute

	// tokenPause is the time between two attempts to renew a token that is still valid.
	tokenPause = 30 * time.Second

	// maxTokens bounds the number of kept tokens.
	maxTokens = 1 << 14
)

// tokens are the access tokens of provider keys that sign in with one. A token is renewed ahead of its end, while
// requests still use the old one. It is safe for concurrent use.
type tokens struct {
	http   *http.Client
	entra  string // address of Microsoft Entra ID; "" for the one that belongs to a base URL
	sts    string // address of AWS's sign-in service; "" for the one of the region
	now    func() time.Time
	asking singleflight.Group

	mu   sync.Mutex
	kept map[tokenID]token
}

// tokenID identifies a token by the key that it is for.
type tokenID [sha256.Size]byte

// token is an access token.
type token struct {
	secret         string
	renew, expires time.Time
}

// newTokens returns tokens that are asked for over a transport.
func newTokens(transport http.RoundTripper) *tokens {
	return &tokens{
		http: &http.Client{Transport: transport, Timeout: tokenTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		now:  time.Now, kept: map[tokenID]token{},
	}
}

// needsToken reports whether a target's key signs in with an access token.
func needsToken(target Target) bool {
	return target.Own == nil && (target.Auth == tenants.AuthGoogle || target.Auth == tenants.AuthEntra || assumesRole(target))
}

// signedIn returns a target with an access token in place of its key. Other targets stay as they are.
func (t *tokens) signedIn(ctx context.Context, target Target) (Target, error) {
	if !needsToken(target) {
		return target, nil
	}
	id, now := t.idOf(target), t.now()
	t.mu.Lock()
	known := t.kept[id]
	t.mu.Unlock()
	if now.Before(known.renew) {
		return withToken(target, known), nil
	}
	renewed := t.asking.DoChan(string(id[:]), func() (any, error) {
		fresh, err := t.fetch(context.WithoutCancel(ctx), target)
		if err != nil {
			fresh = known
			fresh.renew = t.now().Add(tokenPause)
		}
		if t.now().Before(fresh.expires) {
			t.keep(id, fresh)
		}
		return fresh, err
	})
	if now.Before(known.expires) {
		return withToken(target, known), nil
	}
	select {
	case result := <-renewed:
		fresh, _ := result.Val.(token)
		return withToken(target, fresh), result.Err
	case <-ctx.Done():
		return target, context.Cause(ctx)
	}
}

// withToken returns a target that sends a token.
func withToken(target Target, token token) Target {
	if target.Key = token.secret; target.Auth != tenants.AuthSigV4 {
		target.Auth = tenants.AuthBearer
	}
	return target
}

// idOf returns the id of a target's token. Keys with equal secrets have tokens of their own.
func (t *tokens) idOf(target Target) tokenID {
	return sha256.Sum256([]byte(strings.Join([]string{target.KeyID.String(), string(target.Auth), t.entraAt(target.BaseURL), target.Key}, "\x00")))
}

// keep keeps a token.
func (t *tokens) keep(id tokenID, fresh token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) >= maxTokens {
		for one := range t.kept { // any of them, because it can be asked for again
			delete(t.kept, one)
			break
		}
	}
	t.kept[id] = fresh
}

// forget drops the token of a target, because the provider refused it.
func (t *tokens) forget(target Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.kept, t.idOf(target))
}

// fetch asks for a token.
func (t *tokens) fetch(ctx context.Context, target Target) (token, error) {
	if assumesRole(target) {
		return t.assume(ctx, target)
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.http)
	source, err := t.source(ctx, target)
	if err != nil {
		return token{}, err
	}
	begin := t.now()
	got, err := source.Token()
	if err != nil {
		return token{}, signInFailure(err)
	}
	life := tokenAhead
	if !got.Expiry.IsZero() {
		life = time.Until(got.Expiry)
	}
	return lasting(got.AccessToken, begin, life), nil
}

// lasting returns a token with a life.
func lasting(secret string, begin time.Time, life time.Duration) token {
	return token{secret: secret, renew: begin.Add(life - min(tokenAhead, life/5)), expires: begin.Add(life)}
}

// source returns where the tokens of a target's key come from.
func (t *tokens) source(ctx context.Context, target Target) (oauth2.TokenSource, error) {
	if target.Auth == tenants.AuthGoogle {
		account, err := tenants.ParseGoogleAccount(target.Key)
		if err != nil {
			return nil, err
		}
		config := jwt.Config{
			Email: account.Email, PrivateKey: []byte(account.PrivateKey), PrivateKeyID: account.KeyID, TokenURL: account.TokenURL,
			Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"},
		}
		return config.TokenSource(ctx), nil
	}
	app, err := tenants.ParseEntraApp(target.Key)
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{
		ClientID: app.Client, ClientSecret: app.Secret, AuthStyle: oauth2.AuthStyleInParams,
		TokenURL: t.entraAt(target.BaseURL) + "/" + url.PathEscape(app.Tenant) + "/oauth2/v2.0/token", Scopes: []string{entraScope(target.BaseURL)},
	}
	return config.TokenSource(ctx), nil
}

// entraAt returns the address of Microsoft Entra ID for a base URL: national clouds have their own.
func (t *tokens) entraAt(baseURL string) string {
	own := "https://login.microsoftonline.com"
	switch nationalCloud(baseURL) {
	case ".us":
		own = "https://login.microsoftonline.us"
	case ".cn":
		own = "https://login.chinacloudapi.cn"
	}
	return cmp.Or(t.entra, own)
}

// entraScope returns the scope of tokens for a base URL.
func entraScope(baseURL string) string {
	return "https://cognitiveservices.azure" + cmp.Or(nationalCloud(baseURL), ".com") + "/.default"
}

// nationalCloud returns the end of the names of hosts in one of Azure's national clouds; "" for the global one.
func nationalCloud(baseURL string) string {
	parsed, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	for _, end := range []string{".us", ".cn"} {
		if strings.HasSuffix(parsed.Hostname(), ".azure"+end) {
			return end
		}
	}
	return ""
}

// signInFailure returns the reason why a token was not given, without the sign-in service's own words, which may
// repeat the request.
func signInFailure(err error) error {
	said, isAnswer := errors.AsType[*oauth2.RetrieveError](err)
	refusals := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}
	switch {
	case isAnswer && said.Response != nil && slices.Contains(refusals, said.Response.StatusCode):
		return fmt.Errorf("%w: %s", ErrSignIn, cmp.Or(shortCode(said.ErrorCode), shortCode(wire.Text(said.Body, "error")), said.Response.Status))
	default:
		return fmt.Errorf("%w: its sign-in service gives no access token", ErrUnreachable)
	}
}

// shortCode returns a code of OAuth, such as invalid_grant; "" for anything else.
func shortCode(code string) string {
	const longest = 40
	if len(code) > longest || strings.ContainsFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
		return ""
	}
	return code
}
