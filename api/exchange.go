package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/api/limits"
	"palimpsest/api/proxysettings"
	"palimpsest/api/summaries"
	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// purpose is the use of an endpoint's requests.
type purpose int

// The purposes of requests.
const (
	converse  purpose = iota // continue a conversation
	measure                  // ask how large a prompt would be, without keeping any of it
	summarize                // request the provider's own compaction: forwarded unchanged, and noted
)

// exchange handles the requests of one endpoint and wire format: admit, write the
// prompt, send, relay the answer, record.
func (s *Server) exchange(codec wire.Codec, endpoint string, purpose purpose) echo.HandlerFunc {
	provider := proxysettings.ProviderOf(codec)
	return func(c echo.Context) error {
		request, event := s.receive(c, endpoint)
		ctx := request.Context()
		defer s.end(ctx, event)

		admission, err := s.admit(request, event)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		leave, err := s.Concurrency.enter(admission.key.Workspace)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		defer leave()
		body, forget, err := s.readBody(request, admission.key)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		defer forget()
		if err := s.route(ctx, event, &admission, provider, proxysettings.ModelIn(body.bytes)); err != nil {
			return s.refuse(c, codec, event, err)
		}
		forward := forward{admission: admission, codec: codec, request: request, endpoint: endpoint, purpose: purpose, body: body}
		written, err := s.write(ctx, event, forward)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		if err := s.holdUser(ctx, event, &forward); err != nil {
			return s.refuse(c, codec, event, err)
		}
		cached := lookUp(ctx, s.Answers, event, forward, written)
		event.times.asked(s.Now())
		if found := readyAnswer(forward, written, cached); found != nil {
			return s.answerReady(c, event, forward, written, found)
		}

		if purpose != measure {
			event.held.most = written.Most()
			err = event.held.ticket.Take(ctx, event.held.most.Prompt, event.held.most.Answers, event.held.most.MicroUSD)
		}
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		s.begun(ctx, event)
		announced := s.Prompts.Announce(written, event.Client, event.times.At)
		response, err := delivery{s, event, &forward, written}.send(ctx)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		first := written
		response, written = s.rescue(ctx, event, forward, written, response)
		if written != first {
			cached = nil // the answer belongs to another prompt than the requested one
		}
		defer response.Body.Close()
		if purpose == measure || written.Exchange == nil {
			body.done()
			forget()
			return s.answerUnread(c, event, response)
		}
		sent := written.Sent()
		s.recordRequest(ctx, event, written, body)
		if response.StatusCode == http.StatusOK {
			s.Summaries.After(ctx, forward.summarized(), written)
		}
		// From here on, the body's memory is free.
		body.done()
		forget()
		announced.Wait(ctx) // the client's next request may follow the answer at once
		return s.answer(c, event, codec, sent, response, cached)
	}
}

// answer relays the answer to a prompt and records its content. cached receives the answer for equal
// requests; nil if it is not to be kept.
func (s *Server) answer(c echo.Context, event *RequestLog, codec wire.Codec, sent prompt.Sent, response *http.Response, cached *semanticcache.Lookup) error {
	filter := withoutUsage(codec, sent, response)
	decodeFor(c.Request().Header, response, filter != nil)
	tap := guard(beside(tapOf(codec, response), cached), isEventStream(response))
	ctx := c.Request().Context()
	isRecorded := false
	record := func(answer wire.Answer) {
		isRecorded = true
		if answer.Failure != "" {
			s.unread(ctx, event, answer.Failure)
		}
		s.recordAnswer(ctx, event, codec, sent, answer)
		event.charge(s.Now())
		event.traced.answered(answer)
		keepAnswer(s.Answers, event, codec, cached, response, answer)
	}
	err := s.relay(c, event, response, s.hearing(event, tap, response), filter, func() {
		if answer := tap.Answer(); answer.Complete && !isRecorded {
			record(answer)
			event.times.ended(s.Now())
			s.keep(ctx, event)
		}
	})
	if !isRecorded {
		s.aside(ctx, event, func() { record(tap.Answer()) })
	}
	return finish(err)
}

// answerUnread relays an answer without keeping any of it. Sizes in the request's report must not be counted
// anywhere.
func (s *Server) answerUnread(c echo.Context, event *RequestLog, response *http.Response) error {
	err := s.relay(c, event, response, ignore{}, nil, func() {})
	event.Report, event.record.projection = pipeline.Report{Compression: event.Report.Compression}, 0
	return finish(err)
}

