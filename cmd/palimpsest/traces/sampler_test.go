package traces

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/cmd/palimpsest/settings"
)

// A client cannot have more of its requests traced than the operator wants, unless the
// operator has chosen to follow it.
func TestAClientsWordDecidesOnlyWhereTheOperatorWantsIt(t *testing.T) {
	t.Parallel()
	const many = 2000
	for _, test := range []struct {
		sampler, ratio     string
		alone, asks, asks0 [2]int // the least and the most of many that are traced: without a parent, with one that is traced, with one that is not
	}{
		{"always_on", "", [2]int{many, many}, [2]int{many, many}, [2]int{many, many}},
		{"always_off", "", [2]int{0, 0}, [2]int{0, 0}, [2]int{0, 0}},
		{"traceidratio", "0", [2]int{0, 0}, [2]int{0, 0}, [2]int{0, 0}},
		{"traceidratio", "0.1", [2]int{50, 400}, [2]int{50, 400}, [2]int{50, 400}},
		{"traceidratio", "", [2]int{many, many}, [2]int{many, many}, [2]int{many, many}},
		{"parentbased_always_on", "", [2]int{many, many}, [2]int{many, many}, [2]int{0, 0}},
		{"parentbased_traceidratio", "0", [2]int{0, 0}, [2]int{many, many}, [2]int{0, 0}},
	} {
		traces := settings.DefaultTraces()
		traces.Endpoint, traces.Sampler, traces.SamplerArg = "http://localhost:4318", test.sampler, test.ratio
		if err := traces.Validate(); err != nil {
			t.Fatal(err)
		}
		sampler, err := samplerOf(traces)
		if err != nil {
			t.Fatal(err)
		}
		// The id that a sampler by ids always takes.
		parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{1}, Remote: true})
		for name, of := range map[string]struct {
			parent trace.SpanContext
			want   [2]int
		}{"alone": {trace.SpanContext{}, test.alone}, "traced": {parent.WithTraceFlags(trace.FlagsSampled), test.asks}, "not traced": {parent, test.asks0}} {
			ctx, taken := trace.ContextWithSpanContext(t.Context(), of.parent), 0
			for range many {
				if sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: trace.TraceID{15: 1}}).Decision == sdktrace.RecordAndSample {
					taken++
				}
			}
			if taken < of.want[0] || taken > of.want[1] {
				t.Errorf("%s %s, %s: %d of %d are traced", test.sampler, test.ratio, name, taken, many)
			}
		}
	}
}
