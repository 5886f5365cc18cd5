package tokens_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline/tokens"
)

// catalog returns a catalog of a day with some rows.
func catalog(day string, rows ...string) []byte {
	return []byte(`{"version":1,"date":"` + day + `","sources":{"s":"https://example.com"},"prefixes":["openai"],"tools":[],"models":[` + strings.Join(rows, ",") + `]}`)
}

// row returns a row of a catalog with more members.
func row(name, members string) string {
	return `{"name":"` + name + `","family":"f","provider":"p","window":100000,"maxOutput":1000` + members + `,"source":"s","date":"2026-01-01"}`
}

// W52: a row that cannot be meant, or of which nobody can tell where it is from, is refused with
// its name and its fault.
func TestCatalogWithAFaultIsRefused(t *testing.T) {
	t.Parallel()
	for fault, content := range map[string][]byte{
		"not a catalog":                []byte(`[]`),
		"version 2":                    []byte(`{"version":2,"date":"2027-01-01","models":[]}`),
		"no models":                    []byte(`{"version":1,"date":"2027-01-01","models":[]}`),
		"unknown field":                catalog("2027-01-01", row("a", `,"color":"red"`)),
		"is there twice":               catalog("2027-01-01", row("a", ``), row("b", `,"aliases":["a"]`)),
		"not in small letters":         catalog("2027-01-01", row("A", ``)),
		"maxInput is 100001":           catalog("2027-01-01", row("a", `,"maxInput":100001`)),
		"input and output above 0":     catalog("2027-01-01", row("a", `,"price":{"input":1}`)),
		"costs more than input":        catalog("2027-01-01", row("a", `,"price":{"input":1,"output":2,"cacheRead":3}`)),
		"price.output is 1e+06":        catalog("2027-01-01", row("a", `,"price":{"input":1,"output":1000000}`)),
		"longAbove":                    catalog("2027-01-01", row("a", `,"price":{"input":1,"output":2,"longAbove":5}`)),
		"tiers.fast is 0":              catalog("2027-01-01", row("a", `,"tiers":{"fast":0}`)),
		"regions.us is -1":             catalog("2027-01-01", row("a", `,"regions":{"us":-1}`)),
		"invalid duration":             catalog("2027-01-01", row("a", `,"cache":{"lives":["soon"]}`)),
		"cache.lives is 0":             catalog("2027-01-01", row("a", `,"cache":{"lives":["0s"]}`)),
		`its successor "c" is not`:     catalog("2027-01-01", row("a", `,"ends":"2027-02-01","successor":"c"`)),
		"cannot parse":                 catalog("2027-01-01", row("a", `,"ends":"soon"`)),
		"its date is missing or after": catalog("2025-01-01", row("a", ``)),
		`its source "x" is not listed`: catalog("2027-01-01", strings.Replace(row("a", ``), `"s"`, `"x"`, 1)),
		"has no provider":              catalog("2027-01-01", strings.Replace(row("a", ``), `"p"`, `""`, 1)),
		"older than the one":           catalog("2026-01-01", row("a", ``)),
		"bytes":                        make([]byte, tokens.MaxCatalog+1),
	} {
		table := models(t)
		err := table.Replace(content)
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(fault, " or after", ", or after")) {
			t.Errorf("%s: the error is %v", fault, err)
		}
		if !table.Lookup("gpt-4o").Known {
			t.Errorf("%s: the catalog that held is gone", fault)
		}
	}
}

func TestNewerCatalogReplacesTheOneThatHolds(t *testing.T) {
	t.Parallel()
	table := models(t, tokens.Model{Name: "house-model", Window: 32_000})
	if err := table.Replace(catalog("2027-01-01", row("gpt-8", `,"price":{"input":1,"output":2},"tiers":{"fast":3},"cache":{"min":2048,"lives":["45m"]}`))); err != nil {
		t.Fatal(err)
	}
	model := table.Lookup("openai/gpt-8")
	if !model.Known || model.Cache.Usual(time.Hour) != 45*time.Minute || model.On(tokens.Terms{Tier: "fast"}).Output != 6 {
		t.Errorf("the new model is %+v", model)
	}
	if table.Lookup("gpt-4o").Known || !table.Lookup("house-model").Known {
		t.Error("the old models hold on, or an override is gone")
	}
}

