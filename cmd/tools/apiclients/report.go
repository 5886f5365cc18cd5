package apiclients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
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

// saidReady requires that the client prints the model's answer.
func saidReady(t *Trial) (string, error) {
	last := t.Outputs[len(t.Outputs)-1]
	if last.Err != nil || !strings.Contains(last.Text, finalWord) {
		return "", errors.Join(errors.New("the client did not print the answer"), last.Err)
	}
	for _, exchange := range t.Exchanges {
		if name := exchange.clientName(); t.Client.known != "" && name != "" && name != t.Client.known {
			return "", fmt.Errorf("the proxy takes the client for %s: its user agent is %q", name, exchange.Header.Get("User-Agent"))
		}
	}

	return "", nil
}

// toldTheWord requires the tool's result in the last answer.
func toldTheWord(t *Trial) (string, error) {
	last := t.Outputs[len(t.Outputs)-1]
	if last.Err != nil || !strings.Contains(last.Text, finalWord) || !strings.Contains(last.Text, noteWord) {
		return "", fmt.Errorf("the client did not tell the word (%w)", errors.Join(errors.New("it printed something else"), last.Err))
	}

	return "", nil
}

// wentPastTheWindow requires that a session larger than the window continues as if the window were
// unlimited.
func wentPastTheWindow(t *Trial) (string, error) {
	if _, err := toldTheWord(t); err != nil {
		return "", err
	}
	epochs, largest := 0, 0
	for _, exchange := range t.Exchanges {
		if exchange.isGeneration() && hasTools(exchange.Body) && exchange.Status != http.StatusOK {
			return "", fmt.Errorf("the client was answered %d: %s", exchange.Status, exchange.Refusal)
		}
		if exchange.isEpoch() {
			epochs++
		}
		largest = max(largest, number(exchange.Answered.Get("X-Palimpsest-Tokens-Before")))
	}
	switch {
	case epochs == 0:
		return "", errors.New("there was no epoch")
	case largest <= t.Case.window:
		return "", fmt.Errorf("the session never grew past the window: %d tokens", largest)
	case t.model.summaries > 0:
		return "", errors.New("the client compacted by itself")
	case t.model.rounds != t.Case.read()+2:
		return "", fmt.Errorf("%d rounds, want %d: the client asked again", t.model.rounds, t.Case.read()+2)
	}

	remark := fmt.Sprintf("%d requests, %d epochs, %d tokens", len(t.Received), epochs, largest)
	if t.Case.hasNet() {
		remark += fmt.Sprintf(", net $%.2f", float64(t.NetMicroUSD)/1e6)
	}

	return remark, oneLane(t)
}

// wentPastTheWindowAtAProfit also requires that compression has saved more than it cost.
func wentPastTheWindowAtAProfit(t *Trial) (string, error) {
	remark, err := wentPastTheWindow(t)
	if err == nil && t.NetMicroUSD <= 0 {
		err = fmt.Errorf("compression cost more than it saved: net $%.2f", float64(t.NetMicroUSD)/1e6)
	}

	return remark, err
}

// oneLane requires all requests of the main agent in one session and lane.
func oneLane(t *Trial) error {
	lanes := map[string]bool{}
	for _, exchange := range t.Exchanges {
		if exchange.isGeneration() && hasTools(exchange.Body) && !t.isErrand(exchange) {
			lane := exchange.Answered.Get("X-Palimpsest-Session-Id")
			if !t.Client.masks {
				lane += " " + exchange.Answered.Get("X-Palimpsest-Lane")
			}
			lanes[lane] = true
		}
	}
	if len(lanes) != 1 {
		return fmt.Errorf("the session fell into %d lanes", len(lanes))
	}

	return nil
}

// compactedItself requires that the client's own compaction passes unchanged, and that the session
// continues after it.
func compactedItself(t *Trial) (string, error) {
	if _, err := toldTheWord(t); err != nil {
		return "", err
	}
	asked, after := 0, 0
	for _, exchange := range t.Exchanges {
		switch body := string(exchange.Body); {
		case strings.Contains(body, t.Client.summarizes):
			asked++
			if how := exchange.Compression(); how != "" && how != "none" {
				return "", fmt.Errorf("the client's request for a summary was edited: %s", how)
			}
		case strings.Contains(body, cmp.Or(t.Client.compacted, summaryMark)):
			after++
		}
	}
	const loop = 4
	switch {
	case asked == 0:
		return "", errors.New("the client did not compact")
	case asked > loop:
		return "", fmt.Errorf("the client compacted %d times", asked)
	case after == 0:
		return "", errors.New("no request came after the compaction with its summary")
	}

	return fmt.Sprintf("%d compactions", asked), nil
}

// ourSummary is the start of the proxy's summaries.
const ourSummary = "This summary was put together by Palimpsest"

