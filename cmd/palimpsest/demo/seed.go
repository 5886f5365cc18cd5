package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants"
)

// Password is everyone's password in the demo.
const Password = "palimpsest demo" //nolint:gosec // it is printed on the page to log in

// Days is the default number of workdays in the demo.
const Days = 90

// MinDays is the minimum number of days of a demo.
const MinDays = 2

// recordPatience limits the wait until all sent exchanges are recorded.
const recordPatience = time.Minute

// Config holds the inputs of Fill. All of them must be set.
type Config struct {
	URL         string // of the program, which serves the proxy and the JSON API
	ProviderURL string // at which the program reaches Provider
	Provider    *Provider
	Clock       *Clock         // the program's and the provider's
	Database    *DatabaseClock // of the program's database
	Until       time.Time      // when the demo's last day ends
	Days        int            // from MinDays
	Seed        uint64

	// Join signs someone up with the link of an invitation.
	Join func(ctx context.Context, link, password string) error

	// Verify marks the address of a user as verified and returns their workspace.
	Verify func(ctx context.Context, email string) (tenants.WorkspaceID, error)

	// Pass runs one pass of a background job: "index", "mail".
	Pass func(ctx context.Context, work string) error

	// Record writes exchanges of which only figures are kept.
	Record func(ctx context.Context, workspace tenants.WorkspaceID, exchanges []tenants.Exchange) error

	// Reread makes the program look each session up with its next request, even without a notice of a
	// change.
	Reread func()

	// Recorded returns after a number of exchanges have become durable since the start.
	Recorded func(ctx context.Context, exchanges int) error
}

// Made describes a filled demo.
type Made struct {
	Email     string `json:"email"` // of the owner
	Key       string `json:"key"`   // an API key's secret
	Exchanges int    `json:"exchanges"`
	Sessions  int    `json:"sessions"` // conversations, as the dashboard counts them
	Single    int    `json:"single"`   // calls without history
}

// Fill fills a new installation. It stops at the first deviation from the plan.
func Fill(ctx context.Context, config Config) (Made, error) {
	models, err := tokens.NewModels()
	if err != nil {
		return Made{}, err
	}
	f := &filling{&talks{models: models, Config: config, http: &http.Client{Timeout: time.Minute}, programs: programs()}}
	if err := f.hire(ctx); err != nil {
		return Made{}, fmt.Errorf("make the demo's team: %w", err)
	}
	if err := f.work(ctx); err != nil {
		return Made{}, fmt.Errorf("make the demo's sessions: %w", err)
	}
	for _, work := range []string{"index", "mail", "trigger_advice"} {
		if err := f.Pass(ctx, work); err != nil {
			return Made{}, fmt.Errorf("finish the demo: %w", err)
		}
	}
	f.Provider.Withdraw()
	if ahead := f.Clock.Now().Sub(f.Until); ahead > 0 {
		return Made{}, fmt.Errorf("the demo ends %s too late", ahead)
	}
	made := Made{Email: f.team.owner.email, Key: f.team.keys[keyMira].secret, Exchanges: f.sent + f.noted}
	if made.Sessions, _, err = f.count(ctx, session.ShowConversations); err != nil {
		return Made{}, fmt.Errorf("count the demo's sessions: %w", err)
	}
	if _, made.Single, err = f.count(ctx, session.ShowSingle); err != nil {
		return Made{}, fmt.Errorf("count the demo's single calls: %w", err)
	}
	return made, nil
}

// count returns the numbers of sessions and requests in a part of the list.
func (f *filling) count(ctx context.Context, part session.Show) (sessions, requests int, err error) {
	person, err := f.team.as(ctx, "mira")
	if err != nil {
		return 0, 0, err
	}
	for cursor := ""; ; {
		var page struct {
			Data []struct {
				Requests int `json:"requests"`
			} `json:"data"`
			Next string `json:"next_cursor"`
		}
		query := url.Values{"show": {string(part)}, "limit": {"200"}, "cursor": {cursor}}
		if err := person.Call(ctx, http.MethodGet, "/sessions?"+query.Encode(), nil, &page); err != nil {
			return 0, 0, err
		}
		sessions += len(page.Data)
		for _, one := range page.Data {
			requests += one.Requests
		}
		if cursor = page.Next; cursor == "" {
			return sessions, requests, nil
		}
	}
}

