package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"palimpsest/api/proxysettings"
	"palimpsest/api/upstream"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

const (
	modelsPath = "/v1/models"

	modelsAge     = time.Minute             // a list is served from memory
	modelsOutage  = 24 * time.Hour          // maximum age while the provider does not answer
	modelsTimeout = 2500 * time.Millisecond // clients wait three seconds for their start
	maxModels     = 4 << 20                 // bytes of a list
	knownLists    = 5000
)

// models lists the available models in the client's shape. The list is the provider's own answer; or the
// answers of all keys, each with the models routed to it; or the other dialect's models if the workspace has
// no key for this one.
func (s *Server) models(c echo.Context) error {
	codec := codecFor(c.Request())
	request, event := s.receive(c, listOf(codec))
	defer s.end(request.Context(), event)

	wanted := proxysettings.ProviderOf(codec)
	admission, err := s.admit(request, event)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	lister := lister{gate: &s.Gate, upstream: s.Upstream, lists: &s.lists, now: s.Now}
	asked, err := lister.targets(request, event, &admission, wanted)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	event.Attempts = 1
	list, err := lister.list(request, wanted, admission, asked)
	event.times.heard(s.Now())
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	upstream.CopyResponseHeader(c.Response().Header(), list.header.Clone())
	event.outcome.relayed(list.status)
	c.Response().Header().Set("Age", strconv.Itoa(int(s.Now().Sub(list.at).Seconds())))
	sign(c.Response().Header(), event)
	return c.Blob(list.status, list.header.Get("Content-Type"), list.body)
}

// listOf returns the path of the list of models in the API of a format.
func listOf(codec wire.Codec) string {
	dialect, _ := upstream.DialectOf(proxysettings.ProviderOf(codec))
	return dialect.ModelsPath
}

// lister asks providers for their models.
type lister struct {
	gate     *Gate
	upstream upstream.Sender
	lists    *modelLists
	now      func() time.Time
}

// modelsQuestion identifies a request for a provider's models. Equal questions have the same answer.
type modelsQuestion struct {
	workspace tenants.WorkspaceID
	target    [sha256.Size]byte // its address and key
	path      string            // with the query
	headers   string            // headers that affect the answer: version, beta, organization, project
}

// modelsHeaders are the headers that a provider's list may depend on.
func modelsHeaders() []string {
	return []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project"}
}

func newModelsQuestion(request *http.Request, wanted tenants.Provider, admission admission) modelsQuestion {
	about := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%q\x00%s", admission.target.Provider, admission.target.BaseURL, admission.target.Key, admission.target.Auth, admission.target.Headers, admission.target.Model)
	question := modelsQuestion{
		workspace: admission.key.Workspace,
		target:    sha256.Sum256([]byte(about)),
		path:      pathAndQuery(request, strings.TrimSuffix(request.URL.EscapedPath(), "/")),
	}
	if admission.target.Provider == wanted {
		for _, name := range modelsHeaders() {
			question.headers += strings.Join(request.Header.Values(name), ",") + "\x00"
		}
		return question
	}
	question.path = strings.TrimSuffix(request.URL.EscapedPath(), "/")
	dialect, _ := upstream.DialectOf(admission.target.Provider)
	for _, name := range modelsHeaders() {
		question.headers += dialect.Header[name] + "\x00"
	}
	if question.path == modelsPath && dialect.ModelsQuery != "" {
		question.path += "?" + dialect.ModelsQuery // the provider's list has pages, the requested shape doesn't
	}
	return question
}

// ask asks the provider.
func (l lister) ask(ctx context.Context, question modelsQuestion, target upstream.Target) (modelsAnswer, error) {
	header := http.Header{}
	values := strings.Split(question.headers, "\x00")
	for i, name := range modelsHeaders() {
		if i < len(values) && values[i] != "" {
			header.Set(name, values[i])
		}
	}
	response, err := l.upstream.Send(ctx, upstream.Request{Method: http.MethodGet, Path: question.path, Header: header}, target)
	if err != nil {
		return modelsAnswer{}, fmt.Errorf("ask for models: %w", err)
	}
	if err := plainly(response, target.Key); err != nil {
		return modelsAnswer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxModels))
	if err != nil {
		return modelsAnswer{}, fmt.Errorf("%w: list of models: %w", upstream.ErrUnreachable, err)
	}
	return modelsAnswer{status: response.StatusCode, header: response.Header, body: body, at: l.now()}, nil
}

