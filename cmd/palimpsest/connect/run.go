package connect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Run starts a client for one run and waits for its end. Some clients need a temporary folder; otherwise it
// writes no files. It returns the client's exit status as *exec.ExitError.
func (c *Connector) Run(client Client, setup Setup, arguments []string) (err error) {
	if client.launch == nil {
		return fmt.Errorf("%s reads its set-up from its files alone: run palimpsest connect %s", client.Title, client.ID)
	}
	setup.once = true
	launch := client.launch(setup)
	program := ""
	if len(client.Runs) == 0 && len(arguments) > 0 { // any program
		program, arguments = c.Place.Program(arguments[0]), arguments[1:]
	}
	for _, name := range client.Runs {
		program = cmp.Or(program, c.Place.Program(name))
	}
	switch {
	case program == "" && len(client.Runs) == 0:
		return fmt.Errorf("name the program to start: palimpsest run %s -- python app.py", client.ID)
	case program == "":
		return fmt.Errorf("%s is not installed: there is no %s in the path", client.Title, strings.Join(client.Runs, " or "))
	}
	if len(launch.Files) > 0 {
		folder, err := os.MkdirTemp("", "palimpsest-run-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		if launch, err = launch.in(folder); err != nil {
			return err
		}
	}
	return start(program, slices.Concat(launch.Arguments, arguments),
		slices.Concat(os.Environ(), []string{"PALIMPSEST_URL=" + setup.Server, "PALIMPSEST_KEY=" + setup.Key}, launch.Environment))
}

// in returns a launch with its files in a folder.
func (l Launch) in(folder string) (Launch, error) {
	for name, content := range l.Files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), privateFile); err != nil {
			return Launch{}, err
		}
	}
	placed := func(texts []string) []string {
		var all []string
		for _, text := range texts {
			all = append(all, strings.ReplaceAll(text, "{folder}", filepath.ToSlash(folder)))
		}
		return all
	}
	return Launch{Arguments: placed(l.Arguments), Environment: placed(l.Environment)}, nil
}

// start runs a program at this one's terminal. The terminal sends it Ctrl-C directly; start forwards
// signals that ask this process to end.
func start(program string, arguments, environment []string) error {
	command := exec.Command(program, arguments...) //nolint:gosec,noctx // the client that the user asked for, until it ends
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = environment
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case sent := <-signals:
				if sent != os.Interrupt {
					_ = command.Process.Signal(sent) // it may have ended
				}
			case <-ended:
				return
			}
		}
	}()
	return command.Wait()
}

// nestedEntries returns entries as one JSON object.
func nestedEntries(entries []Entry) json.RawMessage {
	text, err := put(JSON.format(), nil, entries)
	if err != nil {
		panic("connect: " + err.Error()) // a fixed value always encodes
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		panic("connect: " + err.Error()) // it was just written
	}
	return compact.Bytes()
}

func indented(value json.RawMessage) []byte {
	var laid bytes.Buffer
	if err := json.Indent(&laid, value, "", "  "); err != nil {
		panic("connect: " + err.Error()) // it was encoded here
	}
	return laid.Bytes()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// glob returns the files that match a pattern.
func (p Place) glob(pattern string) []string {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil // invalid pattern, such as a folder's name with brackets: don't report other files then
	}
	return matches
}
