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

// setup is what each part of the program is made with.
type setup struct {
	config Config
	log    *slog.Logger
	now    func() time.Time
	guard  *guard.Guard // of what workspaces have the program connect to
	*ending
	address
}

// newSetup returns what the parts are made with, and ends with.
func newSetup(config Config, log *slog.Logger, now func() time.Time) setup {
	return setup{
		config: config, log: log, now: now, guard: guard.New(config.AllowPrivateUpstreams), ending: &ending{longest: config.DrainTimeout}, address: address{public: config.PublicURL},
	}
}

// ending is how a program's parts end.
type ending struct {
	longest time.Duration // that the end may take
	closers []func()      // run last to first
}

// onClose adds what close runs.
func (e *ending) onClose(end func()) { e.closers = append(e.closers, end) }

// close ends what is left, last to first.
func (e *ending) close() {
	for _, end := range slices.Backward(e.closers) {
		end()
	}
}

// every runs work again and again, and a last time when the program closes, within the drain timeout.
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

// address is where people and clients find the product.
type address struct {
	public    string // as the settings have it; empty: where it listens
	listening string // host and port of proxy, dashboard and API
	mailToken string // ends the address at which mails are shown; empty: mails are not shown
}

// reachable returns where people and clients reach the product.
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

// mailsAt returns the address at which mails are read that are not sent: links in them open
// accounts, so that only the database that is this program's own has one, and no one but
// the log knows its end. It is empty where mails are not shown.
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
