package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/credential"
)

const (
	fresh       = 2 * time.Second  // how old a state may be before it is read again
	refreshTime = 20 * time.Second // timeout of a refresh
	inputWait   = 10 * time.Millisecond
	maxInput    = 1 << 20
)

// isFileName reports whether a session's id is safe as a file name.
func isFileName(id string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return id != "" && len(id) <= 128 && id[0] != '.' && strings.Trim(id, letters+".") == ""
}

// statusLineCommand is the command that Claude Code runs for its status line. It prints the content of the
// session's file and has another process refresh it, so that a server that is away costs no time.
func (a *App) statusLineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "statusline", Short: "Print one line about the session that Claude Code names on standard input", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			id := a.askedSession()
			if id == "" {
				_, err := fmt.Fprintln(a.Out, "palimpsest")
				return err
			}
			state := a.states().kept(id)
			if _, err := fmt.Fprintln(a.Out, state.line(a.Now())); err != nil {
				return err
			}
			if a.Now().Sub(state.At) < fresh {
				return nil
			}
			if unlock := a.states().lock(id); unlock != nil {
				unlock()          // the started process locks the session itself
				_ = a.Refresh(id) // the next line tries again
			}
			return nil
		},
	}
}

// askedSession reads the session's id that Claude Code gives its status line; "" if it does not come soon.
func (a *App) askedSession() string {
	read, in := make(chan string, 1), io.LimitReader(a.In, maxInput)
	go func() {
		var input struct {
			Session string `json:"session_id"`
		}
		_ = json.NewDecoder(in).Decode(&input) // other input names no session
		read <- input.Session
	}()
	select {
	case id := <-read:
		if isFileName(id) {
			return id
		}
	case <-time.After(inputWait):
	}
	return ""
}

// stateFiles stores the states of sessions, and locks a session while it is read.
type stateFiles struct{ folder string }

func (a *App) states() stateFiles { return stateFiles{a.Cache} }

func (f stateFiles) file(id, extension string) string { return filepath.Join(f.folder, id+extension) }

// kept returns the last stored state, or the zero State if there is no file.
func (f stateFiles) kept(id string) State {
	content, err := os.ReadFile(f.file(id, ".json"))
	var state State
	if err != nil || json.Unmarshal(content, &state) != nil {
		return State{}
	}
	return state
}

func (f stateFiles) keep(id string, state State) error {
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	content, err := json.Marshal(state)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(f.folder, "next-*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), f.file(id, ".json"))
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}

// lock locks a session for a refresh by this process, and returns the function that ends that, or nil if
// another process has the lock. The system ends the lock of a dead process.
func (f stateFiles) lock(id string) (unlock func()) {
	if f.folder == "" || os.MkdirAll(f.folder, 0o700) != nil {
		return nil
	}
	file, err := os.OpenFile(f.file(id, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	if lockFile(file) != nil {
		_ = file.Close()
		return nil
	}
	return func() { _ = file.Close() }
}

// refresh reads a session and stores its state. It stores an error too, so that the status line shows it.
func (a *App) refresh(ctx context.Context, id string) error {
	unlock := a.states().lock(id)
	if unlock == nil {
		return nil
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	state, err := a.read(ctx, id)
	if err != nil {
		state = a.states().kept(id)
		state.Problem = briefly(err)
		if state.Session == "" {
			state.At = a.Now()
		}
	}
	return a.states().keep(id, state)
}

func (a *App) read(ctx context.Context, id string) (State, error) {
	client, err := a.client()
	if err != nil {
		return State{}, err
	}
	return client.state(ctx, id, a.states().kept(id), a.Now())
}

// briefly describes an error in a few words.
func briefly(err error) string {
	switch {
	case errors.Is(err, credential.ErrNone):
		return "not logged in, run palimpsest login"
	case errors.Is(err, errUnreachable), errors.Is(err, context.DeadlineExceeded):
		return "the server does not answer"
	case errors.Is(err, errNoSession):
		return "no request yet"
	}
	const most = 80
	return shorten(err.Error(), most)
}

func (a *App) statusCommand() *cobra.Command {
	var asJSON bool
	var refreshed string
	command := &cobra.Command{
		Use: "status [SESSION]", Short: "Print what became of a session: the newest one, or that with an id", Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if refreshed != "" {
				if !isFileName(refreshed) {
					return errNoSession
				}
				return a.refresh(command.Context(), refreshed)
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			id := ""
			if len(arguments) > 0 {
				id = arguments[0]
			}
			if id == "" {
				if id, err = client.newest(command.Context()); err != nil {
					return err
				}
			}
			state, err := client.state(command.Context(), id, State{}, a.Now())
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(state)
			}
			_, err = fmt.Fprintln(a.Out, state.line(a.Now()))
			return err
		},
	}
	command.Flags().StringVar(&refreshed, "refresh", "", "read this session for the status line")
	_ = command.Flags().MarkHidden("refresh") // it exists
	return jsonFlag(command, &asJSON)
}
