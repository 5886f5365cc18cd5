package webtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"palimpsest/tenants/guard"
	"palimpsest/tenants/passkey"
	"palimpsest/tenants/signon"
	"palimpsest/web"
)

// Records is a DNS double with TXT records.
type Records struct {
	mu      sync.Mutex
	records map[string][]string
}

// Add adds a record to a domain.
func (r *Records) Add(domain, record string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[domain] = append(r.records[domain], record)
}

// LookupTXT returns the records of a domain.
func (r *Records) LookupTXT(_ context.Context, name string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[strings.TrimSuffix(name, ".")], nil
}

// SignOnHere makes identity providers redirect back to the product itself, as a real browser needs it.
func SignOnHere(p *Product, deps *web.Deps) { deps.People.SignOn = p.signOn(p.Local) }

// NoPasskeys gives the product an IP address as its URL, because passkeys need a host name.
func NoPasskeys(p *Product, deps *web.Deps) { deps.People.Passkeys = p.passkeys("https://192.0.2.7") }

// signOn creates the service for a workspace's single sign-on.
func (p *Product) signOn(publicURL string) *signon.Service {
	p.Records = &Records{records: map[string][]string{}}
	return signon.New(signon.Config{
		Store: p.DB.SignOn, Sealer: p.vault, LookupTXT: p.Records.LookupTXT, Logins: p.People, Throttle: p.People.Throttle(), Client: signon.NewClient(guard.New(true)),
		PublicURL: publicURL, AllowHTTP: true, Now: time.Now,
	})
}

// passkeys creates the service for login with passkeys.
func (p *Product) passkeys(publicURL string) *passkey.Service {
	return passkey.New(passkey.Config{
		Store: p.DB.Factors, Sealer: p.vault, Accounts: p.People, Throttle: p.People.Throttle(), PublicURL: publicURL, Now: time.Now,
	})
}
