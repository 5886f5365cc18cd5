// Command checks validates the files of deploy for other programs with the packages of those programs:
// Prometheus rules, the queries of a Grafana dashboard, and Kubernetes manifests. It prints the metrics in
// rules and queries, one a line. If a file would be refused it prints the errors and exits with 1.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: checks rules|dashboard|manifests FILE…")
	}
	check, known := map[string]func([]byte) error{"rules": rules, "dashboard": dashboard, "manifests": manifests}[args[0]]
	if !known {
		return fmt.Errorf("unknown kind of file %q", args[0])
	}
	for _, file := range args[1:] {
		text, err := os.ReadFile(file)
		if err == nil {
			err = check(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// rules checks a file of Prometheus rules as Prometheus loads it.
func rules(text []byte) error {
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if err := printMetrics(rule.Expr); err != nil {
				return fmt.Errorf("%s: %w", rule.Alert, err)
			}
		}
	}
	return nil
}

// dashboard checks the queries of a Grafana dashboard.
func dashboard(text []byte) error {
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return err
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			// Grafana replaces the interval before it queries.
			query := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(target.Expr)
			if err := printMetrics(query); err != nil {
				return fmt.Errorf("panel %q: %w", panel.Title, err)
			}
		}
	}
	return nil
}

// printMetrics prints the metrics in a query.
func printMetrics(query string) error {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return err
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			name := slices.IndexFunc(selector.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })
			fmt.Println(selector.LabelMatchers[name].Value)
		}
		return nil
	})
	return nil
}

// manifests checks Kubernetes objects against the API's types. Unknown members and values of another type are
// refused, as by `kubectl apply --validate=strict`.
func manifests(text []byte) error {
	types := map[string]func() any{
		"apps/v1 StatefulSet":                    func() any { return new(appsv1.StatefulSet) },
		"autoscaling/v2 HorizontalPodAutoscaler": func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
		"networking.k8s.io/v1 Ingress":           func() any { return new(networkingv1.Ingress) },
		"networking.k8s.io/v1 NetworkPolicy":     func() any { return new(networkingv1.NetworkPolicy) },
		"policy/v1 PodDisruptionBudget":          func() any { return new(policyv1.PodDisruptionBudget) },
		"v1 ConfigMap":                           func() any { return new(corev1.ConfigMap) },
		"v1 Namespace":                           func() any { return new(corev1.Namespace) },
		"v1 Secret":                              func() any { return new(corev1.Secret) },
		"v1 Service":                             func() any { return new(corev1.Service) },
		"v1 ServiceAccount":                      func() any { return new(corev1.ServiceAccount) },
	}
	for i, document := range strings.Split("\n"+string(text), "\n---\n") {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return fmt.Errorf("object %d: %w", i+1, err)
		}
		name := kind.APIVersion + " " + kind.Kind
		object, known := types[name]
		if !known {
			return fmt.Errorf("object %d: no type for %q", i+1, name)
		}
		if err := yaml.UnmarshalStrict([]byte(document), object()); err != nil {
			return fmt.Errorf("object %d, %s: %w", i+1, name, err)
		}
	}
	return nil
}
