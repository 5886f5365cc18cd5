package prompt

// Standing is the prompt that would have gone out without a new epoch. Since it extends the previous request,
// the provider may have that part cached.
type Standing struct {
	Body   []byte
	Beta   string // addition to the client's anthropic-beta header; "" if absent
	Tokens int    // estimate, in the model's tokens
}

// Standing returns the prompt as it was before the modules worked on it. Its body may share the client's
// memory, so call it before that memory is released.
func (p *Prompt) Standing() Standing {
	exchange := *p.Exchange
	exchange.Projection = p.earlier.standing
	stood := &Prompt{Exchange: &exchange, earlier: earlier{omits: p.earlier.omits, isLost: p.earlier.isLost}}
	stood.seal(p.AsksUsage, nil)
	return Standing{Body: stood.Body, Beta: stood.Beta, Tokens: exchange.Size(p.earlier.standing)}
}
