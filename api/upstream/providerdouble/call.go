package providerdouble

import (
	"context"
	"net/http"
)

// overLength is the code for a prompt over the limit, in OpenAI's formats.
const overLength = "context_length_exceeded"

// call is one request on its way through the double.
type call struct {
	double    *Double
	w         http.ResponseWriter
	r         *http.Request
	entry     *Recorded
	requestID string
	body      []byte // as the model's own API takes it, with the members of its path
}

// refuse answers with a refusal and records it; invalid says that the body is at fault.
func (c *call) refuse(format string, rejection *Rejection, invalid bool) {
	c.double.log.update(func() {
		c.entry.Status = rejection.Status
		if invalid {
			c.entry.Invalid = rejection
		}
	})
	rejection.write(c.w, format, c.requestID)
}

// generate answers a generation request.
func (c *call) generate(ctx context.Context, format string) {
	d := c.double
	c.entry.Format = format
	asked := c.r.Header.Get(MisbehaveHeader)
	request, rejection := d.judge(format, c.r.Header, c.body)
	if rejection == nil {
		rejection = d.config.knows(format, request.about().Model)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
		if late, isLate := request.(*responsesRequest); isLate && d.config.LateOverflow && late.stream && rejection.Code == overLength {
			c.entry.Status = http.StatusOK
			d.log.add(c.entry)
			answer{events: failedEvents(late.frame(d), rejection)}.stream(ctx, c.w, delivery{})
			return
		}
		d.log.add(c.entry)
		rejection.write(c.w, format, c.requestID)
		return
	}
	about := request.about()
	about.Format, about.Header, about.Body = format, c.r.Header, c.entry.Body
	c.entry.Model, c.entry.Prompt, c.entry.Status = about.Model, about.Tokens, http.StatusOK
	c.entry.positions = request.prompt()
	d.log.add(c.entry)
	if refusal := refusalFor(asked, format); refusal != nil {
		c.refuse(format, refusal, false)
		return
	}
	if asked == MisbehaveOverflowOnce && d.overflows.refuses(accountOf(c.r), c.entry.Body) {
		c.refuse(format, request.overflow(), false)
		return
	}
	c.reply(ctx, request, about)
}

// reply runs the script, and sends its reply.
func (c *call) reply(ctx context.Context, request generation, about Request) {
	d := c.double
	reply := d.config.Script(about)
	misbehave := misbehavior(c.r, reply)
	refusal := reply.Rejection
	if refusal == nil {
		refusal = refusalFor(misbehave, about.Format)
	}
	if refusal == nil && misbehave == MisbehaveOverflowOnce && c.r.Header.Get(MisbehaveHeader) == "" && d.overflows.refuses(accountOf(c.r), c.entry.Body) {
		refusal = request.overflow()
	}
	if refusal != nil {
		c.refuse(about.Format, refusal, false)
		return
	}
	use := d.useCache(accountOf(c.r), request, c.entry.Body)
	reply, output := d.fit(request, reply)
	usage := Usage{Input: use.fresh, CacheRead: use.read, CacheWrite: use.write, CacheWrite1h: use.write1h, Output: output}
	if reply.Thinking != "" && about.Thinks {
		usage.Reasoning = d.config.reported(d.config.Count(reply.Thinking))
	}
	if reply.Usage != nil {
		usage = *reply.Usage
	}
	usage.Terms = terms(about.Format, c.body, reply)
	d.log.update(func() {
		c.entry.Prompt = usage.Input + usage.CacheRead + usage.CacheWrite
		c.entry.CacheRead, c.entry.CacheWrite = usage.CacheRead, usage.CacheWrite
		c.entry.Usage = usage
	})
	request.answer(d, reply, usage).send(ctx, c.w, delivery{
		format: about.Format, stream: about.Stream, misbehave: misbehave, delay: reply.Delay, slow: d.config.Slow, sleep: d.config.Sleep,
	})
}

// fit shortens a reply's text to the tokens that the request leaves it, and returns the remaining size in
// reported tokens.
func (d *Double) fit(request generation, reply Reply) (Reply, int) {
	thinking := 0
	if request.about().Thinks {
		thinking = d.config.Count(reply.Thinking)
	}
	for _, call := range reply.Calls {
		thinking += d.config.Count(call.Name) + d.config.Count(string(call.Input))
	}
	size := func() int { return d.config.reported(thinking + d.config.Count(reply.Text)) }
	limit, atWindow := request.maxOutput(), false
	if room := request.room(); limit < 0 || room < limit {
		limit, atWindow = room, true
	}
	if limit == 0 && !atWindow {
		// max_tokens: 0 only warms the cache.
		return Reply{StopReason: "max_tokens"}, 0
	}
	if size() <= limit || len(reply.Calls) > 0 {
		return reply, size()
	}
	letters := []rune(reply.Text)
	reply.Text = string(letters[:len(letters)*max(limit, 0)/size()])
	if atWindow {
		reply.StopReason = cutAtWindow
	}
	return reply, max(limit, 0)
}

// knows refuses an unknown model.
func (c Config) knows(format, id string) *Rejection {
	if _, found := c.model(id); found || c.AllowUnknown {
		return nil
	}
	return noModel(format, id)
}

type anthropicCount struct {
	InputTokens int `json:"input_tokens"`
}

// countTokens answers POST /v1/messages/count_tokens.
func (c *call) countTokens() {
	d := c.double
	c.entry.Status = http.StatusOK
	r, rejection := d.anthropic.read(c.r.Header, c.body, true)
	if rejection == nil {
		rejection = d.anthropic.check(r)
	}
	if rejection == nil {
		rejection = d.config.knows(Anthropic, r.modelID)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
	} else {
		c.entry.Model, c.entry.Prompt = r.modelID, r.tokens
	}
	d.log.add(c.entry)
	if rejection != nil {
		rejection.write(c.w, Anthropic, c.requestID)
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	writeBody(c.w, anthropicCount{InputTokens: r.tokens})
}