// modelsAnswer is a provider's answer about its models.
type modelsAnswer struct {
	status int
	header http.Header
	body   []byte
	at     time.Time
}

// modelLists cache providers' lists of models. The zero value is ready to use.
type modelLists struct {
	asking singleflight.Group

	mu    sync.Mutex
	known map[modelsQuestion]modelsAnswer
}

// get returns the answer to a question: from memory if it is young enough, otherwise from ask, which runs
// once for all concurrent callers. If the provider fails, its previous answer stays valid.
func (l *modelLists) get(ctx context.Context, question modelsQuestion, now func() time.Time, ask func(context.Context) (modelsAnswer, error)) (modelsAnswer, error) {
	known, ok := l.load(question)
	if ok && now().Sub(known.at) < modelsAge {
		return known, nil
	}
	flight := question.workspace.String() + string(question.target[:]) + question.path + "\x00" + question.headers
	found, err, _ := l.asking.Do(flight, func() (any, error) {
		// The answer is for all waiting callers, even if the first of them has left.
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), modelsTimeout, errModelsLate)
		defer cancel()
		answer, err := ask(ctx)
		if err == nil && answer.status == http.StatusOK {
			l.store(question, answer)
		}
		return answer, err
	})
	answer, _ := found.(modelsAnswer)
	failed := err != nil || answer.status == http.StatusTooManyRequests || answer.status >= http.StatusInternalServerError
	if failed && ok && now().Sub(known.at) < modelsOutage {
		return known, nil
	}
	return answer, err
}

// errNoList says that the workspace's provider keys are for clouds without a list of models, and name none.
var errNoList = errors.New("provider has no list of models")

// errModelsLate says that a provider took too long to list its models.
var errModelsLate = fmt.Errorf("%w within %s", upstream.ErrUnreachable, modelsTimeout)

func (l *modelLists) load(question modelsQuestion) (modelsAnswer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, ok := l.known[question]
	return answer, ok
}

func (l *modelLists) store(question modelsQuestion, answer modelsAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[modelsQuestion]modelsAnswer)
	}
	if len(l.known) >= knownLists {
		for one := range l.known { // any entry, because it can be requested again
			delete(l.known, one)
			break
		}
	}
	l.known[question] = answer
}

const (
	maxPeek = 64 << 10 // bytes of a relayed body that are searched for its model
	minPeek = 256      // new bytes before the next look at it
)

// modelAhead returns a function for the model named near the beginning of a request's body, and leaves the
// body whole. It only reads JSON.
func modelAhead(request *http.Request) proxysettings.Model {
	return func() (string, error) {
		kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
		if request.Body == nil || kind != "application/json" || isEncoding(encodingOf(request.Header)) {
			return "", nil
		}
		head, model, seen := make([]byte, 0, maxPeek), "", 0
		var failure error
		for model == "" && failure == nil && len(head) < cap(head) {
			var n int
			n, failure = request.Body.Read(head[len(head):cap(head)])
			head = head[:len(head)+n]
			if failure != nil || len(head)-seen >= minPeek {
				model, _ = proxysettings.ModelIn(head)()
				seen = len(head)
			}
		}
		rest := io.Reader(request.Body)
		if failure != nil {
			rest = ended{failure}
		}
		request.Body = &resumed{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: request.Body}
		return model, nil
	}
}

// ended is a reader at its end, or with an error.
type ended struct{ err error }

// Read implements io.Reader.
func (e ended) Read([]byte) (int, error) { return 0, e.err }

