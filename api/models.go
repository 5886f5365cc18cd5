package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"palimpsest/api/proxysettings"
	"palimpsest/api/upstream"
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
	request, event := s.receive(c, modelsPath)
	codec := codecFor(request)
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
