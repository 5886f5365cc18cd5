// Package terminal has the commands for people at their own terminal: log in, inspect a session, search
// messages, and diagnose problems.
package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/credential"
)

// App holds the dependencies of the commands.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Logins   Logins
	Cache    string // folder of the status line's files
	Version  string // of this program
	HTTP     *http.Client
	Now      func() time.Time
	Sleep    func(ctx context.Context, d time.Duration) error
	Refresh  func(session string) error // refreshes the state of a session in another process
	Env      func(name string) string
	Here     func() (connect.Place, error) // where to look for clients
	Program  func() (string, error)        // path by which clients start this program

	// ClientVersion returns the version output of a client's program.
	ClientVersion func(ctx context.Context, program string) (string, error)
}

// Logins keeps the login.
type Logins struct {
	Load   func() (credential.Login, error)
	Save   func(credential.Login) error
	Delete func() error
}

// New returns the App for the current user.
func New(version string) *App {
	return &App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Version: version,
		Logins: Logins{Load: credential.Load, Save: credential.Save, Delete: credential.Delete},
		Cache:  cacheFolder(), HTTP: newHTTP(), Now: time.Now, Sleep: sleep, Refresh: refreshDetached, Env: os.Getenv, Here: connect.Here, Program: connect.ThisProgram, ClientVersion: clientVersion,
	}
}

// Commands returns the commands.
func (a *App) Commands() []*cobra.Command {
	return []*cobra.Command{
		a.loginCommand(), a.logoutCommand(), a.statusCommand(), a.statusLineCommand(), a.sessionsCommand(), a.searchCommand(), a.tailCommand(), resumeCommand(a), a.doctorCommand(),
	}
}

func cacheFolder() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "" // then no state is kept
	}
	return filepath.Join(dir, "palimpsest", "status")
}

func newHTTP() *http.Client {
	return &http.Client{
		// A redirect would send the key or a code to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// client returns a Client of the server that the user is logged in to.
func (a *App) client() (*Client, error) {
	login, err := a.Logins.Load()
	if err != nil {
		return nil, err
	}
	return &Client{server: login.Server, key: login.Key, http: a.HTTP}, nil
}

// json prints a value as JSON.
func (a *App) json(value any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// table prints rows in aligned columns.
func (a *App) table(rows [][]string) error {
	table := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			fmt.Fprint(table, oneLine(cell))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// jsonFlag adds the flag for output as JSON.
func jsonFlag(command *cobra.Command, on *bool) *cobra.Command {
	command.Flags().BoolVar(on, "json", false, "print JSON")
	return command
}

// jsonLine prints a value as JSON in one line.
func (a *App) jsonLine(value any) error { return json.NewEncoder(a.Out).Encode(value) }
