package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/credential"
)

// Mark is the outcome of a check.
type Mark string

// The marks.
const (
	OK      Mark = "ok"
	Warning Mark = "warning" // works, but could work better
	Failed  Mark = "failed"
	Skipped Mark = "skipped" // could not be checked
)

// Check is the result of one check.
type Check struct {
	Name string `json:"name"`
	Mark Mark   `json:"mark"`
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"` // how to fix it
}

// diagnosis checks everything between the user and the provider.
type diagnosis struct {
	*App
	client *Client
	model  string // to test with
	paid   bool   // allow requests that cost money
	found  []Check
	me     meJSON
	date   time.Time // of the server, or zero if absent

	fix     bool // repair through connect
	asks    bool // ask the user instead of assuming yes
	answers *bufio.Reader
}

func (d *diagnosis) note(name string, mark Mark, text, fix string) {
	d.found = append(d.found, Check{Name: name, Mark: mark, Text: oneLine(text), Fix: oneLine(fix)})
}

// says reports whether there is a check with a name.
func (d *diagnosis) says(name string) bool {
	return slices.ContainsFunc(d.found, func(check Check) bool { return check.Name == name })
}

func (a *App) doctorCommand() *cobra.Command {
	var asJSON, yes, fix bool
	var model string
	command := &cobra.Command{
		Use: "doctor", Short: "Find out what keeps a client from working through the proxy", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if fix && asJSON && !yes {
				return errors.New("--json asks nothing: give --yes too, or leave out --fix")
			}
			d := &diagnosis{App: a, model: model, paid: yes, fix: fix, asks: !yes, answers: bufio.NewReader(a.In)}
			d.free(command.Context())
			if !asJSON {
				if err := a.printChecks(d.found); err != nil {
					return err
				}
			}
			done := len(d.found)
			if !yes && !asJSON {
				d.paid = d.mayPay()
			}
			d.costly(command.Context())
			if asJSON {
				if err := a.json(d.found); err != nil {
					return err
				}
			} else if err := a.printChecks(d.found[done:]); err != nil {
				return err
			}
			return verdict(d.found)
		},
	}
	command.Flags().BoolVar(&yes, "yes", false, "answer every question with yes: repair files, and send the requests that cost money")
	command.Flags().BoolVar(&fix, "fix", false, "show what is wrong in the files of connected clients, and repair it as palimpsest connect would")
	command.Flags().StringVar(&model, "model", "", "try this model, instead of the one of the newest session")
	return jsonFlag(command, &asJSON)
}

// free runs the free checks. It skips those that depend on a failed one.
func (d *diagnosis) free(ctx context.Context) {
	login, err := d.Logins.Load()
	switch {
	case errors.Is(err, credential.ErrNone):
		d.note("login", Failed, "nobody has logged in on this machine", "palimpsest login URL")
	case err != nil:
		d.note("login", Failed, err.Error(), "palimpsest login URL")
	default:
		d.note("login", OK, login.Server, "")
		d.client = &Client{server: login.Server, key: login.Key, http: d.HTTP}
		if d.server(ctx) {
			d.clock()
			if d.key(ctx) {
				d.version()
				d.limits()
				d.models(ctx)
				d.webSocket(ctx)
			}
		}
	}
	d.clients(login)
}

// mayPay asks for permission to send requests that cost money.
func (d *diagnosis) mayPay() bool {
	cents, can := d.price()
	return can && d.ask(fmt.Sprintf("\nTwo requests to %s show whether its cache is hit and streams pass. They cost about %.1f cents. Send them?", d.model, cents))
}

// ask asks a yes-or-no question.
func (d *diagnosis) ask(question string) bool {
	fmt.Fprint(d.Out, question, " [y/N] ")
	answer, _ := d.answers.ReadString('\n') // no answer means no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (a *App) printChecks(checks []Check) error {
	signs := map[Mark]string{OK: "ok  ", Warning: "look", Failed: "BAD ", Skipped: "-   "}
	for _, check := range checks {
		line := fmt.Sprintf("%s  %-16s  %s", signs[check.Mark], check.Name, check.Text)
		if check.Fix != "" {
			line += "\n      → " + check.Fix
		}
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// verdict returns an error if a check failed.
func verdict(checks []Check) error {
	failed := 0
	for _, check := range checks {
		if check.Mark == Failed {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%s failed; the lines above say what to do", plural(failed, "check"))
}
