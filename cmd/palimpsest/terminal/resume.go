package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/cmd/palimpsest/resume"
	"palimpsest/pipeline/archive/export"
)

// resumed is the result of palimpsest resume, as JSON.
type resumed struct {
	Client  string `json:"client"`
	Session string `json:"client_session"`
	File    string `json:"file"`
	Folder  string `json:"folder"`
	Command string `json:"command"`
	Warning string `json:"warning,omitempty"`
}

// resuming is a session to continue in a client on this machine.
type resuming struct {
	*App
	target resume.Target
	place  connect.Place
}

func resumeCommand(a *App) *cobra.Command {
	var asJSON bool
	var in string
	at := -1
	command := a.onSession("resume SESSION", "Continue a session in another client, or on another machine", cobra.ExactArgs(1), func(ctx context.Context, client *Client, one sessionJSON, _ []string) error {
		target, err := resume.ByName(cmp.Or(in, one.Client))
		if err != nil && in == "" {
			err = fmt.Errorf("the session is of %s: say with --in where it is to be continued: %w", cmp.Or(one.Client, "no known client"), err)
		}
		if err != nil {
			return err
		}
		place, err := a.Here()
		if err != nil {
			return err
		}
		made, err := resuming{a, target, place}.write(ctx, client, one, at)
		if err != nil {
			return err
		}
		if asJSON {
			return a.json(made)
		}
		if made.Warning != "" {
			fmt.Fprintln(a.Err, made.Warning)
		}
		_, err = fmt.Fprintf(a.Out, "Wrote %s. To continue in %s, type this in %s:\n\n    %s\n", made.File, target.Title, made.Folder, made.Command)
		return err
	})
	command.Long = `Writes a session from the archive as a session file of Claude Code, Codex, pi or opencode, and prints the command that continues it.
Calls of tools that the client has as well become calls of those; others become text. The archive stays as it is, and no file is replaced.
The whole history is written, however long it is: the command goes through the proxy, which compacts it.`
	command.Flags().StringVar(&in, "in", "", "claude-code, codex, pi or opencode; default: the client of the session")
	command.Flags().IntVar(&at, "at", -1, "message to carry over last, as the session page numbers it; default: all")
	return jsonFlag(command, &asJSON)
}

// write writes the session's file.
func (r resuming) write(ctx context.Context, client *Client, one sessionJSON, at int) (resumed, error) {
	main, err := client.main(ctx, one.ID)
	if err != nil {
		return resumed{}, err
	}
	session, err := resume.Cut(main, at)
	if err != nil {
		return resumed{}, err
	}
	file, err := r.target.Write(&session, r.place, r.Now())
	if err != nil {
		return resumed{}, err
	}
	line, err := r.command(file)
	if err != nil {
		return resumed{}, err
	}
	err = file.Save()
	if errors.Is(err, resume.ErrThere) {
		return resumed{}, fmt.Errorf("%w: type %s, or give --at to branch off", err, line)
	}
	if err != nil {
		return resumed{}, err
	}
	return resumed{Client: r.target.ID, Session: file.ID, File: file.Path, Folder: r.place.Project, Command: line, Warning: r.warning(ctx)}, nil
}

// main reads a session's main thread from the archive.
func (c *Client) main(ctx context.Context, id string) (export.Main, error) {
	response, err := c.send(ctx, http.MethodGet, "/api/v1/sessions/"+id+"/export?format=ndjson", "", http.NoBody)
	if err != nil {
		return export.Main{}, err
	}
	defer response.Body.Close()
	return export.ReadMain(response.Body)
}

// command returns the command line that continues the session. If the client does not use the proxy, the
// command starts it through the proxy for one run, because only the proxy shortens a history beyond the
// model's window.
func (r resuming) command(file resume.File) (string, error) {
	connector := connect.Connector{Place: r.place}
	connected, err := connector.Connected()
	if err != nil {
		return "", err
	}
	words := append([]string{r.target.Program}, file.Arguments...)
	if !slices.Contains(connected, r.target.ID) {
		program, err := r.Program()
		if err != nil {
			return "", err
		}
		if r.place.Program("palimpsest") != "" {
			program = filepath.Base(program)
		}
		words = append([]string{program, "run", r.target.ID, "--"}, file.Arguments...)
	}
	line := connect.ShellLine(words)
	if file.Before != "" {
		line = connect.ShellLine([]string{r.target.Program, file.Before, file.Path}) + " && " + line
	}
	return line, nil
}

// warning describes a problem with the client's installed version, or returns "".
func (r resuming) warning(ctx context.Context) string {
	program := r.place.Program(r.target.Program)
	if program == "" {
		return r.target.Warning("")
	}
	version, err := r.ClientVersion(ctx, program)
	if err != nil {
		return fmt.Sprintf("%s does not say its version (%v); this was tried with %s %s.", program, err, r.target.Title, r.target.Tried)
	}
	return r.target.Warning(version)
}

// versionTimeout limits how long a client may take to print its version.
const versionTimeout = 10 * time.Second

// clientVersion asks a client for its version.
func clientVersion(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, "--version").Output()
	return oneLine(strings.TrimSpace(string(said))), err
}
