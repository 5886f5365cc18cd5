package policy_test

import (
	"maps"
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
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/jobs/jobsdb"
)

const (
	alertsFile    = "deploy/prometheus/alerts.yml"
	dashboardFile = "deploy/grafana/palimpsest.json"
)

// checked returns the output of the program in deploy/tools/checks for a file.
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
	for _, file := range []string{alertsFile, dashboardFile} {
		named := found(readFile(t, file), `\b((?:palimpsest|go|process|promhttp)_[a-z_]+)\b`)
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

// Prometheus and Grafana read the same files with the same result.
func TestAlertsAndDashboardAreReadByPrometheus(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "compiling Prometheus takes a minute")
	for kind, file := range map[string]string{"rules": alertsFile, "dashboard": dashboardFile} {
		for _, name := range checked(t, kind, file) {
			if name != "up" && !strings.Contains(readFile(t, file), name) {
				t.Errorf("%s: Prometheus reads the metric %s, which the text lacks", file, name)
			}
		}
	}
}

func TestEveryAlertHasASectionOfTheRunbook(t *testing.T) {
	t.Parallel()
	alerts := found(readFile(t, alertsFile), `(?m)^      - alert: (\w+)$`)
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
	named `yaml:",inline"`

	Data map[string]string `yaml:"data"`
	Spec struct {
		Service  string   `yaml:"serviceName"`
		Target   target   `yaml:"scaleTargetRef"`
		Selector selector `yaml:"selector"`
		Pods     selector `yaml:"podSelector"`
		Ports    []struct {
			Target string `yaml:"targetPort"`
		} `yaml:"ports"`
		Claims   []named `yaml:"volumeClaimTemplates"`
		Template struct {
			Metadata struct {
				Labels map[string]string `yaml:"labels"`
			} `yaml:"metadata"`
			Spec struct {
				Grace      int         `yaml:"terminationGracePeriodSeconds"`
				Containers []container `yaml:"containers"`
				Volumes    []target    `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

// named is an object that others name.
type named struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
}

// target is what an object names another by.
type target struct {
	Kind string `yaml:"kind"`
	Name string `yaml:"name"`
}

// selector picks pods: a Service's by the labels themselves.
type selector struct {
	Name   string            `yaml:"app.kubernetes.io/name"`
	Labels map[string]string `yaml:"matchLabels"`
}

type container struct {
	Ports  []target `yaml:"ports"`
	Mounts []target `yaml:"volumeMounts"`
	Env    []struct {
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

const manifestsFile = "deploy/kubernetes/palimpsest.yaml"

// manifests reads the objects, by their kinds.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	objects := map[string]manifest{}
	for document := range strings.SplitSeq(readFile(t, manifestsFile), "\n---\n") {
		var object manifest
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects[object.Kind] = object
	}
	return objects
}

func TestKubernetesManifestsAreWhatTheAPITakes(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "compiling Kubernetes takes a minute")
	checked(t, "manifests", manifestsFile)
}

func TestKubernetesManifestsFitTheProgram(t *testing.T) {
	t.Parallel()
	objects := manifests(t)
	for _, kind := range []string{"StatefulSet", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy"} {
		if _, is := objects[kind]; !is {
			t.Errorf("there is no %s", kind)
		}
	}
	settings, pod := objects["ConfigMap"].Data, objects["StatefulSet"].Spec.Template.Spec
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

// What the API takes may still name nothing: a service without pods answers nobody.
func TestKubernetesObjectsNameEachOther(t *testing.T) {
	t.Parallel()
	objects := manifests(t)
	set, service := objects["StatefulSet"], objects["Service"]
	pod := set.Spec.Template
	if scaled := objects["HorizontalPodAutoscaler"].Spec.Target; scaled != (target{"StatefulSet", set.Metadata.Name}) {
		t.Errorf("the autoscaler is for %+v", scaled)
	}
	if set.Spec.Service != service.Metadata.Name {
		t.Errorf("the replicas' service is %q", set.Spec.Service)
	}
	for kind, labels := range map[string]map[string]string{
		"StatefulSet": set.Spec.Selector.Labels, "PodDisruptionBudget": objects["PodDisruptionBudget"].Spec.Selector.Labels,
		"NetworkPolicy": objects["NetworkPolicy"].Spec.Pods.Labels, "Service": {"app.kubernetes.io/name": service.Spec.Selector.Name},
	} {
		if !maps.Equal(labels, pod.Metadata.Labels) {
			t.Errorf("the %s picks pods by %v, they have %v", kind, labels, pod.Metadata.Labels)
		}
	}
	names := func(of []target) (all []string) {
		for _, one := range of {
			all = append(all, one.Name)
		}
		return all
	}
	volumes := names(pod.Spec.Volumes)
	for _, claim := range set.Spec.Claims {
		volumes = append(volumes, claim.Metadata.Name)
	}
	for _, mount := range pod.Spec.Containers[0].Mounts {
		if !slices.Contains(volumes, mount.Name) {
			t.Errorf("there is no volume %s", mount.Name)
		}
	}
	if len(service.Spec.Ports) == 0 || !slices.Contains(names(pod.Spec.Containers[0].Ports), service.Spec.Ports[0].Target) {
		t.Errorf("the service's ports are %v", service.Spec.Ports)
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
