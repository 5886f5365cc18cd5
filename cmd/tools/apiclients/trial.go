package apiclients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/api/upstream/providerdouble"
)

// Trial is one client in one case, with all observations.
type Trial struct {
	Client    Client
	Case      Case
	Skipped   string // why the case does not apply to the client
	Outputs   []Output
	Exchanges []Exchange // as the client saw them
	Received  []providerdouble.Recorded
	Took      time.Duration

	NetMicroUSD int64 // savings minus the cost of compression, if the case has a window

	Remark string // worth knowing though not an error
	Err    error  // faults

	left    []string // leftovers of a setup after disconnect
	carried []carried
	model   *model
	judge   func(format string, header http.Header, body []byte) error // the provider's judgment of a request
}

// converse sends all of the user's messages in the case. The error reports that a client could not be set
// up; the results of its commands are part of the trial.
func (t *Trial) converse(ctx context.Context, s *session) error {
	if t.Case.connects {
		return t.workConnected(ctx, s)
	}
	if t.Case.carries {
		return t.carryOn(ctx, s)
	}
	for i, text := range t.Case.says(t.Client) {
		if i == 0 {
			if err := t.Client.prepare(s); err != nil {
				return err
			}
		}
		wanted, err := t.Client.say(s, text, i > 0)
		if err != nil {
			return err
		}
		t.Outputs = append(t.Outputs, wanted.run(ctx, s))
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s, %s: %w", t.Client.Name, t.Case.Name, err)
		}
	}

	return nil
}

// alwaysHolds checks the rules for every trial. The remark counts requests that the provider refused
// because of the client.
func (t *Trial) alwaysHolds(key string) (string, error) {
	var wrong faults
	sent, received := map[string]bool{}, map[string]bool{}
	for _, exchange := range t.Exchanges {
		sent[string(exchange.Body)] = true
	}
	own := 0
	for _, request := range t.Received {
		received[string(request.Body)] = true
		for name, values := range request.Header {
			if strings.Contains(strings.Join(values, " "), key) {
				wrong.add(fmt.Errorf("the workspace's key reached the provider in %s", name))
			}
		}
		if t.Client.brings && request.Header.Get("Authorization") != "Bearer "+ownCredential {
			wrong.add(fmt.Errorf("%s %s reached the provider without the client's own credential", request.Method, request.Path))
		}
		switch {
		case request.Invalid == nil || t.Case.refused && tooLong(request.Invalid):
		case sent[string(request.Body)] || t.refusedAsSent(request):
			own++
		default:
			wrong.add(fmt.Errorf("the provider refused what the proxy made of %s %s: %w", request.Method, request.Path, request.Invalid))
		}
	}
	for _, exchange := range t.Exchanges {
		if exchange.Answered.Get("X-Palimpsest-Error-Source") == "proxy" && !(t.Case.threads && exchange.isAskedForTheWhole()) && !exchange.lacksKey() {
			wrong.add(fmt.Errorf("the proxy itself answered %s %s with %d: %s", exchange.Method, exchange.Path, exchange.Status, exchange.Refusal))
		}
		if exchange.unchanged() && exchange.Header.Get("Content-Encoding") == "" && !received[string(exchange.Body)] && !t.receivedForUsage(exchange) && !t.receivedUnheld(exchange) {
			wrong.add(fmt.Errorf("%s %s: the proxy says that it changed nothing, and the provider got another body", exchange.Method, exchange.Path))
		}
	}
	if own == 0 {
		return "", errors.Join(wrong...)
	}

	return fmt.Sprintf("%d requests refused as the client sent them", own), errors.Join(wrong...)
}

// refusedAsSent reports whether the provider would have refused the client's request for the same reason as
// the proxy's version of it.
func (t *Trial) refusedAsSent(request providerdouble.Recorded) bool {
	return slices.ContainsFunc(t.Exchanges, func(exchange Exchange) bool {
		if exchange.Status != request.Status || exchange.Path != request.Path {
			return false
		}
		refusal := t.judge(request.Format, request.Header, exchange.Body)
		return refusal != nil && refusal.Error() == request.Invalid.Error()
	})
}

