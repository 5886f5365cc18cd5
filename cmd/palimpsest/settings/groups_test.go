package settings

import (
	"math"
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants/identity"
)

// S49: connections of clients leave descriptors to the admin listener, the database and files.
func TestConnectionsFollowTheSettings(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int{400: 300, 1500: 1125, 65_536: 64_512, math.MaxUint64: 0} {
		if got := descriptorsOf(files); got != want {
			t.Errorf("of %d files connections take %d, want %d", files, got, want)
		}
	}
	config, err := LoadConfig("", environment(map[string]string{
		"PALIMPSEST_CONNECTIONS_PER_PLACE": "1", "PALIMPSEST_CONNECTIONS_PER_KEY": "2", "PALIMPSEST_CONNECTIONS_PER_ACCOUNT": "3", "PALIMPSEST_WORKSPACES_PER_PERSON": "4",
	}))
	if err != nil {
		t.Fatal(err)
	}
	limits := config.Bounds.Connections()
	if limits.PerPlace != 1 || limits.PerKey != 2 || limits.PerAccount != 3 || config.SignUps().Workspaces != 4 {
		t.Errorf("%+v, %+v", limits, config.Accounts.SignUp)
	}
	if config, err = LoadConfig("", environment(nil)); err != nil || config.Bounds != DefaultBounds() || config.SignUps().Workspaces != defaultWorkspaces {
		t.Errorf("by default %+v, %+v, %v", config.Bounds, config.Accounts.SignUp, err)
	}
}

func TestSignUpSettingsAreRead(t *testing.T) {
	t.Parallel()
	config, err := LoadConfig("", environment(map[string]string{
		"PALIMPSEST_SIGNUP": "domains", "PALIMPSEST_SIGNUP_DOMAINS": "Example.com, @example.org", "PALIMPSEST_SIGNUP_BLOCK_DOMAINS": "bad.example",
		"PALIMPSEST_SIGNUP_DISPOSABLE": "refuse", "PALIMPSEST_WORKSPACE_CONCURRENCY": "7", "PALIMPSEST_OPERATOR_CONTACT": "ops@example.com",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := config.Accounts.SignUp
	if got.Open != identity.OpenToDomains || !slices.Equal(got.Domains, []string{"example.com", "example.org"}) || !slices.Equal(got.Blocked, []string{"bad.example"}) ||
		!got.RefuseDisposable || config.WorkspaceConcurrency != 7 || config.Accounts.OperatorContact != "ops@example.com" {
		t.Errorf("%+v, %d, %q", got, config.WorkspaceConcurrency, config.Accounts.OperatorContact)
	}
	if _, err := LoadConfig("", environment(map[string]string{"PALIMPSEST_SIGNUP": "domains"})); err == nil || !strings.Contains(err.Error(), "PALIMPSEST_SIGNUP_DOMAINS") {
		t.Errorf("domains without any: %v", err)
	}
	for name, c := range map[string]struct {
		settings map[string]string
		quiet    bool
	}{
		"without mail":                   {nil, false},
		"with mail":                      {map[string]string{"SMTP_URL": "smtp://mail.example.com:587", "PALIMPSEST_MAIL_FROM": "ops@example.com"}, true},
		"with verified addresses":        {map[string]string{"PALIMPSEST_REQUIRE_VERIFIED_EMAIL": "true"}, true},
		"with mail, told to tell":        {map[string]string{"SMTP_URL": "smtp://mail.example.com:587", "PALIMPSEST_MAIL_FROM": "ops@example.com", "PALIMPSEST_SIGNUP_TELLS": "true"}, false},
		"without mail, told not to tell": {map[string]string{"PALIMPSEST_SIGNUP_TELLS": "false"}, true},
	} {
		config, err := LoadConfig("", environment(c.settings))
		if err != nil || config.quietSignUps() != c.quiet {
			t.Errorf("%s: sign-ups are quiet: %v, %v", name, !c.quiet, err)
		}
	}
	config, err = LoadConfig("", environment(nil))
	if err != nil || config.Accounts.SignUp.Open != "" || config.Accounts.SignUp.RefuseDisposable || config.WorkspaceConcurrency != 200 {
		t.Errorf("by default: %+v, %d, %v", config.Accounts.SignUp, config.WorkspaceConcurrency, err)
	}
}

func TestWrongSettingOfTracesIsNamed(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        "localhost:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ftp://hunter2",
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "grpc",
		"OTEL_EXPORTER_OTLP_HEADERS":         "hunter2",
		"OTEL_RESOURCE_ATTRIBUTES":           "a=%zz",
		"OTEL_TRACES_SAMPLER":                "jaeger_remote",
		"OTEL_TRACES_SAMPLER_ARG":            "110",
		"OTEL_TRACES_EXPORTER":               "zipkin",
		"OTEL_SDK_DISABLED":                  "perhaps",
	} {
		set := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", name: value}
		if _, err := LoadConfig("", environment(set)); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
		delete(set, "OTEL_EXPORTER_OTLP_ENDPOINT")
		if set[name] = value; strings.Contains(name, "_ENDPOINT") || name == "OTEL_SDK_DISABLED" {
			continue
		}
		if _, err := LoadConfig("", environment(set)); err != nil {
			t.Errorf("%s for other programs: %v", name, err)
		}
	}
	config, err := LoadConfig("", environment(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/", "OTEL_EXPORTER_OTLP_HEADERS": "a=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=Bearer%20x, b=2",
		"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
	}))
	if err != nil || config.Traces.URL() != "http://collector:4318/v1/traces" || !config.Traces.IsOn() {
		t.Fatalf("%+v %v", config.Traces, err)
	}
	if headers, err := Pairs(config.Traces.Headers); err != nil || headers["authorization"] != "Bearer x" || headers["b"] != "2" || len(headers) != 2 {
		t.Errorf("headers %v %v", headers, err)
	}
}
