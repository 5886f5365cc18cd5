// Package setup opens the parts of an installation that its server and its commands share.
package setup

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline"
	"palimpsest/tenants/guard"
	"palimpsest/web/paths"
)

// Inputs holds the inputs of each part of the program.
type Inputs struct {
	Config settings.Config
	Log    *slog.Logger
	Now    func() time.Time
	Guard  *guard.Guard // guards the connections that workspaces configure
	*Ending
	Address
}

// New returns a setup with a new ending.
func New(config settings.Config, log *slog.Logger, now func() time.Time) Inputs {
	return Inputs{
		Config: config, Log: log, Now: now, Guard: guard.New(config.Serving.AllowPrivateUpstreams), Ending: &Ending{Longest: config.Serving.DrainTimeout}, Address: Address{public: config.Serving.PublicURL},
	}
}

// Ending closes a program's parts.
type Ending struct {
	Longest time.Duration // maximum time for the last runs of periodic work
	closers []func()      // run last to first
}

// OnClose adds a function for close to run.
func (e *Ending) OnClose(end func()) { e.closers = append(e.closers, end) }

// Close runs the functions, last to first.
func (e *Ending) Close() {
	for _, end := range slices.Backward(e.closers) {
		end()
	}
}

// Every runs work periodically, and a last time when the program closes, within the drain timeout.
func (e *Ending) Every(interval time.Duration, work func(context.Context)) {
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
				last, end := context.WithTimeout(context.WithoutCancel(ctx), e.Longest)
				defer end()
				work(last)
				return
			}
		}
	}()
	e.OnClose(func() { cancel(); <-done })
}

// Address is the product's address for users and clients.
type Address struct {
	public    string // from the settings; empty: the listening address
	Listening string // host and port of proxy, dashboard and API
	MailToken string // end of the address of the page with mails; empty: mails are not shown
}

// Reachable returns the product's address for users and clients.
func (a Address) Reachable() string {
	if a.public != "" {
		return strings.TrimRight(a.public, "/")
	}
	host, port, err := net.SplitHostPort(a.Listening)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", port)
	}
	return "http://" + a.Listening
}

// MailsAt returns the address of the page with unsent mails, or "" if they are not shown. Links in mails
// open accounts. Therefore only a database of the program's own has that page, and only the log shows its
// token.
func (a Address) MailsAt() string {
	if a.MailToken == "" {
		return ""
	}
	return a.Reachable() + paths.DevMail + "/" + a.MailToken
}

// Welcome tells a person at a terminal where to go.
func (a Address) Welcome(w io.Writer) {
	fmt.Fprintf(w, "\nPalimpsest runs at %s\nSign up at %s/signup, store a provider key, create an API key, and point a client at it.\n\n",
		a.Reachable(), a.Reachable())
}

// Defaults is the pipeline of a workspace without its own.
func (s Inputs) Defaults() pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromDefault, Modules: s.Config.Pipe}
}
