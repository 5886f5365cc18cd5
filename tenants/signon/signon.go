// Package signon logs members in through their company's identity provider (OpenID Connect, with the code
// flow, PKCE, state and nonce).
package signon

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"palimpsest/tenants"
	"palimpsest/tenants/guard"
)

// Callback is the path to which identity providers redirect.
const Callback = "/login/sign-on/callback"

// begunAbout is the context to which a pending sign-on is sealed.
const begunAbout = "sign-on under way"

// Store stores sign-ons and domains. The methods of tenantsdb.SignOn document its return values.
type Store interface {
	SignOn(ctx context.Context, workspace tenants.WorkspaceID) (tenants.SignOn, error)
	SaveSignOn(ctx context.Context, workspace tenants.WorkspaceID, wanted tenants.SignOn) error
	RemoveSignOn(ctx context.Context, workspace tenants.WorkspaceID) error
	Domains(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Domain, error)
	ClaimDomain(ctx context.Context, workspace tenants.WorkspaceID, domain, token string) error
	ProveDomain(ctx context.Context, workspace tenants.WorkspaceID, domain string) error
	RemoveDomain(ctx context.Context, workspace tenants.WorkspaceID, domain string) error
	SignOnWorkspace(ctx context.Context, domain string) (tenants.WorkspaceID, error)
	SignOnUser(ctx context.Context, workspace tenants.WorkspaceID, proof tenants.SignOnProof, role tenants.Role) (tenants.User, error)
}

// Logins opens logins.
type Logins interface {
	// OpenSignOn returns the login's token, or a tenants.CodeNeeded.
	OpenSignOn(ctx context.Context, user tenants.User, workspace tenants.WorkspaceID, userAgent string) (tenants.Principal, string, error)
	// Forget makes the next use of every token ask the store.
	Forget()
}

// Config holds the dependencies of a Service. All fields except AllowHTTP are required.
type Config struct {
	Store     Store
	Sealer    tenants.Sealer
	LookupTXT func(ctx context.Context, name string) ([]string, error) // as net.Resolver does
	Logins    Logins
	Throttle  tenants.PlaceThrottle
	Client    *http.Client // asks identity providers, see NewClient
	PublicURL string       // without a slash at its end
	AllowHTTP bool         // issuers without TLS
	Now       func() time.Time
}

// Service logs people in through the single sign-on of their workspace.
type Service struct{ Config }

// New returns a Service.
func New(config Config) *Service { return &Service{config} }

// begun is a pending sign-on; the browser holds it sealed.
type begun struct {
	Workspace tenants.WorkspaceID `json:"workspace"`
	Issuer    string              `json:"issuer"`
	Client    string              `json:"client"`
	State     string              `json:"state"`
	Nonce     string              `json:"nonce"`
	Verifier  string              `json:"verifier"`
	Next      string              `json:"next"`
	Until     time.Time           `json:"until"`
}

// Begin returns the provider's URL for the owner of an address, and the state that the browser must hold
// until they return to next. It returns tenants.ErrNotFound if no workspace has sign-on for the address's
// domain, tenants.ErrSignOn if the provider's answer is invalid, and a tenants.TooMany after too many of
// either from one place.
func (s *Service) Begin(ctx context.Context, email, next string) (address, held string, err error) {
	err = s.throttled(ctx, "sign-ons", func() error {
		address, held, err = s.begin(ctx, email, next)
		return err
	})
	return address, held, err
}

