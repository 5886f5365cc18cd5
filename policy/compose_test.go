package policy_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"palimpsest/pipeline/archive/blob"
)

// instruction is one instruction of a Dockerfile, its continued lines joined.
type instruction struct {
	name  string
	words []string
}

// dockerfile is what the tests ask of a Dockerfile.
type dockerfile struct {
	stages       []string
	instructions []instruction
}

// composition is what the tests ask of docker-compose.yml. Unknown keys fail.
type composition struct {
	Services map[string]service   `yaml:"services"`
	Volumes  map[string]*struct{} `yaml:"volumes"`
}

type service struct {
	Image       string                `yaml:"image"`
	Build       *build                `yaml:"build"`
	Command     []string              `yaml:"command"`
	DependsOn   map[string]dependency `yaml:"depends_on"`
	Environment map[string]string     `yaml:"environment"`
	Ports       []string              `yaml:"ports"`
	Volumes     []string              `yaml:"volumes"`
	HealthCheck *healthCheck          `yaml:"healthcheck"`
	Restart     string                `yaml:"restart"`
	StopGrace   string                `yaml:"stop_grace_period"`
}

type build struct {
	Context string `yaml:"context"`
	Target  string `yaml:"target"`
}

type dependency struct {
	Condition string `yaml:"condition"`
}

type healthCheck struct {
	Test     []string `yaml:"test"`
	Interval string   `yaml:"interval"`
	Timeout  string   `yaml:"timeout"`
	Retries  int      `yaml:"retries"`
}

func TestDockerfileBuildsTheProductFromAllItsFolders(t *testing.T) {
	t.Parallel()
	file := readDockerfile(t)

	copied := file.copiedFromContext()
	for _, path := range copied {
		if _, err := fs.Stat(repository, filepath.Clean(path)); err != nil {
			t.Errorf("Dockerfile copies %s, which does not exist", path)
		}
	}
	for _, source := range sources(t) {
		top, _, _ := strings.Cut(source.Path, "/")
		if !source.Test && !slices.Contains(copied, top) {
			t.Fatalf("Dockerfile does not copy %s, which holds %s", top, source.Path)
		}
	}

	ignored := strings.Fields(readFile(t, ".dockerignore"))
	for _, path := range copied {
		if slices.Contains(ignored, path) {
			t.Errorf(".dockerignore hides %s, which the Dockerfile copies", path)
		}
	}
}

func TestDockerfileStartsTheProgramItBuilt(t *testing.T) {
	t.Parallel()
	file := readDockerfile(t)

	compile := strings.Join(file.find(t, "RUN", "go build").words, " ")
	target := regexp.MustCompile(`-o (\S+) (\./\S+)`).FindStringSubmatch(compile)
	if target == nil {
		t.Fatalf("no `-o OUT ./PACKAGE` in %q", compile)
	}
	if _, err := fs.Stat(repository, filepath.Join(target[2], "main.go")); err != nil {
		t.Errorf("Dockerfile builds %s, which has no main.go", target[2])
	}

	install := file.find(t, "COPY", "--from=build").words
	if install[1] != target[1] {
		t.Errorf("the product copies %s, but %s was built", install[1], target[1])
	}
	entry := file.find(t, "ENTRYPOINT", "").words
	if program := strings.TrimPrefix(install[2], "/usr/local/bin/"); len(entry) != 1 || entry[0] != program {
		t.Errorf("ENTRYPOINT is %v, want %s", entry, program)
	}
	if command := file.find(t, "CMD", "serve").words; len(command) != 1 {
		t.Errorf("CMD is %v, want serve alone", command)
	}
}

func TestDockerfileUsesTheGoVersionOfTheModule(t *testing.T) {
	t.Parallel()

	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, "go.mod"))[1]
	image := readDockerfile(t).find(t, "FROM", "golang:").words[0]
	if !strings.HasPrefix(image, "golang:"+wanted+"-") {
		t.Errorf("Dockerfile builds with %s, go.mod wants Go %s", image, wanted)
	}
}

func TestProductImageRunsWithoutRootAndKnowsItsHealth(t *testing.T) {
	t.Parallel()
	file := readDockerfile(t)

	if user := file.find(t, "USER", "").words[0]; user == "root" || user == "0" {
		t.Errorf("the product runs as %s", user)
	}
	environment := file.environment(t)
	for name := range environment {
		if !slices.Contains(settingsOfTheProgram(t), name) {
			t.Errorf("Dockerfile sets %s, which the program does not read", name)
		}
	}

	exposed := file.find(t, "EXPOSE", "").words
	for _, name := range []string{"PALIMPSEST_ADDR", "PALIMPSEST_ADMIN_ADDR"} {
		_, port, _ := strings.Cut(environment[name], ":")
		if !slices.Contains(exposed, port) {
			t.Errorf("%s=%s is not among the exposed ports %v", name, environment[name], exposed)
		}
	}
	_, admin, _ := strings.Cut(environment["PALIMPSEST_ADMIN_ADDR"], ":")
	health := strings.Join(file.find(t, "HEALTHCHECK", "").words, " ")
	if !strings.Contains(health, ":"+admin+"/readyz") {
		t.Errorf("HEALTHCHECK %q does not ask /readyz on port %s", health, admin)
	}
}