// faults are the errors of a trial, without duplicates.
type faults []error

func (f *faults) add(fault error) {
	if !slices.ContainsFunc(*f, func(known error) bool { return known.Error() == fault.Error() }) {
		*f = append(*f, fault)
	}
}

// receivedForUsage reports whether the provider got the body of a streamed Chat Completion with the proxy's
// request for usage as the only change.
func (t *Trial) receivedForUsage(exchange Exchange) bool {
	const wish = `{"include_usage":true}`
	sent, ok := members(exchange.Body)
	if !ok || string(sent["stream"]) != "true" || sent["stream_options"] != nil || !strings.HasSuffix(exchange.Path, "/chat/completions") {
		return false
	}
	for _, request := range t.Received {
		got, ok := members(request.Body)
		if !ok || string(got["stream_options"]) != wish {
			continue
		}
		delete(got, "stream_options")
		if maps.EqualFunc(sent, got, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			return true
		}
	}

	return false
}

// members returns the members of a JSON object, with their original bytes.
func members(body []byte) (map[string]json.RawMessage, bool) {
	var found map[string]json.RawMessage
	err := json.Unmarshal(body, &found)

	return found, err == nil
}

// tooLong reports whether a refusal says that the prompt does not fit the window.
func tooLong(refusal error) bool {
	return tooLongWords.MatchString(refusal.Error())
}

// tooLongWords are how providers, and the clients that repeat them, say that a prompt does not fit the window.
var tooLongWords = regexp.MustCompile(`(?i)too long|maximum context length|context window|context length|context_length|maximum number of tokens`)

// toSubagent is part of Codex's requests for a subagent with the main agent's conversation: its task has
// the subagent's name, with its path below the main agent.
const toSubagent = `"recipient":"/root/`

// isErrand reports whether an exchange belongs to a subagent.
func (t *Trial) isErrand(exchange Exchange) bool {
	// The main agent's requests hold the errand too. There it is inside the input of a tool call, after the
	// user's own words.
	isAlone := bytes.Contains(exchange.Body, []byte(errandMark)) && !bytes.Contains(exchange.Body, []byte(t.Case.says(t.Client)[0]))

	return isAlone || bytes.Contains(exchange.Body, []byte(toSubagent))
}

// number parses a header with a number; 0 if it is not one.
func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}

	return value
}

// Keep writes a trial's exchanges into a directory, for a person to read.
func (t *Trial) Keep(directory string) error {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r) {
			return r
		}
		return '-'
	}, strings.ToLower(t.Client.Name+" "+t.Case.Name))
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s: %v\n", t.Client.Name, t.Case.Name, t.Err)
	for _, output := range t.Outputs {
		fmt.Fprintf(&text, "\n$ %s\n%s\n(%v)\n", output.Line, output.Text, output.Err)
	}
	for i, exchange := range t.Exchanges {
		fmt.Fprintf(&text, "\n%d %s %s %d bytes: %d %s %s\n", i+1, exchange.Method, exchange.Path, len(exchange.Body), exchange.Status, exchange.Compression(), exchange.Refusal)
		for _, name := range []string{"Session-Id", "Session-Source", "Lane", "Modules", "Tokens-Before", "Tokens-After", "Levels"} {
			fmt.Fprintf(&text, "  %s: %s\n", name, exchange.Answered.Get("X-Palimpsest-"+name))
		}
		if err := writeBelow(directory, fmt.Sprintf("%s/%03d.json", name, i+1), string(exchange.Body)); err != nil {
			return err
		}
	}
	for i, request := range t.Received {
		fmt.Fprintf(&text, "\nprovider %d %s %s %d bytes: %d %v\n", i+1, request.Method, request.Path, len(request.Body), request.Status, request.Invalid)
		if err := writeBelow(directory, fmt.Sprintf("%s/provider-%03d.json", name, i+1), string(request.Body)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("keep a trial: %w", err)
	}

	return writeBelow(directory, name+".txt", text.String())
}