// filling is a demo in the making.
type filling struct{ *talks }

// talks sends the requests of people's clients, at the demo's time.
type talks struct {
	Config

	http     *http.Client
	programs map[string]program
	team     *team
	sent     int // exchanges
	noted    int // exchanges of which only figures are kept
	models   *tokens.Models
}

// at sets all clocks to a time, unless it is in the past.
func (s *talks) at(ctx context.Context, when time.Time) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if when.After(s.Clock.Now()) {
		s.Clock.Set(when)
	}
	return s.Database.Follow(ctx, s.Clock.Ahead())
}

// settle waits until all sent exchanges are recorded.
func (s *talks) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	if err := s.Recorded(ctx, s.sent); err != nil {
		return fmt.Errorf("%d exchanges are not recorded: %w", s.sent, err)
	}
	return nil
}

// talk is a person's session.
type talk struct {
	program string
	key     string
	model   string
	name    string      // of the session; "" if the client sends no name
	header  http.Header // beside the program's
	steps   []step

	said []json.RawMessage // so far
}

// hold continues a talk to its end.
func (s *talks) hold(ctx context.Context, t *talk) error {
	for i := range t.steps {
		if err := s.step(ctx, t, t.steps[i]); err != nil {
			return fmt.Errorf("%s, step %d: %w", t.name, i+1, err)
		}
		if s.Clock.Now().Add(lastMargin).After(s.Until) {
			break
		}
	}
	t.steps = nil
	return nil
}

// lastMargin is how long before the demo's end its talks stop.
const lastMargin = 30 * time.Second

// step sends one request and adds the answer, and the results of its calls, to the talk.
func (s *talks) step(ctx context.Context, t *talk, next step) error {
	program := s.programs[t.program]
	s.Clock.Pass(next.pause)
	if err := s.Database.Follow(ctx, s.Clock.Ahead()); err != nil {
		return err
	}
	if next.typed != "" {
		t.said = append(t.said, program.format.typed(next.typed))
	}
	reply := providerdouble.Reply{Text: next.says}
	for _, call := range next.calls {
		reply.Calls = append(reply.Calls, providerdouble.Call{Name: call.name, Input: encode(call.input)})
	}
	s.Provider.Say(reply, thinkingTime(next))
	status, answer, err := s.send(ctx, t)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%w %d: %.300s", errAnswered, status, answer)
	}
	messages, ids, err := program.format.read(answer)
	if err == nil && len(ids) != len(next.calls) {
		err = errors.New("the answer holds other calls than it was told to")
	}
	if err != nil {
		return err
	}
	t.said = append(t.said, messages...)
	if len(next.calls) > 0 {
		t.said = append(t.said, program.format.results(next.calls, ids)...)
	}
	return nil
}

// errAnswered is returned if the proxy's answer differs from the plan.
var errAnswered = errors.New("the proxy answered")

// thinkingTime is how long a model takes to answer.
func thinkingTime(next step) time.Duration {
	letters := len(next.says)
	for _, call := range next.calls {
		for _, value := range call.input {
			letters += len(value)
		}
	}
	return 900*time.Millisecond + time.Duration(letters)*4*time.Millisecond
}

// send sends a talk in its current state through the proxy.
func (s *talks) send(ctx context.Context, t *talk) (status int, answer []byte, err error) {
	program := s.programs[t.program]
	body := program.format.body(request{model: t.model, system: program.system, session: t.name, tools: t.program != library, messages: t.said})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+program.format.path(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(request.Header, program.header)
	maps.Copy(request.Header, t.header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", program.userAgent)
	request.Header.Set("Authorization", "Bearer "+s.team.keys[t.key].secret)
	if program.session != "" && t.name != "" {
		request.Header.Set(program.session, t.name)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	s.sent++
	return response.StatusCode, answer, err
}
