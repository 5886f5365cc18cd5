package policy_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"palimpsest/api"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/pipeline/jobs/jobsdb"
)

// checked has the program in deploy/tools/checks read a file, and returns what it prints.
func checked(t *testing.T, kind, file string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), buildtest.Checks(t), kind, file)
	command.Dir = root
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, said)
	}
	return strings.Fields(string(said))
}

// A rule or a panel with a metric that does not exist never fires and shows nothing.
func TestAlertsAndDashboardNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := described{names: map[string]bool{"up": true}} // Prometheus makes this one
	api.NewMetrics(known)
	jobsdb.NewMetrics(known)
	jobsdb.NewBacklog(known, nil, nil)
	for _, name := range namedInTheProgram(t, `[a-z_]+`) {
		known.names[name] = true
	}
	for kind, file := range map[string]string{"rules": "deploy/prometheus/alerts.yml", "dashboard": "deploy/grafana/palimpsest.json"} {
		named := checked(t, kind, file)
		if len(named) < 10 {
			t.Errorf("%s names %d metrics", file, len(named))
		}
		for _, name := range named {
			if !known.names[name] && !known.names[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s names %s, which nothing registers", file, name)
			}
		}
	}
}

func TestEveryAlertHasASectionOfTheRunbook(t *testing.T) {
	t.Parallel()
	alerts := found(readFile(t, "deploy/prometheus/alerts.yml"), `(?m)^      - alert: (\w+)$`)
	sections := found(readFile(t, "docs/runbook.md"), `(?m)^## (\w+)$`)
	if len(alerts) == 0 || !slices.Equal(alerts, sections) {
		t.Errorf("alerts\n%v\nsections\n%v", alerts, sections)
	}
	for _, section := range strings.Split(readFile(t, "docs/runbook.md"), "\n## ")[1:] {
		for _, part := range []string{"**Notice:**", "**Look:**", "**Do:**"} {
			if !strings.Contains(section, part) {
				t.Errorf("%s says nothing behind %s", strings.Fields(section)[0], part)
			}
		}
	}
}

// found returns what the first group of a pattern matches, sorted.
func found(text, pattern string) []string {
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	slices.Sort(all)
	return all
}

// manifest is what the tests ask of a Kubernetes object; its schema is the program's matter.
type manifest struct {
	Kind string            `yaml:"kind"`
	Data map[string]string `yaml:"data"`
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int         `yaml:"terminationGracePeriodSeconds"`
				Containers []container `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type container struct {
	Env []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	Startup   probe `yaml:"startupProbe"`
	Readiness probe `yaml:"readinessProbe"`
	Liveness  probe `yaml:"livenessProbe"`
}

type probe struct {
	Get struct {
		Path string `yaml:"path"`
	} `yaml:"httpGet"`
	Period   int `yaml:"periodSeconds"`
	Failures int `yaml:"failureThreshold"`
}

func TestKubernetesManifestsAreWhatTheAPITakes(t *testing.T) {
	t.Parallel()
	const file = "deploy/kubernetes/palimpsest.yaml"
	checked(t, "manifests", file)

	objects := map[string]manifest{}
	for document := range strings.SplitSeq(readFile(t, file), "\n---\n") {
		var object manifest
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects[object.Kind] = object
	}
	for _, kind := range []string{"Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy"} {
		if _, is := objects[kind]; !is {
			t.Errorf("there is no %s", kind)
		}
	}
	settings, pod := objects["ConfigMap"].Data, objects["Deployment"].Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	for _, one := range pod.Containers[0].Env {
		settings[one.Name] = one.Value
	}
	documented := readFile(t, "docs/operations.md")
	for name := range settings {
		if !strings.Contains(documented, "`"+name+"`") {
			t.Errorf("%s is no setting", name)
		}
	}

	probes := pod.Containers[0]
	if probes.Startup.Get.Path != "/readyz" || probes.Readiness.Get.Path != "/readyz" || probes.Liveness.Get.Path != "/healthz" {
		t.Errorf("probes ask %s, %s, %s", probes.Startup.Get.Path, probes.Readiness.Get.Path, probes.Liveness.Get.Path)
	}
	delay, timeout := lasting(t, settings["PALIMPSEST_DRAIN_DELAY"]), lasting(t, settings["PALIMPSEST_DRAIN_TIMEOUT"])
	if seen := time.Duration(probes.Readiness.Period*probes.Readiness.Failures) * time.Second; delay < seen {
		t.Errorf("requests are taken for %s, balancers learn of it within %s", delay, seen)
	}
	if grace := time.Duration(pod.Grace) * time.Second; grace <= delay+timeout {
		t.Errorf("killed after %s, streams may go on for %s", grace, delay+timeout)
	}
}

func TestSystemdUnitLetsStreamsEnd(t *testing.T) {
	t.Parallel()
	const file = "deploy/systemd/palimpsest.service"
	stop := found(readFile(t, file), `(?m)^TimeoutStopSec=(\d+)$`)
	if len(stop) != 1 || lasting(t, stop[0]+"s") <= 5*time.Minute+5*time.Second { // the defaults
		t.Errorf("killed after %v seconds", stop)
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // systems without systemd
	}
	said, _ := exec.CommandContext(t.Context(), verify, "verify", filepath.Join(root, file)).CombinedOutput()
	for line := range strings.Lines(string(said)) {
		// The program is not installed where tests run.
		if strings.Contains(line, "palimpsest.service") && !strings.Contains(line, "is not executable") {
			t.Error(line)
		}
	}
}

func lasting(t *testing.T, text string) time.Duration {
	t.Helper()
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return duration
}
