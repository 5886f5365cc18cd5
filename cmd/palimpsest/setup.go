package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"palimpsest/tenants/guard"
	"palimpsest/web/paths"
)

// setup holds the inputs of each part of the program.
type setup struct {
	config Config
	log    *slog.Logger
	now    func() time.Time
	guard  *guard.Guard // guards the connections that workspaces configure
	*ending
	address
}

// newSetup returns a setup with a new ending.
func newSetup(config Config, log *slog.Logger, now func() time.Time) setup {
	return setup{
		config: config, log: log, now: now, guard: guard.New(config.AllowPrivateUpstreams), ending: &ending{longest: config.DrainTimeout}, address: address{public: config.PublicURL},
	}
}

// ending closes a program's parts.
type ending struct {
	longest time.Duration // maximum time for the last runs of periodic work
	closers []func()      // run last to first
}

// onClose adds a function for close to run.
func (e *ending) onClose(end func()) { e.closers = append(e.closers, end) }

// close runs the functions, last to first.
func (e *ending) close() {
	for _, end := range slices.Backward(e.closers) {
		end()
	}
}

// every runs work periodically, and a last time when the program closes, within the drain timeout.
func (e *ending) every(interval time.Duration, work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				work(ctx)
			case <-ctx.Done():
				last, end := context.WithTimeout(context.WithoutCancel(ctx), e.longest)
				defer end()
				work(last)
				return
			}
		}
	}()
	e.onClose(func() { cancel(); <-done })
}

// address is the product's address for users and clients.
type address struct {
	public    string // from the settings; empty: the listening address
	listening string // host and port of proxy, dashboard and API
	mailToken string // end of the address of the page with mails; empty: mails are not shown
}

// reachable returns the product's address for users and clients.
func (a address) reachable() string {
	if a.public != "" {
		return strings.TrimRight(a.public, "/")
	}
	host, port, err := net.SplitHostPort(a.listening)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", port)
	}
	return "http://" + a.listening
}

// mailsAt returns the address of the page with unsent mails, or "" if they are not shown. Links in mails
// open accounts. Therefore only a database of the program's own has that page, and only the log shows its
// token.
func (a address) mailsAt() string {
	if a.mailToken == "" {
		return ""
	}
	return a.reachable() + paths.DevMail + "/" + a.mailToken
}

// welcome tells a person at a terminal where to go.
func (a address) welcome(w io.Writer) {
	fmt.Fprintf(w, "\nPalimpsest runs at %s\nSign up at %s/signup, store a provider key, create an API key, and point a client at it.\n\n",
		a.reachable(), a.reachable())
}
