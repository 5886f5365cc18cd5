package providerdouble

import "slices"

import "strings"

// check applies all rules for a whole request. Contents of one role that follow each other count as one.
func (g *geminiReader) check(r *geminiRequest) *Rejection {
	var turns []geminiContent
	for _, content := range r.contents {
		if content.badSigned != "" {
			return refuse("Thought signature is not valid.")
		}
		if last := len(turns) - 1; last >= 0 && turns[last].role == content.role {
			turns[last].calls = append(slices.Clip(turns[last].calls), content.calls...)
			turns[last].results = append(slices.Clip(turns[last].results), content.results...)
			turns[last].hasText = turns[last].hasText || content.hasText
			continue
		}
		turns = append(turns, *content)
	}
	if rejection := checkFunctions(turns); rejection != nil {
		return rejection
	}
	if rejection := r.checkSignatures(turns); rejection != nil {
		return rejection
	}
	r.tokens = g.config.reported(sumTokens(r.prompt()))
	if r.tokens > r.model.Window {
		return r.overflow()
	}
	return nil
}

// checkFunctions requires the responses of all calls right behind them, and calls behind a content of the user.
func checkFunctions(turns []geminiContent) *Rejection {
	for i := range turns {
		turn := &turns[i]
		var before geminiContent
		if i > 0 {
			before = turns[i-1]
		}
		switch {
		case len(turn.calls) > 0 && i == 0:
			return refuse("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		case len(turn.results) > 0 && len(before.calls) == 0:
			return refuse("Please ensure that function response turn comes immediately after a function call turn.")
		case len(before.calls) > 0 && len(turn.results) != len(before.calls):
			return refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
		for _, name := range turn.results {
			if !before.hasCalled(name) {
				return refuse("Please ensure that function response turn comes immediately after a function call turn. No call of %s.", name)
			}
		}
	}
	if last := turns[len(turns)-1]; len(last.calls) > 0 {
		return refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	return nil
}

func (c *geminiContent) hasCalled(name string) bool {
	for _, call := range c.calls {
		if call.name == name {
			return true
		}
	}
	return false
}

// checkSignatures requires, of Gemini 3 and later, a signature at the first call of each step since the last text
// of the user.
func (r *geminiRequest) checkSignatures(turns []geminiContent) *Rejection {
	if !strings.HasPrefix(r.modelID, "gemini-3") {
		return nil
	}
	for i := len(turns) - 1; i >= 0 && !(turns[i].role == "user" && turns[i].hasText); i-- {
		if calls := turns[i].calls; len(calls) > 0 && !calls[0].isSigned {
			return refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. "+
				"Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", calls[0].name, i+1)
		}
	}
	return nil
}

// prompt lists the positions of the prompt.
func (r *geminiRequest) prompt() []position {
	list := r.before()
	for _, content := range r.contents {
		list.add(content.role, content.sum, content.tokens)
	}
	return list.all
}

func (r *geminiRequest) about() Request {
	about := Request{Model: r.modelID, Stream: r.stream, Thinks: r.thinks, Tokens: r.tokens}
	for _, content := range r.contents {
		switch {
		case content.role == "model":
			about.Answers++
			about.Results = nil
		case len(content.results) > 0:
			about.Results = append(about.Results, content.said...)
		default:
			about.User, about.Results = content.text, nil
		}
	}
	return about
}
