package audit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/tenants"
	"palimpsest/web/components"
)

// Every action of the log is said in words.
func TestEveryActionHasASentence(t *testing.T) {
	t.Parallel()
	count := 0
	for _, name := range []string{"../../tenants/audit.go", "../../tenants/operator.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			value, is := node.(*ast.ValueSpec)
			if !is || len(value.Values) != 1 {
				return true
			}
			of, isName := value.Type.(*ast.Ident)
			literal, isLiteral := value.Values[0].(*ast.BasicLit)
			if !isName || of.Name != "Action" || !isLiteral {
				return true
			}
			action, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			// What operators do outside a workspace stands in their own log.
			if strings.HasPrefix(action, "operator.") || strings.HasPrefix(action, "subscription.") {
				return true
			}
			count++
			if doneWith()[tenants.Action(action)] == "" {
				t.Errorf("%s has no words", action)
			}
			return true
		})
	}
	if count < 50 {
		t.Errorf("%d actions", count)
	}
}

func TestSentenceNamesWhatItIsAbout(t *testing.T) {
	t.Parallel()
	const id = "01982c5e-1111-7000-8000-000000000001"
	for name, test := range map[string]struct {
		change tenants.Change
		want   sentence
	}{
		"by its name":      {tenants.Change{Action: tenants.PasskeyRemoved, Target: id, Before: tenants.Fields{"name": "Laptop"}}, sentence{Verb: "removed the passkey", Object: "Laptop"}},
		"by its id":        {tenants.Change{Action: tenants.SessionDeleted, Target: id}, sentence{Verb: "deleted the session", Object: "01982c5e"}},
		"between words":    {tenants.Change{Action: tenants.InvitationResent, Target: id, After: tenants.Fields{"email": "a@b.c"}}, sentence{Verb: "sent the invitation of", Object: "a@b.c", Rest: " again"}},
		"with one outcome": {tenants.Change{Action: tenants.RetentionSet, Before: tenants.Fields{"days": "0"}, After: tenants.Fields{"days": "7"}}, sentence{Verb: "set how long sessions are kept", Outcome: "days: 0 → 7"}},
		"with settings": {
			tenants.Change{
				Action: tenants.PipelineSaved,
				Before: tenants.Fields{"modules": "ipc", "settings": "# hasty\nipc:\n  targetUtilization: 0.3\n  minClear: 0.01\n"},
				After:  tenants.Fields{"modules": "ipc,patterns", "settings": `{"ipc":{"targetUtilization":0.6,"trigger":"break-even","minClear":0.01}}`},
			},
			sentence{Verb: "saved the pipeline", Outcome: "modules: [ipc] → [ipc, patterns] · ipc.targetUtilization: 0.3 → 0.6 · ipc.trigger: window → break-even"},
		},
		"of unknown actions": {tenants.Change{Action: "moon.landed_on", Target: "crater"}, sentence{Verb: "moon landed on:", Object: "crater"}},
	} {
		if got := newRow(&tenants.AuditEntry{Change: test.change}, pipeline.Layer{}).Said; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestMomentsAreShownInTheReadersZone(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	ctx := components.WithZone(t.Context(), berlin)
	for value, want := range map[string]string{
		"2026-11-28T21:48:21Z": "28 Nov 2026, 22:48:21 CET",
		"2026-11-28":           "2026-11-28",
		"viewer":               "viewer",
		"":                     "",
	} {
		if got := written(ctx, value); got != want {
			t.Errorf("%q is shown as %q, want %q", value, got, want)
		}
	}
}