func (s *Service) begin(ctx context.Context, email, next string) (address, held string, err error) {
	workspace, err := s.Store.SignOnWorkspace(ctx, tenants.DomainOf(email))
	if err != nil {
		return "", "", err
	}
	signOn, err := s.Store.SignOn(ctx, workspace)
	if err != nil {
		return "", "", err
	}
	_, config, err := s.provider(ctx, workspace, signOn)
	if err != nil {
		return "", "", err
	}
	under := begun{
		Workspace: workspace, Issuer: signOn.Issuer, Client: signOn.ClientID, State: rand.Text(), Nonce: rand.Text(),
		Verifier: oauth2.GenerateVerifier(), Next: next, Until: s.Now().Add(tenants.SignOnAge),
	}
	plain, err := json.Marshal(under)
	if err != nil {
		return "", "", fmt.Errorf("sign-on: %w", err)
	}
	sealed, err := s.Sealer.SealAbout(begunAbout, string(plain))
	if err != nil {
		return "", "", err
	}
	address = config.AuthCodeURL(under.State, oidc.Nonce(under.Nonce), oauth2.S256ChallengeOption(under.Verifier),
		oauth2.SetAuthURLParam("login_hint", email))
	return address, base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Finish logs in anyone who returns from the provider with a state and a code, and with the browser's state
// held. It returns their login's token and their target page. It returns tenants.ErrSignOn if their identity
// is not proven, a tenants.TooMany after too many failures from one place, a tenants.CodeNeeded for a person
// with a second factor, and tenants.ErrSignOnLink for an account that must first be proven by its own
// password or passkey. here is the person logged in to that browser.
func (s *Service) Finish(ctx context.Context, here tenants.Principal, held, state, code, userAgent string) (token, next string, err error) {
	err = s.throttled(ctx, "sign-ons that come back", func() error {
		token, next, err = s.finish(ctx, here, held, state, code, userAgent)
		return err
	})
	return token, next, err
}

// throttled counts refused sign-ons by place. It counts failures only, because all people of a company come
// from one place.
func (s *Service) throttled(ctx context.Context, attempt string, try func() error) error {
	if err := s.Throttle.Check(ctx, attempt); err != nil {
		return err
	}
	err := try()
	if errors.Is(err, tenants.ErrNotFound) || errors.Is(err, tenants.ErrSignOn) {
		return errors.Join(err, s.Throttle.Failed(ctx, attempt))
	}
	return err
}

func (s *Service) finish(ctx context.Context, here tenants.Principal, held, state, code, userAgent string) (token, next string, err error) {
	under, err := s.open(held)
	if err != nil {
		return "", "", err
	}
	if subtle.ConstantTimeCompare([]byte(under.State), []byte(state)) != 1 {
		return "", "", fmt.Errorf("%w: wrong state", tenants.ErrSignOn)
	}
	signOn, err := s.Store.SignOn(ctx, under.Workspace)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", tenants.ErrSignOn, err)
	}
	if signOn.Issuer != under.Issuer || signOn.ClientID != under.Client {
		return "", "", fmt.Errorf("%w: it was changed in the meantime", tenants.ErrSignOn)
	}
	proof, err := s.proven(ctx, under, signOn, code)
	if err != nil {
		return "", "", err
	}
	if here.Login.SignOn.IsZero() && s.Now().Sub(here.Login.CreatedAt) <= tenants.RecentLogin {
		proof.Account = here.User.ID
	}
	user, err := s.Store.SignOnUser(ctx, under.Workspace, proof, signOn.Role)
	if err != nil {
		return "", under.Next, err
	}
	s.Logins.Forget()
	_, token, err = s.Logins.OpenSignOn(ctx, user, under.Workspace, userAgent)
	return token, under.Next, err
}

