package policy_test

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"palimpsest/api/spool"
	"palimpsest/pipeline/session/journal"
)

// alertRule is a rule of deploy/prometheus/alerts.yml.
type alertRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alertRules(t *testing.T) []alertRule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []alertRule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/prometheus/alerts.yml")), &file); err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) < 20 {
		t.Fatalf("%+v, %v", file, err)
	}
	return file.Groups[0].Rules
}

// A rule whose selector has a value that no metric gets never fires.
func TestAlertsSelectLabelValuesThatExist(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, pattern := range []string{"api/*.go", "api/*/*.go", "cmd/palimpsest/*.go", "cmd/palimpsest/*/*.go", "pipeline/*/*.go", "pipeline/jobs/*/*.go", "tenants/*/*.go"} {
		files, err := fs.Glob(repository, pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				source.WriteString(readFile(t, file))
			}
		}
	}
	selector, checked := regexp.MustCompile(`(\w+)=~?"([^"]+)"`), 0
	for _, rule := range alertRules(t) {
		for _, match := range selector.FindAllStringSubmatch(rule.Expr, -1) {
			if match[1] == "job" {
				continue // of Prometheus's own settings
			}
			for value := range strings.SplitSeq(match[2], "|") {
				checked++
				if match[1] == "status_class" {
					value = strings.TrimLeft(value, "12345") // the program puts the digit in front
				}
				if !strings.Contains(source.String(), `"`+value+`"`) {
					t.Errorf("%s selects %s=%q, which the program does not set", rule.Alert, match[1], value)
				}
			}
			if !strings.Contains(source.String(), `"`+match[1]+`"`) {
				t.Errorf("%s selects by %s, which no metric has", rule.Alert, match[1])
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d values were looked at", checked)
	}
}

// The bounds of the local disk are those of the program: each alert comes before they are reached.
func TestAlertOfTheLocalDiskKnowsItsBounds(t *testing.T) {
	t.Parallel()
	bounds := map[string]int64{"palimpsest_unrecorded_bytes": spool.DefaultBytes, "palimpsest_journal_bytes": journal.DefaultBytes}
	for _, rule := range alertRules(t) {
		if rule.Alert != "PalimpsestLocalRoomShort" {
			continue
		}
		for part := range strings.SplitSeq(rule.Expr, " or ") {
			metric, product, _ := strings.Cut(part, " > ")
			value := 1.0
			for factor := range strings.SplitSeq(product, "*") {
				number, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
				if err != nil {
					t.Fatal(err)
				}
				value *= number
			}
			if share := value / float64(bounds[metric]); share < 0.5 || share > 0.9 {
				t.Errorf("%s: the alert comes at %.2f of its bound", metric, share)
			}
			delete(bounds, metric)
		}
	}
	if len(bounds) > 0 {
		t.Errorf("no alert watches %v", bounds)
	}
}

// Each rule names its urgency and its problem, and compares with a number.
func TestEveryAlertIsUrgentOrNotAndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	compares := regexp.MustCompile(`[<>=]=?\s*-?[0-9.]`)
	for _, rule := range alertRules(t) {
		if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		if rule.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", rule.Alert)
		}
		if !compares.MatchString(rule.Expr) && !strings.HasPrefix(rule.Expr, "absent(") {
			t.Errorf("%s fires whenever its metric exists: %s", rule.Alert, rule.Expr)
		}
	}
}
