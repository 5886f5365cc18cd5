package journal

import "time"

// Patient has Redis be waited for however slow the machine is.
func (p *Peers) Patient() *Peers {
	p.within = time.Minute
	return p
}
