package api

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants/redaction"
)

// lookUp looks for a cached answer to a request; nil if the request isn't for the cache.
func lookUp(ctx context.Context, answers *semanticcache.Cache, event *RequestLog, forward forward, written *prompt.Prompt) *semanticcache.Lookup {
	if answers == nil || event.Report.Cache != pipeline.CacheMiss {
		return nil
	}
	exchange, header := written.Exchange, forward.request.Header
	request := semanticcache.Request{
		Asked: semanticcache.Asked{Format: forward.codec.Format(), Rules: forward.codec.Reuse(), Body: written.Body, Origin: []string{
			string(forward.target.Provider), forward.target.BaseURL, forward.target.KeyID.String(),
			pathAndQuery(forward.request, forward.endpoint), strconv.FormatBool(exchange.Request.Stream), written.Beta,
		}},
		Config:    pipeline.SettingsOf[semanticcache.Config](exchange.Config),
		Workspace: forward.key.Workspace, APIKey: forward.key.ID, Person: forward.key.Person,
		Project: exchange.Scope.Project, EndUser: exchange.Scope.EndUser,
		HasHistory: forward.purpose != converse || exchange.Projection != nil,
		NoStore:    forward.asked.noStore || asksNoStore(header) || holdsPersonalData(event.record.redactor, written.Body),
		BringsKey:  forward.asked.choice.Key != "",
	}
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "Openai-Beta"} {
		request.Origin = append(request.Origin, strings.Join(header.Values(name), ","))
	}
	if written.Lane != nil {
		request.Session = written.Lane.Session
	}
	return answers.Look(ctx, &event.Report, request)
}

// asksNoStore reports whether a client wants neither an earlier answer nor this one kept for later requests.
func asksNoStore(header http.Header) bool {
	return slices.ContainsFunc(header.Values("Cache-Control"), func(line string) bool {
		line = strings.ToLower(line)
		return strings.Contains(line, "no-store") || strings.Contains(line, "no-cache")
	})
}

// holdsPersonalData reports whether a redactor would replace something in a message. Such a message is
// neither cached nor looked up, because the next similar one may be about another person.
func holdsPersonalData(redactor *redaction.Redactor, raw []byte) bool {
	_, found := redactor.JSON(raw)
	return len(found) > 0
}

// keepAnswer caches an answer for equal requests, if it may be reused.
func keepAnswer(answers *semanticcache.Cache, event *RequestLog, codec wire.Codec, asked *semanticcache.Lookup, response *http.Response, answer wire.Answer) {
	if asked == nil || response.StatusCode != http.StatusOK || event.outcome.Aborted != "" || event.outcome.ErrorFrom != "" ||
		answer.ErrorType != "" || isEncoding(encodingOf(response.Header)) {
		return
	}
	said := semanticcache.Answered{Rules: codec.Reuse(), Complete: answer.Complete, StopReason: answer.StopReason}
	for _, raw := range answer.Messages {
		if holdsPersonalData(event.record.redactor, raw) {
			return
		}
		message, err := codec.Parse(raw)
		if err != nil {
			message.Blocks = []conversation.Block{{Kind: conversation.Opaque}}
		}
		said.Messages = append(said.Messages, message)
	}
	answers.Keep(event.traced.request.In(context.Background()), asked, said, semanticcache.Entry{
		ContentType: response.Header.Get("Content-Type"), Model: event.Model, MicroUSD: event.money.CostMicroUSD, AskedAt: event.times.At,
	})
}

// copyTap copies an answer on its way to the client.
type copyTap struct {
	wire.Tap

	into io.Writer
}

// beside returns tap, and copies its input to a lookup unless asked is nil.
func beside(tap wire.Tap, asked *semanticcache.Lookup) wire.Tap {
	if asked == nil {
		return tap
	}
	return copyTap{Tap: tap, into: asked}
}

// Write implements wire.Tap.
func (c copyTap) Write(p []byte) (int, error) {
	_, _ = c.into.Write(p) // it never fails
	return c.Tap.Write(p)
}

// Interface guard.
var _ wire.Tap = copyTap{}
