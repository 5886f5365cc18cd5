package settings

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Traces configures the tracing of requests, by OpenTelemetry's own variables
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
type Traces struct {
	Endpoint       string // OTEL_EXPORTER_OTLP_ENDPOINT: for all of OpenTelemetry's exports; empty: TracesEndpoint
	TracesEndpoint string // OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: for spans only, with its path; both empty: traces are off
	Protocol       string // OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL
	Headers        string // OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TRACES_HEADERS; often holds a secret
	Service        string // OTEL_SERVICE_NAME; empty: taken from Resource
	Resource       string // OTEL_RESOURCE_ATTRIBUTES
	Sampler        string // OTEL_TRACES_SAMPLER
	SamplerArg     string // OTEL_TRACES_SAMPLER_ARG
	Exporter       string // OTEL_TRACES_EXPORTER: otlp or none
	Disabled       bool   // OTEL_SDK_DISABLED
}

// The accepted values. Unlike OpenTelemetry's, the default sampler ignores the parent because a client
// controls it.
const (
	tracesProtocol = "http/protobuf"
	tracesExporter = "otlp"
	TracesService  = "palimpsest"
	AlwaysOn       = "always_on"
	AlwaysOff      = "always_off"
	ByRatio        = "traceidratio"
	ByParent       = "parentbased_" // prefix of each of them
)

// DefaultTraces returns the settings of an installation without its own: tracing is off.
func DefaultTraces() Traces {
	return Traces{Protocol: tracesProtocol, Exporter: tracesExporter, Sampler: AlwaysOn}
}

// IsOn reports whether requests are traced.
func (t Traces) IsOn() bool {
	return (t.Endpoint != "" || t.TracesEndpoint != "") && !t.Disabled && t.Exporter != "none"
}

// URL returns the destination of spans.
func (t Traces) URL() string {
	if t.TracesEndpoint != "" {
		return t.TracesEndpoint
	}
	return strings.TrimRight(t.Endpoint, "/") + "/v1/traces"
}

// Ratio returns the sampled share of the traces that begin here, if the sampler takes a share.
func (t Traces) Ratio() (float64, error) {
	if t.SamplerArg == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(t.SamplerArg, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, errors.New("must be a number from 0 to 1, such as 0.05")
	}
	return ratio, nil
}

// traceSettings lists the settings of traces.
func traceSettings() []setting {
	text := func(field func(*Traces) *string) func(*Config, string) error {
		return func(config *Config, value string) error { *field(&config.Traces) = value; return nil }
	}
	protocol, headers := text(func(t *Traces) *string { return &t.Protocol }), text(func(t *Traces) *string { return &t.Headers })
	return []setting{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", text(func(t *Traces) *string { return &t.Endpoint })},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text(func(t *Traces) *string { return &t.TracesEndpoint })},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", protocol},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", protocol}, // the later one wins
		{"OTEL_EXPORTER_OTLP_HEADERS", headers},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", headers},
		{"OTEL_SERVICE_NAME", text(func(t *Traces) *string { return &t.Service })},
		{"OTEL_RESOURCE_ATTRIBUTES", text(func(t *Traces) *string { return &t.Resource })},
		{"OTEL_TRACES_SAMPLER", text(func(t *Traces) *string { return &t.Sampler })},
		{"OTEL_TRACES_SAMPLER_ARG", text(func(t *Traces) *string { return &t.SamplerArg })},
		{"OTEL_TRACES_EXPORTER", text(func(t *Traces) *string { return &t.Exporter })},
		{"OTEL_SDK_DISABLED", truth(func(c *Config) *bool { return &c.Traces.Disabled })},
	}
}

// Validate names the first wrong setting if tracing is on. Otherwise the variables may belong to other
// programs.
func (t Traces) Validate() error {
	if !t.IsOn() {
		return nil
	}
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": t.Endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": t.TracesEndpoint} {
		if parsed, err := url.Parse(value); value != "" && (err != nil || parsed.Host == "") {
			return fmt.Errorf("%s: is not a URL such as http://localhost:4318", name)
		}
		if err := checkURL(name, value, "http", "https"); err != nil {
			return err
		}
	}
	if t.Protocol != tracesProtocol {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported; spans are sent as %s, to port 4318 of most collectors", t.Protocol, tracesProtocol)
	}
	if t.Exporter != tracesExporter {
		return fmt.Errorf("OTEL_TRACES_EXPORTER: %q is neither otlp nor none", t.Exporter)
	}
	samplers := []string{AlwaysOn, AlwaysOff, ByRatio}
	if !slices.Contains(samplers, strings.TrimPrefix(t.Sampler, ByParent)) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER: %q is unknown; it must be one of %s, each also with %s in front", t.Sampler, strings.Join(samplers, ", "), ByParent)
	}
	if _, err := t.Ratio(); err != nil {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %w", err)
	}
	if _, err := Pairs(t.Headers); err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	if _, err := Pairs(t.Resource); err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return nil
}

// Pairs reads a list such as "name=value,other=value", whose values are percent-encoded. The error never
// quotes the list.
func Pairs(list string) (map[string]string, error) {
	values := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("must be a list such as name=value,other=value, with percent-encoded values")
		}
		values[name] = value
	}
	return values, nil
}