// admission is a request that has been admitted.
type admission struct {
	key    tenants.APIKey
	held   []limits.Held // subjects whose limits apply
	asked  controls
	target upstream.Target
	routes proxysettings.Routes // alternative targets of the request
}

// admit finds the request's owner and its settings for the proxy.
func (g *Gate) admit(request *http.Request, event *RequestLog) (_ admission, err error) {
	ctx, span := spans.Start(request.Context(), "admit")
	defer span.EndWith(&err)
	key, err := g.authenticate(ctx, request, event)
	if err != nil {
		return admission{}, err
	}
	asked, err := readControls(request.Header)
	if err != nil {
		return admission{}, err
	}
	event.from.Tags, event.from.EndUser = asked.tags, session.EndUserID(key.Workspace, asked.endUser)
	if err := key.Limits.CheckOverrides(asked.overrides); err != nil {
		return admission{}, err
	}
	held, err := g.held(ctx, key, event.from.Tags, event.from.EndUser)
	if err != nil {
		return admission{}, err
	}
	user, err := g.heldUser(ctx, key, anyone)
	if err != nil {
		return admission{}, err
	}
	key.Limits.Shared = len(limits.Budgets(append(held[1:len(held):len(held)], user...))) > 0
	if g.Limits != nil {
		if event.held.ticket, err = g.Limits.Admit(ctx, held...); err != nil {
			return admission{}, err
		}
	}
	kept, err := g.Settings.Keeps(ctx, key.Workspace)
	if err != nil {
		return admission{}, err
	}
	asked.choice.Private, asked.choice.Platform = key.Rights.Private, platformIn(ctx)
	asked.noStore = asked.noStore || !kept || key.Limits.NoStore
	event.record.noStore = asked.noStore
	if event.record.redactor, err = g.Settings.Redactor(ctx, key.Workspace); err != nil {
		return admission{}, err
	}
	return admission{key: key, held: held, asked: asked}, nil
}

// held returns the subjects whose limits apply to a request: its key, the end user, and the budgets of the
// person behind the key, of its project and of the workspace.
func (g *Gate) held(ctx context.Context, key tenants.APIKey, tags tenants.Tags, endUser string) ([]limits.Held, error) {
	budgets, err := g.Settings.Budgets(ctx, key.Workspace)
	if err != nil {
		return nil, err
	}
	held := []limits.Held{{Subject: limits.Subject{Workspace: key.Workspace, Spender: tenants.Spender{Kind: tenants.KeySpends, ID: key.ID.String()}}, Quota: key.Limits.Quota}}
	for _, who := range []tenants.Spender{
		{Kind: tenants.MemberSpends, ID: key.Person.String()}, {Kind: tenants.ProjectSpends, ID: tags[tenants.ProjectTag]}, {Kind: tenants.WorkspaceSpends},
	} {
		if quota, has := budgets[who]; has {
			held = append(held, limits.Held{Subject: limits.Subject{Workspace: key.Workspace, Spender: who}, Quota: quota})
		}
	}
	user, err := g.heldUser(ctx, key, endUser)
	return append(held, user...), err
}

// anyone is a placeholder for an end user whom the body of a request may name.
const anyone = "anyone"

// heldUser returns the limits of a request for its end user, or nil if it doesn't name one.
func (g *Gate) heldUser(ctx context.Context, key tenants.APIKey, endUser string) ([]limits.Held, error) {
	budgets, err := g.Settings.Budgets(ctx, key.Workspace)
	quota, has := budgets[tenants.Spender{Kind: tenants.EndUserSpends}]
	if err != nil || !has || endUser == "" {
		return nil, err
	}
	who := tenants.Spender{Kind: tenants.EndUserSpends, ID: endUser}
	return []limits.Held{{Subject: limits.Subject{Workspace: key.Workspace, Spender: who}, Quota: quota}}, nil
}