func TestComposeFileNamesWhatExists(t *testing.T) {
	t.Parallel()
	compose := readComposition(t)
	file := readDockerfile(t)

	for name, service := range compose.Services {
		if (service.Image == "") == (service.Build == nil) {
			t.Errorf("%s has neither or both of image and build", name)
		}
		if service.Build != nil && !slices.Contains(file.stages, service.Build.Target) {
			t.Errorf("%s builds %q, which is no stage of the Dockerfile: %v", name, service.Build.Target, file.stages)
		}
		if service.Image != "" && (!strings.Contains(service.Image, ":") || strings.HasSuffix(service.Image, ":latest")) {
			t.Errorf("%s uses %s: name a version", name, service.Image)
		}
		if service.Build == nil && service.HealthCheck == nil {
			t.Errorf("%s has no health check", name)
		}
		for other, dependency := range service.DependsOn {
			if _, exists := compose.Services[other]; !exists || dependency.Condition != "service_healthy" {
				t.Errorf("%s waits for %s until %q", name, other, dependency.Condition)
			}
		}
		for _, mount := range service.Volumes {
			volume, _, _ := strings.Cut(mount, ":")
			if _, declared := compose.Volumes[volume]; !declared {
				t.Errorf("%s mounts %s, which is not declared", name, volume)
			}
		}
	}
}

func TestComposeFileGivesTheProductSettingsItReads(t *testing.T) {
	t.Parallel()
	product := readComposition(t).Services["palimpsest"]
	known := settingsOfTheProgram(t)

	for name := range product.Environment {
		// The S3 client's own credentials, read by its library.
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "AWS_") {
			t.Errorf("docker-compose.yml sets %s, which the program does not read", name)
		}
	}
	for _, name := range []string{"DATABASE_URL", "REDIS_URL", "PALIMPSEST_BLOB_URL", "PALIMPSEST_SECRET_KEY"} {
		if product.Environment[name] == "" {
			t.Errorf("docker-compose.yml does not set %s", name)
		}
	}

	if _, err := blob.Open(product.Environment["PALIMPSEST_BLOB_URL"]); err != nil {
		t.Errorf("PALIMPSEST_BLOB_URL %v", err)
	}

	exposed := readDockerfile(t).find(t, "EXPOSE", "").words
	for _, published := range product.Ports {
		port := published[strings.LastIndex(published, ":")+1:]
		if !slices.Contains(exposed, port) {
			t.Errorf("port %s is published and not exposed: %v", port, exposed)
		}
		if !strings.HasPrefix(published, "127.0.0.1:") {
			t.Errorf("%s is published to the network", published)
		}
	}
}

func TestComposeSecretsAreRequiredAndExplained(t *testing.T) {
	t.Parallel()

	example := readFile(t, "deploy/env.example")
	variables := regexp.MustCompile(`\$\{(\w+)(:\?)?`).FindAllStringSubmatch(readFile(t, "docker-compose.yml"), -1)
	if len(variables) == 0 {
		t.Fatal("docker-compose.yml takes no secret from .env")
	}
	for _, variable := range variables {
		if variable[2] == "" {
			t.Errorf("%s may be empty: write ${%s:?…}", variable[1], variable[1])
		}
		if !regexp.MustCompile(`(?m)^` + variable[1] + `=$`).MatchString(example) {
			t.Errorf("deploy/env.example has no empty line for %s", variable[1])
		}
	}
}

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()

	var file dockerfile
	text := strings.ReplaceAll(readFile(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		name, words := fields[0], fields[1:]
		if name == "FROM" && len(words) == 3 && words[1] == "AS" {
			file.stages = append(file.stages, words[2])
		}
		if strings.HasPrefix(words[0], "[") {
			words = strings.FieldsFunc(strings.Join(words, " "), func(r rune) bool { return strings.ContainsRune(`[]," `, r) })
		}
		file.instructions = append(file.instructions, instruction{name: name, words: words})
	}

	return file
}

// find returns the last instruction of this name that holds text.
func (d dockerfile) find(t *testing.T, name, text string) instruction {
	t.Helper()

	for _, instruction := range slices.Backward(d.instructions) {
		if instruction.name == name && strings.Contains(strings.Join(instruction.words, " "), text) {
			return instruction
		}
	}
	t.Fatalf("Dockerfile has no %s with %q", name, text)

	return instruction{}
}

// copiedFromContext returns what is copied from the folder that is built.
func (d dockerfile) copiedFromContext() []string {
	var paths []string
	for _, instruction := range d.instructions {
		if instruction.name == "COPY" && !strings.HasPrefix(instruction.words[0], "--from=") {
			paths = append(paths, instruction.words[:len(instruction.words)-1]...)
		}
	}

	return paths
}

func (d dockerfile) environment(t *testing.T) map[string]string {
	t.Helper()

	variables := map[string]string{}
	for _, word := range d.find(t, "ENV", "").words {
		name, value, _ := strings.Cut(word, "=")
		variables[name] = value
	}

	return variables
}

func readComposition(t *testing.T) composition {
	t.Helper()

	var compose composition
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, "docker-compose.yml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&compose); err != nil {
		t.Fatalf("docker-compose.yml: %v", err)
	}
	if len(compose.Services) == 0 {
		t.Fatal("docker-compose.yml has no services")
	}

	return compose
}

func readFile(t *testing.T, name string) string {
	t.Helper()

	text, err := fs.ReadFile(repository, filepath.Clean(name))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
