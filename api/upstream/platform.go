package upstream

import (
	"net/http"

	"palimpsest/tenants"
)

// platform is a cloud that offers another provider's models, or an API that has parts of a request in its path. It
// stands between a provider key and the wire
// format: the pipeline writes requests and reads answers in the form of the provider's own API.
type platform interface {
	// rewrite returns a request and its target in the platform's form.
	rewrite(asked Request, target Target) (Request, Target, error)

	// restore gives a successful answer to the request the form that the provider's own API has. It must not
	// read from a stream.
	restore(asked Request, response *http.Response) error
}

// platformOf returns the platform of a target; nil for the provider's own API.
func platformOf(target Target) platform {
	switch {
	case target.Platform == tenants.PlatformBedrock:
		return bedrock{}
	case target.Platform == tenants.PlatformGoogle:
		return google{}
	case target.Provider == tenants.ProviderGemini:
		return geminiAPI{}
	default:
		return nil
	}
}

// onPlatform returns a request and its target in the form of the target's platform, and the function that gives
// the answer its form back.
func onPlatform(asked Request, target Target) (Request, Target, func(*http.Response) error, error) {
	platform := platformOf(target)
	if platform == nil {
		return asked, target, func(*http.Response) error { return nil }, nil
	}
	rewritten, at, err := platform.rewrite(asked, target)
	if err != nil {
		return asked, target, nil, err
	}
	rewritten.Header = rewritten.Header.Clone()
	for name := range rewritten.Header {
		if isSigning(name) {
			rewritten.Header.Del(name)
		}
	}
	if rewritten.Done != nil { // the rewritten body is a copy
		rewritten.Done()
		rewritten.Done = nil
	}
	asked.Body = nil
	return rewritten, at, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return nil // errors go to the client as the platform wrote them
		}
		return platform.restore(asked, response)
	}, nil
}
