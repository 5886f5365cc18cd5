package prompt

// Standing is the prompt that would have gone out without an epoch: what the
// provider has of it in its cache is the prompt of the request before.
type Standing struct {
	Body   []byte
	Beta   string // value that the anthropic-beta header needs beside the client's; empty if none
	Tokens int    // estimate, in the model's tokens
}

// Standing returns the prompt as it stood before the modules worked on it. Its
// body may share the client's memory. It must be called before that is let go.
func (p *Prompt) Standing() Standing {
	exchange := *p.Exchange
	exchange.Projection = p.earlier.standing
	stood := &Prompt{Exchange: &exchange, earlier: earlier{omits: p.earlier.omits, isLost: p.earlier.isLost}}
	stood.seal(p.AsksUsage, nil)
	return Standing{Body: stood.Body, Beta: stood.Beta, Tokens: exchange.Size(p.earlier.standing)}
}
