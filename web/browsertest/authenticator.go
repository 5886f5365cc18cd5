package browsertest

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// Authenticator is Chromium's virtual authenticator of a tab. It stores passkeys and answers at once.
type Authenticator struct {
	tab *Tab
	id  webauthn.AuthenticatorID
}

// Plug adds an authenticator with user verification to the tab.
func (p *Tab) Plug() *Authenticator {
	p.t.Helper()
	call(p.t, p, webauthn.Enable, webauthn.EnableParams{})
	added := call(p.t, p, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	return &Authenticator{tab: p, id: added.AuthenticatorID}
}

// Passkeys returns the authenticator's passkeys.
func (a *Authenticator) Passkeys() []*webauthn.Credential {
	a.tab.t.Helper()
	return call(a.tab.t, a.tab, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: a.id}).Credentials
}

// SetCount sets a passkey's signature counter, as a copied passkey would have it.
func (a *Authenticator) SetCount(passkey *webauthn.Credential, count float64) {
	a.tab.t.Helper()
	call(a.tab.t, a.tab, webauthn.SetCredentialProperties, webauthn.SetCredentialPropertiesParams{
		AuthenticatorID: a.id, CredentialID: passkey.CredentialID, SignCount: &count,
	})
}

// Verify sets whether user verification succeeds from now on.
func (a *Authenticator) Verify(is bool) {
	a.tab.t.Helper()
	call(a.tab.t, a.tab, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: a.id, IsUserVerified: is})
}

func call[P, R any](t testing.TB, tab *Tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(tab.ctx, command, params)
	if err != nil {
		tab.fail(command.Method, err)
	}
	return result
}