// route finds the target of an admitted request. dialect is its API's dialect, model returns its model.
func (g *Gate) route(ctx context.Context, event *RequestLog, admission *admission, dialect tenants.Provider, model proxysettings.Model) (err error) {
	ctx, span := spans.Start(ctx, "route")
	defer span.EndWith(&err)
	admission.routes, err = g.Settings.Routes(ctx, admission.key.Workspace, dialect, admission.asked.choice, model)
	if err != nil {
		return err
	}
	admission.sendTo(event, admission.routes.Targets[0])
	return nil
}

// sendTo directs a request to a target.
func (a *admission) sendTo(event *RequestLog, target upstream.Target) {
	a.target = target
	event.Provider, event.ProviderKey = string(target.Provider), target.KeyID
}

// asked returns a request's settings, based on the pipeline of its key.
func (g *Gate) asked(ctx context.Context, codec wire.Codec, admission admission, header http.Header, path string, body []byte) (prompt.Request, error) {
	layer, err := admission.asked.layer()
	if err != nil {
		return prompt.Request{}, err
	}
	config, _, err := g.Settings.Config(ctx, admission.key, layer)
	if err != nil {
		return prompt.Request{}, err
	}
	overrides, err := g.Settings.Overrides(ctx, admission.key.Workspace, admission.target.KeyID)
	if err != nil {
		return prompt.Request{}, err
	}
	allowed := admission.key.Limits // so that only these move to the heap
	return prompt.Request{
		Scope: session.Scope{
			Workspace: admission.key.Workspace, APIKey: admission.key.ID, Format: codec.Format(), Upstream: admission.target.Upstream(),
			EndUser: session.EndUserID(admission.key.Workspace, admission.asked.endUser), Project: admission.asked.tags[tenants.ProjectTag],
		},
		Codec: codec, Config: config, Headers: header, Path: path, Body: body, Bypass: admission.asked.bypass, DryRun: admission.asked.dryRun, NoStore: admission.asked.noStore, Long: asksLongWindow(header),
		Overrides: overrides, Usage: !g.plain.has(admission), Destination: destinationOf(admission.target),
		Allow: func(model tokens.Model, asked string) error {
			return allowed.CheckModel(asked, model.Price != tokens.Price{})
		},
	}, nil
}

// destinationOf converts a target to a prompt's destination.
func destinationOf(target upstream.Target) prompt.Destination {
	return prompt.Destination{Provider: string(target.Provider), Region: target.Region(), Key: target.KeyID}
}

// forward is a request whose prompt goes to a provider.
type forward struct {
	admission

	codec    wire.Codec
	request  *http.Request
	endpoint string
	purpose  purpose
	body     *requestBody
}

// summarized returns the inputs of a summary that the request calls for.
func (o forward) summarized() summaries.Request {
	return summaries.Request{Key: o.key, Held: o.held, Choice: o.asked.choice, Account: o.target.KeyID, Header: o.request.Header}
}

