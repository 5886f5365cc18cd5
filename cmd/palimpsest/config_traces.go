package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Traces says whether requests are traced and where their spans go, by OpenTelemetry's own
// variables (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
type Traces struct {
	Endpoint       string // OTEL_EXPORTER_OTLP_ENDPOINT: of all that OpenTelemetry exports; empty: TracesEndpoint
	TracesEndpoint string // OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: of spans alone, with its path; both empty: traces are off
	Protocol       string // OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL
	Headers        string // OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TRACES_HEADERS; often holds a secret
	Service        string // OTEL_SERVICE_NAME; empty: as Resource says
	Resource       string // OTEL_RESOURCE_ATTRIBUTES
	Sampler        string // OTEL_TRACES_SAMPLER
	SamplerArg     string // OTEL_TRACES_SAMPLER_ARG
	Exporter       string // OTEL_TRACES_EXPORTER: otlp or none
	Disabled       bool   // OTEL_SDK_DISABLED
}

// The values that are taken. Not to follow a parent is the default, other than in OpenTelemetry:
// the parent is a client's word.
const (
	tracesProtocol = "http/protobuf"
	tracesExporter = "otlp"
	tracesService  = "palimpsest"
	alwaysOn       = "always_on"
	alwaysOff      = "always_off"
	byRatio        = "traceidratio"
	byParent       = "parentbased_" // in front of each of them
)

// DefaultTraces returns the settings of an installation that sets none: nothing is traced.
func DefaultTraces() Traces {
	return Traces{Protocol: tracesProtocol, Exporter: tracesExporter, Sampler: alwaysOn}
}

// IsOn reports whether requests are traced.
func (t Traces) IsOn() bool {
	return (t.Endpoint != "" || t.TracesEndpoint != "") && !t.Disabled && t.Exporter != "none"
}

// URL returns where spans are sent.
func (t Traces) URL() string {
	if t.TracesEndpoint != "" {
		return t.TracesEndpoint
	}
	return strings.TrimRight(t.Endpoint, "/") + "/v1/traces"
}

// Ratio returns the part of the traces that begin here that are kept, where the sampler
// takes a part.
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

// validate names the first setting that is wrong, if requests are traced: else the others
// are for other programs.
func (t Traces) validate() error {
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
	samplers := []string{alwaysOn, alwaysOff, byRatio}
	if !slices.Contains(samplers, strings.TrimPrefix(t.Sampler, byParent)) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER: %q is unknown; it must be one of %s, each also with %s in front", t.Sampler, strings.Join(samplers, ", "), byParent)
	}
	if _, err := t.Ratio(); err != nil {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %w", err)
	}
	if _, err := pairs(t.Headers); err != nil {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	if _, err := pairs(t.Resource); err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return nil
}

// pairs reads a list such as "name=value,other=value", whose values are percent-encoded.
// The error shows none of it.
func pairs(list string) (map[string]string, error) {
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
