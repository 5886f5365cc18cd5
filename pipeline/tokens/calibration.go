package tokens

import (
	"strings"
	"sync"

	"palimpsest/tenants"
)

const (
	firstStep  = 0.9 // of the way to the first report
	laterStep  = 0.4 // of the way to each later one,
	longest    = 0.1 // but never further than by this share
	halfTrust  = 500 // tokens of a prompt that moves the factor half as far: providers add to every prompt
	leastKnown = 0.4 // bounds of every factor
	mostKnown  = 4.0
	leastHeard = 0.2 // bounds of the reports that are believed
	mostHeard  = 8.0

	maxLearnt    = 20_000
	maxModelName = 200
)

// Calibration learns, for each workspace, provider and model, how many of the model's
// tokens one o200k token comes to: a moving average over what the provider
// reported. What is learned of one model, or of a model at one provider, is never used
// for another. It is safe for
// concurrent use and remembers 20,000 factors.
type Calibration struct {
	mu      sync.Mutex
	factors map[subject]float64
}

type subject struct {
	workspace tenants.WorkspaceID
	provider  string
	model     string
}

// NewCalibration returns a Calibration that has learned nothing.
func NewCalibration() *Calibration {
	return &Calibration{factors: map[subject]float64{}}
}

// Factor returns how many of the model's tokens one o200k token comes to in a
// workspace's prompts; before anything is learned, the model's own TokensPerO200k.
func (c *Calibration) Factor(workspace tenants.WorkspaceID, model Model) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if factor, learned := c.factors[subjectOf(workspace, model)]; learned {
		return factor
	}
	return prior(model)
}

// Observe learns from a prompt of estimated o200k tokens for which the provider
// reported so many of its own. Reports that cannot be meant for the whole prompt
// are ignored.
func (c *Calibration) Observe(workspace tenants.WorkspaceID, model Model, estimatedO200k, reported int) {
	if estimatedO200k <= 0 || reported <= 0 {
		return
	}
	heard := float64(reported) / float64(estimatedO200k)
	if heard < leastHeard || heard > mostHeard {
		return
	}
	trust := float64(estimatedO200k) / float64(estimatedO200k+halfTrust)
	subject := subjectOf(workspace, model)

	c.mu.Lock()
	defer c.mu.Unlock()
	factor, learned := c.factors[subject]
	if !learned {
		c.makeRoom()
		subject.model, subject.provider = strings.Clone(subject.model), strings.Clone(subject.provider) // they may be part of a request
		factor = prior(model)
		factor += firstStep * trust * (heard - factor)
	} else {
		step := laterStep * trust * (heard - factor)
		factor += max(-longest*factor, min(longest*factor, step))
	}
	c.factors[subject] = max(leastKnown, min(mostKnown, factor))
}

// makeRoom forgets a factor if there are too many; it will be learned again.
func (c *Calibration) makeRoom() {
	if len(c.factors) < maxLearnt {
		return
	}
	for subject := range c.factors {
		delete(c.factors, subject)
		return
	}
}

func prior(model Model) float64 {
	if model.TokensPerO200k > 0 {
		return model.TokensPerO200k
	}
	return tokensPerO200kOther
}

func subjectOf(workspace tenants.WorkspaceID, model Model) subject {
	return subject{workspace: workspace, provider: model.Provider, model: model.Name[:min(len(model.Name), maxModelName)]}
}
