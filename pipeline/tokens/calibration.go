package tokens

import (
	"strings"
	"sync"

	"palimpsest/tenants"
)

const (
	firstStep  = 0.9 // of the way to the first report
	laterStep  = 0.4 // of the way to each later one,
	longest    = 0.1 // but at most by this share
	halfTrust  = 500 // tokens of a prompt that moves the factor half as far, because providers add to every prompt
	leastKnown = 0.4 // bounds of every factor
	mostKnown  = 4.0
	leastHeard = 0.2 // bounds of accepted reports
	mostHeard  = 8.0

	maxLearned   = 20_000
	maxModelName = 200
)

// Calibration learns, for each workspace, provider and model, the model's tokens per o200k token: a moving
// average over the provider's reports. It never uses a factor for another model, or for the same model at
// another provider. It is safe for concurrent use and remembers 20,000 factors.
type Calibration struct {
	mu      sync.Mutex
	factors map[subject]float64
}

type subject struct {
	workspace tenants.WorkspaceID
	provider  string
	model     string
}

// NewCalibration returns an empty Calibration.
func NewCalibration() *Calibration {
	return &Calibration{factors: map[subject]float64{}}
}

// Factor returns the model's tokens per o200k token in a workspace's prompts, at first the model's
// TokensPerO200k.
func (c *Calibration) Factor(workspace tenants.WorkspaceID, model Model) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if factor, learned := c.factors[subjectOf(workspace, model)]; learned {
		return factor
	}
	return prior(model)
}

// Observe learns from a prompt of estimated o200k tokens and the provider's own count. It ignores reports
// that can't be for the whole prompt.
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
		subject.model, subject.provider = strings.Clone(subject.model), strings.Clone(subject.provider) // cloned because they may be part of a request
		factor = prior(model)
		factor += firstStep * trust * (heard - factor)
	} else {
		step := laterStep * trust * (heard - factor)
		factor += max(-longest*factor, min(longest*factor, step))
	}
	c.factors[subject] = max(leastKnown, min(mostKnown, factor))
}

// makeRoom drops a factor if there are too many; it will be learned again.
func (c *Calibration) makeRoom() {
	if len(c.factors) < maxLearned {
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