// write writes the prompt of a request. Outside of conversations, a body that can't be parsed is forwarded
// unchanged, because the provider may understand it.
func (s *Server) write(ctx context.Context, event *RequestLog, forward forward) (_ *prompt.Prompt, err error) {
	ctx, span := spans.Start(ctx, "write prompt")
	defer span.EndWith(&err)
	restraint, err := s.Settings.Restraint(ctx, forward.key.Workspace)
	if err != nil {
		return nil, err
	}
	asks := !forward.asked.bypass // bypass means an unchanged prompt
	if forward.purpose == summarize || restraint.Reason != tenants.Unrestrained {
		forward.asked.bypass = true
	}
	asked, err := s.asked(ctx, forward.codec, forward.admission, forward.request.Header, forward.endpoint, forward.body.bytes)
	if err != nil {
		return nil, err
	}
	asked.Usage = asked.Usage && asks
	body := forward.body
	asked.Memory = func(size int) []byte {
		body.sealed = s.bodies.get(size)
		return body.sealed.bytes
	}
	write := s.Prompts.Write
	if forward.purpose == measure {
		write = s.Prompts.Count
	}
	written, err := write(ctx, asked)
	if err != nil {
		var bad prompt.BodyError
		if forward.purpose != converse && errors.As(err, &bad) && problem(err).Status == http.StatusBadRequest {
			if err := forward.key.Limits.CheckRelay(forward.endpoint, false); err != nil {
				return nil, err
			}
			event.Report.Compression = pipeline.Bypassed
			return &prompt.Prompt{Body: forward.body.bytes}, nil
		}
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	forward.body.seal(written.Body)
	if warning := warningOf(restraint); warning != "" {
		written.Exchange.Report.Warnings = append(written.Exchange.Report.Warnings, warning)
	}
	if err := s.nameUser(ctx, event, forward, written.Exchange); err != nil {
		return nil, err
	}
	event.describe(written)
	s.Metrics.Recorded.Archived.Add(float64(written.Archived))
	s.Metrics.Recorded.Redact(written.Redacted)
	return written, nil
}

// holdUser applies the limits of the end user in the body of a request, because the user is unknown until the
// body has been read.
func (g *Gate) holdUser(ctx context.Context, event *RequestLog, forward *forward) error {
	if forward.asked.endUser != "" || g.Limits == nil {
		return nil
	}
	held, err := g.heldUser(ctx, forward.key, event.from.EndUser)
	if err != nil || len(held) == 0 {
		return err
	}
	forward.held = append(slices.Clip(forward.held), held...)
	return g.Limits.Join(ctx, event.held.ticket, held...)
}

// nameUser notes the application's user, with the application's own id if the workspace shows it.
func (g *Gate) nameUser(ctx context.Context, event *RequestLog, forward forward, exchange *pipeline.Exchange) error {
	event.from.EndUser = exchange.Scope.EndUser
	isShown, err := g.Settings.ShowsEndUsers(ctx, forward.key.Workspace)
	if isShown && !forward.asked.noStore {
		exchange.Scope.EndUserName = cmp.Or(forward.asked.endUser, exchange.Request.EndUser)
	}
	return err
}

// send sends a prompt to the provider.
func (s *Server) send(ctx context.Context, event *RequestLog, forward forward, written *prompt.Prompt) (*http.Response, error) {
	header := forward.request.Header
	if written.Beta != "" {
		header = header.Clone()
		header.Add("Anthropic-Beta", written.Beta)
	}
	ctx = infer(ctx, event, forward, written)
	asked := upstream.Request{
		Resends: event.Attempts,
		Method:  forward.request.Method, Path: pathAndQuery(forward.request, forward.endpoint), Header: header, Body: written.Body,
	}
	if held := forward.body.holder(written.Body); held != nil {
		held.hold()
		asked.Done = held.release
	}
	event.Attempts++
	asked.Begun = &event.held.owes
	response, err := s.Upstream.Send(ctx, asked, forward.target)
	if err == nil && (response.StatusCode < 200 || response.StatusCode >= 300) {
		event.held.owes.Store(false) // an error is free
	}
	event.times.heard(s.Now())
	if err == nil && (forward.purpose != converse || response.StatusCode >= http.StatusBadRequest) {
		err = plainly(response, forward.target.Key)
	}
	return response, err
}

// asksLongWindow reports whether a request enables the long context window of some Anthropic models.
func asksLongWindow(header http.Header) bool {
	return strings.Contains(strings.Join(header.Values("Anthropic-Beta"), ","), "context-1m-")
}

// describe fills the event with the facts known before the request is sent.
func (e *RequestLog) describe(written *prompt.Prompt) {
	exchange := written.Exchange
	e.ID = exchange.ID
	e.Model, e.ModelFamily = exchange.Request.Model, modelFamily(exchange.Model.Family)
	e.Stream = exchange.Request.Stream
	e.Report, e.Trial = exchange.Report, written.Trial
	e.times.archived(written.Archiving)
	e.Client, e.Class = cmp.Or(exchange.Class.Client, e.Client), exchange.Class.Kind
	if exchange.Lane.Projection != nil {
		e.record.projection = exchange.Lane.Projection.Number
	}
	if lane := written.Lane; lane != nil {
		e.Session, e.Lane, e.Source = lane.Session, lane.ID, lane.Source
	}
}

// pathAndQuery returns a path with the request's query.
func pathAndQuery(request *http.Request, path string) string {
	if request.URL.RawQuery == "" {
		return path
	}
	return path + "?" + request.URL.RawQuery
}

// isEventStream reports whether an answer is a stream of events.
func isEventStream(response *http.Response) bool {
	return isStream(response.Header.Get("Content-Type"))
}

// isStream reports whether a content type is that of a stream of events.
func isStream(contentType string) bool {
	return strings.HasPrefix(strings.ToLower(contentType), "text/event-stream")
}
