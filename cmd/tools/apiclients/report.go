package apiclients

import (
	"fmt"
	"strings"
	"time"
)

// Report collects trials and prints them as a table client × case.
type Report struct {
	cases    []Case
	rows     []string // names of clients in the order of their trials
	trials   map[string]map[string]*Trial
	versions map[string]string
}

// NewReport returns an empty report of some cases.
func NewReport(cases []Case) *Report {
	return &Report{cases: cases, trials: map[string]map[string]*Trial{}, versions: map[string]string{}}
}

// Add adds a trial of a client of some version.
func (r *Report) Add(trial *Trial, version string) {
	name := trial.Client.Name
	if r.trials[name] == nil {
		r.trials[name] = map[string]*Trial{}
		r.rows = append(r.rows, name)
	}
	r.trials[name][trial.Case.Name] = trial
	r.versions[name] = version
}

// Failed counts the trials with faults.
func (r *Report) Failed() int {
	failed := 0
	for _, row := range r.trials {
		for _, trial := range row {
			if trial.Err != nil {
				failed++
			}
		}
	}

	return failed
}

// Table returns the report as Markdown: the table, then the faults, then the reasons why cases do not
// apply.
func (r *Report) Table() string {
	var text strings.Builder
	text.WriteString("| client | version |")
	for _, one := range r.cases {
		text.WriteString(" " + one.Name + " |")
	}
	text.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(r.cases)) + "\n")
	var faults, reasons []string
	for _, row := range r.rows {
		fmt.Fprintf(&text, "| %s | %s |", row, r.versions[row])
		for _, one := range r.cases {
			trial := r.trials[row][one.Name]
			fmt.Fprintf(&text, " %s |", trial.verdict())
			if trial != nil && trial.Err != nil {
				faults = append(faults, fmt.Sprintf("- %s, %s: %s\n", row, one.Name, strings.ReplaceAll(trial.Err.Error(), "\n", "\n  ")))
			}
		}
		text.WriteString("\n")
		reasons = append(reasons, r.reasons(row)...)
	}
	for _, notes := range [][]string{faults, reasons} {
		if len(notes) > 0 {
			text.WriteString("\n" + strings.Join(notes, ""))
		}
	}

	return text.String()
}

// reasons lists why cases do not apply to a client, one line for each reason.
func (r *Report) reasons(row string) []string {
	var order []string
	skipped := map[string][]string{}
	for _, one := range r.cases {
		trial := r.trials[row][one.Name]
		if trial == nil || trial.Skipped == "" {
			continue
		}
		if skipped[trial.Skipped] == nil {
			order = append(order, trial.Skipped)
		}
		skipped[trial.Skipped] = append(skipped[trial.Skipped], one.Name)
	}
	lines := make([]string, len(order))
	for i, reason := range order {
		lines[i] = fmt.Sprintf("- %s, not applicable: %s (%s)\n", row, strings.Join(skipped[reason], ", "), reason)
	}

	return lines
}

// verdict summarizes a trial's result in a few words.
func (t *Trial) verdict() string {
	switch {
	case t == nil:
		return "not tried"
	case t.Skipped != "":
		return "not applicable"
	case t.Err != nil:
		return "**failed**"
	case t.Remark != "":
		return "ok: " + t.Remark
	default:
		return "ok"
	}
}

// String returns a trial's result and duration.
func (t *Trial) String() string {
	return fmt.Sprintf("%s, %s: %s (%s)", t.Client.Name, t.Case.Name, t.verdict(), t.Took.Round(100*time.Millisecond))
}
