package webtest

import (
	"context"
	"strings"
	"sync"
	"time"

	"palimpsest/tenants/signon"
)

// Records is a domain name system of TXT records.
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

// LookupTXT implements signon.Resolver.
func (r *Records) LookupTXT(_ context.Context, name string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[strings.TrimSuffix(name, ".")], nil
}

// signOn makes what logs people in through their workspace's single sign-on.
func (p *Product) signOn() *signon.Service {
	p.Records = &Records{records: map[string][]string{}}
	return signon.New(signon.Config{
		Store: p.DB, Sealer: p.vault, Resolver: p.Records, Door: p.People, Client: signon.NewClient(true),
		PublicURL: PublicURL, AllowHTTP: true, Now: time.Now,
	})
}
