package openaichat

import "palimpsest/pipeline/wire"

// Error returns the body of an error of ours, as OpenAI's API words one.
func (Codec) Error(problem wire.Problem) []byte { return problem.OpenAI() }