// goesOnFromOurSummary requires that the proxy answers the client's own compaction without the model, and
// that the client continues from that answer.
func goesOnFromOurSummary(t *Trial) (string, error) {
	if _, err := toldTheWord(t); err != nil {
		return "", err
	}
	answered, after := 0, 0
	for _, exchange := range t.Exchanges {
		switch {
		case exchange.Answered.Get("X-Palimpsest-Answered-From") == "compaction":
			answered++
		case strings.Contains(string(exchange.Body), ourSummary):
			after++
		}
	}
	if answered != 1 || after == 0 || t.model.summaries != 0 {
		return "", fmt.Errorf("%d requests for a summary were answered, the model was asked for %d, and %d requests went on from an answer", answered, t.model.summaries, after)
	}

	return fmt.Sprintf("%d requests from it on", after), nil
}

// keptTheErrandApart requires that the subagent is in the main agent's session, in its own lane.
func keptTheErrandApart(t *Trial) (string, error) {
	if _, err := toldTheWord(t); err != nil {
		return "", err
	}
	if t.model.errands < 2 {
		return "", fmt.Errorf("%d requests of a subagent, want 2", t.model.errands)
	}
	type place struct{ session, lane string }
	mainPlaces, errandPlaces := map[place]bool{}, map[place]bool{}
	for _, exchange := range t.Exchanges {
		if !exchange.isGeneration() || !hasTools(exchange.Body) {
			continue
		}
		at := place{exchange.Answered.Get("X-Palimpsest-Session-Id"), exchange.Answered.Get("X-Palimpsest-Lane")}
		if t.isErrand(exchange) {
			errandPlaces[at] = true
		} else {
			mainPlaces[at] = true
		}
	}
	if len(mainPlaces) != 1 || len(errandPlaces) != 1 {
		return "", fmt.Errorf("the main agent has %d lanes, the subagent %d", len(mainPlaces), len(errandPlaces))
	}
	for at := range errandPlaces {
		if mainPlaces[at] {
			return "", errors.New("the subagent is in the main agent's lane")
		}
	}

	return "", nil
}

// sharedThePrompt requires that a subagent with the main agent's conversation continues its shortened form,
// which the provider has in its cache.
func sharedThePrompt(t *Trial) (string, error) {
	if _, err := keptTheErrandApart(t); err != nil {
		return "", err
	}
	epochs, shared := 0, 0
	for _, exchange := range t.Exchanges {
		switch knows := bytes.Contains(exchange.Body, []byte(toSubagent)); {
		case !knows && exchange.isEpoch():
			epochs++
		case knows && exchange.isEpoch():
			return "", errors.New("a subagent that knew the conversation had its prompt shortened once more")
		case knows:
			shared++
		}
	}
	if epochs == 0 {
		return "", errors.New("there was no epoch")
	}

	return fmt.Sprintf("%d of its requests knew the conversation", shared), nil
}

// recovered requires that the client sees the provider's refusal unchanged and continues.
func recovered(status int) func(*Trial) (string, error) {
	return func(t *Trial) (string, error) {
		seen := 0
		for _, exchange := range t.Exchanges {
			if exchange.Status == status || status == 529 && exchange.Status == http.StatusServiceUnavailable {
				seen++
				isTimed := exchange.Answered.Get("Retry-After") != "" || strings.Contains(exchange.Refusal, "retryDelay") // of Google
				if status == http.StatusTooManyRequests && !isTimed {
					return "", errors.New("retry-after was lost")
				}
			}
		}
		if seen == 0 {
			return "", fmt.Errorf("the client was never answered %d", status)
		}
		_, err := toldTheWord(t)

		return "", err
	}
}

// saidTooLong requires that the provider's own words reach the client, and that the client ends with them
// or tries its own remedy.
func saidTooLong(t *Trial) (string, error) {
	for _, exchange := range t.Exchanges {
		if !exchange.isGeneration() {
			continue
		}
		if exchange.Status != http.StatusBadRequest {
			return "", fmt.Errorf("answered %d, want the provider's 400", exchange.Status)
		}
		if !tooLongWords.MatchString(exchange.Refusal) {
			return "", fmt.Errorf("not the provider's words: %s", exchange.Refusal)
		}
		if t.Client.summarizes != "" && strings.Contains(string(exchange.Body), t.Client.summarizes) {
			return "tried to compact", nil
		}
	}
	if tooLongWords.MatchString(t.Outputs[len(t.Outputs)-1].Text) {
		return "said so", nil
	}

	return "", errors.New("the client does not say that the prompt is too long")
}

// noticedTheCut requires that the client notices the broken stream: that it retries, or reports it.
func noticedTheCut(t *Trial) (string, error) {
	if _, err := toldTheWord(t); err == nil {
		return "asked again", nil
	}
	last := t.Outputs[len(t.Outputs)-1]
	if last.Err == nil {
		return "", errors.New("the client took half an answer for a whole one")
	}

	return "said so", nil
}