// proven returns the identity that the provider has proven.
func (s *Service) proven(ctx context.Context, under begun, signOn tenants.SignOn, code string) (tenants.SignOnProof, error) {
	provider, config, err := s.provider(ctx, under.Workspace, signOn)
	if err != nil {
		return tenants.SignOnProof{}, err
	}
	ctx = oidc.ClientContext(ctx, s.Client)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(under.Verifier))
	if err != nil {
		return tenants.SignOnProof{}, fmt.Errorf("%w: the provider takes the code not: %w", tenants.ErrSignOn, withoutBody(err))
	}
	raw, is := tokens.Extra("id_token").(string)
	if !is {
		return tenants.SignOnProof{}, fmt.Errorf("%w: no id token", tenants.ErrSignOn)
	}
	id, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: signOn.ClientID, Now: s.Now}).Verify(ctx, raw)
	if err != nil {
		return tenants.SignOnProof{}, fmt.Errorf("%w: %w", tenants.ErrSignOn, err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(under.Nonce)) != 1 {
		return tenants.SignOnProof{}, fmt.Errorf("%w: wrong nonce", tenants.ErrSignOn)
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := id.Claims(&claims); err != nil {
		return tenants.SignOnProof{}, fmt.Errorf("%w: %w", tenants.ErrSignOn, err)
	}
	email, err := tenants.CheckEmail(claims.Email)
	switch {
	case !claims.Verified:
		return tenants.SignOnProof{}, fmt.Errorf("%w: the provider has not verified the address", tenants.ErrSignOn)
	case err != nil:
		return tenants.SignOnProof{}, fmt.Errorf("%w: the provider's address: %w", tenants.ErrSignOn, err)
	case strings.TrimSpace(id.Subject) == "":
		return tenants.SignOnProof{}, fmt.Errorf("%w: the provider does not say who it is (sub)", tenants.ErrSignOn)
	}
	return tenants.SignOnProof{Issuer: id.Issuer, Subject: id.Subject, Email: email}, nil
}

// open returns a pending sign-on.
func (s *Service) open(held string) (begun, error) {
	var under begun
	sealed, err := base64.RawURLEncoding.DecodeString(held)
	if err != nil {
		return under, fmt.Errorf("%w: %w", tenants.ErrSignOn, err)
	}
	plain, _, err := s.Sealer.OpenAbout(begunAbout, sealed)
	if err != nil {
		return under, fmt.Errorf("%w: none is under way in this browser", tenants.ErrSignOn)
	}
	if err := json.Unmarshal([]byte(plain), &under); err != nil {
		return under, fmt.Errorf("%w: %w", tenants.ErrSignOn, err)
	}
	if s.Now().After(under.Until) {
		return under, fmt.Errorf("%w: it took too long", tenants.ErrSignOn)
	}
	return under, nil
}

// provider discovers the issuer's endpoints.
func (s *Service) provider(ctx context.Context, workspace tenants.WorkspaceID, signOn tenants.SignOn) (*oidc.Provider, *oauth2.Config, error) {
	secret, _, err := s.Sealer.OpenAbout(tenants.AboutSignOn(workspace, signOn.Issuer, signOn.ClientID), signOn.Sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("sign-on: %w", err)
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.Client), signOn.Issuer)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the provider does not answer: %w", tenants.ErrSignOn, err)
	}
	return provider, &oauth2.Config{
		ClientID: signOn.ClientID, ClientSecret: secret, Endpoint: provider.Endpoint(), RedirectURL: s.PublicURL + Callback,
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}, nil
}

// withoutBody returns the kind of a failed exchange, without the provider's text because that may repeat the
// request.
func withoutBody(err error) error {
	if refused, is := errors.AsType[*oauth2.RetrieveError](err); is {
		return fmt.Errorf("status %d", refused.Response.StatusCode)
	}
	return err
}

// checkIssuer returns a tenants.Invalid if issuer is not an issuer's URL.
func (s *Service) checkIssuer(issuer string) error {
	parsed, err := url.Parse(issuer)
	if err != nil || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || strings.Contains(issuer, "#") {
		return tenants.Invalid{Field: "issuer", Message: "must be a URL such as https://login.example.com"}
	}
	if parsed.Scheme != "https" && (parsed.Scheme != "http" || !s.AllowHTTP) {
		return tenants.Invalid{Field: "issuer", Message: "must begin with https://"}
	}
	return nil
}

const (
	askTimeout = 10 * time.Second
	maxAnswer  = 1 << 20 // bytes read of an answer
)

// NewClient returns a client for identity providers, limited to the addresses that by allows: 10 seconds for
// an answer of at most 1 MiB, no redirects.
func NewClient(by *guard.Guard) *http.Client {
	dialer := &net.Dialer{Timeout: askTimeout, Control: by.Control}
	return &http.Client{
		Timeout: askTimeout,
		Transport: bounded{&http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: askTimeout, ResponseHeaderTimeout: askTimeout, IdleConnTimeout: askTimeout,
			MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded truncates answers.
type bounded struct{ transport *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.transport.RoundTrip(request)
	if err == nil {
		response.Body = body{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

// body is the beginning of an answer.
type body struct {
	io.Reader
	io.Closer
}