// targets returns the keys to ask: all candidates for the list, or the key that serves a single model.
func (l lister) targets(request *http.Request, event *RequestLog, admission *admission, wanted tenants.Provider) ([]proxysettings.Listed, error) {
	ctx, dialect := request.Context(), wanted
	if admission.asked.choice.Key == "" {
		var err error
		if dialect, err = l.gate.Settings.DialectFor(ctx, admission.key.Workspace, wanted); err != nil {
			return nil, err
		}
	}
	model := strings.Trim(strings.TrimPrefix(strings.TrimPrefix(request.URL.Path, geminiModels), modelsPath), "/")
	if admission.asked.choice.Key != "" || model != "" {
		if err := l.gate.route(ctx, event, admission, dialect, func() (string, error) { return model, nil }); err != nil {
			return nil, err
		}
		admission.target.Model = "" // the path contains it
		return []proxysettings.Listed{{Target: admission.target, Whole: true}}, nil
	}
	all, err := l.gate.Settings.Listed(ctx, admission.key.Workspace, dialect, admission.asked.choice)
	if err != nil {
		return nil, err
	}
	event.Provider = string(dialect)
	if len(all) == 1 {
		event.ProviderKey = all[0].Target.KeyID
	}
	return all, nil
}

// list asks all keys for their models at once, and returns one answer in the wanted shape.
func (l lister) list(request *http.Request, wanted tenants.Provider, admission admission, keys []proxysettings.Listed) (modelsAnswer, error) {
	if len(keys) == 1 && keys[0].Whole && !keys[0].NoList {
		return l.of(request, wanted, admission, keys[0].Target)
	}
	whole := request.Clone(request.Context())
	whole.URL.RawQuery = ""
	if dialect, known := upstream.DialectOf(wanted); known {
		whole.URL.RawQuery = dialect.ModelsQuery // pages of several lists cannot be merged
	}
	answers, failures := make([]modelsAnswer, len(keys)), make([]error, len(keys))
	var asking sync.WaitGroup
	for i, key := range keys {
		if key.NoList {
			failures[i] = errNoList
			continue
		}
		asking.Go(func() { answers[i], failures[i] = l.of(whole, wanted, admission, key.Target) })
	}
	asking.Wait()
	return merged(wanted, keys, answers, failures)
}

// of returns the list from one key's provider, in the wanted shape.
func (l lister) of(request *http.Request, wanted tenants.Provider, admission admission, target upstream.Target) (modelsAnswer, error) {
	admission.target = target
	question := newModelsQuestion(request, wanted, admission)
	list, err := l.lists.get(request.Context(), question, l.now, func(ctx context.Context) (modelsAnswer, error) {
		return l.ask(ctx, question, target)
	})
	if err != nil || list.status != http.StatusOK || target.Provider == wanted {
		return list, err
	}
	if list.body, err = modelsAs(wanted, target.Provider, list.body); err != nil {
		return modelsAnswer{}, fmt.Errorf("%w: its list of models cannot be read: %w", upstream.ErrUnreachable, err)
	}
	return list, nil
}

// merged joins lists of models as their providers described them, and takes from each the models routed to
// its key. A failed provider doesn't affect the others; if all fail, the first failure is the answer.
func merged(wanted tenants.Provider, keys []proxysettings.Listed, answers []modelsAnswer, failures []error) (modelsAnswer, error) {
	shape := shapeOf(wanted)
	var entries []json.RawMessage
	oldest, good := time.Time{}, false
	for i, key := range keys {
		found := map[string]bool{}
		if failures[i] == nil && answers[i].status == http.StatusOK {
			good = true
			if oldest.IsZero() || answers[i].at.Before(oldest) {
				oldest = answers[i].at
			}
			for _, entry := range wire.Elements(shape.entries(answers[i].body)) {
				if id := shape.id(entry); key.Takes(id) && !found[id] {
					found[id] = true
					entries = append(entries, entry)
				}
			}
		}
		for _, name := range key.Named {
			if !found[name] && key.Takes(name) {
				entry, err := shape.entry(listedModel{ID: name, Name: name, Created: time.Unix(0, 0), Owner: "palimpsest"})
				if err != nil {
					return modelsAnswer{}, err
				}
				entries = append(entries, entry)
				good = good || key.NoList
			}
		}
	}
	if !good {
		return answers[0], failures[0]
	}
	body, err := shape.list(entries)
	return modelsAnswer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: body, at: oldest}, err
}