// W52: every row of our catalog says where it is from; the makers' own endings are in it.
func TestOurCatalogIsComplete(t *testing.T) {
	t.Parallel()
	table, priced := models(t), 0
	names := catalogNames(t)
	for _, name := range names {
		model := table.Lookup(name)
		if model.Name != name || !model.Known {
			t.Errorf("%s is found as %s", name, model.Name)
		}
		if model.Price.Input > 0 {
			priced++
		}
	}
	if len(names) < 300 || priced < 290 {
		t.Errorf("%d models, %d of them with a price", len(names), priced)
	}
	ending, ok := table.Ending("anthropic/claude-opus-4.5")
	if want := time.Date(2027, 1, 22, 0, 0, 0, 0, time.UTC); !ok || !ending.On.Equal(want) || ending.Successor != "claude-opus-5-5" {
		t.Errorf("Claude Opus 4.5 ends at %+v", ending)
	}
	if _, ok := table.Ending("claude-opus-5-5"); ok {
		t.Error("Claude Opus 5.5 ends")
	}
	if content, err := os.ReadFile("catalog.json"); err != nil || strings.Contains(string(content), "\r") {
		t.Errorf("catalog.json: %v", err)
	}
}

// W52: what tokens cost follows from the tier and the region that answers name.
func TestTiersAndRegionsChangeThePrice(t *testing.T) {
	t.Parallel()
	table := models(t)
	for _, test := range []struct {
		model        string
		terms        tokens.Terms
		input, write float64
	}{
		{"claude-opus-5-5", tokens.Terms{}, 4, 5},
		{"claude-opus-5-5", tokens.Terms{Tier: "fast"}, 8, 10},
		{"claude-opus-5-5", tokens.Terms{Tier: "priority"}, 4, 5}, // is paid by contract
		{"claude-opus-5-5", tokens.Terms{Tier: "batch"}, 2, 2.5},
		{"claude-opus-5-5", tokens.Terms{Tier: "fast", Region: "us"}, 8.8, 11},
		{"claude-opus-5-5", tokens.Terms{Region: "global"}, 4, 5},
		{"claude-opus-4-5", tokens.Terms{Region: "us"}, 5, 6.25}, // can't be asked for it
		{"gpt-5.6-sol", tokens.Terms{Tier: "priority"}, 8, 10},
		{"gpt-5.6-sol", tokens.Terms{Tier: "fast"}, 8, 10},
		{"gpt-5.6-sol", tokens.Terms{Tier: "flex"}, 2, 2.5},
		{"gpt-5.6-sol", tokens.Terms{Region: "eu"}, 4.4, 5.5},
		{"gpt-5.5", tokens.Terms{Tier: "priority"}, 12.5, 12.5},
		{"gpt-5-mini", tokens.Terms{Tier: "priority"}, 0.45, 0.45},
		{"gpt-4o", tokens.Terms{Tier: "priority"}, 6.25, 6.25}, // not listed: the dearest
		{"gpt-4o", tokens.Terms{Tier: "flex"}, 2.5, 2.5},       // not listed: nothing is taken off
		{"gpt-4o", tokens.Terms{Tier: "turbo"}, 6.25, 6.25},
		{"glm-4.6", tokens.Terms{Tier: "on_demand", Region: "us"}, 0.43, 0.43},
	} {
		got := table.Lookup(test.model).On(test.terms)
		if diff := got.Input - test.input; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s, %+v: input costs %v, want %v", test.model, test.terms, got.Input, test.input)
		}
		if diff := got.CacheWrite - test.write; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s, %+v: writing to the cache costs %v, want %v", test.model, test.terms, got.CacheWrite, test.write)
		}
	}
	for _, test := range []struct {
		model, tool string
		uses        int
		want        float64
	}{
		{"claude-opus-5-5", "web_search", 2, 0.02},
		{"gpt-5.5", "file_search", 1, 0.0025},
		{"claude-opus-5-5", "web_fetch", 3, 0},
		{"gemini-3.8-flash", "google_search", 3, 0.042},
		{"gemini-2.5-pro", "google_search", 3, 0.035}, // for the prompt
		{"gemini-2.5-flash", "google_maps", 0, 0},
		{"gemini-3.1-pro", "code_execution", 2, 0},
	} {
		model := table.Lookup(test.model)
		if model.Provider == "google" {
			model.Provider = "gemini" // asked for it
		}
		price, isListed := table.ToolUse(model, test.tool)
		if got := price.Of(test.uses); !isListed || math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%d uses of %s by %s cost %v, %t; want %v", test.uses, test.tool, test.model, got, isListed, test.want)
		}
	}
	if _, isListed := table.ToolUse(tokens.Model{Provider: "groq"}, "web_search"); isListed {
		t.Error("a tool that is not listed has a price")
	}
	if dearest := table.DearestToolUse(); dearest != 0.03 {
		t.Errorf("the dearest tool costs %v", dearest)
	}
}
